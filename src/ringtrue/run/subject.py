"""What is evaluated: a retriever in any of its forms → one thing that can be asked, named, recognised and looked into."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import sys
import sysconfig
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, cast

from ringtrue.errors import InputError
from ringtrue.records import GoldenSet, Query
from ringtrue.retrieve import (
    Collection,
    DocumentStore,
    Retriever,
    Source,
    Staged,
    as_retriever,
    build,
    canonical,
    indexes_of,
    names_documents,
    parts_of,
)
from ringtrue.retrieve.connectors.base import Connector
from ringtrue.retrieve.connectors.deciding import stored
from ringtrue.run.ask import with_parts
from ringtrue.spec import Expression, Pipeline

DECIDING = ("numpy", "tantivy", "onnxruntime", "tokenizers", "faiss-cpu")
"""Libraries whose version may move an answer."""
FUSIONS = ("rrf", "weighted", "combsum", "combmnz", "adaptive")
POLITE = 4
"""Questions that a connected system is asked at once, unless told otherwise."""
DEEPEST = 4
"""How many objects deep a user's retriever is looked into."""
MANY = 100
"""Objects in one list beyond which only their kind counts."""
SHALLOW = 20
"""Hits that a connected system is asked for at least; each may cost its owner money."""
DEEP = 100
"""Hits that our own retrievers are asked for, so that blame can tell 'ranked 30th' from 'never found'."""


@dataclass(frozen=True, eq=False)
class Subject:
    """One retriever under test."""

    name: str
    text: str
    """The expression with every default written out, or the name of what is not an expression."""
    retriever: Retriever
    config: Mapping[str, Any]
    fingerprint: str
    """Hash of what it is; equal fingerprints mean the same retriever as far as can be seen."""
    complete: bool
    """True if nothing that decides the answers is out of sight; only then may a result be taken from the cache."""
    collection: DocumentStore | None = None
    in_process: bool = False
    """True if answers are computed in this process, which parallel questions would only slow down."""
    replays: bool = False
    """True if answers come from a file: their time says nothing about a search."""
    given: Any = None
    """What the user gave, where it was wrapped to become a retriever."""

    @cached_property
    def corpus(self) -> str | None:
        """Hash of the documents that are searched; None if they are out of sight."""
        return None if self.collection is None else self.collection.content_hash()

    @property
    def workers(self) -> int:
        """How many questions it is asked at once, unless told otherwise: a user's function may not be made for two."""
        return POLITE if isinstance(self.retriever, Connector) and not self.replays else 1

    def known(self, doc_ids: Sequence[str]) -> set[str] | None:
        """Return which of these documents it can find at all; None if that cannot be asked."""
        if self.collection is not None:
            return set(self.collection.ids().values()) & set(doc_ids)
        ask: Callable[[Sequence[str]], Iterable[str]] | None = getattr(self.given or self.retriever, "known", None)
        return None if ask is None else set(ask(doc_ids))


