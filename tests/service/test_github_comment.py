"""The one comment on a pull request, against servers that speak the documented interfaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forges import ACTIONS, Forge, GitHubHandler, GitLabHandler, serving
from ringtrue.ci import post_comment, post_note
from ringtrue.ci.forges import MARKER, Posted
from ringtrue.errors import AccessDenied, InputError, RingtrueError, Unreachable

TOKEN = "ghs_secret-of-the-workflow"
REPORT = "## Ringtrue: pass\n\n| measure | baseline | current |\n| --- | --- | --- |\n| R@5 | 0.80 | 0.90 |\n"


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    tokens = {TOKEN: ACTIONS, "pat": "someone", "app": "reviewer[bot]"}
    with serving(Forge(tokens, "shop/search#7"), GitHubHandler) as running:
        yield running


class Clock:
    """Counts the seconds that would have been slept."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def post(forge: Forge, clock: Clock, markdown: str = REPORT, **changes) -> Posted:
    where = {"place": "shop/search", "number": 7, "token": TOKEN, "api": forge.url} | changes
    return post_comment(markdown, **where, sleep=clock)


def test_the_first_run_creates_and_the_second_updates_the_same_comment(forge, clock) -> None:
    first = post(forge, clock)
    second = post(forge, clock, REPORT.replace("pass", "FAIL"))
    assert (first.what, second.what) == ("created", "updated")
    assert first.url == second.url == forge.comments[0]["html_url"]
    assert forge.bodies() == [f"{MARKER}\n{REPORT.replace('pass', 'FAIL')}"]
    assert clock.waits == []


def test_a_marker_that_the_report_brings_is_not_written_twice(forge, clock) -> None:
    post(forge, clock, f"{MARKER}\n{REPORT}")
    assert forge.bodies()[0].count(MARKER) == 1


def test_ours_is_found_among_250_comments(forge, clock) -> None:
    for number in range(240):
        forge.add(f"remark {number}", "someone")
    ours = forge.add(f"{MARKER}\nold", ACTIONS)
    for number in range(9):
        forge.add(f"later remark {number}", "someone")
    assert post(forge, clock).what == "updated"
    assert ours["body"].endswith(REPORT)
    assert len(forge.comments) == 250
    pages = [path for method, path in forge.requests if method == "GET"]
    assert len(pages) == 3
    assert all("per_page=100" in path for path in pages)


def test_a_marker_in_somebody_elses_comment_is_not_ours(forge, clock) -> None:
    copied = forge.add(f"{MARKER}\nI copied the bot's comment", "someone")
    other_app = forge.add(f"{MARKER}\nanother app with the same idea", "reviewer[bot]")
    assert post(forge, clock).what == "created"
    assert copied["body"].endswith("comment")
    assert other_app["body"].endswith("idea")


def test_our_own_comment_that_only_quotes_the_marker_is_left_alone(forge, clock) -> None:
    quoting = forge.add(f"Look for `{MARKER}`:\n> {MARKER}\n{MARKER}", ACTIONS)
    assert post(forge, clock).what == "created"
    assert quoting["body"].startswith("Look for")


def test_a_comment_of_a_deleted_account_is_read_over(forge, clock) -> None:
    forge.add(f"{MARKER}\nghost", "gone")["user"] = None
    assert post(forge, clock).what == "created"


@pytest.mark.parametrize(("token", "login"), [("pat", "someone"), ("app", "reviewer[bot]")])
def test_whoever_the_token_belongs_to_keeps_one_comment(forge, clock, token, login) -> None:
    post(forge, clock)
    assert [post(forge, clock, token=token).what for _ in range(2)] == ["created", "updated"]
    assert len(forge.bodies(login)) == 1
    assert len(forge.bodies()) == 1


def test_a_server_without_graphql_is_taken_for_the_workflows_own_bot(forge, clock) -> None:
    forge.graphql = False
    assert [post(forge, clock).what for _ in range(2)] == ["created", "updated"]


def test_two_sets_on_one_pull_request_have_a_comment_each(forge, clock) -> None:
    hotel, shop = "<!-- ringtrue:report:hotel -->", "<!-- ringtrue:report:shop -->"
    for line in (hotel, shop, hotel):
        post(forge, clock, "the report", marker=line)
    assert forge.bodies() == [f"{hotel}\nthe report", f"{shop}\nthe report"]


def test_a_read_only_token_is_said_and_is_no_error(forge, clock) -> None:
    """A pull request from a fork: the change is not to blame."""
    forge.read_only = {TOKEN}
    posted = post(forge, clock)
    assert posted.what == "refused"
    assert "fork" in posted.detail
    assert "pull-requests: write" in posted.detail
    assert forge.comments == []
    assert clock.waits == []


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"token": "ghs_expired-secret"}, AccessDenied, "Bad credentials"),
        ({"place": "shop/other"}, InputError, "check repository and number"),
        ({"number": 8}, InputError, "repos/shop/search/issues/8/comments"),
        ({"place": "shop/search/../../orgs"}, InputError, "owner/name"),
        ({"number": 0}, InputError, "number of a pull request"),
        ({"markdown": "   ", "marker": ""}, InputError, "422"),
        ({"token": "ghs_broken\nin-two"}, InputError, "check the address, the token"),
    ],
)
def test_refusals_name_their_cure_and_never_the_token(forge, clock, changes, error, says) -> None:
    markdown = changes.pop("markdown", REPORT)
    with pytest.raises(error) as told:
        post(forge, clock, markdown, **changes)
    message = str(told.value)
    assert says in message
    assert "\n" not in message
    for part in changes.get("token", TOKEN).split():
        assert part not in message
    assert forge.comments == []


