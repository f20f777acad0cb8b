"""The alert rules that ship with Ringtrue, read from the file that Prometheus reads too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from ringtrue.service.alerts.conditions import CONDITIONS, RuleCondition
from ringtrue.service.gauges import CATALOGUE, MetricNames

FILE = "ringtrue-alerts.yml"
_SECONDS = {"m": 60.0, "h": 3600.0}
_SLOT = re.compile(r"\{\{ (.*?) \}\}")


@dataclass(frozen=True)
class ShippedRule:
    """One alert: its condition, how long that must hold, and what a reader sees."""

    name: str
    condition: RuleCondition
    text: str
    """The condition in PromQL."""
    lasts: float
    """Seconds that it must hold before it fires."""
    labels: Mapping[str, str]
    summary: str
    description: str

    @property
    def severity(self) -> str:
        return self.labels["severity"]


def rules_text(names: MetricNames | None = None) -> str:
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
def shipped_rules() -> tuple[ShippedRule, ...]:
    """Return the rules that can be checked over stored history, in the order of their file."""
    rows = (row for group in yaml.safe_load(rules_text())["groups"] for row in group["rules"])
    return tuple(
        ShippedRule(
            name=row["alert"],
            condition=CONDITIONS[row["alert"]],
            text=row["expr"],
            lasts=_seconds(row.get("for", "0m")),
            labels=row["labels"],
            **row["annotations"],
        )
        for row in rows
        if row["alert"] in CONDITIONS
    )


def _seconds(duration: str) -> float:
    return float(duration[:-1]) * _SECONDS[duration[-1]]


def filled(template: str, labels: Mapping[str, str], value: float) -> str:
    """Return an annotation with its slots filled as Prometheus fills them; a label that is missing is empty.

    >>> filled("{{ $labels.why }}: {{ $value | humanizePercentage }}", {"why": "lost"}, 0.25)
    'lost: 25%'
    """

    def fill(slot: re.Match[str]) -> str:
        match slot[1]:
            case "$value | humanizePercentage":
                return f"{value * 100:.4g}%"
            case "$value | humanizeDuration":
                return _duration(value)
            case 'printf "%.3f" $value':
                return f"{value:.3f}"
            case name:
                return labels.get(name.removeprefix("$labels."), "")

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
