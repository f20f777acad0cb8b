"""A golden set ⇄ the JSON object of its golden-dataset file, which has room for everything: as a store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.formats.text import Place
from ringtrue.golden.formats import dataset
from ringtrue.golden.formats.fields import Complaints
from ringtrue.golden.version import corpus_hash
from ringtrue.records import GoldenSet


def record_of(golden: GoldenSet) -> dict[str, Any]:
    """Return a golden set as a JSON object, from which ``golden_from`` makes an equal one.

    Among the judgments of a query the relevant ones come first. Facts are taken as they are: those that JSON has no form for
    are refused by whoever writes it. Raises InputError for a judgment of a query that the set does not have.
    """
    asked = {query.query_id for query in golden.queries}
    for judgment in golden.judgments:
        if judgment.query_id not in asked:
            raise InputError(f"golden set '{golden.id}' judges query '{judgment.query_id}', which it does not have; add it")
    return dataset.record_of(golden)


def golden_from(record: Mapping[str, Any], *, name: str) -> GoldenSet:
    """Return the golden set in a JSON object, with the hash of its corpus; ``name`` says in messages where it was.

    Raises InputError with field, value and cure, and for a record that names a corpus in another file: none is opened.
    """
    return with_corpus_hash(dataset.read_record(dict(record), Place(name), Complaints(), name=name), name)


def with_corpus_hash(golden: GoldenSet, source: str | Path) -> GoldenSet:
    """Return a set with the hash of its documents; raises InputError where it declares another."""
    if not golden.documents:
        return golden
    found = corpus_hash(golden.documents)
    if golden.corpus_hash not in (None, found):
        raise InputError(
            f"{source}: the set declares corpus_hash '{golden.corpus_hash}' but its documents have '{found}'; "
            "restore the documents it was judged on, or declare the new hash in a new version"
        )
    return replace(golden, corpus_hash=found)
