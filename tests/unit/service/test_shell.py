"""The frame of the dashboard: what every page is given, what it may not hold, and the files it loads."""

from __future__ import annotations

import hashlib
import html
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from jinja2 import ChoiceLoader, DictLoader, FileSystemLoader, UndefinedError
from markupsafe import escape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from ringtrue.answers import JobState, Status
from ringtrue.service.auth import Caller
from ringtrue.service.errors import Refused
from ringtrue.service.pages import shell
from ringtrue.service.pages.filters import ago, attributes, code, count, moment
from ringtrue.service.pages.shell import FOLDER

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
CALLER = Caller("hotels", "local", ("read", "write"), "key-1")
NASTY = "<script>alert(1)</script>"
VOID = {"meta", "link", "input", "br", "hr", "img"}
PAGES = {
    "plain.html.jinja": """{% extends "layout.html.jinja" %}
        {% block heading %}Runs of {{ name }}{% endblock %}
        {% block crumbs %}{{ m.crumbs([("Runs", "/runs"), (name, None)]) }}{% endblock %}
        {% block content %}<p>{{ name }}</p>{% block rows %}<ul><li>{{ name }}</li></ul>{% endblock %}{% endblock %}""",
    "missing.html.jinja": """{% extends "layout.html.jinja" %}{% block heading %}{{ nobody_gave_this }}{% endblock %}""",
}


@pytest.fixture(scope="module", autouse=True)
def templates() -> Iterator[None]:
    loader = shell._templates().loader
    assert loader is not None
    shell._templates().loader = ChoiceLoader([loader, DictLoader(PAGES), FileSystemLoader(Path(__file__).parent)])
    yield
    shell._templates().loader = loader


def client(
    answer: Any = None, *, caller: Caller | None = CALLER, demo: bool = False, csrf: str | None = "token-1"
) -> TestClient:
    """Return a browser's view of an application whose every address gives the same answer."""

    def respond(request: Request) -> Response:
        if csrf is not None:
            request.state.csrf = csrf
        if caller is not None:
            request.state.caller = caller
        made: Response = answer(request)
        return made

    app = Starlette(routes=[Mount("/static", shell.static_files()), Route("/{rest:path}", respond, methods=["GET", "POST"])])
    app.state.service = SimpleNamespace(now=lambda: NOW, settings=SimpleNamespace(demo=demo))
    return TestClient(app, follow_redirects=False)


def plain(request: Request) -> Response:
    return shell.page(request, "plain.html.jinja", name=NASTY)


def parts(request: Request) -> Response:
    return shell.page(
        request, "parts.html.jinja", name=NASTY, nan=math.nan, sort="-ndcg", then=NOW - timedelta(hours=3)
    )  # fmt: skip


