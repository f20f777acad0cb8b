"""The files of a working start: settings, a golden set, documents to try, and what CI needs (``ringtrue init``).

Pure but for reading the user's documents: texts by path go out, ``write_new`` puts them into a folder.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from ringtrue.ci.service import is_local
from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.connectors import RERANKERS

if TYPE_CHECKING:
    from ringtrue.records import Document

Forges = Literal["github", "gitlab", "both", "none"]
FORGES: tuple[Forges, ...] = ("github", "gitlab", "both", "none")
TEMPLATES = files("ringtrue.ci") / "templates"
SAMPLE = "documents"
"""The folder of the sample documents."""
KNOWN_ITEMS = 40
"""Queries made of the user's own documents; more say little more, and nobody would read them through."""

ACCESS = ("headers", "token_env", "token_header", "token_prefix", "user_env", "password_env", "ca_file")
"""Settings of a connection that an endpoint may need before it answers at all."""
PLACEHOLDER = "# Complete these settings, or run this again once it answers:"
"""How the comment on a connection begins of which nothing is known."""
SYSTEMS = {
    "http": "http", "opensearch": "http", "elasticsearch": "http", "postgres": "postgres", "pgvector": "postgres,dense",
    "qdrant": "qdrant,dense", "milvus": "milvus,dense", "chroma": "http,dense", "sqlite": "", "mcp": "mcp", "command": "",
    "langchain": "", "llamaindex": "",
}  # fmt: skip
"""Kind of connection → the extras it needs."""
EXTRAS = {
    "bm25": "search", "rm3": "search", "dense": "dense", "splade": "dense", "mmr": "dense", "memory": "search,dense",
}  # fmt: skip
"""Parts of a retriever → the extras they need."""
PLACES = {
    "documents": SAMPLE, "python": "my_search.py:find", "http": "https://search.example.com/find",
    "opensearch": "http://localhost:9200", "elasticsearch": "http://localhost:9200", "postgres": "SEARCH_DSN",
    "pgvector": "SEARCH_DSN", "qdrant": "http://localhost:6333", "milvus": "http://localhost:19530",
    "chroma": "http://localhost:8000", "sqlite": "search.sqlite", "mcp": "http://localhost:8000/mcp",
    "command": "python search.py", "langchain": "my_package.search:make", "llamaindex": "my_package.search:make",
}  # fmt: skip
"""What is searched → where it usually is."""


@dataclass(frozen=True)
class Start:
    """What a user says about the search: what is searched, where, what the golden set is called, where CI runs."""

    search: str = "documents"
    where: str = ""
    name: str = "start"
    forges: Forges = "github"
    serve: str = ""
    """The command that starts a search service, with ``{port}``; empty if it runs elsewhere or is not known yet."""
    question: str = "search"
    """A query that has results, with which an HTTP search is probed."""

    def __post_init__(self) -> None:
        choices: tuple[tuple[str, str, Iterable[str]], ...] = (
            ("is no start", self.search, PLACES), ("are no CI files", self.forges, FORGES),
        )  # fmt: skip
        for what, given, legal in choices:
            if given not in legal:
                cure = f"did you mean {nearest(given, legal)}? choose one of {', '.join(legal)}"
                raise InputError(f"there {what} for '{given}'; {cure}")
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,60}", self.name):
            raise InputError(f"'{self.name}' cannot name a golden set and its file; use letters, digits, dots and dashes")
        if any(mark in self.place for mark in '"\\\n\r'):
            raise InputError(f"{self.place!r} cannot stand in ringtrue.toml; leave out quotes, backslashes and line breaks")
        if self.search == "python" and not re.fullmatch(r"[^:]+:[A-Za-z_][\w.]*", self.place):
            raise InputError(f"'{self.place}' names no function; write it like my_search.py:find or package.module:find")
        if self.search == "http":
            _check_url(self.place)
        inside = PurePosixPath(self.place)
        if self.search == "documents" and (inside.is_absolute() or ".." in inside.parts):
            raise InputError(
                f"{self.place}: lies outside this folder, and so would its documents' ids; start above it with --dir"
            )

    @property
    def place(self) -> str:
        """Where the search is, or where such ones usually are."""
        return self.where.strip() or PLACES[self.search]

    @property
    def module(self) -> str:
        """The file of a Python function, from here: ``shop/search.py`` for ``shop.search:find``."""
        where = self.place.rpartition(":")[0]
        return where if where.endswith(".py") else f"{where.replace('.', '/')}.py"

    @property
    def golden(self) -> str:
        """The golden set's file."""
        return f"golden/{self.name}.yaml"


