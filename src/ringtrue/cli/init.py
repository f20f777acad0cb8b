"""``ringtrue init``: a working start in a folder, after a few questions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Overwrite
from ringtrue.cli.search import DEFAULT_FOLDER
from ringtrue.config import load_config, with_port
from ringtrue.errors import AccessDenied, InputError, RingtrueError
from ringtrue.extras import installed_source

BM25 = "bm25"


def init_command(
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask nothing; use the defaults for options that are not given.")
    ] = False,
    search: Annotated[str | None, typer.Option(help="What to search: documents, http, python, opensearch …")] = None,
    where: Annotated[str | None, typer.Option(help="The folder, the URL, or the function (file.py:name).")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the golden set.")] = None,
    serve: Annotated[str | None, typer.Option(help="How CI starts an HTTP search: 'python app.py {port}'.")] = None,
    question: Annotated[
        str | None, typer.Option(help="A query that has results, to detect the settings of an HTTP search.")
    ] = None,
    ci: Annotated[str | None, typer.Option(help="CI files: github, gitlab, both or none.")] = None,
    folder: Annotated[Path, typer.Option("--dir", help="Folder of the project.")] = Path(),
    overwrite: Overwrite = False,
    json: Annotated[bool, typer.Option("--json", help="Ask nothing; print one JSON object.")] = False,
) -> None:
    """Write ringtrue.toml, a starter golden set and CI files.

    Indexes a folder of documents and makes a provisional golden set from it; an empty folder gets sample documents. Detects
    the settings of a running HTTP endpoint. Keeps existing files unless --overwrite is given.

    Example: ringtrue init
    Example: ringtrue init --yes --ci both --dir my-search
    Example: ringtrue init --yes --search http --where http://localhost:8000/search --serve 'python app.py {port}'
    """
    said = {"search": search, "where": where, "name": name, "serve": serve, "question": question, "forges": ci}
    given: dict[str, Any] = {field: value for field, value in said.items() if value is not None}
    start = replace(lib.ci.Start() if yes or json else _asked(lib.ci.Start(), given), **given)
    folder.mkdir(parents=True, exist_ok=True)
    with chdir(folder):  # documents are called by their paths from here, today and in CI
        record, notes = _started(start, overwrite=overwrite)
    when = " once the endpoint answers" if record["next"][0] == lib.ci.again_command(start) else ""
    paste = f"\nTo use what was found, put this in {folder / 'ringtrue.toml'}:\n\n{record['paste']}" if record["paste"] else ""
    show.result(
        json,
        {"folder": folder, **record},
        *(f"wrote {os.path.normpath(folder / file)}" for file in record["written"]),
        *(_left(file, folder, completed=record["completed"]) for file in record["left"]),
        paste,
        f"\nNext{when}{f', in {folder}' if folder != Path() else ''}:",
        *(f"  {number}. {command}" for number, command in enumerate(record["next"], 1)),
        notes=notes,
    )


def _left(file: str, folder: Path, *, completed: bool) -> str:
    if completed and file == "ringtrue.toml":
        return f"completed [connections.search] in {folder / file}"
    return f"left  {os.path.normpath(folder / file)} as it is (--overwrite replaces it)"


def _started(start: lib.ci.Start, *, overwrite: bool) -> tuple[dict[str, Any], list[str]]:
    """Write the files into the current folder and index documents; return what ``--json`` tells of it, and what to note."""
    documents, function, source = _documents_at(start), _function_at(start), installed_source()
    # Samples never come among documents of the user's own.
    samples = f"sample-{lib.ci.SAMPLE}" if Path(lib.ci.SAMPLE).exists() else lib.ci.SAMPLE
    probed = _probed(start) if start.search == "http" else ""
    branch, inside = lib.ci.place_in_repository()
    texts = lib.ci.starter(
        start, documents, function=function, samples=samples, source="" if source.local else source.where,
        connection=probed, branch=branch, inside=inside,
    )  # fmt: skip
    block = lib.ci.connection_in(texts["ringtrue.toml"]) if probed and not isinstance(probed, str) else ""
    completed = bool(block) and not overwrite and lib.ci.complete(Path("ringtrue.toml"), block)
    done = lib.ci.write_new(texts, Path(), overwrite=overwrite)
    notes = _missing_lines(done.left, texts)
    pasted = "ringtrue.toml" in done.left and block.strip() not in Path("ringtrue.toml").read_text("utf-8")
    indexed = _ingest(start) if start.search == "documents" else 0
    commands = _next(start, function)
    if start.search == "http" and isinstance(probed, str):
        commands = [lib.ci.again_command(start), *commands]
    in_ci = start.forges != "none"
    warnings = {
        f"the pipeline cannot install Ringtrue from {source.where}; set its variable RINGTRUE_SOURCE to a Git URL, a wheel "
        "or a folder of this repository": in_ci and source.local,
        "the pipeline does not start your search; if CI cannot reach it, set serve under [ci] in ringtrue.toml": (
            in_ci and start.search == "http" and not start.serve
        ),
        "serve does not contain {port}; CI chooses a free port, so write {port} unless the service reads PORT": (
            start.serve and "{port}" not in start.serve
        ),
        _what_it_is(start, documents, indexed, function=function, samples=samples): True,
    }
    notes += [text for text, holds in warnings.items() if holds]
    record = {"written": done.written, "left": done.left, "completed": completed, "paste": block if pasted else ""}
    return record | {"indexed": indexed, "next": commands}, notes


def _missing_lines(left: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    """Return what to add to files that stayed as they were; nothing for what they have already."""
    notes = []
    for file in (file for file in left if file.endswith(".gitlab-ci.yml")):
        include = texts[file].partition("local: ")[2].strip()
        if include not in Path(file).read_text("utf-8"):
            notes.append(f"add to .gitlab-ci.yml: include: [{{local: {include}}}]")
    if ".gitignore" in left:
        there = {line.strip().strip("/") for line in Path(".gitignore").read_text("utf-8").splitlines()}
        missing = [name for name in (".ringtrue/", "reports/", "ringtrue-out/") if name.strip("/") not in there]
        notes += [f"add to .gitignore: {' '.join(missing)}"] if missing else []
    return notes


def _probed(start: lib.ci.Start) -> Mapping[str, Any] | str:
    """Return the settings that an HTTP endpoint answers, or why none were found; says what it is."""
    from ringtrue.retrieve.connectors.probe import probe

    try:
        found = probe(with_port({"url": start.place}, "--where")["url"], start.question, _access(start))
    except RingtrueError as problem:
        cure = "complete [connections.search] in ringtrue.toml"
        if isinstance(problem, AccessDenied):
            cure = "set token_env, or user_env and password_env, in [connections.search] of ringtrue.toml and run init again"
        show.note(f"{problem}; {cure}")
        return str(problem)
    if found.problem:
        show.note(f"{found.problem}; the other settings were found, so only set id in [connections.search]")
    else:
        show.note(f"a search with these settings works ({show.counted(found.hits, 'document')} for '{found.question}')")
    show.notes(found.notes)
    for key in re.findall(r"[?&]([^=&]*(?:key|token|secret|passw|auth)[^=&]*)=", found.settings["url"], re.IGNORECASE):
        show.note(f"ringtrue.toml contains the value of '{key}'; if it is secret, send it in a header: token_env, token_header")
    return found.settings


def _access(start: lib.ci.Start) -> dict[str, Any]:
    """Return the credentials with which ringtrue.toml in this folder asks the host of a start."""
    config = load_config()
    settings = config.connections.get("search", {}) if config.file and config.file.parent == Path.cwd() else {}
    if urlsplit(str(settings.get("url"))).hostname != urlsplit(start.place).hostname:
        return {}
    return {name: settings[name] for name in lib.ci.ACCESS if name in settings}


def _asked(start: lib.ci.Start, given: Mapping[str, Any]) -> lib.ci.Start:
    """Return the answers to the questions whose answers are not given; raises InputError if nobody answers."""

    def ask(field: str, words: str, default: str | None) -> lib.ci.Start:
        def fits(answer: str) -> lib.ci.Start:
            try:
                return replace(start, **{field: answer.strip()})  # type: ignore[arg-type]  # one of its fields
            except InputError as problem:  # then the question is asked again
                raise typer.BadParameter(str(problem)) from problem

        if field in given:
            return replace(start, **{field: given[field]})
        made: lib.ci.Start = typer.prompt(words, default=default, err=True, value_proc=fits)
        return made

    kinds = f"What do you search: documents in a folder, or a system ({', '.join(lib.ci.PLACES)})?"
    try:
        start = ask("search", kinds, start.search)
        start = ask("where", "Where is it (folder, address, function)?", start.place)
        if start.search == "http":
            if "?" not in start.place:
                start = ask("question", "Which query has results, to detect the settings?", None)
            start = ask("serve", "Which command starts it, with {port} for its port (empty: CI does not start it)?", "")
        start = ask("name", "What shall the golden set be called?", start.name)
        start = ask("forges", f"CI files ({', '.join(lib.ci.FORGES)})?", start.forges)
    except typer.Abort:
        raise InputError(
            "the questions were not answered; run with --yes, or give --search, --where, --question, --serve, --name and --ci"
        ) from None
    return start


def _documents_at(start: lib.ci.Start) -> list[lib.records.Document] | None:
    """Return the user's own documents; None if the folder does not exist or is empty, so that samples are needed."""
    from ringtrue.retrieve.sources import read_documents

    place = Path(start.place)
    empty = not place.exists() or (place.is_dir() and not any(place.iterdir()))
    return None if start.search != "documents" or empty else list(read_documents(place))