def subject_of(
    retriever: Source | Retriever | Callable[..., Any],
    *,
    collection: Callable[[], Collection],
    name: str | None = None,
    version: str = "",
    watched: Iterable[Path] = (),
) -> Subject:
    """Return what is to be evaluated: an expression (over ``collection``), a retriever object or a plain function.

    ``version`` is the user's word for the state of a system that cannot be looked into; ``watched`` files are part of the
    fingerprint. Raises SpecError or InputError for what is not a retriever.
    """
    seen = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(watched)}
    if isinstance(retriever, str | Expression | Pipeline | Mapping):
        expression = canonical(retriever)
        documents = collection() if names_documents(retriever) else None
        found = build(retriever, documents)
        parts = parts_of(expression)
        steps = [step for part in with_parts(found) if isinstance(part, Staged) for step in part.steps]
        outside = [part for part in parts if part.name == "connect" or (part.name == "rerank" and _option(part, "connection"))]
        print_ = {
            "retriever": str(expression),
            "chunks": documents.chunks if documents is not None else None,
            "indexes": sorted(index.folder.name for index in indexes_of(found)),
            # Those of channels are in the names of their indexes.
            "models": [str(step.made_with) for step in steps if hasattr(step, "made_with")],
            "settings": [part.deciding() for part in _connectors(found)],
        }
        shown = retriever if isinstance(retriever, str) else str(expression)
        return Subject(
            name or shown,
            str(expression),
            found,
            _config(parts, documents),
            _hash({**print_, "version": version, "watched": seen}),
            complete=not outside or bool(version),
            collection=documents,
            in_process=not outside,
            replays=_replays(found),
        )
    found = as_retriever(retriever, name=name)
    own = isinstance(retriever, Connector)
    called = name or getattr(found, "name", None) or getattr(retriever, "__name__", None) or type(retriever).__name__
    what = retriever.deciding() if isinstance(retriever, Connector) else {"source": _source_of(retriever)}
    kept = indexes_of(retriever)
    indexed = kept[0].collection if kept else None
    return Subject(
        str(called),
        str(called),
        found,
        _settings(found) if own else {"retriever": str(called)},
        _hash({"name": str(called), "what": what, "version": version, "watched": seen}),
        # What a function calls, and what a connected system holds, cannot be seen from here.
        complete=bool(version) or _replays(found),
        collection=indexed,
        in_process=not own,
        replays=_replays(found),
        given=retriever,
    )


@dataclass(frozen=True, eq=False)
class Routed:
    """The retrievers of one evaluation: one for all queries, or one for each value of the field ``by``."""

    routes: Mapping[str, Subject]
    by: str = ""
    given_name: str | None = None

    @property
    def all(self) -> list[Subject]:
        return list(self.routes.values())

    def for_query(self, query: Query) -> Subject:
        """Return who answers a query; raises InputError for one that nobody does."""
        if not self.by:
            return self.all[0]
        value = query.metadata.get(self.by)
        if value is None or str(value) not in self.routes:
            legal = ", ".join(f"'{route}'" for route in self.routes)
            raise InputError(f"query '{query.query_id}' has {self.by}={value!r}, which no retriever answers; routes: {legal}")
        return self.routes[str(value)]

    def parts_of(self, golden: GoldenSet) -> list[tuple[Subject, GoldenSet]]:
        """Return each retriever with the part of a set that it answers."""
        if not self.by:
            return [(self.all[0], golden)]
        parts = []
        for one in self.all:
            mine = {query.query_id for query in golden.queries if self.for_query(query) is one}
            parts.append((one, golden.part(mine)))
        return parts

    @property
    def name(self) -> str:
        return self.given_name or " · ".join(dict.fromkeys(one.name for one in self.all))

    @property
    def text(self) -> str:
        return ", ".join(f"{route}: {one.text}" if route else one.text for route, one in self.routes.items())

    @property
    def config(self) -> Mapping[str, Any]:
        return {route: dict(one.config) for route, one in self.routes.items()} if self.by else self.all[0].config

    @property
    def fingerprint(self) -> str:
        prints = {route: one.fingerprint for route, one in self.routes.items()}
        return _hash({"by": self.by, "routes": prints}) if self.by else self.all[0].fingerprint

    @property
    def corpus(self) -> str | None:
        """Hash of all documents that are searched; None if some are out of sight."""
        found = dict.fromkeys(one.corpus for one in self.all)
        if None in found:
            return None
        return next(iter(found)) if len(found) == 1 else _hash({"corpora": sorted(map(str, found))})

    @property
    def complete(self) -> bool:
        return all(one.complete for one in self.all)

    @property
    def visible(self) -> bool:
        """True if every step from question to answer happens in sight."""
        return all(one.collection is not None and one.in_process for one in self.all)

    def passages(self, doc_ids: Iterable[str], *, id_of: Callable[[str], str]) -> dict[str, tuple[str, str]]:
        """Return title and text of these documents, as far as connected systems said them in their answers."""
        wanted = set(doc_ids)
        said = {id_of(doc_id): passage for one in self.all for doc_id, passage in answered_passages(one.retriever).items()}
        return {doc_id: said[doc_id] for doc_id in sorted(wanted & set(said))}

    def contains(self, id_of: Callable[[str], str]) -> Callable[[str], bool] | None:
        """Return what tells whether a document, by the set's id, is searched at all; None if that is out of sight."""
        here: set[str] = set()
        for one in self.all:
            if one.collection is None:
                return None
            here |= {id_of(doc_id) for doc_id in one.collection.ids().values()}
        return here.__contains__