class Written(NamedTuple):
    """What was put into a folder, and what was there already and stayed as it was."""

    written: tuple[str, ...]
    left: tuple[str, ...]


def _check_url(url: str) -> None:
    """Raise InputError for an address that is none, or that has a password, which would stand in ringtrue.toml."""
    try:
        address = urlsplit(url.replace("{port}", "80"))
        address.port  # noqa: B018  raises for what is not a port
    except ValueError:
        raise InputError("the address cannot be read; write it like http://localhost:8000/search") from None
    if address.username is not None:
        raise InputError(
            "the address contains a user or password, which would be written to ringtrue.toml; leave them out and set "
            "user_env and password_env in [connections.search] to the names of environment variables"
        )


def starter(
    start: Start,
    documents: Sequence[Document] | None = None,
    *,
    function: Literal["missing", "here", "installed"] = "missing",
    samples: str = SAMPLE,
    source: str = "",
    connection: Mapping[str, Any] | str = "",
    branch: str = "main",
    inside: str = "",
) -> dict[str, str]:
    """Return the files of a start, ``{path: text}``.

    ``documents`` are the user's own, None if there are none yet. ``function`` says whether the Python function is there: if it
    is missing, one to try is written, with documents in the folder ``samples``. ``source`` is where the pipeline installs
    Ringtrue from; if it is empty, the pipeline fails and asks for it. ``connection`` has the settings of an HTTP endpoint that
    was probed, or says why there are none. ``branch`` is the repository's default one, ``inside`` the path of the start in
    the repository: CI finds its files at the root only, so those of a folder are written there under its name.
    """
    found = {"ringtrue.toml": _settings(start, function, samples, connection)}
    if start.search == "documents" and documents is not None:
        found[start.golden] = _known_items(documents, start.name)
    elif start.search == "documents":
        found |= _samples(start, str(PurePosixPath(start.place)))
    elif start.search == "python" and function == "missing":
        found |= {start.module: _stub(start, samples), **_samples(start, samples)}
    else:
        found[start.golden] = _filled("golden.yaml", name=start.name, try_it=try_command(start))
    root = "../" * len(PurePosixPath(inside).parts)
    job = "-".join(["ringtrue", *PurePosixPath(inside).parts])
    for forge, template, own in (
        ("github", "github.yml", f".github/workflows/{job}.yml"),
        ("gitlab", "gitlab.yml", f".gitlab/{job}.yml"),
    ):
        if start.forges in (forge, "both"):
            found[root + own] = _ci(template, start, own, source=source, branch=branch, inside=inside, job=job)
    if start.forges in ("gitlab", "both"):
        found[f"{root}.gitlab-ci.yml"] = f"include:\n  - local: .gitlab/{job}.yml\n"
    found[".gitignore"] = ".ringtrue/\nreports/\nringtrue-out/\n"
    return found


def _samples(start: Start, folder: str) -> dict[str, str]:
    """Return documents to try, and the golden set that belongs to them."""
    kept = sorted((TEMPLATES / "documents").iterdir(), key=lambda file: file.name)
    found = {f"{folder}/{file.name}": file.read_text(encoding="utf-8") for file in kept}
    ingest = ingest_command(start) if start.search == "documents" else ""
    return {**found, start.golden: _filled("start.yaml", folder=folder, name=start.name, ingest=ingest)}


