"""Reports: an evaluation with its comparison and verdict → Markdown, HTML, JSON, JUnit, SARIF, a pull-request comment.

Pure: texts out; nothing here searches, decides, prints, reads files or the clock. ``make`` makes the report; ``tables`` has the
rows, ``sentences`` the sentences and ``formatting`` the numbers that all formats share.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.report.advice import recommend as recommend
    from ringtrue.report.comment import marker as marker, pull_request as pull_request
    from ringtrue.report.formatting import one_line as one_line
    from ringtrue.report.formatting import (
        DASH as DASH,
        PERCENTILES as PERCENTILES,
        beside_id as beside_id,
        milliseconds as milliseconds,
        moment as moment,
        number as number,
        page_number as page_number,
        page_signed as page_signed,
        percent as percent,
        portion as portion,
        probability as probability,
        signed as signed,
        signed_milliseconds as signed_milliseconds,
        span as span,
    )
    from ringtrue.report.html_report import code_markup as code_markup, html as html
    from ringtrue.report.machine_formats import as_json as as_json, junit as junit, sarif as sarif
    from ringtrue.report.make import file_name as file_name, report_on as report_on, report_writer as report_writer
    from ringtrue.report.markdown_report import markdown as markdown
    from ringtrue.report.page.sections import (
        measure_rows as measure_rows,
        page_sections as page_sections,
    )
    from ringtrue.report.page.sides import Sides as Sides
    from ringtrue.report.reading import (
        QueryChange as QueryChange,
        beside as beside,
        changes as changes,
        known as known,
        depth_of_loss as depth_of_loss,
    )
    from ringtrue.report.reading import lost_between as lost_between, primary_of as primary_of, query_of as query_of
    from ringtrue.report.records import Recommendation as Recommendation, Report as Report
    from ringtrue.report.sentences import (
        BY_WEIGHT as BY_WEIGHT,
        STATUS as STATUS,
        TONES as TONES,
        Headline as Headline,
        against as against,
        headline as headline,
        how_tested as how_tested,
        judged as judged,
        lower_is_better as lower_is_better,
        outcome as outcome,
        page_headline as page_headline,
        reasons as reasons,
        same_golden as same_golden,
        says as says,
        slice_terms as slice_terms,
        terms as terms,
    )
    from ringtrue.report.tables import (
        blame_lines as blame_lines,
        component_lines as component_lines,
        measure_lines as measure_lines,
        notes as notes,
        lost_at as lost_at,
        query_lines as query_lines,
        relevant_documents as relevant_documents,
        shown_measures as shown_measures,
        slice_fields as slice_fields,
        warnings as warnings,
        without_it as without_it,
    )
else:
    __getattr__, __dir__ = on_first_use(__name__)