class Read(HTMLParser):
    """All tags with their attributes; that every one is closed is checked on the way."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}: {attrs}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.tags if name == tag]


@pytest.mark.parametrize("path", ["/runs", "/runs/17", "/", "/queries?x=1"])
def test_the_navigation_marks_the_section_of_the_address(path: str) -> None:
    read = Read(client(plain).get(path).text)

    links = [link for link in read.all("a") if link.get("href") in {section.href for section in shell.SECTIONS}]
    current = [link["href"] for link in links if link.get("aria-current") == "page"]
    assert current == ["/" + path.strip("/").split("/")[0].split("?")[0]]


def test_sections_have_letters_of_their_own_that_the_help_names() -> None:
    read = Read(client(plain).get("/runs").text)

    letters = [link["data-jump"] for link in read.all("a") if "data-jump" in link]
    assert letters == [section.letter for section in shell.SECTIONS]
    assert len(set(letters)) == len(letters)


def test_what_a_page_is_given_is_escaped() -> None:
    text = client(plain).get("/runs").text

    assert NASTY not in text
    assert html.escape(NASTY, quote=False) in text
    assert "<title>Runs of &lt;script&gt;" in text


@pytest.mark.parametrize("answer", [plain, parts], ids=["plain", "parts"])
def test_a_page_holds_nothing_that_its_policy_forbids(answer: Any) -> None:
    read = Read(client(answer).get("/runs").text)

    for tag, attrs in read.tags:
        assert tag != "style"
        assert "style" not in attrs, (tag, attrs)
        assert not [name for name in attrs if name.startswith(("on", "hx-on"))], (tag, attrs)
        if tag == "script":
            assert attrs.get("type") == "application/json" or str(attrs.get("src", "")).startswith("/static/")
        for name in ("src", "href", "action"):
            assert not str(attrs.get(name) or "").startswith(("http", "//", "javascript:"))


def test_every_part_has_its_name_and_every_id_is_unique() -> None:
    read = Read(client(parts).get("/runs").text)

    ids = [str(attrs["id"]) for _, attrs in read.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    labelled = {attrs.get("for") for attrs in read.all("label")}
    fields = [attrs for tag in ("input", "select", "textarea") for attrs in read.all(tag) if attrs.get("type") != "hidden"]
    assert fields
    assert all(attrs["id"] in labelled for attrs in fields)
    for _, attrs in read.tags:
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(str(attrs.get(name) or "").split()) <= set(ids), attrs


def test_every_state_of_a_flag_a_test_and_a_job_has_a_sign_and_a_word() -> None:
    known = {*get_args(Status), *get_args(JobState)}
    assert known <= set(shell.STATES)
    assert {shell.STATES[state][0] for state in ("graduated", "rejected", "paused")} == {"good", "bad", "unsure"}


def test_a_form_that_changes_something_carries_the_token_and_one_that_asks_does_not() -> None:
    read = Read(client(parts).get("/runs").text)

    tokens = [attrs["value"] for attrs in read.all("input") if attrs.get("name") == "csrf"]
    assert tokens == ["token-1", "token-1"]  # to save, and to sign out
    assert {"name": "csrf-token", "content": "token-1"} in read.all("meta")


def test_without_a_token_a_page_still_comes() -> None:
    read = Read(client(plain, csrf=None).get("/runs").text)

    assert {"name": "csrf-token", "content": ""} in read.all("meta")


def test_tables_sort_by_link_and_keep_the_other_parameters() -> None:
    read = Read(client(parts).get("/runs?golden=hotel&golden=clinic&cursor=x").text)

    links = [link["href"] for link in read.all("a") if link.get("class") == "sort"]
    assert links == ["/runs?golden=hotel&golden=clinic&sort=ndcg"]
    assert [cell["aria-sort"] for cell in read.all("th") if "aria-sort" in cell] == ["descending"]
    assert "/runs?golden=hotel&golden=clinic&cursor=abc" in [link["href"] for link in read.all("a")]


def test_a_chart_comes_with_a_table_of_its_numbers() -> None:
    text = client(parts).get("/runs").text

    assert 'role="img" aria-label="Searches"' in text
    assert f"<title>1 Jan 00:00: {escape(NASTY)} 5</title>" in text
    assert "1 January 1970, 00:01 UTC" in text
    assert '<td class="n">—</td>' in text  # what is unknown is not a number


def test_only_a_job_that_goes_on_is_watched() -> None:
    read = Read(client(parts).get("/runs").text)

    watched = [attrs for attrs in read.all("section") if "data-events" in attrs]
    assert [(attrs["data-events"], attrs["data-then"]) for attrs in watched] == [("/jobs/j1/events", "/runs/1")]


def test_a_value_nobody_gave_is_an_error_not_an_empty_place() -> None:
    with pytest.raises(UndefinedError, match="nobody_gave_this"):
        client(lambda request: shell.page(request, "missing.html.jinja")).get("/runs")


def test_a_fragment_is_one_block_and_knows_the_macros() -> None:
    def answer(request: Request) -> Response:
        return shell.fragment(request, "plain.html.jinja", "rows", name="bm25")

    assert client(answer).get("/runs").text == "<ul><li>bm25</li></ul>"


def test_a_block_that_is_not_there_is_named() -> None:
    def answer(request: Request) -> Response:
        return shell.fragment(request, "plain.html.jinja", "lines")

    with pytest.raises(LookupError, match=r"plain\.html\.jinja has no block 'lines', only .*rows"):
        client(answer).get("/runs")


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [({}, False), ({"HX-Request": "true"}, True), ({"HX-Request": "true", "HX-Boosted": "true"}, False),
     ({"HX-Request": "true", "HX-History-Restore-Request": "true"}, False)],
)  # fmt: skip
def test_htmx_gets_a_fragment_unless_it_asks_for_a_whole_page(headers: dict[str, str], wanted: bool) -> None:
    seen = []
    client(lambda request: seen.append(shell.wants_fragment(request)) or Response()).get("/", headers=headers)

    assert seen == [wanted]


def test_answers_with_data_are_not_kept_by_caches() -> None:
    answer = client(plain).get("/runs")

    assert "no-store" in answer.headers["cache-control"]
    assert "HX-Request" in answer.headers["vary"]


def test_half_of_a_character_pair_does_not_break_a_page() -> None:
    answer = client(lambda request: shell.page(request, "plain.html.jinja", name="a\ud800b")).get("/runs")

    assert answer.status_code == 200
    assert "a?b" in answer.text


def test_the_demo_says_that_it_is_one_and_the_project_is_named() -> None:
    demo, real = (client(plain, demo=demo).get("/").text for demo in (True, False))

    assert ">demo<" in demo
    assert ">demo<" not in real
    assert "<bdi>hotels</bdi>" in real


def test_what_somebody_may_depends_on_their_scopes() -> None:
    seen = []
    for caller in (CALLER, Caller("hotels", "x", ("admin",)), None):
        client(lambda request: seen.append(shell._shared(request, {})["may"]) or Response(), caller=caller).get("/")

    assert [[may(scope) for scope in ("write", "review")] for may in seen] == [[True, False], [True, True], [False, False]]


# --- errors and signing in

PROBLEM = Refused(404, "not_found", "there is no run '<b>'; /runs lists those there are", headers={"X-More": "1"})


def test_an_error_is_a_page_with_cause_way_out_and_request_id() -> None:
    answer = client(lambda request: shell.error_page(request, PROBLEM)).get("/runs/x")

    assert answer.status_code == 404
    assert answer.headers["x-more"] == "1"
    assert "there is no run &#39;&lt;b&gt;&#39;" in answer.text
    assert "<h1>There is nothing here</h1>" in answer.text
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize(("status", "logged"), [(404, False), (422, False), (500, True), (503, True)])
def test_only_a_fault_of_the_server_leads_to_its_log(status: int, logged: bool) -> None:
    answer = client(lambda request: shell.error_page(request, Refused(status, "x", "no"))).get("/runs/x")

    assert "Request <code>" in answer.text
    assert ("see the server's log" in answer.text) is logged


def test_for_htmx_an_error_is_only_the_box() -> None:
    answer = client(lambda request: shell.error_page(request, PROBLEM)).get("/runs/x", headers={"HX-Request": "true"})

    assert answer.status_code == 404
    assert answer.text.lstrip().startswith('<div class="problem" role="alert"')
    assert "<html" not in answer.text


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "way"),
    [
        ("GET", "/runs?sort=-x", {}, 303, ("location", "/login?next=/runs%3Fsort%3D-x")),
        ("GET", "/", {}, 303, ("location", "/login")),
        ("POST", "/runs/1/delete", {}, 303, ("location", "/login")),
        ("GET", "/runs", {"HX-Request": "true"}, 204, ("hx-redirect", "/login?next=/runs")),
    ],
)
def test_who_must_sign_in_is_led_there_and_back(
    method: str, path: str, headers: dict[str, str], status: int, way: tuple[str, str]
) -> None:
    answer = client(lambda request: shell.to_login(request, Exception())).request(method, path, headers=headers)

    assert answer.status_code == status
    assert answer.headers[way[0]] == way[1]


def test_the_sign_in_page_says_what_was_wrong_and_names_no_project() -> None:
    def answer(request: Request) -> Response:
        return shell.login_page(request, '/runs?"', problem="This key is unknown.")

    found = client(answer, caller=None).get("/login")
    read = Read(found.text)

    assert found.status_code == 401
    assert "This key is unknown." in found.text
    assert {"type": "hidden", "name": "next", "value": '/runs?"'} in read.all("input")
    assert "hotels" not in found.text
    assert not read.all("nav")


# --- files


def test_files_have_addresses_that_change_with_their_content() -> None:
    name = "app.css"
    content = (FOLDER / name).read_bytes()

    answer = client().get(shell.static(name))

    assert answer.content == content
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert shell.static(name).endswith(hashlib.sha256(content).hexdigest()[:16])


@pytest.mark.parametrize(
    ("name", "kind"),
    [("app.js", "text/javascript"), ("theme.css", "text/css"), ("icon.svg", "image/svg+xml"),
     ("vendor/htmx.min.js", "text/javascript"), ("vendor/htmx.LICENSE.txt", "text/plain")],
)  # fmt: skip
def test_files_have_their_types(name: str, kind: str) -> None:
    assert client().get(shell.static(name)).headers["content-type"].startswith(kind)


def test_a_file_without_its_version_is_asked_for_again_and_found_unchanged() -> None:
    first = client().get("/static/app.js")
    again = client().get("/static/app.js", headers={"If-None-Match": first.headers["etag"]})

    assert first.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/static/../shell.py", "/static/%2e%2e/shell.py", "/static/..%2fshell.py", "/static//etc/passwd", "/static/",
     "/static/vendor", "/static/vendor/..%5c..%5cshell.py", "/static/app.js%00",
     "/static/vendor/../../templates/layout.html.jinja"],
)  # fmt: skip
def test_no_path_leads_out_of_the_files(path: str) -> None:
    answer = client(lambda request: Response(status_code=404)).get(path)

    assert answer.status_code == 404
    assert b"import" not in answer.content


def test_only_reading_is_allowed() -> None:
    assert client().post("/static/app.js").status_code == 405
    assert client().head("/static/app.js").status_code == 200


def test_an_unknown_file_is_an_error_of_the_template() -> None:
    with pytest.raises(LookupError, match=r"there is no static file 'app\.exe'"):
        shell.static("app.exe")


def test_the_files_of_others_are_those_that_are_declared() -> None:
    table = (FOLDER / "vendor" / "README.md").read_text(encoding="utf-8")
    declared = dict(re.findall(r"^\| `([^`]+)` .* `([0-9a-f]{64})` \|$", table, flags=re.MULTILINE))
    beside_tests = Path(__file__).parents[2] / "vendor"

    found = {place.name: hashlib.sha256(place.read_bytes()).hexdigest() for place in (FOLDER / "vendor").iterdir()}

    assert {name for name in found if name.endswith((".js", ".css"))} == set(declared)
    assert all(found[name] == value for name, value in declared.items())
    assert "htmx.LICENSE.txt" in found
    axe = hashlib.sha256((beside_tests / "axe.min.js").read_bytes()).hexdigest()
    assert axe in (beside_tests / "README.md").read_text(encoding="utf-8")
    assert "Mozilla Public License" in (beside_tests / "axe.LICENSE.txt").read_text(encoding="utf-8")


# --- filters


def test_moments_are_for_people_and_for_programs() -> None:
    assert str(moment(NOW)) == '<time datetime="2026-11-16T09:00:00+00:00">16 November 2026, 09:00 UTC</time>'
    assert moment(None) == "—"
    assert moment("yesterday <b>") == "yesterday <b>"  # no markup of ours, so the page escapes it


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (timedelta(seconds=3), "just now"), (timedelta(minutes=5), "5 min ago"), (timedelta(hours=3), "3 h ago"),
        (timedelta(days=2), "2 d ago"), (timedelta(days=90), "3 mo ago"), (timedelta(hours=-2), "in 2 h"),
    ],
)  # fmt: skip
def test_how_long_ago_something_was(gone: timedelta, words: str) -> None:
    assert f">{words}</time>" in ago(NOW - gone, NOW)


def test_attributes_are_escaped_and_left_out_where_they_say_nothing() -> None:
    made = attributes({"hx_get": '/x?"><b>', "required": True, "disabled": False, "title": None, "class_": "a"})

    assert made == ' hx-get="/x?&#34;&gt;&lt;b&gt;" required class="a"'


def test_counts_and_code() -> None:
    assert [count(0, "query"), count(1, "query"), count(12_345), count(["a"]), count(None)] == [
        "0 queries",
        "1 query",
        "12,345",
        "1",
        "—",
    ]
    assert code("write `<k>`") == "write <code>&lt;k&gt;</code>"
    assert code("one ` <b>") == "one ` &lt;b&gt;"
