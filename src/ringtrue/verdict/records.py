"""What a gate asks for, with the ``[gate]`` section of ringtrue.toml read into it; comparisons, verdicts and baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from ringtrue.brief import brief
from ringtrue.config import Config
from ringtrue.errors import OK, REGRESSION, UNDECIDED, InputError, SpecError, nearest
from ringtrue.measures import Counted, Measure, Scores
from ringtrue.run import Origin
from ringtrue.stats import PairedVerdict, Word

Mode = Literal["relative", "statistical"]
PERCENTILES = ("p50", "p95", "p99")
LATENCY_ANSWERS = 200
"""Timed answers on each side that it takes to decide about a percentile; of fewer, one hiccup moves it."""

_SHARE = (lambda value: 0 <= value < 1, "out of range; write a share from 0 to below 1, such as 0.05 for 5 %")
_RANGES: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "max_drop": _SHARE,
    "min_effect": _SHARE,
    "alpha": (lambda value: 0 < value < 1, "out of range; write a number between 0 and 1, such as 0.05"),
    "latency_increase": (lambda value: value > 0, "not above 0; write a share such as 0.2, or inf"),
    "latency_slack": (lambda value: value >= 0, "below 0; write milliseconds, such as 5"),
}


class UsualFloor(float):
    """A floor that no user wrote: if the judgments cannot reach it, it decides nothing."""


@dataclass(frozen=True)
class Policy:
    """The rules of a gate. Names of measures are kept in their one canonical form.

    >>> Policy(floors={"recall_at_5": 0.8}).floors["R@5"]
    0.8

    Raises InputError for a value that is out of range, and for a name that does not exist, with the nearest that does.
    """

    floors: Mapping[str, float] = field(
        default_factory=lambda: {
            "R@5": UsualFloor(0.80), "P(rel=2)@5": UsualFloor(0.60), "RR": UsualFloor(0.70), "nDCG@5": UsualFloor(0.75),
        }
    )  # fmt: skip
    """Lowest mean of each measure; of a measure where lower is better, the highest."""
    latency: Mapping[str, float] = field(default_factory=lambda: {"p50": 200.0, "p95": 500.0, "p99": 1000.0})
    """Highest milliseconds of each percentile."""
    slices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Floors of single slices: ``{"query_type=factual": {"R@5": 0.7}}``."""
    drop_measures: tuple[str, ...] = ("R@5", "R@10", "P@5", "RR", "nDCG@5")
    """The measures that are compared with the baseline."""
    max_drop: float = 0.05
    """Largest share of the baseline that may be lost in mode 'relative'; exactly this much passes."""
    mode: Mode = "relative"
    """'relative': every fall beyond max_drop fails; 'statistical': one that is significant and larger than min_effect."""
    min_effect: float = 0.01
    """Largest fall that is no matter, in points of the measure, in mode 'statistical'."""
    alpha: float = 0.05
    latency_increase: float = 0.20
    """The 95th percentile must grow by less than this share; ``inf`` switches the rule off.

    It fails only if the interval of the growth lies above it, and only with 200 timed answers on each side.
    """
    latency_slack: float = 5.0
    """Milliseconds by which it may grow whatever the share: of a millisecond, every hiccup of a machine is 20 %."""
    slice_drop: bool = False
    """Whether every slice with at least slice_minimum queries is compared with the baseline, too."""
    slice_minimum: int = 20
    minimum_queries: int = 5
    """Fewest scored queries that a verdict may rest on; percentages of fewer are alarms without meaning."""
    same_corpus: bool = True
    """Whether a run over other documents than the baseline's is undecided; False compares all the same."""
    require_baseline: bool = True
    """Whether a gate without a baseline is undecided; False judges by floors and ceilings alone then."""

    def __post_init__(self) -> None:
        def settle(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)  # frozen for everybody else

        settle("floors", _floors(self.floors, "floors"))
        settle("latency", _table(self.latency, "latency", _percentile, _milliseconds))
        settle("slices", _table(self.slices, "slices", lambda name, _: "=".join(split_slice(name)), _floors))
        if isinstance(self.drop_measures, str) or not isinstance(self.drop_measures, Iterable):
            raise InputError(f"drop_measures = {self.drop_measures!r} is not a list; write it like ['R@5', 'nDCG@5']")
        names = (_measure(name, "drop_measures") for name in self.drop_measures)
        settle("drop_measures", tuple(dict.fromkeys(names)))
        if self.mode not in get_args(Mode):
            raise InputError(f"mode = {self.mode!r} is not known; write {nearest(str(self.mode), get_args(Mode))}")
        for name in self.drop_measures if self.mode == "statistical" else ():
            if Measure.parse(name).definition.average != "mean":
                raise InputError(f"drop_measures: {name} is not a mean over queries and cannot be tested; leave it out")
        for name, (holds, says) in _RANGES.items():
            settle(name, _number(getattr(self, name), name, infinite=name == "latency_increase"))
            if not holds(getattr(self, name)):
                raise InputError(f"{name} = {getattr(self, name)!r} is {says}")
        for name, usual in (("slice_minimum", 20), ("minimum_queries", 5)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} = {value!r} is not a number of queries; write a whole number such as {usual}")
        for name in ("slice_drop", "same_corpus", "require_baseline"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} = {getattr(self, name)!r} is neither true nor false; write one of the two")

    @property
    def measures(self) -> tuple[str, ...]:
        """Every measure that the policy asks for, once."""
        sliced = (name for floors in self.slices.values() for name in floors)
        return tuple(dict.fromkeys((*self.floors, *self.drop_measures, *sliced)))

    @classmethod
    def of(cls, settings: Mapping[str, Any], *, place: object = "gate") -> Policy:
        """Return the policy in a ``[gate]`` section; what it leaves out keeps its default, a table replaces the default one.

        Names that are not part of a policy are left to the command whose options they are.

        >>> Policy.of({"mode": "statistical", "floors": {}}).floors
        mappingproxy({})

        Raises InputError naming ``place``, the key and the nearest legal one.
        """
        known = {item.name for item in fields(cls)}
        try:
            return replace(cls(), **{name: value for name, value in settings.items() if name in known})
        except InputError as problem:
            raise InputError(f"{place}: [gate] {problem}") from None

    @classmethod
    def configured(cls, config: Config) -> Policy:
        """Return the policy of ``[gate]`` in ringtrue.toml; raises InputError naming the file."""
        return cls.of(config.gate, place=config.file or "gate")

    def with_floors(self, floors: Iterable[str], **changes: Any) -> Policy:
        """Return the policy with floors added (``R@5=0.8``) or removed (``R@5=off``), and with other fields changed.

        >>> Policy().with_floors(["R@5=off", "RR=0.5"], mode="statistical").floors["RR"]
        0.5

        Raises InputError for a floor that cannot be read.
        """
        kept = dict(self.floors)
        for item in floors:
            # The measure may have options of its own, P(rel=2)@5=0.6: the last sign is the one that counts.
            name, equals, value = item.rpartition("=")
            if not equals:
                raise InputError(f"--floor {item!r} names no value; write it like --floor 'R@5=0.8'")
            measure = str(Measure.parse(name.strip()))
            if value.strip() == "off":
                kept.pop(measure, None)
                continue
            try:
                kept[measure] = float(value)
            except ValueError:
                raise InputError(f"--floor {item!r}: {value!r} is neither a number nor off; write it like 'R@5=0.8'") from None
        return replace(self, floors=kept, **changes)