def _function_at(start: lib.ci.Start) -> Literal["missing", "here", "installed"]:
    """Return whether the Python function that is to be measured is there; its module is looked for, and not run."""
    import sys
    from importlib.machinery import PathFinder

    module = Path(start.module)
    if start.search != "python":
        return "missing"
    if module.is_file():
        return "installed" if module.is_absolute() else "here"
    package = (module.with_suffix("") / "__init__.py").is_file()  # of which no single file decides
    top, named_by_file = module.parts[0].removesuffix(".py"), start.place.startswith(f"{start.module}:")
    found = package or (not Path(top).is_dir() and PathFinder.find_spec(top, sys.path) is not None)
    return "installed" if found and not named_by_file else "missing"


def _ingest(start: lib.ci.Start) -> int:
    """Index the documents as ``ringtrue ingest`` does, and return how many there are."""
    from ringtrue.retrieve.sources import read_documents

    collection = lib.retrieve.Collection.create(DEFAULT_FOLDER)
    with collection.writing():
        collection.ingest(read_documents(Path(start.place)))  # what was indexed here before stays
        for index in lib.retrieve.indexes_of(lib.retrieve.build(BM25, collection)):
            index.ready()
    return len(collection)


def _what_it_is(
    start: lib.ci.Start, documents: list[lib.records.Document] | None, indexed: int, *, function: str, samples: str
) -> str:
    """Return what the user should replace by their own."""
    if start.search == "python" and function == "missing":
        return f"{start.module}, {samples}/ and {start.golden} are samples; put your own search and queries in their place"
    if start.search != "documents":
        return f"the queries in {start.golden} are examples; replace them before any number means anything"
    if documents is None:
        return f"{start.place}/ and {start.golden} are samples ({indexed} documents); replace them by your own"
    names = f"the names of documents in {start.place} as queries"
    return f"{start.golden} is provisional: {names}; replace them by what your users ask"


def _next(start: lib.ci.Start, function: str) -> list[str]:
    """Return the next commands; each works as it stands if everything that is searched is there."""
    judge = ["ringtrue eval", "ringtrue baseline update", "ringtrue gate"]  # without a baseline, CI cannot decide
    if start.search == "documents":
        return [lib.ci.ingest_command(start), *judge]  # again after every change of a document, or the old ones are searched
    if start.search == "python" and function == "missing":
        return judge
    return [lib.ci.try_command(start), f"ringtrue golden validate {start.golden}", *judge]