def _stub(start: Start, samples: str) -> str:
    """Return a Python module whose function searches the samples; raises InputError if it cannot be written here."""
    inside, name = PurePosixPath(start.module), start.place.rpartition(":")[2]
    if inside.is_absolute() or ".." in inside.parts:
        raise InputError(f"{start.module}: is not there, and lies outside this folder; start above it with --dir")
    if not name.isidentifier():
        raise InputError(f"{start.module}: not found, and '{name}' is not a valid function name; name one like find")
    return _filled("search.py.txt", name=name, documents=samples, golden=start.golden)


def try_command(start: Start) -> str:
    """Return the command that shows the ids which a search returns."""
    if start.search != "python":
        return 'ringtrue search "a question" --retriever "connect(\'search\')"'
    module, name = start.module.removesuffix(".py").replace("/", "."), start.place.rpartition(":")[2]
    return f"python -c \"import {module} as m; print(m.{name}('a question', 5))\""


def again_command(start: Start) -> str:
    """Return the command that probes an HTTP search again, and writes no other files than before."""
    question = "a query that has results" if start.question == Start.question else start.question
    options = {"--where": start.place, "--question": question, "--name": start.name, "--ci": start.forges}
    return "ringtrue init --yes --search http " + " ".join(f"{name} {shlex.quote(text)}" for name, text in options.items())


def ingest_command(start: Start) -> str:
    """Return the command that indexes the documents of a start."""
    return f"ringtrue ingest {shlex.quote(start.place)} --retriever bm25 --remove-missing"


def write_new(texts: Mapping[str, str], folder: Path, *, overwrite: bool = False) -> Written:
    """Write files into a folder; one that exists stays as it is unless ``overwrite`` is said."""
    written, left = [], []
    for name, text in texts.items():
        target = folder / name
        if (target.exists() or target.is_symlink()) and not overwrite:
            left.append(name)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(name)
    return Written(tuple(written), tuple(left))


