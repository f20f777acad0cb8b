"""A name or a path → GoldenSet, ready to be used: shipped sets by name, everything else by where it lies."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats import Place, read_yaml
from ringtrue.golden import formats
from ringtrue.golden.formats import documents
from ringtrue.golden.formats.folders import write_json
from ringtrue.golden.version import corpus_hash
from ringtrue.records import GoldenSet

SETS = Path(__file__).parent / "sets"
SEARCHED = (".", "golden", "test_sets", "tests")
_YAML = (".yaml", ".yml")


def shipped() -> tuple[str, ...]:
    """Return the names of the golden sets that come with Ringtrue."""
    return tuple(sorted({file.parent.name for file in SETS.glob("*/*") if file.suffix in (".json", ".jsonl", *_YAML)}))


def locate(source: str | Path) -> Path:
    """Return where a set lies. A bare shipped name means the shipped set; write ``./hotel`` for a folder of that name.

    Raises MissingInput with the nearest shipped names and files.
    """
    if isinstance(source, str) and source in shipped():
        return SETS / source
    path = Path(source)
    if path.exists():
        return path
    beside = sorted(item.name for item in path.parent.iterdir())[:500] if path.parent.is_dir() else []
    near = nearest(path.name, [*shipped(), *beside]) if shipped() or beside else "an existing path"
    known = ", ".join(shipped()) or "none"
    raise MissingInput(f"there is no golden set '{source}'; did you mean {near}? (shipped: {known})")


def load(
    source: str | Path | Mapping[Any, Any] | Sequence[Any],
    *,
    threshold: int | None = None,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> GoldenSet:
    """Return the golden set in a file or folder, the shipped set of that name, or a plain value, with the hash of its corpus.

    A plain value is what a JSON file would hold: a dict with 'queries', a list of dicts like
    ``{"query": "late checkout", "relevant": ["d1"]}``, or a dict ``{"late checkout": {"d1": 3}}`` of queries in words.

    ``threshold`` overrides the grade from which a document counts as relevant; ``split`` chooses a part of a BEIR
    folder ('test' unless given); ``columns`` names the columns of a table: ``{"doc_id": "sku"}``. Raises
    InputError with file, line or field, value and cure, and MissingInput for what is not there.

    >>> "hotel" in shipped() and load("hotel").id
    'hotel'
    """
    if isinstance(source, str | Path):
        golden = with_corpus_hash(formats.read(locate(source), split=split, columns=columns), source)
    else:
        golden = with_corpus_hash(_from_value(source), "the golden set")
    return golden if threshold is None else replace(golden, relevance_threshold=threshold)


def _from_value(value: Any) -> GoldenSet:
    place = Place("the golden set")
    if not isinstance(value, Mapping | list | tuple):
        raise place.error(f"it is a {type(value).__name__}", "pass a path, a GoldenSet, a dict or a list of dicts")
    value = dict(value) if isinstance(value, Mapping) else list(value)
    if isinstance(value, dict) and value and all(isinstance(given, dict | list | tuple) for given in value.values()):
        if isinstance(value.get("queries"), list) or documents.ENTITIES in value:
            found = formats.format_of(value)
        elif any(len(str(query).split()) > 1 for query in value):
            found, value = "test-set", [{"query": str(query), "relevant": given} for query, given in value.items()]
        else:
            known = next(iter(value))
            cure = 'pass a list like [{"query_id": "q1", "query": "late checkout", "relevant": {"d1": 3}}]'
            raise place.error(f"its keys, such as {known!r:.40}, look like ids, so the texts of the queries are missing", cure)
    else:
        found = formats.format_of(value)
    golden = formats.read_value(value, place, found, name="golden")
    if golden is not None:
        return golden
    with tempfile.TemporaryDirectory() as folder:  # the other formats are read from files alone
        path = Path(folder) / "records.json"
        write_json(value, path)
        try:
            return replace(formats.read(path), id="golden")
        except InputError as problem:
            raise type(problem)(str(problem).replace(str(path), str(place))) from None


_BARE = ("trec", "dict", "csv", "parquet")


def holds_golden_set(path: Path, *, with_documents: bool = False) -> bool:
    """True for a folder with a golden set, and for a file that holds one rather than bare judgments.

    ``with_documents`` asks for more, because any folder may hold a ``queries.jsonl`` or one YAML file: it must be a shipped
    set's folder, have a corpus as BEIR folders do, or be a YAML or JSON file that brings its documents.
    """
    try:
        if with_documents:
            if path.is_dir():
                inside = path.resolve().parent == SETS.resolve() or (path / "corpus.jsonl").is_file()
                return inside and holds_golden_set(formats.detect(path)[1])
            return path.suffix in (".json", *_YAML) and holds_golden_set(path) and _brings_documents(path)
        if path.suffix in _YAML:
            # YAML is read as a test set wherever a golden set is expected; here judgments may be meant as well.
            record = read_yaml(path)
            return isinstance(record, dict) and isinstance(record.get("queries"), list)
        name, _ = formats.detect(path)
        return path.is_dir() or name not in _BARE
    except InputError:
        return False


def _brings_documents(path: Path) -> bool:
    try:
        return bool(load(path).documents)
    except InputError:
        return path.suffix in _YAML  # no document is written in YAML: loading it again says what is wrong with the set


def load_test_set(name: str, *, folder: str | Path = ".") -> GoldenSet:
    """Return the YAML test set of that name, like ``test_set_v1``.

    It is looked for in ``folder``, in its golden, test_sets and tests, and among the shipped sets. Raises MissingInput
    with the nearest names and the places that were searched.
    """
    places = [Path(folder) / place for place in SEARCHED] + [SETS / shipped_name for shipped_name in shipped()]
    files = (file for place in reversed(places) for file in sorted(place.glob("*.y*ml"), reverse=True) if file.is_file())
    found = {file.stem: file for file in files if file.suffix in _YAML}
    wanted = Path(name).stem if Path(name).suffix in _YAML else name
    if wanted not in found:
        searched = ", ".join(str(place) for place in [*places[: len(SEARCHED)], SETS / "*"])
        hint = f"did you mean {nearest(wanted, sorted(found))}?" if found else "no test set was found at all"
        raise MissingInput(f"there is no test set '{name}'; {hint} (looked in {searched} for {wanted}.yaml)")
    return load(found[wanted])


def record_of(golden: GoldenSet) -> dict[str, Any]:
    """Return a golden set as a JSON object, from which ``golden_from`` makes an equal one.

    Among the judgments of a query the relevant ones come first. Facts are taken as they are: those that JSON has no form for
    are refused by whoever writes it. Raises InputError for a judgment of a query that the set does not have.
    """
    asked = {query.query_id for query in golden.queries}
    for judgment in golden.judgments:
        if judgment.query_id not in asked:
            raise InputError(f"golden set '{golden.id}' judges query '{judgment.query_id}', which it does not have; add it")
    return documents.record_of(golden)


def golden_from(record: Mapping[str, Any], *, name: str) -> GoldenSet:
    """Return the golden set in a JSON object, with the hash of its corpus; ``name`` says in messages where it was.

    Raises InputError with field, value and cure, and for a record that names a corpus in another file: none is opened.
    """
    return with_corpus_hash(documents.parsed_dataset(dict(record), Place(name), formats.Complaints(), name=name), name)


def with_corpus_hash(golden: GoldenSet, source: str | Path) -> GoldenSet:
    """Return a set with the hash of its documents; raises InputError if it declares another."""
    if not golden.documents:
        return golden
    found = corpus_hash(golden.documents)
    if golden.corpus_hash not in (None, found):
        raise InputError(
            f"{source}: the set declares corpus_hash '{golden.corpus_hash}' but its documents have '{found}'; "
            "restore the documents it was judged on, or declare the new hash in a new version"
        )
    return replace(golden, corpus_hash=found)
