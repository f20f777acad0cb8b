"""Charts: well-formed, without a style of their own, escaped, and clear if there is nothing to show."""

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

from ringtrue import charts
from ringtrue.charts import Curve, Point, Scale, Strand

START = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
DAY = 86_400.0
NASTY = '<b onclick="x">&"\''
NOTHING: dict[str, Callable[[], Markup]] = {
    "sparkline": lambda: charts.sparkline([None, math.nan], label="x"),
    "trend": lambda: charts.trend([Point(START, None)], label="x"),
    "scatter": lambda: charts.scatter([Point(math.nan, 1.0)], a="a", b="b", label="x"),
    "bounds": lambda: charts.sequential([], bounds=(-3, 3), label="x"),
    "interval": lambda: charts.sequential([Point(3, math.nan, 0, 1)], label="x"),
    "parallel": lambda: charts.parallel({}, [], label="x"),
    "course": lambda: charts.course([], [], label="x"),
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
    return [Point(START + DAY * place, value, **more) for place, value in enumerate(values)]


@pytest.mark.parametrize("name", NOTHING)
def test_a_chart_without_data_says_so(name: str) -> None:
    picture = NOTHING[name]()

    root = drawn(picture)

    svg = next(root.iter("svg"))
    assert svg.get("aria-label") == "x: no data yet"
    assert "no data yet" in "".join(root.itertext())


def test_names_and_words_are_escaped() -> None:
    nasty = Point(1, 0.5, title=NASTY, href=NASTY, kind=NASTY)
    scale = Scale(0.0, 1.0)
    pictures = [
        charts.sparkline([1.0, 2.0], label=NASTY),
        charts.trend([nasty, Point(2, 0.5)], label=NASTY),
        charts.scatter([nasty], a=NASTY, b=NASTY, label=NASTY),
        charts.sequential([nasty], bounds=(-3, 3), label=NASTY),
        charts.parallel({NASTY: False}, [Strand([NASTY], 1.0, NASTY, NASTY)], label=NASTY),
        charts.interval(scale, 0.5, 0.4, 0.6, tone=NASTY, label=NASTY),
        charts.bar(scale, 0.5, tone=NASTY, label=NASTY),
        charts.step(scale, 0.5, 0.7, tone=NASTY, label=NASTY),
        charts.per_query([0.2, -0.1], better=1, label=NASTY),
        charts.course([START], [Curve(NASTY, [1], NASTY)], label=NASTY),
    ]

    for picture in pictures:
        root = drawn(picture)
        assert not list(root.iter("b"))
        assert all("onclick" not in one.attrib for one in root.iter())
        assert next(root.iter("svg")).get("aria-label") == NASTY


@given(st.lists(numbers, max_size=20), st.lists(st.tuples(numbers, numbers, numbers), max_size=10))
def test_whatever_the_numbers_a_picture_is_well_formed(values: list[float | None], triples: list[tuple[float, ...]]) -> None:
    known = [value for value in values if value is not None]
    points = [Point(START + 3600 * place, *triple) for place, triple in enumerate(triples)]
    sure = [[math.nan if one is None else one for one in triple] for triple in triples]

    drawn(charts.sparkline(values, label="x"))
    drawn(charts.trend(points, label="x"))
    drawn(charts.scatter([Point(a, b) for a, b, _ in sure], a="a", b="b", label="x"))
    drawn(charts.sequential([Point(place, value) for place, value in enumerate(known)], bounds=(-2.0, 2.0), label="x"))
    drawn(charts.sequential([Point(place, *triple) for place, triple in enumerate(triples)], label="x"))
    drawn(charts.parallel({"a": True, "b": False}, [Strand([a, b], c) for a, b, c in sure], label="x"))


def test_a_sparkline_ends_in_its_last_known_value_and_leaves_gaps() -> None:
    picture = charts.sparkline([1.0, None, 3.0, 2.0, None], label="x")

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
    points = [Point((began + apart * share).timestamp(), 0.5) for share in (0, 1 / 3, 1)]
    picture = charts.trend(points, label="x")
    assert re.findall(r">(\d+ Nov[^<:]*(?::\d\d)?)</text>", picture) == names


def test_values_on_different_versions_of_a_set_are_not_joined() -> None:
    """A change of the questions is not a change of the search."""
    kinds = ["hotel-v1.0.0", "hotel-v1.0.0", "hotel-v2.0.0", "hotel-v2.0.0"]
    points = [Point(START + DAY * day, 0.5, 0.4, 0.6, kind=kind) for day, kind in enumerate(kinds)]
    picture = charts.trend(points, label="x")
    assert 'class="thread"' in picture
    line = picture.partition('class="thread"')[2].partition(' d="')[2].partition('"')[0]
    assert (line.count("M"), line.count("L")) == (2, 2)
    assert "from here on hotel-v2.0.0" in picture
    assert picture.count('class="cut"') == 1
    assert 'class="cut"' not in charts.trend(points[:2], label="x")


def test_a_trend_shows_order_interval_and_links() -> None:
    points = [Point(point.x, point.y, 0.6, 0.9, href=f"/runs/{place}") for place, point in enumerate(days([0.8, 0.7, 0.75]))]

    picture = charts.trend(points[::-1], label="R@10")

    links = [one.get("href") for one in drawn(picture).iter("a")]
    assert links == ["/runs/0", "/runs/1", "/runs/2"]
    assert len(of_class(picture, "band")) == 1
    heights = [float(one.get("cy", "")) for one in of_class(picture, "dot")]
    assert heights[0] < heights[2] < heights[1]  # more is higher


def test_the_links_of_a_picture_are_one_stop_for_the_tab_key() -> None:
    picture = charts.scatter([Point(0.1, place / 10, href=f"/q/{place}") for place in range(5)], a="a", b="b", label="x")

    assert sorted(one.get("tabindex", "") for one in drawn(picture).iter("a")) == ["-1", "-1", "-1", "-1", "0"]
    assert next(drawn(picture).iter("svg")).get("role") == "group"  # an image would hide its links from a screen reader


def test_a_scatter_of_very_many_queries_keeps_those_that_changed_most() -> None:
    points = [Point(0.0, place / 10_000, title=f"q{place}:") for place in range(10_000)]

    picture = charts.scatter(points, a="a", b="b", label="x")

    assert len(of_class(picture, "point")) == charts.MOST_POINTS
    assert "q9999:" in picture
    assert "q1:" not in picture


def test_a_course_names_its_curves_and_the_numbers_of_each_moment() -> None:
    curves = [Curve("searches", [3, 1_200, None]), Curve("so far", [None, 1_200, 7], "unsure", dashed=True)]
    picture = charts.course([START, START + DAY, START + 2 * DAY], curves, label="x")

    said = [title.text for title in drawn(picture).iter("title")][1:]
    assert said == ["1 Nov 00:00: searches 3", "2 Nov 00:00: searches 1,200, so far 1,200", "3 Nov 00:00: so far 7"]
    assert [one.get("class") for one in of_class(picture, "thread")] == ["thread plain", "thread unsure dashed"]
    assert ["".join(one.itertext()) for one in drawn(picture).iter("li")] == ["searches", "so far"]


def test_a_course_of_one_moment_or_of_zeros_can_be_drawn() -> None:
    one = charts.course([START], [Curve("searches", [5])], label="x")
    assert [text.text for text in of_class(one, "tick") if ":" in (text.text or "")] == ["1 Nov 00:00"]
    drawn(charts.course([START, START + DAY], [Curve("searches", [0, 0])], label="x"))


def test_a_test_lies_between_its_bounds_and_names_the_decision() -> None:
    path = [Point(10, 0.1), Point(20, 0.4)]
    open_test = charts.sequential(path, bounds=(-2.9, 2.9), label="x")
    ended = charts.sequential([*path, Point(30, 3.1)], bounds=(-2.9, 2.9), label="x", decision="accepted")

    lower, upper = (float(one.get("y1", "")) for one in of_class(open_test, "limit"))
    (dot,) = of_class(open_test, "dot")
    assert upper < float(dot.get("cy", "")) < lower
    assert not of_class(open_test, "decided")
    (mark,) = of_class(ended, "decided")
    assert "good" in mark.get("class", "")
    assert "accepted" in ended


def test_a_confidence_sequence_shows_zero_and_its_band() -> None:
    points = [Point(n, 0.03, 0.03 - 1 / n, 0.03 + 1 / n) for n in range(10, 100, 10)]
    picture = charts.sequential(points, label="x", decision="rejected")

    assert len(of_class(picture, "band")) == 1
    assert len(of_class(picture, "zero")) == 1
    assert "rejected" in picture


def test_parallel_coordinates_draw_at_most_200_and_always_the_best() -> None:
    strands = [Strand([float(place), "rrf" if place % 2 else "linear"], score=-place) for place in range(300)]

    picture = charts.parallel({"k": False, "fusion": False}, strands, label="x", best=299)

    drawn_strands = of_class(picture, "strand")
    assert len(drawn_strands) == charts.MOST_STRANDS + 1
    assert "best" in drawn_strands[-1].get("class", "")  # the last one lies on top
    assert {"k", "fusion", "rrf", "linear"} <= {one.text for one in drawn(picture).iter("text")}
