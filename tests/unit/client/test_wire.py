"""The way to a service: tries again, keys that go nowhere else, and every refusal as one of Ringtrue's errors."""

from __future__ import annotations

import socket
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

import ringtrue
from ringtrue import Client
from ringtrue.client import Job
from scripted_service import Answer, Cut, Scripted, refusal, scripted

KEY = "rt_nobody-may-read-this-0123456789"
LOGGED = Answer(201, {"accepted": 1, "stored": 1, "query_ids": ["eq_1"]})
HEALTHY = Answer(200, {"state": "ok", "project": "default", "parts": []})


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with scripted() as found:
        yield found


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client would have waited."""
    found: list[float] = []
    monkeypatch.setattr("time.sleep", found.append)
    return found


@pytest.fixture
def client(server: Scripted) -> Iterator[Client]:
    with Client(server.url, key=KEY, timeout=10) as made:
        yield made


# ── tries ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "trouble", [Cut, refusal(503, "unavailable"), refusal(429, "too_many_requests")], ids=["cut", "503", "429"]
)
def test_a_write_is_sent_again_under_the_same_key(server: Scripted, client: Client, waits: list[float], trouble: Any) -> None:
    server.will(trouble, trouble, LOGGED)
    assert client.log("pool", tool_name="app") == "eq_1"
    keys = [asked.headers["idempotency-key"] for asked in server.asked]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len({asked.body for asked in server.asked}) == 1
    assert waits == sorted(waits)
    server.will(LOGGED)
    client.log("pool", tool_name="app")
    assert server.asked[0].headers["idempotency-key"] not in keys


def test_a_read_is_sent_again_and_carries_no_such_key(server: Scripted, client: Client, waits: list[float]) -> None:
    server.will(Cut, HEALTHY)
    assert client.health().state == "ok"
    assert len(server.asked) == 2
    assert all("idempotency-key" not in asked.headers for asked in server.asked)


def test_the_service_says_when_to_come_back(server: Scripted, client: Client, waits: list[float]) -> None:
    server.will(refusal(429, "too_many_requests", retry_after="7"), HEALTHY)
    client.health()
    assert waits == [7.0]


def test_whoever_should_come_back_in_an_hour_is_told_at_once(server: Scripted, client: Client, waits: list[float]) -> None:
    server.will(refusal(503, "unavailable", "closed for today", retry_after="3600"))
    with pytest.raises(ringtrue.Unreachable, match="closed for today"):
        client.health()
    assert (len(server.asked), waits) == (1, [])


def test_tries_end(server: Scripted, waits: list[float]) -> None:
    server.will(Cut)
    with (
        Client(server.url, retries=1) as client,
        pytest.raises(ringtrue.Unreachable, match=r"cannot be reached .*check that it runs"),
    ):
        client.health()
    assert len(server.asked) == 2
    server.will(Cut)
    with Client(server.url, retries=0) as client, pytest.raises(ringtrue.Unreachable):
        client.health()
    assert (len(server.asked), len(waits)) == (1, 1)


def test_a_write_that_is_still_at_work_is_waited_for_beyond_the_tries(
    server: Scripted, client: Client, waits: list[float]
) -> None:
    at_work = refusal(409, "in_progress", retry_after="1")
    server.will(Cut, at_work, at_work, at_work, at_work, LOGGED)
    assert client.log("pool", tool_name="app") == "eq_1"
    assert len(server.asked) == 6
    assert waits[1:] == [1.0] * 4


def test_a_write_that_stays_at_work_is_a_time_out(server: Scripted) -> None:
    """Its first try may have died with the service; nobody knows what became of it until the key is free again."""
    server.will(refusal(409, "in_progress", "still at work", retry_after="30"))
    with Client(server.url, timeout=10) as client, pytest.raises(ringtrue.TimedOut, match="still at work"):
        client.log("pool", tool_name="app")
    assert len(server.asked) == 1


def test_another_conflict_is_no_reason_to_try_again(server: Scripted, client: Client) -> None:
    server.will(refusal(409, "version_taken", "has another version 1.0.0 already"))
    with pytest.raises(ringtrue.InputError, match="already"):
        client.golden.upload({})
    assert len(server.asked) == 1


def test_a_key_is_made_once_or_not_at_all(server: Scripted, client: Client, waits: list[float]) -> None:
    """For an Idempotency-Key the service would have to keep its answer, and the token with it."""
    server.will(Cut)
    with pytest.raises(ringtrue.Unreachable):
        client.keys.create("ci", ["read"])
    assert len(server.asked) == 1
    assert "idempotency-key" not in server.asked[0].headers


def test_an_answer_that_does_not_come_is_a_time_out(server: Scripted) -> None:
    server.will(Answer(200, {}, after_s=2.0))
    with Client(server.url, timeout=0.2) as client, pytest.raises(ringtrue.TimedOut, match=r"within 0.2 s; raise timeout="):
        client.health()
    assert len(server.asked) == 1


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with (
            Client(f"http://127.0.0.1:{taken.getsockname()[1]}", key=KEY, retries=0) as client,
            pytest.raises(ringtrue.Unreachable, match=r"connection refused.*check that it runs"),
        ):
            client.health()


# ── the key ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_key_is_sent_and_shows_nowhere(server: Scripted, client: Client) -> None:
    server.will(HEALTHY)
    client.health()
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(client)
    server.will(refusal(401, "no_key", f"the key {KEY} is unknown"))
    with pytest.raises(ringtrue.AccessDenied, match="the key … is unknown") as told:
        client.health()
    assert KEY not in "".join(traceback.format_exception(told.value))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server: Scripted, client: Client, status: int) -> None:
    with scripted() as elsewhere:
        elsewhere.will(HEALTHY)
        server.will(Answer(status, {}, {"location": f"{elsewhere.url}/v1/health"}))
        with pytest.raises(ringtrue.InputError, match="redirects"):
            client.health()
        assert elsewhere.asked == []


def test_a_cookie_is_not_kept(server: Scripted, client: Client) -> None:
    server.will(Answer(200, HEALTHY.body, {"set-cookie": "session=1; Path=/"}), HEALTHY)
    client.health()
    client.health()
    assert "cookie" not in server.asked[1].headers


def test_what_goes_to_this_machine_passes_no_proxy(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server.will(HEALTHY)
    with Client(server.url, key=KEY) as client:
        assert client.health().state == "ok"


@pytest.mark.parametrize("key", ["", "rt_ä", "rt_a b", "rt_a\r\nX-Other: 1"])
def test_a_key_that_is_none(key: str) -> None:
    with pytest.raises(ringtrue.InputError, match="the API key is empty or contains") as told:
        Client(key=key)
    assert not key or key not in str(told.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("127.0.0.1:8080", "not an address of a service"),
        ("ftp://search.example.org", "not an address of a service"),
        ("https://", "not an address of a service"),
        ("http://localhost:99999", "cannot be read"),
        ("https://ada:secret@search.example.org", "holds a name or a password"),
        ("https://search.example.org/?key=secret", r"ends with \?"),
    ],
)
def test_an_address_that_is_none(url: str, says: str) -> None:
    with pytest.raises(ringtrue.InputError, match=says) as told:
        Client(url)
    assert "secret" not in str(told.value)


def test_a_service_may_live_under_a_path(server: Scripted) -> None:
    server.will(HEALTHY)
    with Client(f"{server.url}/quality/") as client:
        client.health()
    assert server.asked[0].path == "/quality/v1/health"


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}])
def test_limits_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(ringtrue.InputError, match=next(iter(options))):
        Client(**options)


@pytest.mark.parametrize(
    ("named", "url", "key"),
    [
        ({"RINGTRUE_URL": "https://search.example.org", "RINGTRUE_KEY": KEY}, "https://search.example.org", KEY),
        ({"RINGTRUE_URL": " ", "RINGTRUE_KEY": ""}, "http://127.0.0.1:8080", None),
        ({}, "http://127.0.0.1:8080", None),
    ],
)
def test_address_and_key_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, named: dict[str, str], url: str, key: str | None
) -> None:
    for name in ("RINGTRUE_URL", "RINGTRUE_KEY"):
        monkeypatch.delenv(name, raising=False)
    with Client.from_environment(named, timeout=3) as given:
        assert (given._wire.url, given._wire._key, given._wire.timeout) == (url, key, 3)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    with Client.from_environment() as found:
        assert (found._wire.url, found._wire._key) == (url, key)
        assert KEY not in repr(found)


def test_the_client_waits_longer_than_the_service_works() -> None:
    from ringtrue.service.settings import Settings

    with Client() as found:
        assert found._wire.timeout > Settings().time_limit


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "not_found", ringtrue.MissingInput),
        (422, "invalid_input", ringtrue.InputError),
        (422, "invalid_expression", ringtrue.SpecError),
        (422, "invalid_golden_set", ringtrue.ValidationFailed),
        (422, "cannot_decide", ringtrue.CannotDecide),
        (422, "invalid_cursor", ringtrue.InputError),
        (401, "no_key", ringtrue.AccessDenied),
        (403, "forbidden", ringtrue.AccessDenied),
        (413, "too_large", ringtrue.InputError),
        (500, "internal", ringtrue.Unreachable),
        (502, "search_unreachable", ringtrue.Unreachable),
        (502, "search_denied", ringtrue.AccessDenied),
        (502, "search_answered_wrongly", ringtrue.BadAnswer),
        (502, "search_failed", ringtrue.SearchFailed),
        (504, "search_timed_out", ringtrue.TimedOut),
        (504, "timed_out", ringtrue.TimedOut),
    ],
)
def test_a_refusal_is_the_exception_that_it_would_be_in_python(
    server: Scripted, client: Client, status: int, code: str, kind: type[Exception]
) -> None:
    server.will(refusal(status, code, "body.k: must be 1 or more"))
    with pytest.raises(ringtrue.RingtrueError) as told:
        client.search("pool")
    assert type(told.value) is kind
    assert str(told.value) == "body.k: must be 1 or more (request 00ff)"
    assert len(server.asked) == 1


def test_every_code_of_the_service_that_stands_for_an_error_is_known() -> None:
    from ringtrue.client.wire import OF_CODE
    from ringtrue.service.errors import KINDS

    assert {code: kind for kind, _, code in KINDS} == {code: OF_CODE.get(code) for _, _, code in KINDS}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(502, b"<html>Bad Gateway</html>", {"content-type": "text/html"}), ringtrue.Unreachable),
        (Answer(404, b"not here"), ringtrue.MissingInput),
        (Answer(403, {"error": "forbidden"}), ringtrue.AccessDenied),
        (Answer(418, b"["), ringtrue.InputError),
    ],
)
def test_somebody_else_answers(server: Scripted, client: Client, answer: Answer, kind: type[Exception]) -> None:
    server.will(answer)
    with pytest.raises(kind, match="not in Ringtrue's words; check the address"):
        client.health()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"hello", "did not answer with JSON"),
        ([], r"answer is \[\] and not an object"),
        ({"state": "ok", "project": "default"}, r"answer\.parts is missing"),
        ({"state": 1, "project": "default", "parts": []}, r"answer\.state is 1 and not a text"),
        ({"state": "ok", "project": "x", "parts": [{"name": "log"}]}, r"answer\.parts\[0\]\.state is missing"),
    ],
)
def test_an_answer_that_is_none(server: Scripted, client: Client, body: Any, says: str) -> None:
    server.will(Answer(200, body))
    with pytest.raises(ringtrue.BadAnswer, match=says):
        client.health()


def test_a_newer_service_may_say_more(server: Scripted, client: Client) -> None:
    server.will(Answer(200, {**HEALTHY.body, "mood": "good"}))
    assert client.health().state == "ok"


def test_a_list_that_never_ends_is_left(server: Scripted, client: Client) -> None:
    row = {"name": "a", "version": "1", "created_at": None, "versions": 1, "shipped": False}
    server.will(Answer(200, {"items": [row], "next": "a"}))
    found = client.golden.list()
    assert [next(found).name, next(found).name] == ["a", "a"]
    with pytest.raises(ringtrue.BadAnswer, match="again and again"):
        next(found)
    assert [asked.path for asked in server.asked] == ["/v1/golden", "/v1/golden?cursor=a"]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_an_id_that_leads_elsewhere_is_not_sent(server: Scripted, client: Client, name: str) -> None:
    server.will(HEALTHY)
    with pytest.raises(ringtrue.InputError, match="is not a valid name"):
        client.run(name)
    assert server.asked == []


def test_an_id_stays_one_part_of_the_address(server: Scripted, client: Client) -> None:
    server.will(refusal(404, "not_found"))
    with pytest.raises(ringtrue.MissingInput):
        client.run("a/../b?c#d ä")
    assert server.asked[0].path == "/v1/runs/a%2F..%2Fb%3Fc%23d%20%C3%A4"


def test_what_json_cannot_hold_is_not_sent(server: Scripted, client: Client) -> None:
    server.will(LOGGED)
    for value in (float("nan"), {1, 2}, "\ud800"):
        with pytest.raises(ringtrue.InputError, match="cannot be sent as JSON"):
            client.log("pool", tool_name="app", flags={"x": value})
    assert server.asked == []


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def job(state: str, done: int, **more: Any) -> dict[str, Any]:
    said = {
        "job_id": "job_1", "kind": "gate", "state": state, "created_at": "t", "updated_at": "t", "who": "local", "request": {},
        "done": done, "total": 4, "says": "asking", "result": None, "error": None,
    }  # fmt: skip
    return {**said, **more}


TAKEN = Answer(202, {"job_id": "job_1", "state": "queued", "location": "/v1/jobs/job_1"})
RESULT = {
    "run_id": "r", "verdict": "pass", "exit_code": 0, "name": "n", "golden": "g", "baseline": None, "mode": "m", "checks": [],
    "failures": [], "notes": [],
}  # fmt: skip


def gate(client: Client) -> tuple[Any, list[Job]]:
    told: list[Job] = []
    return client.gate("r", baseline=None, on_progress=told.append), told


def test_a_job_is_watched_until_it_has_ended(server: Scripted, client: Client, waits: list[float]) -> None:
    steps = [job("running", 1), job("running", 2), job("running", 2), job("done", 4, result=RESULT)]
    server.will(TAKEN, *(Answer(200, step) for step in steps))
    found, told = gate(client)
    assert found.verdict == "pass"
    assert [one.done for one in told] == [1, 2, 4], "a job that has not changed is not told again"
    assert {asked.path for asked in server.asked} == {"/v1/gate", "/v1/jobs/job_1"}
    assert waits == [0.5, 0.5, 0.5]


def test_a_job_that_nobody_knows_is_missing(server: Scripted, client: Client) -> None:
    server.will(refusal(404, "not_found", "there is no job 'job_1'"))
    with pytest.raises(ringtrue.MissingInput, match="no job"):
        client.jobs.wait("job_1")


def test_a_failed_job_raises_what_it_failed_with(server: Scripted, client: Client) -> None:
    error = {"code": "cannot_decide", "message": "no query was answered"}
    server.will(TAKEN, Answer(200, job("failed", 0, error=error)))
    with pytest.raises(ringtrue.CannotDecide, match="job job_1 failed: no query was answered"):
        gate(client)


@pytest.mark.parametrize("state", ["cancelled", "interrupted"])
def test_a_job_that_ended_early_has_no_result(server: Scripted, client: Client, state: str) -> None:
    server.will(TAKEN, Answer(200, job(state, 2)))
    with pytest.raises(ringtrue.CannotDecide, match=f"was {state} before it had a result; start it again"):
        gate(client)


def test_a_service_that_went_away_is_told_of(server: Scripted, client: Client, waits: list[float]) -> None:
    server.will(TAKEN, Answer(200, job("running", 1)), Cut)
    with pytest.raises(ringtrue.Unreachable):
        gate(client)


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_evaluation_says_what_is_wanted(server: Scripted, client: Client) -> None:
    server.will(TAKEN, Answer(200, job("queued", 0)))
    found = client.evaluate({"queries": []}, retriever="hybrid", components=["bm25", "dense"], k=5, wait=False)
    assert found.job_id == "job_1"
    asked = server.asked[0]
    assert asked.path == "/v1/evaluate?components=bm25%2Cdense"
    assert asked.json == {"test_set": {"queries": []}, "retriever": "hybrid", "k": 5, "wait": False}


def test_two_sets_at_once_are_refused_before_anything_is_sent(server: Scripted, client: Client) -> None:
    server.will(TAKEN)
    with pytest.raises(ringtrue.InputError, match="give one of them"):
        client.evaluate({}, golden="hotel")
    assert server.asked == []


def test_an_upload_says_what_it_is(server: Scripted, client: Client) -> None:
    server.will(refusal(422, "invalid_input"))
    for kind, sent in {"yaml": "application/yaml", "jsonl": "application/x-ndjson"}.items():
        with pytest.raises(ringtrue.InputError):
            client.golden.upload(b"x", kind=kind)  # type: ignore[arg-type]
        assert server.asked[-1].headers["content-type"] == sent
    with pytest.raises(ringtrue.InputError, match="did you mean 'yaml'"):
        client.golden.upload(b"x", kind="yml")  # type: ignore[arg-type]
    with pytest.raises(ringtrue.InputError, match="a dictionary is sent as json"):
        client.golden.upload({}, kind="yaml")


def test_the_client_loads_no_other_room() -> None:
    """A program that only calls a service starts fast."""
    import subprocess
    import sys

    code = (
        "import sys, ringtrue; ringtrue.Client\n"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('ringtrue.')}\n"
        "print(*sorted(rooms), 'numpy' in sys.modules, 'httpx2' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == [
        "answers",
        "batching",
        "client",
        "errors",
        "exports",
        "http_client",
        "traffic",
        "False",
        "False",
    ]


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (lambda client: client.evaluate(components="bm25"), "components=bm25"),
        (lambda client: client.evaluate(components=["bm25", "dense"]), "components=bm25%2Cdense"),
        (lambda client: client.evaluate(measures="RR", allow="ids"), '"measures":["RR"],"allow":["ids"]'),
        (lambda client: client.compare("a", "b", measures="RR", by="intent"), '"measures":["RR"]'),
        (lambda client: client.compare("a", "b", measures="RR", by="intent"), '"by":["intent"]'),
        (lambda client: client.upload_run({}, golden="hotel", measures="RR", allow="ids"), "measure=RR&allow=ids"),
        (lambda client: client.keys.create("laptop", "read"), '"scopes":["read"]'),
        (lambda client: client.flags.step("mv", breaches="p95 doubled"), '"breaches":["p95 doubled"]'),
        (lambda client: client.reviews.next(passing="q1"), '"passing":["q1"]'),
    ],
)
def test_a_single_name_is_no_list_of_letters(server: Scripted, client: Client, call: Any, sent: str) -> None:
    server.will(refusal(422, "invalid_input"))
    with pytest.raises(ringtrue.InputError):
        call(client)
    assert sent in f"{server.asked[0].path} {server.asked[0].body!r}"
