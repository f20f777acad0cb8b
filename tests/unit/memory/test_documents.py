"""Memories become the documents that the golden loader makes of the same files."""

from __future__ import annotations

from pathlib import Path

import ringtrue.golden
from ringtrue.golden import load as load_golden
from ringtrue.memory.engine import documents_of
from ringtrue.memory.hook.files import load
from ringtrue.memory.hook.memory import as_record, from_record
from ringtrue.memory.hook.settings import Settings

BENCH = Path(ringtrue.golden.__file__).parent / "sets" / "memory-bench" / "memories"


def test_documents_are_those_of_the_golden_set() -> None:
    mine = {one.doc_id: one for one in documents_of(load(str(BENCH), Settings()).memories)}
    theirs = {one.doc_id: one for one in load_golden("memory-bench").documents}
    assert len(theirs) > 50
    assert mine.keys() == theirs.keys()
    for doc_id, document in theirs.items():
        assert (mine[doc_id].text, mine[doc_id].title, mine[doc_id].tags) == (document.text, document.title, document.tags)
        # One spells an only id as a text and an empty link out; both say the same.
        record = {"id": doc_id, "title": document.title, "tags": list(document.tags), **document.metadata}
        same = as_record(from_record(record))
        assert mine[doc_id].metadata == {name: value for name, value in same.items() if name not in ("id", "title", "tags")}
