"""A name or a path → GoldenSet, ready to be used: shipped sets by name, everything else by where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats.text import read_yaml
from ringtrue.golden import formats
from ringtrue.golden.record import with_corpus_hash
from ringtrue.records import GoldenSet

SETS = Path(__file__).parent / "sets"
SEARCHED = (".", "golden", "test_sets", "tests")
_YAML = (".yaml", ".yml")


def shipped() -> tuple[str, ...]:
    """Return the names of the golden sets that come with Ringtrue."""
    return tuple(sorted(folder.name for folder in SETS.iterdir() if _is_set(folder))) if SETS.is_dir() else ()


def _is_set(folder: Path) -> bool:
    return folder.is_dir() and any(file.suffix in (".json", ".jsonl", *_YAML) for file in folder.iterdir())


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
    source: str | Path,
    *,
    threshold: int | None = None,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> GoldenSet:
    """Return the golden set in a file or folder, or the shipped set of that name, with the hash of its corpus.

    ``threshold`` overrides the grade from which a document counts as relevant; ``split`` chooses a part of a BEIR
    folder ('test' unless given); ``columns`` names the columns of a table: ``{"doc_id": "sku"}``. Raises
    InputError with file, line or field, value and cure, and MissingInput for what is not there.

    >>> "hotel" in shipped() and load("hotel").id
    'hotel'
    """
    golden = with_corpus_hash(formats.read(locate(source), split=split, columns=columns), source)
    return golden if threshold is None else replace(golden, relevance_threshold=threshold)


_BARE = ("trec", "dict", "csv", "parquet")


def holds_golden_set(path: Path, *, with_documents: bool = False) -> bool:
    """True for a folder with a golden set, and for a file that holds one rather than bare judgments.

    ``with_documents`` asks for more, because any folder may hold a ``queries.jsonl`` or one YAML file: it must be a shipped
    set's folder, have a corpus as BEIR folders do, or be a YAML or JSON file that brings its documents.
    """
    from ringtrue.golden.formats.detect import detect

    try:
        if with_documents and path.is_dir():
            inside = path.resolve().parent == SETS.resolve() or (path / "corpus.jsonl").is_file()
            return inside and holds_golden_set(detect(path)[1])
        if with_documents:
            return path.suffix in (".json", *_YAML) and holds_golden_set(path) and _brings_documents(path)
        if path.suffix in _YAML:
            # YAML is read as a test set wherever a golden set is expected; here judgments may be meant as well.
            record = read_yaml(path)
            return isinstance(record, dict) and isinstance(record.get("queries"), list)
        name, _ = detect(path)
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
    found = {file.stem: file for place in reversed(places) if place.is_dir() for file in _yaml_files(place)}
    wanted = Path(name).stem if Path(name).suffix in _YAML else name
    if wanted not in found:
        searched = ", ".join(str(place) for place in [*places[: len(SEARCHED)], SETS / "*"])
        hint = f"did you mean {nearest(wanted, sorted(found))}?" if found else "no test set was found at all"
        raise MissingInput(f"there is no test set '{name}'; {hint} (looked in {searched} for {wanted}.yaml)")
    return load(found[wanted])


def _yaml_files(folder: Path) -> list[Path]:
    return sorted((file for file in folder.iterdir() if file.suffix in _YAML and file.is_file()), reverse=True)