def routed(
    search: Source | Retriever | Callable[..., Any] | Mapping[str, Any],
    *,
    documents: Callable[[], Collection],
    name: str | None = None,
    version: str = "",
    watched: Iterable[Path] = (),
    by: str = "corpus",
) -> Routed:
    """Return the retrievers of a search: the one that it is, or one for each value of the query field ``by``."""
    more: dict[str, Any] = {"collection": documents, "version": version, "watched": list(watched)}
    if not isinstance(search, Mapping) or "fusion_method" in search:
        return Routed({"": subject_of(search, name=name, **more)}, "", name)
    if not search:
        raise InputError("there is no retriever in {}; write {'corpus': retriever}")
    return Routed({str(route): subject_of(one, **more) for route, one in search.items()}, by, name)


def corpus_of(golden: GoldenSet, root: Path, *, chunks: str | None = None) -> Collection:
    """Return the set's own documents as a collection under ``root``, ingested on first use.

    The folder is named by what is in it, so that another version of the set, or another chunking, gets another one.
    """
    if not golden.documents:
        raise InputError(f"golden set '{golden.id}' brings no documents; ingest them and name their folder with --in")
    label = hashlib.sha256(f"{golden.corpus_hash}\0{chunks or ''}".encode()).hexdigest()[:16]
    collection = Collection.create(root / f"{golden.id.replace('/', '-')[:40]}-{label}", chunks=chunks)
    if collection.unfinished or len(collection) != len(golden.documents):
        collection.ingest(golden.documents, remove_missing=True)
    return collection


@cache
def code_hash() -> str:
    """Return a hash of the code that makes and scores answers: a changed line is another program, whatever its version says.

    The libraries that find and embed belong to it.
    """
    here = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for room in ("spec.py", "records.py", "measures", "retrieve", "run", "stats", "golden"):
        files = [here / room] if room.endswith(".py") else sorted((here / room).rglob("*.py"))
        for file in files:
            digest.update(file.relative_to(here).as_posix().encode() + b"\0" + file.read_bytes())
    for package in DECIDING:
        with suppress(PackageNotFoundError):
            digest.update(f"{package} {version_of(package)}".encode())
    return digest.hexdigest()[:16]


def _hash(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=repr).encode()).hexdigest()[:16]


def _option(part: Expression, name: str) -> Any:
    return dict(part.options).get(name)


def _config(parts: Sequence[Expression], documents: DocumentStore | None) -> dict[str, Any]:
    """Return what a baseline and a report name: the parts of a retriever that people change."""
    models = dict.fromkeys(str(_option(part, "model")) for part in parts if part.name in ("dense", "splade"))
    rerankers = [str(_option(part, "model") or _option(part, "connection")) for part in parts if part.name == "rerank"]
    fusions = [str(part.name) for part in parts if part.name in FUSIONS]
    return {
        "embedding_model": ", ".join(models) or None,
        "chunking": documents.chunks if documents is not None else None,
        "reranker": ", ".join(rerankers) or None,
        "fusion": ", ".join(fusions) or None,
        "channels": [part.name for part in parts if part.name not in FUSIONS and part.name != "rerank"],
    }


def answered_passages(retriever: Any) -> dict[str, tuple[str, str]]:
    """Return title and text of documents by the system's ids, as far as the connections of a retriever answered them."""
    return {doc_id: passage for system in _connectors(retriever) for doc_id, passage in system.passages().items()}


