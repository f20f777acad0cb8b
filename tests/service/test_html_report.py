"""The HTML report in a real browser: it stands alone, it is alive, it can be read by everybody."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import chromium
from made import WHEN, answers, evaluation, golden_set
from ringtrue.records import Document, GoldenSet, Hit, Judgment, Query, Ranking
from ringtrue.report import Report, html, report_on
from ringtrue.run.parts import blame
from ringtrue.verdict import baseline_of

RESPONSIVE = 1500
"""Milliseconds; a reader waits that long without wondering. In practice it is a tenth of it."""
FAILED = "q007"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report() -> Report:
    """A run that got worse than the one before, judged by the gate, with one question that failed."""
    golden = golden_set(72)
    before = evaluation(golden, answers(golden, skill=0.9), name="old search")
    rankings = answers(golden, skill=0.6, seed=5)
    rankings[7] = Ranking(FAILED, (), error="timed out after 30 s")
    now = evaluation(golden, rankings, name="new search", losses=blame(golden, rankings, k=10))
    return report_on(now, made_at=WHEN, other=before, baseline=baseline_of(before, version="1.0.0"))


@pytest.fixture(scope="module")
def file(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(report, tmp_path_factory.mktemp("report"))


def write(report: Report, folder: Path) -> Path:
    page = folder / "report.html"
    page.write_text(html(report), encoding="utf-8")
    return page


class Opened:
    """A page with everything it asked for and complained about."""

    def __init__(self, browser: Any, file: Path, fragment: str = "", *, width: int = 1280, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.goto(file.as_uri() + fragment)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def ids(self) -> list[str]:
        return [str(one) for one in self.page.eval_on_selector_all("#rows tr[data-q]", "rows => rows.map(r => r.dataset.q)")]

    def wait_for_rows(self, count: int) -> None:
        """Wait until the table is this short; typing is answered a moment later."""
        self.page.locator("#rows tr").nth(count).wait_for(state="detached")

    def background(self) -> str:
        return str(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def overflow(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


# It stands alone


def test_the_page_asks_for_nothing_but_itself_and_complains_about_nothing(browser: Any, file: Path) -> None:
    with Opened(browser, file) as opened:
        opened.page.click("#rows tr >> nth=2")
        opened.page.keyboard.press("Escape")
        opened.page.wait_for_timeout(300)
        assert opened.requests == [file.as_uri()]
        assert opened.complaints == []


def test_its_policy_is_in_force(browser: Any, file: Path) -> None:
    with Opened(browser, file) as opened:
        blocked = opened.page.evaluate(
            """() => new Promise((done) => {
                addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
                const image = new Image();
                image.src = "http://127.0.0.1:9/pixel.png";
            })"""
        )
        assert blocked == "img-src"
        # Even a script that got into the page could not write markup.
        assert (
            opened.page.evaluate(
                "() => { try { document.body.innerHTML = 'x'; return 'written'; } catch { return 'refused'; } }"
            )
            == "refused"
        )


def test_without_a_script_verdict_tables_and_charts_are_there(browser: Any, file: Path) -> None:
    with Opened(browser, file, java_script_enabled=False) as opened:
        assert opened.page.inner_text("h1") == "FAIL"
        assert opened.page.locator("#rows tr").count() == 50
        assert opened.page.locator("#rows tr").first.is_visible()
        assert opened.page.locator("#measures svg.chart").first.is_visible()
        assert opened.page.locator("#bars svg path").count() == 2
        for control in ("#theme", "#controls", "#measure", ".pager"):
            assert not opened.page.locator(control).is_visible(), control
        assert opened.complaints == []


# The table


def test_a_header_sorts_and_sorts_back(browser: Any, report: Report, file: Path) -> None:
    values = report.evaluation.scores.per_query
    with Opened(browser, file) as opened:
        opened.page.click('[data-sort="m0"] button')
        ids = opened.ids()
        assert ids[0] == FAILED
        rising = [values[query]["nDCG@10"] for query in ids[1:]]
        assert rising == sorted(rising)
        assert opened.page.get_attribute('[data-sort="m0"]', "aria-sort") == "ascending"
        opened.page.click('[data-sort="m0"] button')
        falling = [values[query]["nDCG@10"] for query in opened.ids()]
        assert falling == sorted(falling, reverse=True)
        assert falling[0] > falling[-1]
        opened.page.focus('[data-sort="id"] button')
        opened.page.keyboard.press("Enter")
        assert opened.ids() == [f"q{n:03}" for n in range(50)]
        assert opened.page.get_attribute('[data-sort="m0"]', "aria-sort") is None


def test_the_rows_of_the_script_are_those_that_were_there_before_it(browser: Any, file: Path) -> None:
    texts = []
    for alive in (False, True):
        with Opened(browser, file, java_script_enabled=alive) as opened:
            rows = opened.page.locator("#rows tr").all_inner_texts()
            texts.append([re.sub(r"\s+", " ", row).strip() for row in rows])
    assert texts[0] == texts[1]


def test_search_slices_and_the_regressed_narrow_the_table(browser: Any, report: Report, file: Path) -> None:
    with Opened(browser, file) as opened:
        opened.page.fill("#search", "QUESTION q07")
        opened.wait_for_rows(2)
        assert set(opened.ids()) == {"q070", "q071"}
        opened.page.fill("#search", "nothing like it")
        opened.page.wait_for_selector(".empty")
        opened.page.fill("#search", "")
        opened.page.select_option('select[data-field="0"]', label="comparative")
        assert opened.ids()
        assert all(int(query[1:]) % 3 == 0 for query in opened.ids())
        assert opened.page.inner_text("#shown") == "24 of 72 queries"
        opened.page.select_option('select[data-field="0"]', label="all")
        opened.page.check("#only")
        assert report.comparison is not None
        deltas = report.comparison.measures["nDCG@10"].deltas
        fallen = {query for query, delta in deltas.items() if delta < -5e-5}
        assert opened.page.inner_text("#shown") == f"{len(fallen) + 1} of 72 queries"  # and the one that failed
        assert set(opened.ids()) <= fallen | {FAILED}


def test_pages_of_the_table_hold_every_query_once(browser: Any, file: Path) -> None:
    with Opened(browser, file) as opened:
        first = opened.ids()
        opened.page.click("#next")
        second = opened.ids()
        assert (len(first), len(second)) == (50, 22)
        assert len({*first, *second}) == 72
        assert opened.page.is_disabled("#next")


# One query


def test_both_rankings_stand_side_by_side_with_what_moved_and_what_was_lost(browser: Any, report: Report, file: Path) -> None:
    assert report.other is not None
    chosen = report.evaluation.losses[0].query_id
    losses = [loss for loss in report.evaluation.losses if loss.query_id == chosen]
    with Opened(browser, file) as opened:
        opened.page.fill("#search", chosen)
        opened.wait_for_rows(1)
        opened.page.click("#rows tr .text")
        detail = opened.page.locator("#detail")
        assert detail.is_visible()
        assert detail.locator(".rankings h3").all_inner_texts() == ["old search", "new search"]
        left, right = (detail.locator(".rankings > div").nth(side) for side in (0, 1))
        boxes = left.bounding_box(), right.bounding_box()
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        for side, run in ((left, report.other), (right, report.evaluation)):
            ids = [text.strip() for text in side.locator(".id").all_inner_texts()]
            assert ids == [hit.doc_id for hit in run.ranking(chosen).hits[:20]]
        before = [hit.doc_id for hit in report.other.ranking(chosen).hits[:20]]
        for place, hit in enumerate(report.evaluation.ranking(chosen).hits[:20], 1):
            said = right.locator("li").nth(place - 1).locator(".moved .hear").text_content()
            was = before.index(hit.doc_id) + 1 if hit.doc_id in before else None
            expected = "was not among the first 20" if was is None else "same rank" if was == place else None
            assert said == (expected or f"{'up' if was > place else 'down'} {abs(was - place)}")  # type: ignore[operator]
        gone = detail.locator(".lost li")
        assert {text.strip() for text in gone.locator(".id").all_inner_texts()} == {loss.doc_id for loss in losses}
        assert losses[0].stage in " ".join(gone.all_inner_texts())
        # A grade is a number, and its colour only repeats it.
        judged = report.evaluation.qrels.to_dict()[chosen]
        shown = [text.strip() for text in gone.locator(".grade").all_text_contents()]
        assert shown == [
            f"grade {grade}"
            for _, grade in sorted(((loss.doc_id, judged[loss.doc_id]) for loss in losses), key=lambda pair: -pair[1])
        ]


def test_a_link_opens_its_query_and_closing_forgets_it(browser: Any, file: Path) -> None:
    with Opened(browser, file, "#q=q011") as opened:
        assert opened.page.inner_text("#detail-title") == "question number 11"
        opened.page.keyboard.press("Escape")
        assert not opened.page.locator("#detail").is_visible()
        opened.page.wait_for_function("() => location.hash === ''")  # the browser tells of the closing a moment after it
        opened.page.click("#checks a.query >> nth=0")
        opened.page.wait_for_selector("#detail[open]")  # it follows the address, which has changed before
        assert opened.page.evaluate("location.hash").startswith("#q=q")
    with Opened(browser, file, "#q=nobody") as opened:
        assert not opened.page.locator("#detail").is_visible()
        assert opened.complaints == []


def test_a_query_that_is_opened_before_the_closing_of_another_is_told_stays_open(browser: Any, file: Path) -> None:
    with Opened(browser, file, "#q=q011") as opened:
        ids = opened.ids()
        opened.page.evaluate(
            """() => new Promise((told) => {
                const detail = document.getElementById("detail");
                detail.addEventListener("close", () => setTimeout(told));
                detail.close();
                document.querySelector("#rows .text").click();
            })"""
        )
        assert opened.page.evaluate("location.hash") == f"#q={ids[0]}"
        opened.page.keyboard.press("ArrowRight")
        opened.page.keyboard.press("ArrowRight")
        assert opened.page.evaluate("location.hash") == f"#q={ids[2]}"


def test_arrow_keys_walk_from_query_to_query(browser: Any, file: Path) -> None:
    with Opened(browser, file) as opened:
        ids = opened.ids()
        opened.page.click("#rows a.query >> nth=0")
        opened.page.wait_for_selector("#detail[open]")  # keys walk only where a query is open
        opened.page.keyboard.press("ArrowRight")
        opened.page.wait_for_function("wanted => location.hash === wanted", arg=f"#q={ids[1]}")
        assert opened.page.url.endswith(f"#q={ids[1]}")
        opened.page.keyboard.press("ArrowLeft")
        opened.page.wait_for_function("wanted => location.hash === wanted", arg=f"#q={ids[0]}")
        assert opened.page.url.endswith(f"#q={ids[0]}")


def test_a_query_that_failed_shows_its_error_and_no_numbers(browser: Any, file: Path) -> None:
    with Opened(browser, file, f"#q={FAILED}") as opened:
        words = opened.page.inner_text("#detail")
        assert "No answer: timed out after 30 s" in words
        assert opened.page.locator(".scores dd").all_inner_texts()[0].strip() == "—"


def test_a_bar_shows_its_query_and_opens_it(browser: Any, report: Report, file: Path) -> None:
    assert report.comparison is not None
    deltas = report.comparison.measures["nDCG@10"].deltas
    worst = min(deltas, key=lambda query: deltas[query])
    with Opened(browser, file) as opened:
        opened.page.locator("#bars").scroll_into_view_if_needed()
        box = opened.page.locator("#bars svg").first.bounding_box()
        assert box is not None
        opened.page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 30)
        assert worst in opened.page.inner_text("#tip")
        opened.page.mouse.click(box["x"] + box["width"] - 3, box["y"] + 30)
        opened.page.wait_for_function("wanted => location.hash === wanted", arg=f"#q={worst}")
        opened.page.keyboard.press("Escape")
        opened.page.wait_for_function("() => location.hash === ''")
        opened.page.focus("#bars")
        opened.page.keyboard.press("End")
        opened.page.keyboard.press("Enter")
        opened.page.wait_for_function("wanted => location.hash === wanted", arg=f"#q={worst}")


def test_another_measure_redraws_the_plot_and_the_table(browser: Any, report: Report, file: Path) -> None:
    assert report.comparison is not None
    found = report.comparison.measures["R@5"]
    with Opened(browser, file) as opened:
        opened.page.select_option("#measure", label="R@5")
        assert (
            opened.page.inner_text(".legend").split()
            == f"▲ {found.wins} better = {found.ties} equal ▼ {found.losses} worse".split()
        )
        shown = opened.page.inner_text(f'#rows tr[data-q="{opened.ids()[1]}"]')
        assert f"{min(found.deltas.values()):.3f}".replace("-", "−") in shown


# Everybody can read it


def test_both_themes_by_preference_and_the_button_wins(browser: Any, file: Path) -> None:
    with Opened(browser, file, color_scheme="light") as opened:
        light = opened.background()
        opened.page.emulate_media(color_scheme="dark")
        dark = opened.background()
        assert light != dark
        opened.page.click("#theme")
        assert opened.background() == light
        opened.page.emulate_media(color_scheme="light")
        opened.page.click("#theme")
        assert opened.background() == dark
        assert opened.page.get_attribute("#theme", "aria-label") == "Switch to the light theme"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(browser: Any, file: Path, scheme: str) -> None:
    """WCAG 2.2 AA: 4.5 to 1, or 3 to 1 for large text."""
    with Opened(browser, file, "#q=q003", color_scheme=scheme) as opened:
        assert opened.page.evaluate(CONTRAST) == []


def test_everything_that_can_be_used_has_a_name(browser: Any, file: Path) -> None:
    with Opened(browser, file, "#q=q003") as opened:
        nameless = opened.page.evaluate(NAMELESS)
        assert nameless == []
        levels = opened.page.eval_on_selector_all("main h1, main h2, main h3", "all => all.map(h => Number(h.tagName[1]))")
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        doubled = opened.page.evaluate(DOUBLED)
        assert doubled == []


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_sticks_out_sideways(browser: Any, file: Path, width: int) -> None:
    with Opened(browser, file, width=width) as opened:
        assert opened.overflow() <= 0
        opened.page.evaluate("location.hash = '#q=q003'")
        opened.page.wait_for_selector("#detail[open]")
        inside = opened.page.eval_on_selector(".detail-body", "body => body.scrollWidth - body.clientWidth")
        assert inside <= 0


def test_paper_is_white_without_controls_and_holds_the_open_query(browser: Any, file: Path) -> None:
    from pypdf import PdfReader

    with Opened(browser, file, "#q=q003", color_scheme="dark") as opened:
        printed = PdfReader(io.BytesIO(opened.page.pdf(format="A4", print_background=True)))
        words = " ".join(re.sub(r"\s+", " ", page.extract_text()) for page in printed.pages)
        assert "FAIL" in words
        assert "question number 3" in words
        assert "old search" in words
        assert "Search id or text" not in words
        assert 3 <= len(printed.pages) <= 15
        opened.page.emulate_media(media="print")
        assert opened.background() == "rgb(255, 255, 255)"
        for control in (".top", "#controls", ".pager"):
            assert not opened.page.locator(control).is_visible(), control


# Hostile and large


def test_hostile_texts_stay_texts(browser: Any, tmp_path: Path) -> None:
    bad = "</script><script>window.ran=1;alert(1)</script><img src=x onerror='window.ran=2'>\"'\u2028\u202e"
    queries = tuple(Query(f"{bad}{n}", bad, {"query_type": bad}) for n in range(4))
    documents = tuple(Document(f"{bad}d{n}", "text", bad) for n in range(6))
    judgments = tuple(Judgment(query.query_id, documents[0].doc_id, 3, "manual") for query in queries)
    golden = GoldenSet("made", "1.0.0", queries, judgments, documents, slices=("query_type",))
    rankings = [
        Ranking(one.query_id, tuple(Hit(doc.doc_id, channels={bad: 1}) for doc in documents[1:]), 3.0) for one in queries
    ]
    rankings[3] = Ranking(queries[3].query_id, (), error=bad)
    now = evaluation(golden, rankings, name=bad, notes=(bad,))
    before = evaluation(golden, answers(golden, k=5), name=f"{bad}before")
    with Opened(browser, write(Report(now, WHEN, other=before, title=bad), tmp_path), width=390) as opened:
        opened.page.click("#rows a.query >> nth=1")
        assert bad[:40] in opened.page.inner_text("#detail-title")
        opened.page.keyboard.press("Escape")
        opened.page.locator("#bars").hover()
        opened.page.eval_on_selector("#rows tr", "row => row.classList.add('before')")
        opened.page.fill("#search", "<img")
        opened.page.wait_for_selector("#rows tr.before", state="detached")  # all of them fit, and are drawn again
        assert opened.page.evaluate("window.ran") is None
        assert opened.page.locator("img").count() == 0
        assert len(opened.requests) == 1
        assert opened.complaints == []
        assert opened.overflow() <= 0


def test_5000_queries_stay_responsive(browser: Any, tmp_path: Path) -> None:
    file = write(large(5000), tmp_path)
    assert file.stat().st_size < 15_000_000
    with Opened(browser, file) as opened:
        took = opened.page.evaluate(TIMED)
        assert max(took.values()) < RESPONSIVE, took
        opened.page.uncheck("#only")
        opened.page.select_option('select[data-field="0"]', label="all")
        assert opened.page.evaluate(TYPED, "number 4999") < RESPONSIVE
        assert opened.ids() == ["q4999"]
        assert opened.complaints == []


def large(size: int) -> Report:
    """Two runs over many queries with ten hits each, made quickly."""
    golden = golden_set(size, 8 * size)
    sides = []
    for name, seed in (("old", 1), ("new", 2)):
        rng = np.random.default_rng(seed)
        relevant: dict[str, list[str]] = {}
        for judgment in golden.judgments:
            relevant.setdefault(judgment.query_id, []).append(judgment.doc_id)
        ids = rng.integers(0, 8 * size, (size, 7))
        keep = rng.random((size, 3)) < 0.7
        rankings = []
        for place, query in enumerate(golden.queries):
            found = [doc for doc, kept in zip(relevant[query.query_id], keep[place], strict=True) if kept]
            docs = dict.fromkeys([*(f"d{n:03}" for n in ids[place]), *found])
            hits = tuple(Hit(doc, channels={"bm25": rank, "dense": 11 - rank}) for rank, doc in enumerate(docs, 1))
            rankings.append(Ranking(query.query_id, hits, latency_ms=float(place % 90 + 1)))
        sides.append(evaluation(golden, rankings, name=name, measures=["nDCG@10", "R@5", "RR", "P@5"]))
    return Report(sides[1], WHEN, other=sides[0])


# What is asked of the page, in its own language

NAMELESS = """() => [...document.querySelectorAll("button, select, input, a, svg[role=img], [tabindex='0']")]
    .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent.trim()))
    .map((one) => one.outerHTML.slice(0, 120))"""

DOUBLED = """() => {
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    return ids.filter((id, place) => ids.indexOf(id) !== place);
}"""

TIMED = """() => {
    const took = {};
    const time = (name, act) => {
        const start = performance.now();
        act();
        void document.body.offsetHeight;
        took[name] = performance.now() - start;
    };
    const change = (element, value) => { element.value = value; element.dispatchEvent(new Event("change")); };
    for (const key of ["id", "slice", "m0", "delta", "ms", "status"])
        time(key, () => document.querySelector(`[data-sort="${key}"] button`).click());
    time("measure", () => change(document.getElementById("measure"), 3));
    time("slices", () => change(document.querySelector("select[data-field]"), 0));
    time("only", () => document.getElementById("only").click());
    return took;
}"""

TYPED = """(words) => new Promise((done) => {
    const start = performance.now(), search = document.getElementById("search");
    new MutationObserver(() => { void document.body.offsetHeight; done(performance.now() - start); })
        .observe(document.getElementById("rows"), { childList: true });
    search.value = words;
    search.dispatchEvent(new Event("input"));
})"""
"""In the page itself, so that the way of the keys through the browser does not count."""

CONTRAST = """() => {
    const parse = (text) => {
        const found = text.match(/[\\d.]+/g).map(Number);
        return found.length === 3 ? [...found, 1] : found;
    };
    const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const light = ([red, green, blue]) =>
        0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour[3] === 1) return colour;
        }
        return [255, 255, 255, 1];
    };
    const weak = new Set();
    let seen = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement, text = node.textContent.trim();
        if (!text || ["SCRIPT", "STYLE", "TITLE", "OPTION"].includes(element.tagName) || !element.checkVisibility()) continue;
        if (element.closest("button:disabled")) continue;
        seen++;
        const style = getComputedStyle(element), svg = element.closest("svg");
        const pair = [light(parse(svg ? style.fill : style.color)), light(behind(svg || element))].sort((a, b) => b - a);
        const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
        const name = element.className.baseVal ?? element.className;
        if (ratio < (large ? 3 : 4.5)) weak.add(`${ratio.toFixed(2)} ${name} ${text.slice(0, 30)}`);
    }
    return seen > 100 ? [...weak] : ["hardly any text was seen"];
}"""
