"""What decides a system's answers, to be hashed into a fingerprint. In: a setting; out: the same as plain values.

Where a system is and who may ask it decide nothing: hosts, users and keys are left out. A file is its name and what it holds,
not where it lies. What goes out may be a statement that its owner keeps to himself, so it is hashed and never shown.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s'\"]*")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET = re.compile(
    r"(.*[^a-z])?(token|secret|password|passwd|pwd|auth|authorization|bearer|jwt|sig|signature|credentials?"
    r"|(api|access|account|app|client|private|subscription)[_-]?key)"
)


def settled(value: Any) -> Any:
    """Return a setting as plain values: texts without hosts, files by name and content, objects by their kind.

    >>> settled({"url": "https://me:pw@search.example.com:9200/shop", "fields": ("title^2", "body")})
    {'url': '/shop', 'fields': ['title^2', 'body']}
    """
    if isinstance(value, str):
        return _placed(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Path):
        return stored(value)
    if isinstance(value, Mapping):
        return {str(name): settled(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [settled(part) for part in value]
    return f"{type(value).__module__}.{type(value).__qualname__}"


def template(value: Any, *, top: bool = True) -> Any:
    """Return a template of a request without what its names say is a key; a value that asks for something stays.

    >>> template({"q": "{text}", "api_key": "abc", "token": "{scope.token}"})
    {'q': '{text}', 'token': '{scope.token}'}
    """
    if isinstance(value, Mapping):
        kept = {name: part for name, part in value.items() if "{" in str(part) or not _is_secret(str(name), top=top)}
        return {str(name): template(part, top=False) for name, part in kept.items()}
    if isinstance(value, list | tuple):
        return [template(part, top=False) for part in value]
    return settled(value)


def words(command: Sequence[str], folder: str | Path | None) -> list[Any]:
    """Return a program and its arguments: files by what they hold, no hosts, and no values of options like --token.

    >>> words(["/usr/bin/python3", "--token", "abc", "--url=http://localhost:8000/find", "--top=5"], None)
    ['python3', '--token', '--url=/find', '--top=5']
    """
    here = Path(folder or ".")
    found: list[Any] = []
    secret = False
    for place, word in enumerate(command):
        if secret and not word.startswith("-") and not _is_file(here / word):
            secret = False
            continue
        option, given, value = word.partition("=")
        secret = option.startswith("-") and _is_secret(option.lstrip("-"), top=True)
        if secret:
            found.append(option)
            secret = not given
        elif given and option.startswith("-") and _is_file(here / value):
            found.append([option, stored(here / value)])
        elif place == 0 and not _is_ours(here, word):
            found.append(Path(word).name)  # an interpreter lies elsewhere, and is another build, on every machine
        else:
            lies_elsewhere = Path(word).is_absolute() and Path(word).is_dir()
            found.append(stored(here / word) if _is_file(here / word) or lies_elsewhere else _placed(word))
    return found


def stored(path: Path) -> str:
    """Return a file by its name and what it holds; what is not a file, by its name."""
    if not _is_file(path):
        return path.name
    facts = path.stat()
    return f"{path.name} {_digest(path.resolve(), facts.st_size, facts.st_mtime_ns)}"


def model(name: str) -> str:
    """Return a model: a name as it is, a folder by its name and the files in it."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return name
    held = sorted(file for file in folder.rglob("*") if file.is_file())
    return f"{folder.name} {hashlib.sha256(repr([stored(file) for file in held]).encode()).hexdigest()[:16]}"


@lru_cache(maxsize=1000)
def _digest(path: Path, size: int, changed: int) -> str:
    """Return the hash of a file, made once for each state of it: a sweep asks again for every trial."""
    file = _databases.pop(path, None)
    if file is None or os.fstat(file.fileno()).st_ino != path.stat().st_ino:
        file = path.open("rb", buffering=0)
    file.seek(0)
    database = file.read(16).startswith(b"SQLite format 3")
    file.seek(0)
    found = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    if database:
        _databases[path] = file
    else:
        file.close()
    return found


_databases: dict[Path, FileIO] = {}
"""SQLite files stay open: closing one would release the locks that this process holds on it."""


def _placed(text: str) -> Any:
    """Return a text without the hosts in it; a whole address is its path and what it asks for."""
    if not _HOST.match(text) or re.search(r"\s", text):
        return _HOST.sub("", text)
    path, _, query = _HOST.sub("", text, count=1).partition("#")[0].partition("?")
    asked = [pair for pair in parse_qsl(query, keep_blank_values=True) if not _is_secret(pair[0], top=True)]
    return [path, *map(list, asked)] if asked else path.rstrip("/")


def _is_secret(name: str, *, top: bool) -> bool:
    low = _HUMP.sub("_", name).lower()
    return bool(_SECRET.fullmatch(low)) or (top and low == "key")


def _is_ours(folder: Path, program: str) -> bool:
    """Whether a program is a file of the folder that it runs in."""
    path = folder / program
    return _is_file(path) and path.resolve().is_relative_to(folder.resolve())


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or nothing that a path can be
        return False
