"""What is evaluated, as a command line or a settings file names it: the search, a Python function, files, an index."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ringtrue.config import cache_folder
from ringtrue.errors import InputError
from ringtrue.golden import load
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
        rooted = Path(pattern)
        start, below = (
            (Path(rooted.anchor), str(rooted.relative_to(rooted.anchor))) if rooted.is_absolute() else (Path(), pattern)
        )
        found = sorted(path for path in start.glob(below) if path.is_file())
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
