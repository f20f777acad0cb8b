"""Rules over stored history: which hold, since when, and what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from ringtrue.service.alerts import rule_states, rules_text, shipped_rules
from ringtrue.service.alerts.rules import CONDITIONS, filled
from ringtrue.service.gauges import MetricNames
from ringtrue.store import HistoryPoint, Store, timestamp
from stores import empty as empty
from stores import kind as kind
from stores import store as store
from stores import url as url

START = datetime(2026, 11, 16, 12, tzinfo=UTC)
LABELS = {"k": "10", "retriever": "hybrid", "golden": "hotel-v1.0.0", "slice": "all"}
OTHER_LABELS = ("project", "why", "feature", "part")


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def after(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def series(
    metric: str, values: Sequence[float | None], *, project: str = "shop", every: int = 1, **labels: str
) -> list[HistoryPoint]:
    """Return one point a minute, or fewer; None is a minute without one."""
    return [
        HistoryPoint(timestamp(after(minute)), metric, value, labels, project)
        for minute, value in enumerate(values)
        if value is not None and minute % every == 0
    ]


def recall(values: Sequence[float | None], **options: int) -> list[HistoryPoint]:
    return series("ringtrue_retrieval_recall_at_k", values, every=options.get("every", 1), **LABELS)


def state(store: Store, name: str, minutes: float, project: str = "shop") -> str:
    rule = next(rule for rule in shipped_rules() if rule.name == name)
    return rule_states(store, project, now=after(minutes), rules=[rule])[0].state


def timeline(store: Store, name: str, minutes: range) -> dict[str, int]:
    """Return the first minute of each state."""
    found: dict[str, int] = {}
    for minute in minutes:
        found.setdefault(state(store, name, minute), minute)
    return found


def test_low_recall_fires_after_15_minutes_and_not_before(store: Store) -> None:
    store.add_history(recall([0.82] * 10 + [0.70] * 21))
    assert timeline(store, "RingtrueRecallLow", range(5, 31)) == {"inactive": 5, "pending": 10, "firing": 25}
    (found,) = [one for one in rule_states(store, "shop", now=after(30)) if one.name == "RingtrueRecallLow"]
    (alert,) = found.alerts
    assert alert.since == timestamp(after(10))
    assert alert.value == 0.70
    assert alert.labels == {**LABELS, "project": "shop", "severity": "critical"}
    assert alert.summary == "Recall@10 of hybrid is 0.700, below 0.75"
    assert "hotel-v1.0.0 (project shop)" in alert.description
    assert state(store, "RingtrueRecallLow", 30, project="another") == "no data"


def test_a_short_loss_stays_pending_and_passes(lite: Store) -> None:
    lite.add_history(recall([0.82] * 10 + [0.70] * 14 + [0.82] * 10))
    assert timeline(lite, "RingtrueRecallLow", range(5, 34)) == {"inactive": 5, "pending": 10}
    assert state(lite, "RingtrueRecallLow", 24) == "inactive"


def test_a_drop_against_the_median_of_seven_days(lite: Store) -> None:
    days = 7 * 24 * 60
    good = [0.90] * days
    lite.add_history(recall([*good, *[0.84] * 40], every=3))
    lite.add_history(series("ringtrue_retrieval_ndcg_at_k", [*good, *[0.86] * 40], every=3, **LABELS))
    found = {one.name: one for one in rule_states(lite, "shop", now=after(days + 30))}
    assert found["RingtrueRecallDropped"].state == "firing"
    assert found["RingtrueRecallLow"].state == "inactive", "0.84 is not low"
    assert found["RingtrueNdcgDropped"].state == "inactive", "0.04 is not much"
    assert state(lite, "RingtrueRecallDropped", days + 14) == "pending"


def test_points_that_come_every_three_minutes_are_enough_and_a_gap_is_not(lite: Store) -> None:
    lite.add_history(recall([0.70] * 31, every=3))
    assert state(lite, "RingtrueRecallLow", 30) == "firing"
    assert state(lite, "RingtrueRecallLow", 34) == "firing"
    assert state(lite, "RingtrueRecallLow", 36) == "no data", "a point holds for five minutes"


def test_a_gap_begins_the_wait_anew(lite: Store) -> None:
    lite.add_history(recall([*[0.70] * 10, *[None] * 10, *[0.70] * 20]))
    assert state(lite, "RingtrueRecallLow", 34) == "pending"
    assert state(lite, "RingtrueRecallLow", 35) == "firing"


@pytest.mark.parametrize(
    ("name", "points", "firing"),
    [
        (
            "RingtrueRecallDroppedWithVersion",
            series("ringtrue_retrieval_recall_version_change", [-0.04] * 5 + [-0.06] * 30, **{**LABELS, "golden": "b-v1.1.0"}),
            20,
        ),
        ("RingtrueGateFailing", series("ringtrue_gate", [0.0] * 5 + [1.0] * 60, verdict="fail", role="production"), 5),
        (
            "RingtrueEvaluationStale",
            series(
                "ringtrue_evaluation_timestamp_seconds", [START.timestamp() - 691_200 + 600] * 90, retriever="a", golden="b"
            ),
            71,
        ),
        (
            "RingtrueReviewBacklogOld",
            series("ringtrue_review_oldest_pending_seconds", [604_200 + 60.0 * n for n in range(90)]),
            71,
        ),
        ("RingtrueLogDropping", series("ringtrue_log_dropped_total", [2.0] * 5 + [3.0] * 4, why="lost"), 5),
        ("RingtrueLogSilent", series("ringtrue_log_searches_total", [*map(float, range(61)), *[60.0] * 90]), 125),
        (
            "RingtrueLogQueueFull",
            series("ringtrue_log_queue_waiting", [10.0] * 5 + [90.0] * 20)
            + series("ringtrue_log_queue_capacity", [100.0] * 25),
            7,
        ),
        ("RingtrueShadowFailing", series("ringtrue_shadow_failure_ratio", [0.01] * 5 + [0.02] * 30, feature="rerank"), 20),
        ("RingtrueStoreDown", series("ringtrue_store_up", [1.0] * 5 + [0.0] * 10), 6),
        (
            "RingtrueMetricsIncomplete",
            series("ringtrue_collect_errors_total", [*[0.0] * 5, *map(float, range(1, 30))], part="review"),
            20,
        ),
    ],
)
def test_every_rule_fires_in_its_minute(lite: Store, name: str, points: list[HistoryPoint], firing: int) -> None:
    lite.add_history(points)
    assert state(lite, name, firing) == "firing"
    assert state(lite, name, firing - 1) in ("inactive", "pending")


def test_every_rule_is_shown_in_its_own_test() -> None:
    shown = Path(__file__).read_text(encoding="utf-8")
    assert [rule.name for rule in shipped_rules() if f'"{rule.name}"' not in shown] == []


def test_a_counter_that_begins_anew_counts_what_it_shows(lite: Store) -> None:
    lite.add_history(series("ringtrue_log_dropped_total", [50.0] * 5 + [0.0] * 6, why="lost"))
    assert state(lite, "RingtrueLogDropping", 10) == "inactive", "the process was started again and lost nothing since"
    lite.add_history(series("ringtrue_log_dropped_total", [50.0] * 5 + [2.0] * 6, why="dropped"))
    assert state(lite, "RingtrueLogDropping", 10) == "firing"


def test_a_search_that_was_never_used_is_not_silent(lite: Store) -> None:
    lite.add_history(series("ringtrue_log_searches_total", [0.0] * 200))
    assert state(lite, "RingtrueLogSilent", 199) == "inactive"


def test_the_newest_evaluation_of_a_project_decides_whether_it_is_stale(lite: Store) -> None:
    metric, old = "ringtrue_evaluation_timestamp_seconds", START.timestamp() - 1_000_000
    lite.add_history(series(metric, [old] * 90, retriever="bm25", golden="g"))
    assert state(lite, "RingtrueEvaluationStale", 89) == "firing"
    lite.add_history(series(metric, [START.timestamp()] * 90, retriever="hybrid", golden="g"))
    assert state(lite, "RingtrueEvaluationStale", 89) == "inactive"


def test_annotations_read_as_prometheus_writes_them() -> None:
    assert filled('{{ printf "%.3f" $value }}', {}, 0.7) == "0.700"
    assert filled("{{ $value | humanizePercentage }}", {}, 0.8512345) == "85.12%"
    assert filled("{{ $value | humanizeDuration }}", {}, 694_805.0) == "8d 1h 0m 5s"
    assert filled("{{ $value | humanizeDuration }}", {}, 3_700.0) == "1h 1m 40s"
    assert filled("{{ $labels.nothing }}", {}, 0.0) == ""


def test_the_rules_come_with_the_names_that_the_operator_gave() -> None:
    text = rules_text(MetricNames(prefix="shop", own={"ringtrue_retrieval_recall_at_k": "medicalkg_retrieval_recall_at_k"}))
    assert 'medicalkg_retrieval_recall_at_k{k="10",slice="all"} < 0.75' in text
    assert "shop_store_up == 0" in text
    assert "ringtrue_" not in text
    assert [rule["alert"] for group in yaml.safe_load(text)["groups"] for rule in group["rules"]][:2] == [
        "RingtrueRecallLow",
        "RingtrueRecallDropped",
    ]


def test_only_rules_about_a_service_that_may_be_down_have_no_condition() -> None:
    groups = yaml.safe_load(rules_text())["groups"]
    without = {rule["alert"] for group in groups for rule in group["rules"]} - set(CONDITIONS)
    assert without == {rule["alert"] for rule in groups[-1]["rules"]}
    assert groups[-1]["name"] == "ringtrue-from-outside"
    assert [rule.name for rule in shipped_rules()] == list(CONDITIONS)


def test_alerts_show_no_unfilled_slot() -> None:
    for rule in shipped_rules():
        slots = re.findall(r"{{.*?}}", rule.summary + rule.description)
        assert [slot for slot in slots if not filled(slot, LABELS | dict.fromkeys(OTHER_LABELS, "x"), 0.5)] == []