def connection_in(text: str) -> str:
    """Return the connection at the end of a ringtrue.toml; empty if there is none."""
    found = re.search(r"^\[connections\.search\]\n.*", text, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def complete(file: Path, block: str) -> bool:
    """Put a connection where a file still has the one that ``starter`` wrote of an endpoint that did not answer.

    Returns False, and leaves the file as it is, if it has no such connection any more.
    """
    if not file.is_file():
        return False
    text = file.read_text(encoding="utf-8")
    untouched = rf"\[connections\.search\]\n(?:#.*(?:\n|$)|\n*(?:kind|url|port|{'|'.join(ACCESS)}) = .*(?:\n|$))+"
    done = re.sub(untouched, lambda found: block if PLACEHOLDER in found[0] else found[0], text)
    if done != text:
        file.write_text(done, encoding="utf-8")
    return done != text


def _filled(template: str, **values: Any) -> str:
    """Return a template with its ``<<names>>`` filled in; GitHub's own ``${{ … }}`` stay as they are."""
    from jinja2 import Environment, StrictUndefined

    marks = {"variable_start_string": "<<", "variable_end_string": ">>", "block_start_string": "<%", "block_end_string": "%>"}
    whitespace = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    made = Environment(**marks, comment_start_string="<#", undefined=StrictUndefined, **whitespace)  # type: ignore[arg-type]
    return made.from_string((TEMPLATES / template).read_text(encoding="utf-8")).render(values)


def extras_of(retrievers: Iterable[str], connections: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the extras that retrievers need, with the connections of ringtrue.toml.

    >>> extras_of(["hybrid", "connect('shop')"], {"shop": {"kind": "http"}})
    ['dense', 'http', 'search']
    """
    from ringtrue.retrieve import parts_of
    from ringtrue.retrieve.encode.folder import is_on_hub

    needed: set[str] = set()
    for part in (part for text in retrievers for part in parts_of(text)):
        options = dict(part.options)
        needed |= set(EXTRAS.get(part.name, "").split(","))
        connection = options.get("name" if part.name == "connect" else "connection")
        model = str(options.get("model") or connections.get(str(connection), {}).get("model") or "")
        if options.get("hnsw"):
            needed.add("faiss")
        if is_on_hub(model):
            needed.add("hub")
        if part.name == "rerank" and not connection:
            needed.add("dense")
        elif connection in connections:
            kind = str(connections[str(connection)].get("kind"))
            needed |= set(("http" if kind in RERANKERS else SYSTEMS.get(kind, "")).split(","))
    return sorted(needed - {""})


def _ci(template: str, start: Start, own: str, *, inside: str, **values: str) -> str:
    """Return a pipeline; it runs for every change (``inside`` a folder) if any file may belong to the search."""
    searched = {"documents": f"{PurePosixPath(start.place)}/**", "sqlite": start.place}.get(start.search)
    watched = ["ringtrue.toml", "ringtrue-baseline.json", "golden/**", searched] if searched else ["**"] if inside else []
    paths = [*(str(PurePosixPath(inside, path)) for path in watched), own] if watched else []
    install = _filled("install.sh").rstrip()
    folder = f"{inside}/" if inside else ""
    return _filled(template, paths=[json.dumps(path) for path in paths], install=install, inside=folder, **values)


def _settings(start: Start, function: str, samples: str, probed: Mapping[str, Any] | str) -> str:
    """Return ringtrue.toml."""
    return _filled(
        "ringtrue.toml",
        start=start,
        function=function,
        samples=samples,
        ingest=ingest_command(start),
        serve=f"serve = {_toml(start.serve)}" if start.serve else '# serve = "python -m my_service --port {port}"',
        connection=_http(start, probed) if start.search == "http" else "",
        command=json.dumps(start.place.split()),
    )


def _http(start: Start, probed: Mapping[str, Any] | str) -> str:
    """Return the settings of an HTTP endpoint: those that were found by asking it, else the address and comments."""
    settings = {"url": start.place, **probed} if isinstance(probed, Mapping) else {"url": start.place}
    settings.pop("kind", None)
    address = urlsplit(str(settings["url"]))
    if "{port}" not in address.netloc and (start.serve or is_local(address.hostname or "")):
        there = address._replace(netloc=f"{address.hostname}:{{port}}")
        settings = {"url": urlunsplit(there), "port": address.port or 80, **{k: v for k, v in settings.items() if k != "url"}}
    text = "\n".join(f"{name} = {_toml(value)}" for name, value in settings.items())
    if isinstance(probed, Mapping):
        absent = '\n# No field of a hit is surely the id, a text or whole number that differs in each hit; name it:\n# id = "…"'
        return text if "id" in probed else text + absent
    return (
        f"{text}\n# {probed or 'The endpoint was not asked.'}\n"
        f"{PLACEHOLDER}\n"
        f"# {again_command(start)}\n"
        '# params = {q = "{text}", k = "{k}"}      # asked by GET; body = {…} is sent by POST\n'
        '# hits = "results"                        # where the list of hits is in the answer\n'
        '# id = "id"                               # where the id is in a hit'
    )


def _toml(value: Any) -> str:
    """Return a text, number, truth value or flat table as TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_toml(part)}" for name, part in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _known_items(documents: Sequence[Document], name: str) -> str:
    """Return a golden set made of the user's documents: each one's name is a query, the document its answer."""
    from ringtrue.golden import known_item, save

    step = max(1, -(-len(documents) // KNOWN_ITEMS))

    def name_of(document: Document) -> str:
        """Return a document's title, else its file's name as words."""
        return document.title.strip() or re.sub(r"[-_]+", " ", PurePosixPath(document.doc_id).stem).strip()

    made = known_item(documents[::step], id=name, name=name_of).golden
    if not made.queries:
        raise InputError("none of the documents has a title or a name to make a first query of; start with --search python")
    made = replace(
        made, documents=(), description="Names of documents as queries. Provisional: replace them by what your users ask."
    )
    with TemporaryDirectory() as scratch:
        target = Path(scratch) / f"{name}.yaml"
        save(made, target)
        return _filled("known-items.txt") + target.read_text(encoding="utf-8")
