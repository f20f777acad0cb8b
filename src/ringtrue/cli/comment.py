"""``ringtrue comment``: one comment on a pull request or merge request, kept up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json
from ringtrue.config import github, gitlab
from ringtrue.errors import InputError, MissingInput


def comment_command(
    report: Annotated[str, typer.Argument(metavar="FILE", help="The Markdown to post; - for standard input.")],
    forge: Annotated[str | None, typer.Option("--on", help="github or gitlab; seen from the environment unless given.")] = None,
    repository: Annotated[str | None, typer.Option(help="owner/name on GitHub, id or path of the project on GitLab.")] = None,
    number: Annotated[int | None, typer.Option(min=1, help="Of the pull request or merge request.")] = None,
    key: Annotated[str, typer.Option(help="Tells several comments on one pull request apart.")] = "",
    api: Annotated[str | None, typer.Option(help="Address of the API, for a server of your own.")] = None,
    json: Json = False,
) -> None:
    """Post a report on a pull request, or update it. The token is GITHUB_TOKEN or GITLAB_TOKEN.

    Inside a workflow or a merge-request pipeline everything else is known. A token that may only read, as on a pull request
    from a fork, is said and is no error.

    Example: ringtrue comment gate.md
    Example: ringtrue comment gate.md --on github --repository shop/search --number 7
    """
    text = sys.stdin.read() if report == "-" else _read(Path(report))
    if not text.strip():
        raise InputError(f"{report}: is empty; give the Markdown of a report, as `ringtrue report RUN --format pr` writes it")
    posted = posted_comment(text, forge=forge, repository=repository, number=number, key=key, api=api)
    if posted is None:
        raise InputError("there is no pull request here; give --repository and --number")
    if json:
        show.as_json({"comment": posted.what, "url": posted.url, "detail": posted.detail})
    elif posted.what == "refused":
        show.note(posted.detail)
    else:
        print(f"comment {posted.what}" + (f": {posted.url}" if posted.url else ""))


def posted_comment(
    text: str,
    *,
    forge: str | None = None,
    repository: str | None = None,
    number: int | None = None,
    key: str = "",
    api: str | None = None,
) -> lib.ci.Posted | None:
    """Post where the environment says this runs, unless told otherwise; None if there is no pull request."""
    if forge not in (None, "github", "gitlab"):
        raise InputError(f"--on {forge!r} is not known; write github or gitlab")
    line = lib.report.marker(key) if key else lib.ci.marker_in(text) or lib.report.marker()
    hub, lab = github(), gitlab()
    if forge == "gitlab" or (forge is None and lab.project and not hub.repository):
        project, number = repository or lab.project, number or lab.number
        if not project or number is None:
            return None
        token = _needed(lab.token, "GITLAB_TOKEN")
        return lib.ci.post_note(text, project=project, number=number, token=token, api=api or lab.api, marker=line)
    repository, number = repository or hub.repository, number or lib.ci.pull_request_number(hub.event)
    if not repository or number is None:
        return None
    token = _needed(hub.token, "GITHUB_TOKEN")
    return lib.ci.post_comment(text, repository=repository, number=number, token=token, api=api or hub.api, marker=line)


def _needed(token: str, variable: str) -> str:
    if not token:
        raise MissingInput(f"the environment has no {variable}, so nothing was posted; hand it to this step")
    return token


def _read(path: Path) -> str:
    if not path.is_file():
        raise MissingInput(f"{path}: there is no such file; write it with `ringtrue report RUN --format pr --out {path}`")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8; save it as UTF-8") from None
