"""Reports: an evaluation, and what was said about it → Markdown, HTML, JSON, JUnit, SARIF, a pull-request comment.

Pure: texts out. May not: search, decide, print, read files or the clock. ``story`` holds the sentences and ``lines`` the rows
that the formats share; ``make`` is the one way in.
"""

from ringtrue.report.formats import report_writer as report_writer
from ringtrue.report.html import html as html
from ringtrue.report.json_report import as_json as as_json
from ringtrue.report.junit import junit as junit
from ringtrue.report.make import file_name as file_name, report_on as report_on
from ringtrue.report.markdown import markdown as markdown
from ringtrue.report.pull_request import marker as marker, pull_request as pull_request
from ringtrue.report.recommend import recommend as recommend
from ringtrue.report.records import Recommendation as Recommendation, Report as Report
from ringtrue.report.sarif import sarif as sarif
