"""Position bias: clicks corrected for how often each rank is looked at."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from made_feedback import event, search
from ringtrue.feedback import Shown, attractions, derive_judgments
from ringtrue.stats import kendall_tau_b

RANKS = 10
CURVE = 1 / np.arange(1, RANKS + 1)
"""A person looks at rank r with probability 1 ÷ r."""


def world(seed: int, *, texts: int, sessions: int, skill: float, wobble: float = 0.7, candidates: int = 15):
    """Return the true attractiveness of items, and per text and session what was shown and clicked.

    The production ranking knows a little about what people like (``skill``: its correlation with the truth) and changes from
    session to session (``wobble``: index updates, personal signals, other versions), so most items are seen at several ranks,
    good ones more often further up.
    """
    rng = np.random.default_rng(seed)
    truth = np.clip(rng.beta(1, 3, size=(texts, candidates)), 0.01, 0.95)
    belief = skill * (truth - truth.mean()) / truth.std() + np.sqrt(1 - skill**2) * rng.normal(size=truth.shape)
    shown = np.argsort(-(belief[:, None] + wobble * rng.normal(size=(texts, sessions, candidates))), axis=2)[:, :, :RANKS]
    liked = np.take_along_axis(truth[:, None], shown, axis=2)
    return truth, shown, rng.random(shown.shape) < CURVE * liked


def appearances(shown, clicked):
    return [
        Shown((str(text), str(item)), rank, bool(click))
        for text, (lists, clicks) in enumerate(zip(shown, clicked, strict=True))
        for items, flags in zip(lists.tolist(), clicks.tolist(), strict=True)
        for rank, (item, click) in enumerate(zip(items, flags, strict=True), 1)
    ]


def as_records(shown, clicked):
    searches, events = [], []
    for text, (lists, clicks) in enumerate(zip(shown, clicked, strict=True)):
        for number, (items, flags) in enumerate(zip(lists.tolist(), clicks.tolist(), strict=True)):
            name = f"q{text}-{number}"
            searches.append(search(name, f"query {text}", session=name, minutes=number, result_ids=tuple(map(str, items))))
            for item, click in zip(items, flags, strict=True):
                if click:
                    events.append(event("click", str(item), minutes=number, session=name, query_id=name))
    return searches, events


def mean_tau(truth, scores: dict[tuple[str, str], float]) -> float:
    """Return Kendall's tau with the truth, per text over the items that were clicked at all, on average."""
    taus = []
    for text in range(len(truth)):
        items = [int(item) for key, item in scores if key == str(text)]
        tau = kendall_tau_b([truth[text][item] for item in items], [scores[str(text), str(item)] for item in items])
        taus.append(0.0 if np.isnan(tau) else tau)
    return float(np.mean(taus))


def test_derived_judgments_recover_the_true_order_better_than_raw_clicks_by_a_tenth_of_tau() -> None:
    """Over 20 seeds, through the whole way from logged searches and clicks to judgments; better than click rates, too."""
    over_counts, over_rates = [], []
    for seed in range(20):
        truth, shown, clicked = world(seed, texts=8, sessions=200, skill=0.3)
        searches, events = as_records(shown, clicked)
        found = derive_judgments(searches, events, now="2026-03-02T00:00:00Z")
        assert {curve.method for curve in found.examinations.values()} == {"position-based"}
        assert {one.relevance for one in found.judgments} == {2}
        pairs = {(one.metadata["query"].split()[1], one.item_id): one for one in found.judgments}
        raw = Counter((one.query_id.split("-")[0][1:], one.item_id) for one in events)
        assert {pair: one.metadata["selected"] for pair, one in pairs.items()} == raw
        derived = mean_tau(truth, {pair: one.confidence for pair, one in pairs.items()})
        over_counts.append(derived - mean_tau(truth, raw))
        over_rates.append(derived - mean_tau(truth, {pair: raw[pair] / one.metadata["shown"] for pair, one in pairs.items()}))
    assert np.mean(over_counts) >= 0.10
    assert np.mean(over_rates) >= 0.10
    assert min(over_counts) > 0


