"""The dashboard's pictures: well-formed, without a style of their own, honest where there is nothing to show (V-3)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from ringtrue.service.pages import plots
from ringtrue.service.pages.plots import Bar, Dimension, Line, Pair, Point

START = datetime(2026, 11, 1, tzinfo=UTC)
NASTY = '<b onclick="x">&"\''
NOTHING: dict[str, Callable[[], Markup]] = {
    "sparkline": lambda: plots.sparkline([None, math.nan], label="x"),
    "trend": lambda: plots.trend([Point(START, None)], label="x", threshold=0.7),
    "scatter": lambda: plots.scatter([Pair("q", math.nan, 1.0)], a="a", b="b", label="x"),
    "boundary": lambda: plots.boundary([], upper=3, lower=-3, label="x"),
    "confidence": lambda: plots.confidence([(3, math.nan, 0, 1)], label="x"),
    "parallel": lambda: plots.parallel([], [], label="x"),
    "histogram": lambda: plots.histogram([math.inf], label="x"),
    "bars": lambda: plots.bars([], label="x"),
    "states": lambda: plots.states([("open", 0, "plain")], label="x"),
}
numbers = st.one_of(st.none(), st.floats())


def drawn(picture: Markup) -> ElementTree.Element:
    """Read a picture as XML; whatever is not well-formed, or holds a number that is none, fails."""
    assert not re.search(r"(?<![a-z])(nan|inf)(?![a-z])", str(picture)), picture
    assert "style=" not in picture
    return ElementTree.fromstring(f"<div>{picture}</div>")


def of_class(picture: Markup, name: str) -> list[ElementTree.Element]:
    return [one for one in drawn(picture).iter() if name in one.get("class", "").split()]


def days(values: list[float | None], **more: float) -> list[Point]:
    return [Point(START + timedelta(days=place), value, **more) for place, value in enumerate(values)]


@pytest.mark.parametrize("name", NOTHING)
def test_without_data_a_picture_says_so_V_3(name: str) -> None:
    picture = NOTHING[name]()

    root = drawn(picture)

    svg = next(root.iter("svg"))
    assert svg.get("aria-label") == "x: no data yet"
    assert "no data yet" in "".join(root.itertext())


def test_names_and_words_are_escaped_V_4() -> None:
    pictures = [
        plots.sparkline([1.0, 2.0], label=NASTY, tone=NASTY),
        plots.trend([Point(START, 0.5, href=NASTY, title=NASTY)], label=NASTY, threshold=0.4, threshold_name=NASTY),
        plots.scatter([Pair(NASTY, 0.1, 0.2, NASTY)], a=NASTY, b=NASTY, label=NASTY),
        plots.boundary([(1, 0.5)], upper=3, lower=-3, label=NASTY),
        plots.confidence([(1, 0.5, 0.1, 0.9)], label=NASTY),
        plots.parallel([Dimension(NASTY)], [Line([NASTY], 1.0, NASTY, NASTY)], label=NASTY),
        plots.histogram([1.0, 2.0], label=NASTY, unit=NASTY, marks={NASTY: 1.5}),
        plots.bars([Bar(NASTY, 1.0, NASTY, NASTY, NASTY)], label=NASTY),
        plots.gauge(0.5, NASTY, NASTY, label=NASTY, tone=NASTY),
        plots.states([(NASTY, 3, NASTY)], label=NASTY),
    ]

    for picture in pictures:
        root = drawn(picture)
        assert not list(root.iter("b"))
        assert all("onclick" not in one.attrib for one in root.iter())
        assert next(root.iter("svg")).get("aria-label") == NASTY


@given(st.lists(numbers, max_size=20), st.lists(st.tuples(numbers, numbers, numbers), max_size=10))
def test_whatever_the_numbers_a_picture_is_well_formed(values: list[float | None], triples: list[tuple[float, ...]]) -> None:
    known = [value for value in values if value is not None]
    points = [Point(START + timedelta(hours=place), *triple) for place, triple in enumerate(triples)]
    sure = [tuple(math.nan if one is None else one for one in triple) for triple in triples]

    drawn(plots.sparkline(values, label="x"))
    drawn(plots.trend(points, label="x", threshold=known[0] if known else None))
    drawn(plots.scatter([Pair("q", a, b) for a, b, _ in sure], a="a", b="b", label="x"))
    drawn(plots.boundary(list(enumerate(known)), upper=2.0, lower=-2.0, label="x"))
    drawn(plots.confidence([(place, *triple) for place, triple in enumerate(sure)], label="x"))
    drawn(plots.parallel([Dimension("a", log=True), Dimension("b")], [Line([a, b], c) for a, b, c in sure], label="x"))
    drawn(plots.histogram(known, label="x", bins=7, marks={"p50": known[0]} if known else {}))
    drawn(plots.bars([Bar("a", value) for value in known], label="x"))


def test_a_sparkline_ends_in_its_last_known_value_and_leaves_gaps() -> None:
    picture = plots.sparkline([1.0, None, 3.0, 2.0, None], label="x")

    (path,) = of_class(picture, "thread")
    assert path.get("d", "").count("M") == 2  # it begins anew behind the gap
    (dot,) = of_class(picture, "dot")
    assert float(dot.get("cx", "")[:-1]) < 80  # of five places the fourth


@pytest.mark.parametrize(
    ("apart", "names"),
    [
        (timedelta(seconds=20), ["2 Nov 08:00"]),
        (timedelta(minutes=1), ["2 Nov 08:00", "2 Nov 08:01"]),
        (timedelta(days=2), ["2 Nov 08:00", "4 Nov 08:00"]),
        (timedelta(days=10), ["2 Nov", "7 Nov", "12 Nov"]),
    ],
)
def test_names_of_times_that_would_touch_or_repeat_are_left_out(apart: timedelta, names: list[str]) -> None:
    began = datetime(2026, 11, 2, 8, tzinfo=UTC)
    picture = plots.trend([Point(began, 0.5), Point(began + apart / 3, 0.6), Point(began + apart, 0.7)], label="x")
    assert re.findall(r">(\d+ Nov[^<:]*(?::\d\d)?)</text>", picture) == names


def test_values_on_different_versions_of_a_set_are_not_joined() -> None:
    """A change of the questions is no change of the search."""
    kinds = ["hotel-v1.0.0", "hotel-v1.0.0", "hotel-v2.0.0", "hotel-v2.0.0"]
    points = [Point(START + timedelta(days=day), 0.5, 0.4, 0.6, kind=kind) for day, kind in enumerate(kinds)]
    picture = plots.trend(points, label="x")
    assert 'class="thread"' in picture
    line = picture.partition('class="thread"')[2].partition(' d="')[2].partition('"')[0]
    assert (line.count("M"), line.count("L")) == (2, 2)
    assert "from here on hotel-v2.0.0" in picture
    assert picture.count('class="cut"') == 1
    assert 'class="cut"' not in plots.trend(points[:2], label="x")


def test_a_trend_shows_order_interval_threshold_and_links() -> None:
    points = [
        Point(point.at, point.value, 0.6, 0.9, href=f"/runs/{place}") for place, point in enumerate(days([0.8, 0.7, 0.75]))
    ]

    picture = plots.trend(points[::-1], label="R@10", threshold=0.72, threshold_name="alert below 0.72")

    links = [one.get("href") for one in drawn(picture).iter("a")]
    assert links == ["/runs/0", "/runs/1", "/runs/2"]
    assert len(of_class(picture, "band")) == 1
    assert "alert below 0.72" in picture
    heights = [float(one.get("cy", "")) for one in of_class(picture, "dot")]
    assert heights[0] < heights[2] < heights[1]  # more is higher


def test_the_links_of_a_picture_are_one_stop_for_the_tab_key_V_3() -> None:
    picture = plots.scatter([Pair(f"q{place}", 0.1, place / 10, f"/q/{place}") for place in range(5)], a="a", b="b", label="x")

    assert sorted(one.get("tabindex", "") for one in drawn(picture).iter("a")) == ["-1", "-1", "-1", "-1", "0"]
    assert next(drawn(picture).iter("svg")).get("role") == "group"  # an image would hide its links from a screen reader


@pytest.mark.parametrize(("better", "tones"), [(1, ["good", "even", "bad"]), (-1, ["bad", "even", "good"])])
def test_a_scatter_tells_better_from_worse_by_the_measure(better: int, tones: list[str]) -> None:
    pairs = [Pair("up", 0.2, 0.6), Pair("same", 0.5, 0.5), Pair("down", 0.9, 0.4)]

    picture = plots.scatter(pairs, a="a", b="b", label="x", better=better)

    titles = {group.find("title").text: group.find("circle").get("class") for group in drawn(picture).iter("g")}  # type: ignore[union-attr]
    assert [titles[f"{name}: {a} → {b}"] for name, a, b in (("up", 0.2, 0.6), ("same", 0.5, 0.5), ("down", 0.9, 0.4))] == [
        f"point {tone}" for tone in tones
    ]


def test_a_scatter_of_very_many_queries_keeps_those_that_changed_most() -> None:
    pairs = [Pair(f"q{place}", 0.0, place / 10_000) for place in range(10_000)]

    picture = plots.scatter(pairs, a="a", b="b", label="x")

    assert len(of_class(picture, "point")) == plots.MOST_POINTS
    assert "q9999:" in picture
    assert "q1:" not in picture


def test_a_boundary_lies_between_its_bounds_and_names_the_decision() -> None:
    open_test = plots.boundary([(10, 0.1), (20, 0.4)], upper=2.9, lower=-2.9, label="x")
    ended = plots.boundary([(10, 0.1), (20, 3.1)], upper=2.9, lower=-2.9, label="x", decision="accepted")

    upper, lower = (float(one.get("y1", "")) for one in of_class(open_test, "limit"))
    (dot,) = of_class(open_test, "dot")
    assert upper < float(dot.get("cy", "")) < lower
    assert not of_class(open_test, "decided")
    (mark,) = of_class(ended, "decided")
    assert "good" in mark.get("class", "")
    assert "accepted" in ended


def test_a_confidence_sequence_shows_zero_and_its_band() -> None:
    picture = plots.confidence(
        [(n, 0.03, 0.03 - 1 / n, 0.03 + 1 / n) for n in range(10, 100, 10)], label="x", decision="rejected"
    )

    assert len(of_class(picture, "band")) == 1
    assert len(of_class(picture, "zero")) == 1
    assert "rejected" in picture


def test_parallel_coordinates_draw_at_most_200_and_always_the_best() -> None:
    lines = [Line([float(place), "rrf" if place % 2 else "linear"], score=-place) for place in range(300)]

    picture = plots.parallel([Dimension("k"), Dimension("fusion")], lines, label="x", best=299)

    strands = of_class(picture, "strand")
    assert len(strands) == plots.MOST_STRANDS + 1
    assert "best" in strands[-1].get("class", "")  # the last one lies on top
    assert {"k", "fusion", "rrf", "linear"} <= {one.text for one in drawn(picture).iter("text")}


def test_a_histogram_counts_every_value_once() -> None:
    picture = plots.histogram([1.0, 1.0, 2.0, 5.0, math.nan], label="x", unit="ms", bins=4, marks={"p50": 1.5})

    said = [title.text or "" for title in drawn(picture).iter("title")][1:]
    assert sum(int(words.rsplit(": ", 1)[1]) for words in said) == 4
    assert "p50" in picture


def test_bars_are_as_long_as_their_values() -> None:
    picture = plots.bars([Bar("a", 8.0, said="8 documents"), Bar("b", 2.0, tone="bad")], label="x")

    assert [one.get("width") for one in of_class(picture, "bar")] == ["100.00%", "25.00%"]
    assert "8 documents" in picture


def test_an_unknown_share_is_an_empty_ring() -> None:
    known, unknown = (plots.gauge(share, "?", "checks", label="x") for share in (0.25, None))

    assert len(of_class(known, "good")) == 1
    assert not of_class(unknown, "good")


def test_states_add_up_to_the_whole_bar_with_every_count_named() -> None:
    picture = plots.states([("open", 30, "plain"), ("judged", 60, "good"), ("lost", 0, "bad")], label="x")

    widths = [float(one.get("width", "")[:-1]) for one in of_class(picture, "piece")]
    assert widths == pytest.approx([33.33, 66.67])
    assert [" ".join("".join(one.itertext()).split()) for one in drawn(picture).iter("li")] == [
        "open 30",
        "judged 60",
        "lost 0",
    ]
