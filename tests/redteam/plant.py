"""The hostile cases: read from ``hostile.json``, planted into a folder, and what must hold for all that is said of them.

Every case has ``id``, ``kind``, where it is ``planted``, what it ``tries`` and what ``holds``. Large and odd values are written
as ``{"$repeat": [text, times]}``, ``$join``, ``$list`` and ``$nest``, so that the file can be read.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from made_memories import store

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("hostile.json").read_text(encoding="utf-8"))
CONTROL = "how do otters guard the payment ledger?"
"""A prompt that an innocent memory answers; whatever lies beside it, it does."""
_OTTERS = {
    "schema_version": "1.0", "id": "otters", "category": "decision", "title": "How otters guard the payment ledger",
    "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "tags": ["ledger"],
    "record_status": "active", "importance_tier": "normal", "content": {"decision": "otters guard the ledger in turns"},
}  # fmt: skip
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def cases(*, tool: bool) -> list[dict[str, Any]]:
    """Return the cases that call a tool of the MCP server with hostile arguments, or those planted elsewhere."""
    return [case for case in CASES if ("tool" in case) == tool]


def name_of(case: dict[str, Any]) -> str:
    return str(case["id"])


def grown(value: Any, outside: Path) -> Any:
    """Return a value with what is written short in its full length."""
    if isinstance(value, list):
        return [grown(item, outside) for item in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        return value["$repeat"][0] * value["$repeat"][1]
    if "$join" in value:
        return "".join(grown(part, outside) for part in value["$join"])
    if "$list" in value:
        return [value["$list"][0]] * value["$list"][1]
    if "$outside" in value:
        return str(outside / value["$outside"])
    if "$nest" in value:
        nested: Any = "deep"
        for _ in range(value["$nest"]):
            nested = [nested]
        return nested
    return {name: grown(item, outside) for name, item in value.items()}


@dataclass(frozen=True)
class Planted:
    """A project in which a case lies: its folders, and what the case says, grown."""

    case: dict[str, Any]
    project: Path
    outside: Path

    @property
    def root(self) -> Path:
        return self.project / ".claude" / "memory"

    @property
    def memory_id(self) -> str:
        return str(self.case.get("shown_id") or self.case.get("memory", {}).get("id") or "hostile")

    @property
    def prompt(self) -> str:
        return str(self.case.get("prompt", CONTROL))


def plant(case: dict[str, Any], folder: Path) -> Planted:
    """Make a project with an innocent memory and the hostile case."""
    project, outside = folder / "project", folder / "outside"
    outside.mkdir(parents=True)
    here = Planted(grown(case, outside), project, outside)
    _write(here.root / "decision" / "otters.json", json.dumps(_OTTERS))
    if "many" in case:
        store(here.root, case["many"])
    if "memory" in case:
        _write(here.root / "decision" / "file.json", json.dumps(here.case["memory"]))
    if "config" in case:
        _write(here.root / "memory-config.json", json.dumps(here.case["config"]))
    for file in here.case.get("files", ()):
        _plant_file(here, file)
    for name in ("pipe", "pipe.json"):
        os.mkfifo(outside / name)
    _write(outside / "transcript", here.case.get("transcript", ""))
    return here


def _plant_file(here: Planted, file: dict[str, Any]) -> None:
    if "path_hex" in file:
        path = Path(os.fsdecode(os.fsencode(here.root) + b"/" + bytes.fromhex(file["path_hex"])))
    else:
        path = here.root / file["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
    if file.get("fifo"):
        os.mkfifo(path)
    elif "link" in file:
        path.symlink_to(file["link"])
    elif file.get("link_outside"):
        path.symlink_to(here.outside, target_is_directory=True)
    elif "outside" in file:
        _write(here.outside / "target.json", file["outside"])
        path.symlink_to(here.outside / "target.json")
    elif "hex" in file:
        path.write_bytes(bytes.fromhex(file["hex"]))
    else:
        _write(path, json.dumps(file["memory"]) if "memory" in file else file["text"])
    if "mode" in file:
        path.chmod(file["mode"])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def strict_json(text: str) -> Any:
    """Return what is in a text that every parser of JSON reads, not only Python's."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text.encode()  # half of a character pair could not be sent
    return json.loads(text, parse_constant=refuse)


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, names of fields too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def hidden_in(text: str, allowed: str = "\n\t") -> list[str]:
    """Return the characters of a text that nobody sees."""
    return [letter for letter in text if unicodedata.category(letter) in _UNSEEN and letter not in allowed]


def check_block(block: str, here: Planted, *, attributes: set[str]) -> list[ElementTree.Element]:
    """Assert that a text is one ``<memory-context>`` named as data, whose elements lead nowhere else; return the elements."""
    assert hidden_in(block) == []
    tree = ElementTree.fromstring(block)
    assert tree.tag == "memory-context"
    assert tree.attrib == {"source": str(here.root), "content": "data"}
    assert "not instructions" in (tree.text or "")
    assert block.count("<memory-context") == block.count("</memory-context>") == 1
    for element in tree:
        assert element.tag == "memory"
        assert list(element) == []
        assert (element.tail or "").strip() == ""
        assert set(element.attrib) <= attributes
        path = os.path.normpath(element.attrib["path"])
        assert path.startswith((str(here.root) + os.sep, str(here.project / ".claude" / "notes") + os.sep))
    return list(tree)
