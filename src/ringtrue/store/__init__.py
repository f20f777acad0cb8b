"""The store: records ⇄ SQL, on SQLite or PostgreSQL. The only owner of the platform's database.

Comes in: records, and questions about them. Goes out: records. May not: decide, print, or know what is done with them.
The records and ``timestamp`` cost nothing to import; SQLAlchemy is loaded with the first use of ``Store``.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

from ringtrue.store.records import (
    ABTest as ABTest,
    ApiKey as ApiKey,
    AuditEntry as AuditEntry,
    DEFAULT_PROJECT as DEFAULT_PROJECT,
    MOST_KEY_DAYS as MOST_KEY_DAYS,
    FeedbackEvent as FeedbackEvent,
    Flag as Flag,
    HistoryPoint as HistoryPoint,
    KeptVersion as KeptVersion,
    LoggedQuery as LoggedQuery,
    QUERY_LIST as QUERY_LIST,
    Reply as Reply,
    ReviewItem as ReviewItem,
    RunType as RunType,
    ShadowRun as ShadowRun,
    StoredBaseline as StoredBaseline,
    StoredExperiment as StoredExperiment,
    StoredGoldenSet as StoredGoldenSet,
    StoredJob as StoredJob,
    StoredJudgment as StoredJudgment,
    StoredRating as StoredRating,
    StoredResult as StoredResult,
    StoredRun as StoredRun,
    TestPoint as TestPoint,
    timestamp as timestamp,
    USER_DELETED as USER_DELETED,
    user_mark as user_mark,
)

if TYPE_CHECKING:
    from ringtrue.store.retention import archived_queries as archived_queries, Pruned as Pruned, Retention as Retention
    from ringtrue.store.store import Store as Store
    from ringtrue.store.tables import result_columns as result_columns
else:
    __getattr__, __dir__ = on_first_use(__name__)