def split_slice(name: str) -> tuple[str, str]:
    """Return field and value of a slice; raises InputError.

    >>> split_slice("query_type=factual")
    ('query_type', 'factual')
    """
    label, equals, value = name.partition("=")
    if not (equals and label.strip() and value.strip()):
        raise InputError(f"'{name}' is not a slice; write field=value, like query_type=factual")
    return label.strip(), value.strip()


def _table(
    given: Any, place: str, name_of: Callable[[str, str], str], value_of: Callable[[Any, str], Any]
) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{place} = {given!r:.60} is not a table; write [gate.{place}] with one line for each entry")
    read: dict[str, Any] = {}
    for key, value in given.items():
        name = name_of(str(key), place)
        if name in read:
            raise InputError(f"{place} names {name} twice, once as '{key}'; keep one of the two")
        read[name] = value_of(value, f"{place}.'{key}'")
    return MappingProxyType(read)


def _floors(given: Any, place: str) -> Mapping[str, float]:
    read = _table(given, place, _measure, _number)
    for name, value in read.items():
        if Measure.parse(name).definition.bounded and not 0 <= value <= 1:
            raise InputError(f"{place}.'{name}' = {value!r} is out of range; floors of {name} lie between 0 and 1")
    return read


def _measure(name: str, place: str) -> str:
    try:
        return str(Measure.parse(name))
    except SpecError as problem:
        raise InputError(f"{place}: {problem}") from None


