"""The store: records ⇄ SQL, on SQLite or PostgreSQL. The only owner of the platform's database.

Comes in: records, and questions about them. Goes out: records. May not: decide, print, or know what is done with them.
The records and ``timestamp`` cost nothing to import; SQLAlchemy is loaded with the first use of ``Store``.
"""

from typing import TYPE_CHECKING, Any

from ringtrue.store.marks import USER_DELETED, user_mark
from ringtrue.store.records import (
    DEFAULT_PROJECT,
    QUERY_LIST,
    ABTest,
    ApiKey,
    AuditEntry,
    FeedbackEvent,
    Flag,
    HistoryPoint,
    KeptVersion,
    LoggedQuery,
    Reply,
    ReviewItem,
    RunType,
    ShadowRun,
    StoredBaseline,
    StoredExperiment,
    StoredGoldenSet,
    StoredJob,
    StoredJudgment,
    StoredResult,
    StoredRun,
    TestPoint,
)
from ringtrue.store.times import timestamp

if TYPE_CHECKING:
    from ringtrue.store.archive import archived_queries
    from ringtrue.store.retention import Pruned, Retention
    from ringtrue.store.reviews import Rating
    from ringtrue.store.rows import result_columns
    from ringtrue.store.store import Store

__all__ = [
    "DEFAULT_PROJECT",
    "QUERY_LIST",
    "USER_DELETED",
    "ABTest",
    "ApiKey",
    "AuditEntry",
    "FeedbackEvent",
    "Flag",
    "HistoryPoint",
    "KeptVersion",
    "LoggedQuery",
    "Pruned",
    "Rating",
    "Reply",
    "Retention",
    "ReviewItem",
    "RunType",
    "ShadowRun",
    "Store",
    "StoredBaseline",
    "StoredExperiment",
    "StoredGoldenSet",
    "StoredJob",
    "StoredJudgment",
    "StoredResult",
    "StoredRun",
    "TestPoint",
    "archived_queries",
    "result_columns",
    "timestamp",
    "user_mark",
]

_LATE = {
    "Pruned": "retention",
    "Rating": "reviews",
    "Retention": "retention",
    "Store": "store",
    "archived_queries": "archive",
    "result_columns": "rows",
}
"""Names that need SQLAlchemy, and the module of each."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(f"ringtrue.store.{_LATE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
