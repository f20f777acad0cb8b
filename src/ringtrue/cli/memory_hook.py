"""``ringtrue memory hook``: one event of a host, through this program instead of the installed plugin."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def hook_command(
    event: Annotated[str | None, typer.Argument(help="The event, if the host's JSON does not name it.")] = None,
) -> None:
    """Answer one event of a host: its JSON on standard input, what goes to the agent on standard output. Always exits 0.

    The installed plugin runs the same code without this program's start; this is for trying out and for other hosts.

    Example: echo '{"hook_event_name": "UserPromptSubmit", "prompt": "how do we sign tokens?"}' | ringtrue memory hook
    """
    from ringtrue.config import environment_without_tokens
    from ringtrue.memory.hook.hook import main

    main([event] if event else [], sys.stdin, sys.stdout, environment_without_tokens())