def test_the_correction_costs_order_where_clicks_are_few_and_the_search_is_good_already() -> None:
    """Known limit, kept in view: rank itself then says more about an item than its handful of clicks."""
    gains = []
    for seed in range(5):
        truth, shown, clicked = world(seed, texts=20, sessions=20, skill=0.6)
        clicked_pairs = {pair: one for pair, one in attractions(appearances(shown, clicked))[1].items() if one.clicks}
        counts = mean_tau(truth, {pair: one.clicks for pair, one in clicked_pairs.items()})
        gains.append(mean_tau(truth, {pair: one.sure for pair, one in clicked_pairs.items()}) - counts)
    assert -0.25 < np.mean(gains) < 0


def test_the_examination_curve_is_recovered() -> None:
    errors: dict[str, list[float]] = {"position-based": [], "clicks-over-expected": []}
    for seed in range(5):
        _, shown, clicked = world(seed, texts=30, sessions=100, skill=0.5)
        curve, _ = attractions(appearances(shown, clicked))
        assert curve.method == "position-based"
        errors["position-based"].append(np.abs(np.log(np.asarray(curve.by_rank) / CURVE)).mean())
        rates = clicked.mean(axis=(0, 1))
        errors["clicks-over-expected"].append(np.abs(np.log(rates / rates.max() / CURVE)).mean())
    assert np.mean(errors["position-based"]) < 0.12
    # Why the plain click rates of ranks are only the second choice: this search puts good items first.
    assert np.mean(errors["clicks-over-expected"]) > 2 * np.mean(errors["position-based"])


def test_items_that_keep_their_ranks_cannot_tell_looking_from_liking() -> None:
    """Not identifiable: rank and item always change together, and the result says so instead of inventing a curve."""
    _, shown, clicked = world(1, texts=30, sessions=100, skill=0.5, wobble=0.0)
    curve, _ = attractions(appearances(shown, clicked))
    assert curve.method == "clicks-over-expected"
    assert "several ranks" in curve.why
    assert curve.by_rank[0] == 1.0
    assert list(curve.by_rank) == sorted(curve.by_rank, reverse=True)


def test_ranks_that_no_item_links_are_not_compared() -> None:
    """Two halves of the list that exchange nothing: each is known within itself, not against the other."""
    seen = []
    for text in range(40):
        for turn in range(10):
            flip = turn % 2
            for rank, item in ((1 + flip, "a"), (2 - flip, "b"), (3 + flip, "c"), (4 - flip, "d")):
                seen.append(Shown((str(text), item), rank, turn < 2))
    curve, _ = attractions(seen)
    assert curve.method == "clicks-over-expected"
    assert "links" in curve.why


def test_few_clicks_are_left_as_they_are() -> None:
    curve, found = attractions([Shown(("q", "a"), 1, True), Shown(("q", "b"), 2, True), Shown(("q", "c"), 3, False)] * 6)
    assert (curve.method, curve.clicks, curve.at(1), curve.at(7)) == ("none", 12, 1.0, 1.0)
    assert "12 clicks" in curve.why
    assert found["q", "a"].rate == found["q", "b"].rate


def test_nothing_shown_gives_nothing() -> None:
    curve, found = attractions([])
    assert (curve.method, found) == ("none", {})


def test_poor_ranks_share_one_figure() -> None:
    _, shown, clicked = world(3, texts=6, sessions=60, skill=0.3)
    curve, _ = attractions(appearances(shown, clicked))
    assert len(curve.by_rank) == RANKS
    assert curve.by_rank[-1] == curve.by_rank[-2]
    assert curve.at(99) == curve.by_rank[-1]


def test_a_click_far_down_is_worth_more_than_one_at_the_top() -> None:
    _, shown, clicked = world(4, texts=20, sessions=100, skill=0.3)
    seen = appearances(shown, clicked)
    seen += [Shown(("new", "top"), 1, turn < 3) for turn in range(10)] + [
        Shown(("new", "low"), 8, turn < 3) for turn in range(10)
    ]
    _, found = attractions(seen)
    assert found["new", "low"].rate > found["new", "top"].rate
    assert found["new", "low"].examined < found["new", "top"].examined


def test_confidence_grows_with_looks_and_stays_below_the_rate() -> None:
    seen = [Shown(("q", "few"), 1, turn < 1) for turn in range(2)] + [Shown(("q", "many"), 1, turn < 50) for turn in range(100)]
    _, found = attractions(seen)
    assert found["q", "few"].rate == pytest.approx(0.5, abs=0.02)
    assert found["q", "many"].rate == pytest.approx(0.5, abs=0.02)
    assert 0 < found["q", "few"].sure < found["q", "many"].sure < found["q", "many"].rate
