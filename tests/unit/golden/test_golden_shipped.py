"""The shipped sets pass validation and hold what the requirement counts."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from ringtrue.golden import load, shipped, summarise, validate, validate_file
from ringtrue.records import GoldenSet


@cache
def get(name: str) -> GoldenSet:
    return load(name)


def by(name: str, field: str) -> Counter[object]:
    return Counter(query.metadata.get(field) for query in get(name).queries)


@pytest.mark.parametrize("name", shipped())
def test_shipped_set_passes_validation(name: str) -> None:
    report = validate_file(name)
    assert [str(problem) for problem in report.problems] == []


@pytest.mark.parametrize("name", shipped())
def test_queries_are_not_copied_from_their_documents(name: str) -> None:
    assert summarise(get(name)).copied == ()


def test_hotel() -> None:
    golden = get("hotel")
    assert len(golden.documents) >= 60
    assert len(golden.queries) >= 60
    assert set(by("hotel", "query_type")) == {"factual", "comparative", "troubleshooting", "sentiment"}
    assert {doc.metadata["entity_type"] for doc in golden.documents} == {
        "KNOWLEDGE_ARTIFACT",
        "COMMUNICATION_SIGNAL",
        "INTERACTION_EVENT",
    }
    assert {doc.metadata["format"] for doc in golden.documents} == {"MARKDOWN", "PLAIN_TEXT", "JSON"}
    figures = validate(golden).figures
    assert figures["relevant_per_query"] >= 3.5
    assert figures["p5_reachable"] >= 0.60


def test_clinical() -> None:
    assert by("clinical", "query_type") == {"exact_term": 20, "paraphrase": 15, "complex_clinical": 15}


def test_memory_bench() -> None:
    golden = get("memory-bench")
    counts = by("memory-bench", "dimension")
    assert len(golden.documents) >= 28
    assert len({doc.metadata["category"] for doc in golden.documents}) == 6
    assert (counts["category-specific"], counts["cross-category"], counts["follow-up"], counts["partial-match"]) == (
        6,
        4,
        3,
        2,
    )
    assert counts["specific"] + counts["vague"] == 8
    assert sum(query.negative for query in golden.queries) >= 6


def test_agent_280() -> None:
    assert by("agent-280", "category") == {
        "trigger-match": 30, "semantic-search": 50, "causal-query": 25, "cross-folder": 25,
        "intent-specific": 105, "cold-start": 15, "multi-concept": 20, "edge-case": 10,
    }  # fmt: skip
    specific = Counter(q.metadata["intent"] for q in get("agent-280").queries if q.metadata["category"] == "intent-specific")
    assert set(specific.values()) == {15}
    assert len(specific) == 7


def test_precedents() -> None:
    counts = by("precedents", "corpus")
    assert counts["internal_decisions"] >= 54
    assert counts["precedent_library"] >= 23
    assert len(get("precedents").queries) >= 77
    assert get("precedents").provisional
