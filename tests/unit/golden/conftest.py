"""A small set that breaks no rule, for tests that break one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringtrue.records import Document, GoldenSet, Judgment, Query

WORDS = "harbour lantern gravel orchard copper meadow anchor velvet timber saffron"


@pytest.fixture
def golden() -> GoldenSet:
    """Three documents, two answered queries and one to be met with silence."""
    return GoldenSet(
        id="inn",
        version="1.2.0",
        queries=(
            Query("q1", "can my dog stay with us", {"query_type": "factual", "category": "POLICY"}),
            Query("q2", "why does the shower run cold", {"query_type": "troubleshooting"}),
            Query("q3", "who won the cup", {"query_type": "factual"}, negative=True),
        ),
        judgments=(
            Judgment("q1", "pets", 3, "manual", {"annotator": "desk"}),
            Judgment("q1", "boiler", 0, "manual"),
            Judgment("q2", "boiler", 2),
            Judgment("q2", "pets", 1),
        ),
        documents=(
            Document("pets", "Animals are welcome on the ground floor.", "Pets", {"entity_type": "POLICY"}, ("rooms",)),
            Document("boiler", "Bleed the valve when hot water fails.", "Boiler", {"format": "MARKDOWN"}),
            Document("menu", "Breakfast is served until ten.", "Menu"),
        ),
        description="An inn.",
        created_at="2026-11-15",
        profile="test-set",
        relevance_threshold=2,
        provenance="made for the tests",
    )


@pytest.fixture
def sound() -> Callable[..., GoldenSet]:
    """Return a maker of sets large enough to pass every rule of the general profile."""

    def make(**changes: Any) -> GoldenSet:
        kinds = ("factual", "comparative", "troubleshooting", "sentiment")
        lengths = {0: 60, 1: 3200}
        documents = tuple(
            Document(
                f"d{n}",
                " ".join(f"{WORDS.split()[n % 10]}{n}x{i}" for i in range(lengths.get(n, 200))),
                f"Title {n}",
                {"entity_type": f"T{n % 3}", "format": f"F{n % 2}"},
            )
            for n in range(50)
        )
        queries = tuple(
            Query(f"q{n}", f"question about topic{n} and thing{n}", {"query_type": kinds[n % 4]}) for n in range(20)
        )
        judgments = tuple(
            Judgment(f"q{n}", f"d{(n + step) % 50}", grade, "manual")
            for n in range(20)
            for step, grade in enumerate((3, 2, 2, 2, 0))
        )
        return replace(GoldenSet("sound", "1.0.0", queries, judgments, documents, relevance_threshold=2), **changes)

    return make


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, str], Path]:
    """Return a writer of files into the test's folder."""

    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path

    return write
