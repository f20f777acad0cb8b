"""Programs of others that tests need: fetched if they are missing, as the set-up does."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest


@cache
def _fetched(name: str) -> tuple[str, str]:
    done = subprocess.run(
        ["sh", Path(__file__).with_name("get_tools.sh"), name], capture_output=True, text=True, timeout=600, check=True
    )
    return done.stdout.strip(), " ".join(done.stderr.split())


def tool(name: str) -> str:
    """Return where a program is; skips the test, loudly, if it cannot be had."""
    place, said = _fetched(name)
    if not place:
        pytest.skip(f"NO {name.upper()}: this is NOT TESTED: {said}")
    return place
