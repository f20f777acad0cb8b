"""The dict-of-dict ``{query: {document: grade}}`` as JSON: judgments alone.

If a query has several words, the queries are texts; otherwise they are ids.
"""

from __future__ import annotations

from pathlib import Path

from ringtrue.formats.text import Place, read_json
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import Complaints, as_id, grade, object_in
from ringtrue.golden.formats.folders import judged, write_json
from ringtrue.records import GoldenSet, Judgment, Query


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in one JSON file."""
    place = Place(str(path))
    document = object_in(read_json(path), place, 'write {"query": {"document": grade}}')
    draft = Draft(complaints)
    texts = any(len(query_id.split()) > 1 for query_id in document)
    for query_id, grades in document.items():
        here = place.at(query_id)
        with complaints.about(here):
            draft.add_query(Query(as_id(query_id, here), query_id if texts else ""), here)
            if not isinstance(grades, dict):
                raise here.error(f"{grades!r:.80} is not an object", 'write {"document": grade}')
            for doc_id, value in grades.items():
                draft.add_judgment(Judgment(query_id, as_id(doc_id, here), grade(value, here.at(doc_id))), here)
    return draft.finish_table(path.stem)


def write(golden: GoldenSet, path: Path) -> None:
    """Write the judgments as one JSON object."""
    groups = judged(golden)
    write_json({query: {judgment.doc_id: judgment.grade for judgment in rows} for query, rows in groups.items()}, path)
