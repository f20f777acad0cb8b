"""``ringtrue memory mcp``: the memory as an MCP server."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.memory import Root, usual_root
from ringtrue.config import environment_without_tokens
from ringtrue.errors import MissingInput
from ringtrue.extras import install_command


def mcp_command(
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen on a port; without it, speak over stdin and stdout.")
    ] = None,
    root: Root = None,
    session: Annotated[
        str | None, typer.Option(help="The conversation of calls that name none; over stdio the host's own.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="What every HTTP request must carry as Bearer; better in RINGTRUE_MEMORY_MCP_TOKEN.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A further host name that HTTP requests may use.")
    ] = None,
) -> None:
    """Serve the memory to agents: search, context, save, load, validate, link, health and tasks.

    Without --http the server speaks over stdin and stdout, as hosts start it. On a port it answers this machine only, unless a
    token is set.

    Example: ringtrue memory mcp
    Example: ringtrue memory mcp --http 127.0.0.1:8765
    """
    try:
        from ringtrue.memory.server import build_server
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise MissingInput(f"the MCP server needs the package 'mcp'; {install_command('mcp')}") from problem
    from ringtrue.memory.http_server import address_of, check_token, serve_http

    # Hosts start a server in every project; a folder in which nothing is saved stays as it is.
    folder = str(usual_root(root))
    if http is None:
        # One process of a host serves one conversation, so a call that names none belongs to it.
        own = session or environment_without_tokens().get("CLAUDE_CODE_SESSION_ID") or f"stdio-{os.getpid()}"
        build_server(folder, session_id=own).run("stdio")
        return
    address = address_of(http)
    check_token(address, token or "")
    server = build_server(folder, session_id=session or "")
    show.note(f"{folder} is served at {address.url}; Ctrl-C ends it")
    serve_http(server, address, token=token or "", names=name or ())