def _connectors(retriever: Any) -> list[Connector]:
    return [part for part in with_parts(retriever) if isinstance(part, Connector)]


def _settings(connector: Any) -> dict[str, Any]:
    """Return a connector's settings but for those it hides: neither addresses nor secrets belong into a hash or report."""
    shown = {item.name: getattr(connector, item.name) for item in dataclasses.fields(connector) if item.repr}
    # A file is what it holds; where it lies differs from machine to machine.
    for name in connector.PATHS:
        path = shown.get(name)
        if path and Path(path).is_file():
            shown[name] = stored(Path(path))
    return {"kind": type(connector).__name__.lower(), **shown}


def _replays(retriever: Any) -> bool:
    from ringtrue.retrieve.connectors.run import RunFile

    return isinstance(retriever, RunFile)


def _source_of(thing: Any, depth: int = 0) -> Any:
    """Return what can be seen of a function or object: its file, what it was made with, what it holds.

    Values are described by what they say, never by where they lie in memory: the same code must look the same tomorrow.
    """
    if isinstance(thing, partial):
        return {"partial": _source_of(thing.func, depth), "with": [_said(thing.args, depth), _said(thing.keywords, depth)]}
    target = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
    text = _text_of(cast("Hashable", target))
    plain = inspect.unwrap(thing) if callable(thing) else thing
    held = {
        "defaults": _said(getattr(plain, "__defaults__", None), depth),
        "options": _said(getattr(plain, "__kwdefaults__", None), depth),
        "closure": [_said(_content(cell), depth) for cell in getattr(plain, "__closure__", None) or ()],
        "self": _said(_fields(getattr(plain, "__self__", None)), depth),
        "state": _said(_fields(plain), depth) if target is not thing else None,
    }
    return {"text": text, **{name: value for name, value in held.items() if value}}


def _fields(thing: Any) -> dict[str, Any]:
    """Return what an object holds, in its dictionary and in slots."""
    kinds = () if inspect.isclass(thing) else type(thing).__mro__
    slots = {name for kind in kinds for name, part in vars(kind).items() if inspect.ismemberdescriptor(part)}
    held = {name: getattr(thing, name) for name in sorted(slots) if name[:2] != "__" and hasattr(thing, name)}
    return {**held, **getattr(thing, "__dict__", {})}


@lru_cache(maxsize=1000)
def _text_of(target: Hashable) -> str:
    """Return a name with a hash of the whole file that defines it: constants and helpers beside a function decide, too."""
    target = inspect.unwrap(target) if callable(target) else target
    code = getattr(target, "__code__", None)
    # Two lambdas of one line differ in their columns only.
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column] if code is not None else []
    name = f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', repr(target))} {max(places, default='')}"
    try:
        text = "".join(inspect.findsource(cast("type", target))[0])
    except (OSError, TypeError):
        return name
    return f"{name} {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _content(cell: Any) -> Any:
    with suppress(ValueError):  # not filled yet
        return cell.cell_contents


def _said(value: Any, depth: int) -> Any:
    """Return a value as far as it can be written down: its code and state if it is the user's own, otherwise its kind."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping | list | tuple) and len(value) > MANY:
        depth = DEEPEST  # documents rather than settings
    if isinstance(value, Mapping):
        return {str(key): _said(item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_said(item, depth) for item in (sorted(map(repr, value)) if isinstance(value, set | frozenset) else value)]
    if depth < DEEPEST and (isinstance(value, partial) or inspect.isroutine(value) or not _is_installed(type(value))):
        return _source_of(value, depth + 1)
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _is_installed(kind: type) -> bool:
    """True for a class of Python itself or of an installed package, whose objects hold more than their settings."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if kind.__module__ == "builtins" or file is None:
        return kind.__module__ != "__main__"
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(Path(file).is_relative_to(folder) for folder in (*folders, Path(__file__).parents[1]))
