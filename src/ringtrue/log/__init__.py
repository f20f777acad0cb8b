"""A live search → a stored row: the SDK, its batch writer and spool, redaction, and imports of other logs.

The names are imported on first use: a live system pays only for those it takes.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.log.capture import (
        event_name as event_name,
        quality_proxy as quality_proxy,
        query_name as query_name,
        saturating as saturating,
    )
    from ringtrue.log.exchange import (
        export_rows as export_rows,
        import_files as import_files,
        SOURCES as SOURCES,
    )
    from ringtrue.log.figures import (
        Figures as Figures,
        living as living,
        log_figures as log_figures,
        losses as losses,
    )
    from ringtrue.log.importers import ACTIONS as ACTIONS, rows_in_ubi as rows_in_ubi
    from ringtrue.log.linking import (
        check_event as check_event,
        link as link,
        link_all as link_all,
        queries_of as queries_of,
        record_feedback as record_feedback,
    )
    from ringtrue.log.query_log import (
        log_folder as log_folder,
        QueryLog as QueryLog,
    )
    from ringtrue.log.redact import Redactor as Redactor
    from ringtrue.log.rows import line_of as line_of, row_of as row_of
    from ringtrue.store import FeedbackEvent as FeedbackEvent, LoggedQuery as LoggedQuery
    from ringtrue.traffic import TrafficMiddleware as TrafficMiddleware
else:
    __getattr__, __dir__ = on_first_use(__name__)
