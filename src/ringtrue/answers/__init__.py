"""What the service answers: one record each, which REST writes, the client returns and the store maps.

Comes in: what the rooms above have found. Goes out: frozen records. May not: need more than the standard library, so that a
program that only calls a service loads nothing else.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.answers.evaluations import (
        GateCheck as GateCheck,
        Compared as Compared,
        ComponentScores as ComponentScores,
        Details as Details,
    )
    from ringtrue.answers.evaluations import Evaluated as Evaluated, Figures as Figures, Gated as Gated
    from ringtrue.answers.evaluations import LatencyDifference as LatencyDifference, MeasureDifference as MeasureDifference
    from ringtrue.answers.evaluations import Outcome as Outcome, Word as Word
    from ringtrue.answers.library import BaselineItem as BaselineItem, BaselineUpdate as BaselineUpdate
    from ringtrue.answers.library import BaselineVersion as BaselineVersion, Changes as Changes, ExperimentRow as ExperimentRow
    from ringtrue.answers.library import GoldenDifference as GoldenDifference, GoldenItem as GoldenItem
    from ringtrue.answers.library import GoldenProblem as GoldenProblem, GoldenVersion as GoldenVersion
    from ringtrue.answers.library import JudgmentChange as JudgmentChange, Movement as Movement
    from ringtrue.answers.log import Actor as Actor, Deleted as Deleted, Event as Event, EventType as EventType
    from ringtrue.answers.log import JudgmentSource as JudgmentSource, KeptJudgment as KeptJudgment, LinkedEvent as LinkedEvent
    from ringtrue.answers.log import Logged as Logged, LoggedSearch as LoggedSearch, LogStats as LogStats, LogStep as LogStep
    from ringtrue.answers.log import SearchFacts as SearchFacts, StageLogged as StageLogged, Step as Step, Taken as Taken
    from ringtrue.answers.reading import RecordReader as RecordReader, shown as shown
    from ringtrue.answers.record import Record as Record
    from ringtrue.answers.reviews import AddedPairs as AddedPairs, ReviewAgreement as ReviewAgreement, Backlog as Backlog
    from ringtrue.answers.reviews import Dispute as Dispute, NextPair as NextPair, Pair as Pair, Published as Published
    from ringtrue.answers.reviews import Reviewer as Reviewer, ReviewState as ReviewState, ReviewStanding as ReviewStanding
    from ringtrue.answers.reviews import Undone as Undone
    from ringtrue.answers.rollout import Action as Action, Condition as Condition, CountedQuery as CountedQuery
    from ringtrue.answers.rollout import EvidencePoint as EvidencePoint, FlagChange as FlagChange, FlagDecision as FlagDecision
    from ringtrue.answers.rollout import FlagPage as FlagPage, FlagState as FlagState, ListedFlag as ListedFlag
    from ringtrue.answers.rollout import RecordedScores as RecordedScores, SequentialTest as SequentialTest
    from ringtrue.answers.rollout import SequentialTestPath as SequentialTestPath, ShadowFeature as ShadowFeature
    from ringtrue.answers.rollout import ShadowFeatureRuns as ShadowFeatureRuns, ShadowRecorded as ShadowRecorded
    from ringtrue.answers.rollout import ShadowRun as ShadowRun, ShadowSource as ShadowSource, ShadowSummary as ShadowSummary
    from ringtrue.answers.rollout import Status as Status, Variant as Variant
    from ringtrue.answers.runs import Found as Found, FoundDocument as FoundDocument, Judged as Judged, Lost as Lost
    from ringtrue.answers.runs import QueryItem as QueryItem, QueryOfRun as QueryOfRun, RunFigures as RunFigures
    from ringtrue.answers.runs import RunHit as RunHit, RunItem as RunItem, StageRank as StageRank
    from ringtrue.answers.server import ENDED as ENDED, Alert as Alert, AlertRule as AlertRule, Alerts as Alerts
    from ringtrue.answers.server import AuditRecord as AuditRecord, Diagnostics as Diagnostics, HealthPart as HealthPart
    from ringtrue.answers.server import HealthState as HealthState, History as History, IntakeState as IntakeState, Job as Job
    from ringtrue.answers.server import JobError as JobError, JobStarted as JobStarted, JobState as JobState
    from ringtrue.answers.server import KeyState as KeyState, Line as Line, MadeKey as MadeKey, PartState as PartState
    from ringtrue.answers.server import TimePoint as TimePoint, RuleState as RuleState, Scope as Scope
else:
    __getattr__, __dir__ = on_first_use(__name__)
