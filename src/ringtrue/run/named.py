"""What a command line or a settings file names: the search, a Python function, files, a mapping of ids, the commit.

Ids of chunks and prefixes are mapped explicitly, never guessed.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any, cast

from ringtrue.config import cache_folder
from ringtrue.errors import InputError
from ringtrue.golden import load
from ringtrue.records import Hit
from ringtrue.retrieve import Collection, as_expression
from ringtrue.run.subject import Routed, corpus_of, routed

Search = str | Callable[..., Any] | Mapping[str, str]


def search_named(retriever: str | None, python: str | None = None, routes: Sequence[str] = ()) -> Search:
    """Return the search that is named: an expression, the function at ``python``, or expressions by route.

    ``hybrid`` if nothing is named. Raises InputError if two are named, and for a name that cannot be read.
    """
    given = [name for name, value in (("--retriever", retriever), ("--python", python), ("--route", routes)) if value]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} both name the retriever; give one of them")
    if python:
        return function_at(python)
    if routes:
        found: dict[str, str] = {}
        for route in routes:
            value, equals, text = (part.strip() for part in route.partition("="))
            if not equals or not value or not text:
                raise InputError(f"--route {route!r} names no retriever; write it like --route laws=bm25")
            if value in found:
                raise InputError(f"--route names '{value}' twice; give each corpus one retriever")
            found[value] = text
        return found
    text = retriever or "hybrid"
    return str(as_expression(text)) if text.lstrip().startswith("{") else text  # a configuration is named by what it means


def expressions_of(search: Search) -> list[str]:
    """Return the expressions of a search; none for a Python function."""
    if isinstance(search, str):
        return [search]
    return list(search.values()) if isinstance(search, Mapping) else []


def function_at(place: str) -> Callable[..., Any]:
    """Return the function at ``module:name`` or ``file.py:name``; raises InputError naming what is wrong."""
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise InputError(f"--python {place!r} names no function; write it like my_search:find or search/find.py:find")
    try:
        if where.endswith(".py"):
            file = Path(where)
            if not file.is_file():
                raise InputError(f"--python {place!r}: there is no file '{where}'")
            spec = importlib.util.spec_from_file_location(file.stem, file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.path.append(str(file.parent.resolve()))  # it may import what lies beside it, but not replace what we import
            sys.modules.setdefault(file.stem, module)
            spec.loader.exec_module(module)
        else:
            sys.path.append(str(Path.cwd()))
            module = importlib.import_module(where)
    except InputError:
        raise
    except Exception as problem:
        raise InputError(f"--python {place!r}: cannot be imported ({type(problem).__name__}: {problem})") from problem
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"--python {place!r}: '{where}' has no '{part}'")
        found = getattr(found, part)
    if not callable(found) and not hasattr(found, "search"):
        raise InputError(f"--python {place!r} is {type(found).__name__}, which cannot search; name a function (text, k)")
    return cast("Callable[..., Any]", found)


def files_matching(patterns: Sequence[str]) -> list[Path]:
    """Return the files of some patterns; raises InputError for a pattern that matches none, which would watch nothing."""
    files: dict[Path, None] = {}
    for pattern in patterns:
        matches = glob(pattern, recursive=True, include_hidden=True)  # noqa: PTH207  Path.glob takes no absolute pattern
        found = sorted(path for path in map(Path, matches) if path.is_file())
        if not found:
            raise InputError(f"--watch {pattern!r} matches no file; write it from the current folder, like 'search/*.py'")
        files |= dict.fromkeys(found)
    return list(files)


def subjects_named(
    search: Search,
    *,
    golden: str | None,
    collection: Callable[[], Collection] | None,
    chunks: str | None,
    route_by: str,
    version: str,
    watch: Sequence[str],
) -> Routed:
    """Return the search that is named, as an evaluation would see it, without asking it anything."""

    def documents() -> Collection:
        if collection is not None:
            return collection()
        if golden is None:
            raise InputError("the retriever searches documents; name their folder with --in, or the --golden set they are in")
        return corpus_of(load(golden), cache_folder() / "corpora", chunks=chunks)

    return routed(search, documents=documents, version=version, watched=files_matching(watch), by=route_by)


# ── ids of the system under test → ids of the golden set ─────────────────────────────────────────────────────────────


IdOf = Callable[[str], str]


def same(doc_id: str) -> str:
    """Return the id as it is."""
    return doc_id


def mapping(pattern: str | IdOf | None) -> IdOf:
    """Return how ids of the system become ids of the set: by the first group of a regular expression, or by a function.

    An id that the expression does not match stays as it is. Raises InputError for an expression without a group.

    >>> mapping(r"^golden:hotel:(.+)$")("golden:hotel:pool")
    'pool'
    """
    if pattern is None:
        return same
    if callable(pattern):
        return pattern
    option = f"--id-pattern (ids= in Python) {pattern!r}"
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise InputError(f"{option} is not a regular expression ({problem}); write it like '^mem:(.+)$'") from None
    if compiled.groups < 1:
        raise InputError(f"{option} has no group; put the judged id into brackets, like '^mem:(.+)$'")

    def id_of(doc_id: str) -> str:
        match = compiled.match(doc_id)
        return doc_id if match is None or not match[1] else match[1]

    return id_of


def unmapping(pattern: str | IdOf | None) -> IdOf | None:
    r"""Return how ids of the set become ids of the system again; None if an expression cannot be turned round.

    Only expressions with fixed text around the judged id can: a chunk's number is not known from its document.

    >>> turned = unmapping(r"^golden:hotel:(.+)$")
    >>> turned("pool") if turned else None
    'golden:hotel:pool'
    """
    if pattern is None:
        return same
    if callable(pattern):
        return None
    fixed = r"(?:[^\\.^$*+?{}\[\]|()]|\\\W)*"
    simple = re.fullmatch(rf"\^?({fixed})\(\.[+*]\??\)({fixed})\$?", pattern)
    if simple is None:
        return None
    before, after = (re.sub(r"\\(.)", r"\1", part) for part in simple.groups())
    return lambda doc_id: f"{before}{doc_id}{after}"


def mapped(hits: Iterable[Hit], id_of: IdOf) -> tuple[Hit, ...]:
    """Return hits in the ids of the set; several passages of one document count once, at the best rank."""
    found: dict[str, Hit] = {}
    for hit in hits:
        doc_id = id_of(hit.doc_id)
        if doc_id not in found:
            found[doc_id] = hit if doc_id == hit.doc_id else replace(hit, doc_id=doc_id, chunk=hit.chunk or hit.doc_id)
    return tuple(found.values())


# ── the git commit that a run was made with ──────────────────────────────────────────────────────────────────────────


PATIENCE = 20.0
"""Seconds that git may take."""


def commit_of(folder: Path, *, beside: Path | None = None) -> str | None:
    """Return the commit checked out around ``folder``, with ``-dirty`` where tracked files were changed since.

    ``beside`` is a file whose own changes do not count: the list of experiments changes with every entry. None if there is
    no git, no repository or no commit yet.
    """
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        return None
    top, but = _git(folder, "rev-parse", "--show-toplevel"), list[str]()
    if top and beside is not None and beside.resolve().is_relative_to(Path(top).resolve()):
        but = [f":(top,exclude,literal){beside.resolve().relative_to(Path(top).resolve()).as_posix()}"]
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":(top)", *but)
    return commit if changes == "" else f"{commit}-dirty"


def branch_and_commit(folder: Path) -> str | None:
    """Return what is checked out around ``folder``, like ``main@1a2b3c4``, with ``+changes`` if tracked files were changed.

    Without a branch it is the commit alone; None if there is no git, no repository or no commit yet.
    """
    commit = _git(folder, "describe", "--always", "--dirty=+changes", "--exclude=*")
    branch = _git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    return f"{branch}@{commit}" if branch and commit else commit or None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=PATIENCE, text=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
