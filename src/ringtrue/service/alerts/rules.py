"""The alert rules that ship with Ringtrue, read from the one file that Prometheus reads, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from ringtrue.errors import InputError
from ringtrue.service.alerts.expression import Node, Series, ranges
from ringtrue.service.alerts.promql import parse, seconds
from ringtrue.service.gauges import CATALOGUE, Names, Reading

FILE = "ringtrue-alerts.yml"
FROM_OUTSIDE = "ringtrue-from-outside"
"""The group of rules for Prometheus alone: a service that is down evaluates nothing."""
_FIELDS = {"alert", "expr", "for", "labels", "annotations"}
_SLOT = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_DIGITS = re.compile(r'printf "%\.(\d)f" \$value')


@dataclass(frozen=True)
class Rule:
    """One alert: when it is meant, for how long that must hold, and what a reader is told."""

    name: str
    expression: Node
    text: str
    """The expression as it is written."""
    lasts: float
    """Seconds that it must hold before it fires."""
    severity: str
    summary: str
    description: str
    labels: Mapping[str, str] = field(default_factory=dict)


def rules_text(names: Names | None = None) -> str:
    """Return the rules as a file for Prometheus, with the metrics called as ``names`` says."""
    text = files("ringtrue.service.alerts").joinpath(FILE).read_text(encoding="utf-8")
    if names is None:
        return text
    outside = {
        here: there
        for metric in CATALOGUE
        for here, there in [
            (metric.name, names[metric.name]),
            *zip(metric.sample_names(metric.name), metric.sample_names(names[metric.name]), strict=True),
        ]
    }
    return re.sub(r"\bringtrue_[a-z_]+\b", lambda found: outside.get(found[0], found[0]), text)


@cache
def shipped_rules() -> tuple[Rule, ...]:
    """Return the shipped rules in the order of their file."""
    return read_rules(rules_text(), name=FILE)


def read_rules(text: str, *, name: str) -> tuple[Rule, ...]:
    """Return the rules of a file that can be evaluated over stored history.

    Raises InputError for what this evaluator does not know, with the rule that has it.
    """
    groups = [group for group in yaml.safe_load(text)["groups"] if group["name"] != FROM_OUTSIDE]
    return tuple(_rule(row, name) for group in groups for row in group["rules"])


def _rule(row: Mapping[str, Any], file: str) -> Rule:
    name = row.get("alert")
    if name is None or not set(row) <= _FIELDS:
        unknown = ", ".join(sorted(set(row) - _FIELDS)) or "no alert"
        raise InputError(
            f"{file}: {name or 'a rule'} has {unknown}; rules over stored history know {', '.join(sorted(_FIELDS))}"
        )
    labels, notes = row.get("labels", {}), row.get("annotations", {})
    try:
        expression, lasts = parse(row["expr"]), seconds(row["for"]) if "for" in row else 0.0
        for said in notes.values():
            filled(said, {}, 0.0)
    except InputError as problem:
        raise InputError(f"{file}: {name}: {problem}") from problem
    return Rule(
        name=name,
        expression=expression,
        text=row["expr"],
        lasts=lasts,
        severity=str(labels.get("severity", "")),
        summary=notes.get("summary", ""),
        description=notes.get("description", ""),
        labels={key: str(value) for key, value in labels.items()},
    )


def filled(template: str, labels: Mapping[str, str], value: float) -> str:
    """Return an annotation with its slots filled; raises InputError for a slot that is none of those known.

    >>> filled("{{ $labels.why }}: {{ $value | humanizePercentage }}", {"why": "lost"}, 0.25)
    'lost: 25%'
    """

    def fill(found: re.Match[str]) -> str:
        inside = found[1]
        if inside.startswith("$labels."):
            return labels.get(inside.removeprefix("$labels."), "")
        what, _, how = (part.strip() for part in inside.partition("|"))
        if what == "$value" and how in _SHOWN:
            return _SHOWN[how](value)
        digits = _DIGITS.fullmatch(inside)
        if digits is not None:
            return f"{value:.{digits[1]}f}"
        raise InputError(
            f"cannot fill '{found[0]}'; known are $labels.NAME, printf \"%.3f\" $value, and $value with {', '.join(_SHOWN)}"
        )

    return _SLOT.sub(fill, template)


def _duration(value: float) -> str:
    """Return seconds as Prometheus shows them: ``8d 2h 0m 5s``."""
    if value < 60:
        return f"{value:.4g}s"
    minutes, left = divmod(int(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d {hours}h {minutes}m {left}s"
    return f"{hours}h {minutes}m {left}s" if hours else f"{minutes}m {left}s"


_SHOWN: Mapping[str, Callable[[float], str]] = {
    "humanizePercentage": lambda value: f"{value * 100:.4g}%",
    "humanizeDuration": _duration,
}


def watched(reading: Reading) -> bool:
    """True for a figure that a shipped rule looks at."""
    return any(series.metric == reading.metric and series.matches(reading.labels) for series in _watched_series())


@cache
def _watched_series() -> frozenset[Series]:
    return frozenset(span.series for rule in shipped_rules() for span in ranges(rule.expression))
