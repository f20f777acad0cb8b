"""Does a golden set keep its own rules? Every problem at once, with the rules its profile applies."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ringtrue.answers import GoldenProblem
from ringtrue.brief import brief
from ringtrue.errors import InputError, ValidationFailed
from ringtrue.golden import formats
from ringtrue.golden.formats.fields import PROFILES
from ringtrue.golden.loading import locate
from ringtrue.golden.rules import KINDS, RULES, ValidatedSet, name_of
from ringtrue.golden.version import corpus_hash
from ringtrue.records import GoldenSet

LENGTHS = (0, 50, 100, 150, 500, 1000, 3000, 5001)


@dataclass(frozen=True)
class ValidationReport:
    """All problems of a set at once."""

    problems: tuple[GoldenProblem, ...]
    figures: Mapping[str, Any]
    profile: str
    rules: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What the reader decided by a rule because the file leaves it open."""
    how_to_confirm: str = ""
    """How a set in this format says that people made its judgments."""

    def __repr__(self) -> str:
        return brief(self, profile=self.profile, errors=len(self.errors), warnings=len(self.warnings))

    @property
    def errors(self) -> tuple[GoldenProblem, ...]:
        """The problems that make the set unfit for use."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[GoldenProblem, ...]:
        """The problems that its users should know of."""
        return tuple(problem for problem in self.problems if problem.severity != "error")

    @property
    def ok(self) -> bool:
        """True when there is no error."""
        return not self.errors

    def require(self) -> None:
        """Raise ValidationFailed when there is an error, naming the first and counting the rest."""
        if not self.ok:
            more = f" (and {len(self.errors) - 1} more errors)" if len(self.errors) > 1 else ""
            raise ValidationFailed(f"{self.errors[0]}{more}")


def validate(golden: GoldenSet, *, minimum_documents: int = 50, minimum_queries: int = 20) -> ValidationReport:
    """Return all problems of a set, the figures behind them and the rules that its profile applies.

    >>> from ringtrue.records import GoldenSet, Query
    >>> report = validate(GoldenSet("tiny", "1.0.0", (Query("q1", "late checkout"),), (), profile="memory"))
    >>> [problem.rule for problem in report.errors]
    ['has-relevant', 'minimum-queries']
    """
    subject = ValidatedSet(golden, minimum_documents, minimum_queries)
    # A set of unknown profile gets every rule: too much advice is better than silence.
    profile = golden.profile if golden.profile in PROFILES else "general"
    applied = [rule for rule, profiles in RULES.items() if profile in profiles]
    problems = tuple(replace(problem, rule=name_of(rule)) for rule in applied for problem in rule(subject))
    return ValidationReport(problems, figures(subject), golden.profile, tuple(map(name_of, applied)))


def validate_file(path: str | Path, *, minimum_documents: int = 50, minimum_queries: int = 20) -> ValidationReport:
    """Return all problems of a file, folder or shipped set: each record that cannot be read, then those of the rest."""
    complaints = formats.Complaints(collect=True)
    golden = None
    place = locate(path)
    try:
        golden = formats.read(place, complaints=complaints)
    except InputError as problem:
        complaints.found.append(formats.Complaint("", str(problem)))
    unread = []
    for one in complaints.found:
        message, _, cure = one.message.removeprefix(f"{one.place}: ").rpartition("; ")
        unread.append(GoldenProblem("error", "readable", one.place, message or one.message, cure if message else "fix it"))
    if golden is None:
        return ValidationReport(tuple(unread), {}, "unknown", ("readable",))
    found = corpus_hash(golden.documents) if golden.documents else golden.corpus_hash
    if golden.corpus_hash not in (None, found):
        message = f"the set declares corpus_hash '{golden.corpus_hash}' but its documents have '{found}'"
        unread.append(GoldenProblem("error", "corpus-hash", "", message, "restore the documents or declare the new hash"))
    report = validate(golden, minimum_documents=minimum_documents, minimum_queries=minimum_queries)
    return replace(
        report,
        problems=(*unread, *report.problems),
        rules=("readable", "corpus-hash", *report.rules),
        notes=tuple(complaints.notes),
        how_to_confirm=formats.how_to_confirm(place),
    )


def figures(subject: ValidatedSet) -> dict[str, Any]:
    """Return the numbers that describe a set; what cannot be known is None, never 0."""
    golden = subject.golden
    asked = [query for query in golden.queries if not query.negative]
    relevant = [subject.relevant_items(query.query_id) for query in asked]
    lengths = subject.words
    borrowed = subject.overlap
    return {
        "documents": len(golden.documents),
        "queries": len(golden.queries),
        "negative_queries": len(golden.queries) - len(asked),
        "judgments": len(golden.judgments),
        "grades": dict(sorted(Counter(judgment.grade for judgment in golden.judgments).items())),
        "sources": dict(sorted(Counter(judgment.source or "(none)" for judgment in golden.judgments).items())),
        "provisional": golden.provisional,
        "confirmed": golden.confirmed,
        "reviewed": golden.reviewed,
        "relevance_threshold": golden.relevance_threshold,
        "relevant_per_query": statistics.fmean(relevant) if relevant else None,
        "p5_reachable": subject.reachable_precision,
        "words_median": statistics.median(lengths) if lengths else None,
        "words_histogram": _histogram(lengths),
        "document_types": _counts(document.metadata.get("entity_type") for document in golden.documents),
        "document_formats": _counts(document.metadata.get("format") for document in golden.documents),
        "query_kinds": _counts(query.metadata.get("query_type") for query in golden.queries),
        "query_kinds_missing": [kind for kind in KINDS if all(q.metadata.get("query_type") != kind for q in golden.queries)],
        "overlap_mean": borrowed.mean,
        "overlap_median": borrowed.median,
        "overlap_high_share": borrowed.share_high,
        "copied_queries": len(borrowed.copied),
    }


def _counts(values: Any) -> dict[str, int]:
    return dict(sorted(Counter(str(value) for value in values if value is not None).items()))


def _histogram(lengths: list[int]) -> dict[str, int]:
    """Return how many documents fall into each range of lengths in words, like ``{'0-49': 1, …, '5001+': 0}``."""
    names = [f"{start}-{end - 1}" for start, end in pairwise(LENGTHS)] + [f"{LENGTHS[-1]}+"]
    counts = Counter(bisect_right(LENGTHS, length) - 1 for length in lengths)
    return {name: counts[place] for place, name in enumerate(names)}
