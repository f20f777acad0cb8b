"""Candidates that behave badly, in a module of their own so that another process can import them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any


def well(text: str, *, k: int = 10) -> list[str]:
    return ["b", "a", "c"][:k]


def crashes(text: str, *, k: int = 10) -> list[str]:
    raise RuntimeError("no\nindex")


def exits(text: str, *, k: int = 10) -> list[str]:
    sys.exit(3)


def dies(text: str, *, k: int = 10) -> list[str]:
    os._exit(7)


def hangs(text: str, *, k: int = 10) -> list[str]:
    time.sleep(3600)
    return []


def burns(text: str, *, k: int = 10) -> list[str]:
    while True:  # never gives the interpreter up by itself
        pass


def takes_all_memory(text: str, *, k: int = 10) -> list[str]:
    taken = []
    while True:
        taken.append(bytearray(64 * 2**20))


def endless(text: str, *, k: int = 10) -> Any:
    number = 0
    while True:
        number += 1
        yield f"d{number}"


def rubbish(text: str, *, k: int = 10) -> Any:
    return {"error": "over quota"}


def twice(text: str, *, k: int = 10) -> list[str]:
    return ["a", "a"]


def long_ids(text: str, *, k: int = 10) -> list[str]:
    return ["x" * 5000]


def sometimes_hangs(text: str, *, k: int = 10) -> list[str]:
    return hangs(text) if "hang" in text else well(text, k=k)


def leaves_a_child(text: str, *, k: int = 10) -> list[str]:
    """Start a process of its own, write its number to the file that the query names, and hang or die."""
    import subprocess

    place, _, what = text.partition("|")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(place).write_text(str(child.pid), encoding="utf-8")
    if what == "die":
        os._exit(7)
    return hangs(text)