def _percentile(name: str, place: str) -> str:
    if name not in PERCENTILES:
        raise InputError(f"{place} has no '{name}'; write {nearest(name, PERCENTILES)}")
    return name


def _number(value: Any, place: str, *, infinite: bool = False) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value) or (math.isinf(value) > infinite):
        raise InputError(f"{place} = {value!r} is not a number; write one such as 0.05")
    return value if isinstance(value, float) else float(value)


def _milliseconds(value: Any, place: str) -> float:
    if _number(value, place) <= 0:
        raise InputError(f"{place} = {value!r} is not above 0; write milliseconds, such as 500")
    return float(value)


@dataclass(frozen=True, kw_only=True)
class MeasureComparison(PairedVerdict):
    """One measure of B against A over paired queries. ``diff`` is b − a as measured; the word knows which way is better."""

    measure: str
    a: float
    b: float
    deltas: Mapping[str, float] = field(default_factory=dict, repr=False)
    """b − a by query."""
    decides: bool = True
    """Whether the measure was asked to decide; the others are for reading, and no correction counts them."""


@dataclass(frozen=True)
class LatencyComparison:
    """Milliseconds of A and B over the same queries."""

    n: int
    mean_diff: float
    low: float
    high: float
    p50: tuple[float, float]
    """(a, b)."""
    p95: tuple[float, float]
    p99: tuple[float, float]
    comparable: bool
    """False if the two were measured on different machines; the figures are then for reading only."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """B against A: is it better?"""

    a: str
    b: str
    primary: str
    """The measure whose word is the verdict."""
    verdict: Word
    reason: str
    measures: Mapping[str, MeasureComparison]
    slices: Mapping[str, Mapping[str, Mapping[str, MeasureComparison]]] = field(default_factory=dict)
    """field → value → measure; explorative: corrected for the values of the field, never part of the verdict."""
    latency: LatencyComparison | None = None
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    """Queries that one side lacks; they take no part."""
    alpha: float = 0.05
    correction: str = "holm"
    resamples: int = 10_000
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def deciding(self) -> tuple[str, ...]:
        """Return the measures that were asked to decide, in their order; the others are for reading."""
        return tuple(name for name, found in self.measures.items() if found.decides)

    def __repr__(self) -> str:
        found = self.measures[self.primary]
        return (
            f"<Comparison of {self.b:.100} against {self.a:.100}: {self.verdict} by {self.primary} "
            f"({found.a:.4f} → {found.b:.4f}, {found.certainty}, {found.n} queries); {len(self.measures)} measures>"
        )


Rule = Literal["floor", "drop", "significant drop", "slice", "latency", "latency increase", "constitutional", "completeness"]
CheckStatus = Literal["pass", "degraded", "fail", "advisory", "undecided"]


@dataclass(frozen=True)
class Check:
    """One rule applied to one number."""

    rule: Rule
    measure: str
    """A measure, or ``p95`` and the like."""
    status: CheckStatus
    message: str
    """One sentence with measure, current value, threshold or baseline, and the fall in percent."""
    current: float
    threshold: float | None = None
    baseline: float | None = None
    degradation: float | None = None
    """Fall against the baseline as a share: 0.05 is 5 %; below 0 if it rose."""
    interval: tuple[float, float] | None = None
    slice: str | None = None
    """Like ``query_type=factual``."""
    queries: tuple[str, ...] = ()
    """The queries behind a failure, the guiltiest first."""


@dataclass(frozen=True, repr=False)
class Verdict:
    """What the gate says: 'pass', 'fail' or 'undecided', with every check."""

    word: Literal["pass", "fail", "undecided"]
    checks: tuple[Check, ...]
    name: str
    """The evaluation that was judged."""
    baseline: str | None = None
    """Version of the baseline."""
    comparison: Comparison | None = None
    mode: str = "relative"
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 pass, 1 regression, 3 could not decide."""
        return {"pass": OK, "fail": REGRESSION, "undecided": UNDECIDED}[self.word]

    @property
    def failures(self) -> tuple[Check, ...]:
        """Return the checks that failed."""
        return self.of_status("fail")

    def of_status(self, status: CheckStatus) -> tuple[Check, ...]:
        """Return the checks with one status, in their order."""
        return tuple(check for check in self.checks if check.status == status)

    def __repr__(self) -> str:
        against = f"against baseline {self.baseline:.40}" if self.baseline else "without a baseline"
        shown = [f"  {check.status}: {check.message:.200}" for check in (*self.failures, *self.of_status("undecided"))]
        more = [f"  and {len(shown) - 5} more"] if len(shown) > 5 else []
        return "\n".join(
            [f"<Verdict on {self.name:.100} {against}: {self.word}, {len(self.checks)} checks>", *shown[:5], *more]
        )


