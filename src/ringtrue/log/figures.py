"""The log in numbers: how much, how fast, how often nothing was found, and what is missing from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from ringtrue.log.query_log import ERROR
from ringtrue.log.writer import LOST
from ringtrue.store import DEFAULT_PROJECT, LoggedQuery

if TYPE_CHECKING:
    from ringtrue.store import Store


@dataclass(frozen=True)
class Figures:
    """What the log of a time says about one tool, or about all; None where there is nothing to say."""

    searches: int
    sessions: int
    users: int
    errors: int
    """Searches that raised; they count in no other figure but this and ``searches``."""
    zero_result_rate: float | None
    degraded_rate: float | None
    fallback_rate: float | None
    latency_ms: Mapping[str, float]
    """p50, p95, p99."""
    mean_results: float | None
    proxy: float | None
    """Mean quality proxy (L-2): a health figure, not quality."""
    with_proxy: int
    """Searches that have one."""


@dataclass(frozen=True)
class LogFigures:
    """The whole, by tool, and the intents asked for most."""

    first: str | None
    last: str | None
    total: Figures
    tools: Mapping[str, Figures] = field(default_factory=dict)
    intents: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Losses:
    """Searches and events that the audit trail says are not in the log."""

    lost: int = 0
    """Accepted, and gone with the process that was killed."""
    dropped: int = 0
    """Not accepted: the queue was full."""
    refused: int = 0
    """No row could be made of them."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """The refused by their reason, as far as it is known."""

    @property
    def total(self) -> int:
        return self.lost + self.dropped + self.refused


def log_figures(queries: Iterable[LoggedQuery], *, intents: int = 10) -> LogFigures:
    """Return the log in numbers; ``intents`` is how many of the most frequent are named."""
    by_tool: dict[str, list[LoggedQuery]] = {}
    everything: list[LoggedQuery] = []
    for row in queries:
        by_tool.setdefault(row.tool_name, []).append(row)
        everything.append(row)
    times = [row.created_at for row in everything]
    asked = Counter(row.intent for row in everything if row.intent is not None)
    return LogFigures(
        min(times, default=None),
        max(times, default=None),
        _figures(everything),
        {tool: _figures(rows) for tool, rows in sorted(by_tool.items(), key=lambda item: (-len(item[1]), item[0]))},
        dict(sorted(asked.items(), key=lambda item: (-item[1], item[0]))[:intents]),
    )


def _figures(rows: Sequence[LoggedQuery]) -> Figures:
    answered = [row for row in rows if not (row.fallback or "").startswith(ERROR)]
    counts = [row.result_count for row in answered if row.result_count is not None]
    count = len(answered)
    latencies = sorted(row.total_latency_ms for row in answered if row.total_latency_ms is not None)
    proxies = [row.quality_proxy_score for row in answered if row.quality_proxy_score is not None]

    def share(number: int) -> float | None:
        return number / count if count else None

    return Figures(
        searches=len(rows),
        sessions=len({row.session_id for row in rows} - {None}),
        users=len({row.user_id for row in rows} - {None}),
        errors=len(rows) - count,
        zero_result_rate=counts.count(0) / len(counts) if counts else None,
        degraded_rate=sum(row.degraded for row in rows) / len(rows) if rows else None,
        fallback_rate=share(sum(row.fallback is not None for row in answered)),
        latency_ms={f"p{percent}": percentile(latencies, percent) for percent in (50, 95, 99)} if latencies else {},
        mean_results=sum(counts) / len(counts) if counts else None,
        proxy=sum(proxies) / len(proxies) if proxies else None,
        with_proxy=len(proxies),
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the smallest value that so many percent of the sorted values do not exceed.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50), percentile([1.0, 2.0, 3.0, 4.0], 99)
    (2.0, 4.0)
    """
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def losses(store: Store, *, project: str = DEFAULT_PROJECT, since: str | datetime | None = None) -> Losses:
    """Return what the audit trail says is missing from the log of a project, from a time on.

    Every entry tells of what came since the one before, so that they add up.
    """
    found: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for entry in store.audit(project=project, what=LOST, since=since):
        for name in ("lost", "dropped", "refused"):
            found[name] += int(entry.detail.get(name, 0))
        reasons.update(entry.detail.get("reasons", {}))
    return Losses(found["lost"], found["dropped"], found["refused"], dict(reasons.most_common()))