def test_a_token_that_the_server_repeats_is_blotted_out(forge, clock) -> None:
    forge.plant("GET", "comments", 422, {"message": f"cannot use {TOKEN} here"})
    with pytest.raises(InputError) as told:
        post(forge, clock)
    assert TOKEN not in str(told.value)
    assert "***" in str(told.value)


def test_a_server_error_is_tried_again_a_bounded_number_of_times(forge, clock) -> None:
    forge.plant("GET", "comments", 502, "<html>Bad gateway</html>", times=2)
    assert post(forge, clock).what == "created"
    assert clock.waits == [1, 2]
    forge.plant("GET", "comments", 500, times=100)
    with pytest.raises(Unreachable, match="answered 500"):
        post(forge, clock)
    assert clock.waits == [1, 2, 1, 2, 4]


@pytest.mark.parametrize("status", [500, 0])
def test_a_comment_whose_answer_was_lost_is_not_written_twice(forge, clock, status) -> None:
    """GitHub wrote it and then failed to say so."""
    forge.plant("POST", "issues/7/comments", status, done=True)
    assert post(forge, clock).what == "updated"
    assert len(forge.comments) == 1


def test_a_comment_that_cannot_be_written_is_given_up(forge, clock) -> None:
    forge.plant("POST", "issues/7/comments", 500, times=100)
    with pytest.raises(Unreachable):
        post(forge, clock)
    assert [method for method, path in forge.requests if path.endswith("/comments")] == ["POST"] * 3


def test_a_secondary_rate_limit_is_waited_for(forge, clock) -> None:
    said = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
    forge.plant("POST", "issues/7/comments", 403, said, headers={"Retry-After": "7"})
    forge.plant("GET", "comments", 429, said)
    assert post(forge, clock).what == "created"
    assert clock.waits == [60, 7]
    assert len(forge.comments) == 1


def test_a_rate_limit_of_an_hour_is_not_waited_for(forge, clock) -> None:
    forge.plant("GET", "comments", 403, {"message": "API rate limit exceeded"}, headers={"Retry-After": "3600"})
    with pytest.raises(Unreachable, match="rate limit exceeded"):
        post(forge, clock)
    assert clock.waits == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_so_no_token_goes_to_another_host(forge, clock, status) -> None:
    with serving(Forge({}, ""), GitHubHandler) as other:
        forge.plant("GET", "comments", status, [], headers={"Location": f"{other.url}/steal"})
        with pytest.raises(InputError, match=f"answered {status}.*check repository and number"):
            post(forge, clock)
        assert other.requests == []


def test_a_link_to_another_host_is_not_followed(forge, clock) -> None:
    with serving(Forge({}, ""), GitHubHandler) as other:
        forge.plant("GET", "comments", 200, [], headers={"Link": f'<{other.url}/steal>; rel="next"'})
        assert post(forge, clock).what == "created"
        assert other.requests == []


def test_a_huge_report_is_cut_where_github_takes_it(forge, clock) -> None:
    row = "| q{} | the quick brown fox jumps over the lazy dog | 0.5 | 0.4 |\n"
    huge = (
        "## Ringtrue: FAIL\n<details><summary>all</summary>\n\n" + "".join(row.format(n) for n in range(5000)) + "</details>\n"
    )
    assert post(forge, clock, huge).what == "created"
    (body,) = forge.bodies()
    assert len(body) < 65_536
    assert body.startswith(f"{MARKER}\n## Ringtrue: FAIL")
    assert body.count("<details") == body.count("</details>")
    assert "longer than a comment may be" in body
    assert post(forge, clock, huge).what == "updated"


def test_nobody_at_the_address(clock) -> None:
    with pytest.raises(Unreachable, match="cannot be reached") as told:
        post(Forge({}, "", url="http://127.0.0.1:9"), clock)
    assert TOKEN not in str(told.value)
    assert clock.waits == [1, 2, 4]


@pytest.mark.parametrize("api", ["not-an-address", "ftp:/nowhere", ""])
def test_an_address_that_is_none(forge, clock, api) -> None:
    with pytest.raises(RingtrueError):
        post(forge, clock, api=api)


GITLAB_TOKEN = "glpat-secret"


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(Forge({GITLAB_TOKEN: "project_42_bot"}, "group/search!3"), GitLabHandler) as running:
        yield running


def note(forge: Forge, clock: Clock, markdown: str = REPORT, **changes) -> Posted:
    where = {"place": "group/search", "number": 3, "token": GITLAB_TOKEN, "api": f"{forge.url}/api/v4"} | changes
    return post_note(markdown, **where, sleep=clock)


def test_gitlab_keeps_one_note(gitlab, clock) -> None:
    for number in range(130):
        gitlab.add(f"{MARKER}\nnot by us {number}", "someone")
    assert [note(gitlab, clock, text).what for text in ("first", "second")] == ["created", "updated"]
    assert gitlab.bodies("project_42_bot") == [f"{MARKER}\nsecond"]


def test_gitlab_refusals(gitlab, clock) -> None:
    gitlab.read_only = {GITLAB_TOKEN}
    refused = note(gitlab, clock)
    assert refused.what == "refused"
    assert "scope `api`" in refused.detail
    with pytest.raises(AccessDenied, match="401 Unauthorized"):
        note(gitlab, clock, token="glpat-wrong")
    with pytest.raises(InputError, match="404"):
        note(gitlab, clock, number=4)
    with pytest.raises(InputError, match="group/name"):
        note(gitlab, clock, place=" ")