@dataclass(frozen=True, eq=False)
class Baseline:
    """What is held to be good enough, recorded in a file in git. An Arm like an Evaluation."""

    version: str
    """Of the baseline itself, like 1.0.0; raised by every update."""
    retriever: str
    config: Mapping[str, Any]
    fingerprint: str
    golden: Origin
    corpus: str | None
    recorded_at: str
    machine: str
    metrics: Mapping[str, float]
    latency: Mapping[str, float]
    """p50, p95 and p99 in milliseconds; empty if none was measured."""
    per_query: Mapping[str, Mapping[str, float]] = field(repr=False)
    """query → measure → value; nan if undefined."""
    latencies: Mapping[str, float] = field(default_factory=dict, repr=False)
    repeats: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False)
    """Milliseconds of every pass over the queries after the first, by query."""
    rankings: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The first ten documents by query, to say what was lost."""
    judged: Mapping[str, str] = field(default_factory=dict, repr=False)
    """A hash of every query's text and judgments: what changed in the golden set since, and what can still be compared."""
    workers: int = 1
    """Questions asked at once when the latencies were measured."""
    reason: str = ""
    """Why a worse run was accepted, when it was (``--force --reason``)."""

    def __repr__(self) -> str:
        made = {"retriever": self.retriever, "golden": self.golden.version, "recorded_at": self.recorded_at}
        return brief(self, version=self.version, **made, queries=len(self.per_query), metrics=self.metrics)

    @property
    def name(self) -> str:
        return f"baseline {self.version}"

    @cached_property
    def timings(self) -> dict[str, tuple[float, ...]]:
        """Return the milliseconds of every pass by query; empty if the file holds no times of single queries."""
        return {query: (first, *self.repeats.get(query, ())) for query, first in self.latencies.items()}

    @cached_property
    def scores(self) -> Scores:
        """The values per query as a table, like those of an evaluation."""
        measures = tuple(Measure.parse(name) for name in self.metrics)
        rows = [[self.per_query[query].get(str(measure), math.nan) for query in self.per_query] for measure in measures]
        values = np.asarray(rows, np.float64).reshape(len(measures), len(self.per_query))
        judged = np.full(len(self.per_query), np.nan)
        counted = Counted(len(self.per_query), rel=self.golden.relevance_threshold)
        return Scores(measures, tuple(self.per_query), values, counted, judged)
