"""What a gate asks for, as one frozen value, and the ``[gate]`` section of ringtrue.toml read into it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from ringtrue.config import Config
from ringtrue.errors import InputError, SpecError, nearest
from ringtrue.measures import Measure

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


@dataclass(frozen=True)
class Policy:
    """The rules of a gate. Names of measures are kept in their one canonical form.

    >>> Policy(floors={"recall_at_5": 0.8}).floors["R@5"]
    0.8

    Raises InputError for a value that is out of range, and for a name that does not exist, with the nearest that does.
    """

    floors: Mapping[str, float] = field(default_factory=lambda: {"R@5": 0.80, "P(rel=2)@5": 0.60, "RR": 0.70, "nDCG@5": 0.75})
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
        settle("slices", _table(self.slices, "slices", _slice, _floors))
        if isinstance(self.drop_measures, str) or not isinstance(self.drop_measures, Iterable):
            raise InputError(f"drop_measures = {self.drop_measures!r} is no list; write it like ['R@5', 'nDCG@5']")
        names = (_measure(name, "drop_measures") for name in self.drop_measures)
        settle("drop_measures", tuple(dict.fromkeys(names)))
        if self.mode not in get_args(Mode):
            raise InputError(f"mode = {self.mode!r} is not known; write {nearest(str(self.mode), get_args(Mode))}")
        for name in self.drop_measures if self.mode == "statistical" else ():
            if Measure.parse(name).definition.average != "mean":
                raise InputError(f"drop_measures: {name} is no mean over queries and cannot be tested; leave it out")
        for name, (holds, says) in _RANGES.items():
            settle(name, _number(getattr(self, name), name, infinite=name == "latency_increase"))
            if not holds(getattr(self, name)):
                raise InputError(f"{name} = {getattr(self, name)!r} is {says}")
        for name, usual in (("slice_minimum", 20), ("minimum_queries", 5)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} = {value!r} is no number of queries; write a whole one such as {usual}")
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

        Names that are no part of a policy are left to the command whose options they are.

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
        raise InputError(f"'{name}' is no slice; write field=value, like query_type=factual")
    return label.strip(), value.strip()


def _table(
    given: Any, place: str, name_of: Callable[[str, str], str], value_of: Callable[[Any, str], Any]
) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{place} = {given!r:.60} is no table; write [gate.{place}] with one line for each entry")
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


def _slice(name: str, place: str) -> str:
    return "=".join(split_slice(name))


def _number(value: Any, place: str, *, infinite: bool = False) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value) or (math.isinf(value) > infinite):
        raise InputError(f"{place} = {value!r} is no number; write one such as 0.05")
    return float(value)


def _milliseconds(value: Any, place: str) -> float:
    if _number(value, place) <= 0:
        raise InputError(f"{place} = {value!r} is not above 0; write milliseconds, such as 500")
    return float(value)
