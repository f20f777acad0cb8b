"""Reports: an evaluation, and what was said about it → Markdown, HTML, JSON, JUnit, SARIF, a pull-request comment.

Pure: texts out. May not: search, decide, print, read files or the clock. ``story`` holds the sentences and ``lines`` the rows
that the formats share; ``make`` is the one way in.
"""

from ringtrue.report.html import html
from ringtrue.report.json_report import as_json
from ringtrue.report.junit import junit
from ringtrue.report.make import file_name, report_on
from ringtrue.report.markdown import markdown
from ringtrue.report.pull_request import marker, pull_request
from ringtrue.report.recommend import recommend
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.sarif import sarif

__all__ = [
    "Recommendation",
    "Report",
    "as_json",
    "file_name",
    "html",
    "junit",
    "markdown",
    "marker",
    "pull_request",
    "recommend",
    "report_on",
    "sarif",
]
