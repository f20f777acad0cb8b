"""What an evaluation really used: the code that it imported and the servers of this machine that it asked.

``main`` runs ``ringtrue`` and writes that down: ``python -c 'from ringtrue.ci.used import main; main()' FILE eval …``.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ringtrue.ci.service import is_local
from ringtrue.errors import CannotDecide


@dataclass(frozen=True)
class Used:
    """The files of the modules that an evaluation imported, and the servers on this machine that it asked."""

    files: frozenset[Path] = frozenset()
    servers: frozenset[str] = frozenset()

    @classmethod
    def read(cls, file: Path) -> Used:
        """Return what was written down; nothing if the evaluation did not come to its end."""
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return cls()
        return cls(frozenset(map(Path, found["files"])), frozenset(found["servers"]))

    def code_of(self, checkout: Path) -> Path | None:
        """Return a file that was imported from a checkout, or from a copy of it that is installed; None if none was."""
        environment, measuring = Path(sys.prefix).resolve(), Path(__file__).resolve().parents[1]
        copies: set[Path] = set()
        for package in distributions():
            origin = json.loads(package.read_text("direct_url.json") or "{}")
            address = urlsplit(origin.get("url", ""))
            editable = origin.get("dir_info", {}).get("editable", False)  # imported from the checkout itself
            if address.scheme == "file" and not editable and Path(url2pathname(address.path)).resolve() == checkout:
                copies |= {Path(str(package.locate_file(file))).resolve() for file in package.files or ()}
        for file in sorted(self.files):
            inside = file.is_relative_to(checkout) and not file.is_relative_to(environment)
            if (inside or file in copies) and not file.is_relative_to(measuring):
                return file
        return None


def check_code(base: Used, head: Path) -> None:
    """Raise CannotDecide if the base's evaluation imported the code of the change, whose checkout is ``head``."""
    if file := base.code_of(head.resolve()):
        raise CannotDecide(
            f"the evaluation of the base imported code of this change, {file}; "
            'let each side install its own, for example with setup = "pip install -e ." under [ci]'
        )


def check_servers(head: Used, base: Used, environment: Mapping[str, str]) -> None:
    """Raise CannotDecide if both sides, whose answers were the same, asked one server on this machine."""
    addresses = (urlsplit(value) for name, value in environment.items() if name.lower().endswith("_proxy") and "://" in value)
    proxies = {f"localhost:{place.port}" for place in addresses if is_local(place.hostname or "")}
    if common := sorted(head.servers & base.servers - proxies):
        raise CannotDecide(
            f"both sides asked {common[0]} and got the same answers, so they may have measured one running search; "
            "let each side start its own, with serve under [ci] and the port in RINGTRUE_PORT "
            "(or set shared = true there if only these settings can change the search)"
        )


def main() -> None:
    """Run ``ringtrue`` with the rest of the arguments, and write to the first what it used."""
    place, *arguments = sys.argv[1:]
    servers: set[str] = set()

    def hear(event: str, details: tuple[Any, ...]) -> None:
        if event == "socket.connect" and isinstance(details[1], tuple) and is_local(str(details[1][0])):
            servers.add(f"localhost:{details[1][1]}")

    sys.addaudithook(hear)
    sys.argv = ["ringtrue", *arguments]
    try:
        runpy.run_module("ringtrue", run_name="__main__")
    finally:
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        found = {str(Path(file).resolve()) for file in files if isinstance(file, str)}
        Path(place).write_text(json.dumps({"files": sorted(found), "servers": sorted(servers)}), encoding="utf-8")
