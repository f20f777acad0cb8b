"""The client of a service: Python's way to ``/v1``.

Comes in: the address of a service, a key, and what is asked. Goes out: typed records, and Ringtrue's own errors for what the
service refuses. May not: know anything of the rooms above, so that a program that only calls a service loads none of them.
"""

from ringtrue.client.baselines import BaselineItem, BaselineUpdate, BaselineVersion, Movement
from ringtrue.client.client import Client
from ringtrue.client.evaluations import (
    Check,
    Compared,
    Component,
    Details,
    Evaluated,
    Gated,
    LatencyDifference,
    MeasureDifference,
)
from ringtrue.client.experiments import ExperimentRow
from ringtrue.client.flags import Condition, FlagChange, FlagDecision, FlagPage, FlagState, ListedFlag, Variant
from ringtrue.client.golden import Changes, GoldenDifference, GoldenItem, GoldenProblem, GoldenVersion, JudgmentChange
from ringtrue.client.jobs import Job, JobError
from ringtrue.client.judgments import KeptJudgment
from ringtrue.client.keys import AuditEntry, KeyState, MadeKey
from ringtrue.client.log import Event, LinkedEvent, Logged, LoggedSearch, LogStats, LogStep, StageLogged, Taken
from ringtrue.client.monitoring import (
    Alert,
    AlertRule,
    Alerts,
    Diagnostics,
    HealthPart,
    HealthState,
    History,
    IntakeState,
    Line,
    Point,
)
from ringtrue.client.reviews import AddedPairs, Agreement, Backlog, Dispute, NextPair, Pair, Published, Reviewer, Standing
from ringtrue.client.runs import Judged, Lost, QueryItem, QueryOfRun, RunFigures, RunHit, RunItem, StageRank
from ringtrue.client.searching import Found, FoundDocument
from ringtrue.client.shadow import ShadowFeature, ShadowFeatureRuns, ShadowRecorded, ShadowRun, ShadowSummary
from ringtrue.client.tests import CountedQuery, EvidencePoint, RecordedScores, SequentialTest, SequentialTestPath

__all__ = [
    "AddedPairs",
    "Agreement",
    "Alert",
    "AlertRule",
    "Alerts",
    "AuditEntry",
    "Backlog",
    "BaselineItem",
    "BaselineUpdate",
    "BaselineVersion",
    "Changes",
    "Check",
    "Client",
    "Compared",
    "Component",
    "Condition",
    "CountedQuery",
    "Details",
    "Diagnostics",
    "Dispute",
    "Evaluated",
    "Event",
    "EvidencePoint",
    "ExperimentRow",
    "FlagChange",
    "FlagDecision",
    "FlagPage",
    "FlagState",
    "Found",
    "FoundDocument",
    "Gated",
    "GoldenDifference",
    "GoldenItem",
    "GoldenProblem",
    "GoldenVersion",
    "HealthPart",
    "HealthState",
    "History",
    "IntakeState",
    "Job",
    "JobError",
    "Judged",
    "JudgmentChange",
    "KeptJudgment",
    "KeyState",
    "LatencyDifference",
    "Line",
    "LinkedEvent",
    "ListedFlag",
    "LogStats",
    "LogStep",
    "Logged",
    "LoggedSearch",
    "Lost",
    "MadeKey",
    "MeasureDifference",
    "Movement",
    "NextPair",
    "Pair",
    "Point",
    "Published",
    "QueryItem",
    "QueryOfRun",
    "RecordedScores",
    "Reviewer",
    "RunFigures",
    "RunHit",
    "RunItem",
    "SequentialTest",
    "SequentialTestPath",
    "ShadowFeature",
    "ShadowFeatureRuns",
    "ShadowRecorded",
    "ShadowRun",
    "ShadowSummary",
    "StageLogged",
    "StageRank",
    "Standing",
    "Taken",
    "Variant",
]
