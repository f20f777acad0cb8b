"""The rules of validation: each a small function that yields what breaks it, in a table with the profiles it applies to.

A problem names its rule once the table has been gone through (``validate``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from ringtrue.answers import GoldenProblem
from ringtrue.errors import InputError, nearest
from ringtrue.golden.formats.fields import PROFILES, alike
from ringtrue.golden.likeness import OverlapSummary, pairs_of, summarise
from ringtrue.golden.version import parse_version
from ringtrue.records import Document, GoldenSet, Judgment, Query

KINDS = ("factual", "comparative", "troubleshooting", "sentiment")
USUAL = (0, 3)
"""The scale of grades that people write by hand."""
SHORT, LONG = 150, 3000
REACHABLE = 0.60
MANY_COPIED = 0.1
HIDDEN = ("retired", "archived")
_SEARCHED_FOR_NAMES = 5000


@dataclass(frozen=True)
class ValidatedSet:
    """The set under validation and the sizes it has to reach."""

    golden: GoldenSet
    minimum_documents: int
    minimum_queries: int

    @cached_property
    def documents(self) -> dict[str, Document]:
        """Documents by id."""
        return {document.doc_id: document for document in self.golden.documents}

    @cached_property
    def queries(self) -> dict[str, Query]:
        """Queries by id."""
        return {query.query_id: query for query in self.golden.queries}

    @cached_property
    def judged(self) -> dict[str, list[Judgment]]:
        """Judgments by query id, of unknown queries too."""
        groups: dict[str, list[Judgment]] = {query_id: [] for query_id in self.queries}
        for judgment in self.golden.judgments:
            groups.setdefault(judgment.query_id, []).append(judgment)
        return groups

    def relevant(self, query_id: str) -> list[str]:
        """Return the documents that count as relevant."""
        return [j.doc_id for j in self.judged[query_id] if j.grade >= self.golden.relevance_threshold]

    def found(self, query_id: str) -> list[Document]:
        """Return the documents of the set that count as relevant."""
        return [self.documents[doc_id] for doc_id in self.relevant(query_id) if doc_id in self.documents]

    def relevant_items(self, query_id: str) -> int:
        """Return how many relevant things there are; members of one equivalence class are one."""
        return len({self._class_of.get(doc_id, doc_id) for doc_id in self.relevant(query_id)})

    @cached_property
    def _class_of(self) -> dict[str, str]:
        return {member: members[0] for members in self.golden.equivalence_classes for member in members}

    @cached_property
    def words(self) -> list[int]:
        """The length of each document in words."""
        return [len(document.text.split()) for document in self.golden.documents]

    @cached_property
    def overlap(self) -> OverlapSummary:
        """How much the queries borrow from their documents."""
        return summarise(self.golden)

    @cached_property
    def reachable_precision(self) -> float | None:
        """The best mean P@5 that the judgments allow; None when no query expects an answer."""
        best = [min(5, self.relevant_items(query.query_id)) / 5 for query in self.queries.values() if not query.negative]
        return sum(best) / len(best) if best else None


Problems = Iterator[GoldenProblem]


def name_of(rule: Callable[[ValidatedSet], Problems]) -> str:
    """Return what a rule is called in reports.

    >>> name_of(known_profile)
    'known-profile'
    """
    return rule.__name__.replace("_", "-")


_error = partial(GoldenProblem, "error", "")
_warning = partial(GoldenProblem, "warning", "")


def known_profile(subject: ValidatedSet) -> Problems:
    """The profile is one that fixes rules."""
    name = subject.golden.profile
    if name not in PROFILES:
        yield _error("", f"'{name}' is not a profile", f"write {nearest(name, PROFILES)}")


def required_fields(subject: ValidatedSet) -> Problems:
    """Ids and query texts are there; a document has something to find it by."""
    golden = subject.golden
    if not golden.id.strip():
        yield _error("", "the set has no id", "give it one")
    if not golden.queries:
        yield _error("", "the set has no query", "add queries")
    things = [("query", query.query_id, query.text) for query in golden.queries]
    things += [("document", document.doc_id, document.title.strip() or document.text) for document in golden.documents]
    for what, name, text in things:
        if not name.strip():
            yield _error("", f"the {what} '{text:.60}' has no id", "give it one")
        if not text.strip() and what == "query":
            yield _error(name, "the query has no text", "write what a user would ask")
        elif not text.strip():
            yield _warning(name, "the document has neither title nor text", "write its text or remove it")


def semantic_version(subject: ValidatedSet) -> Problems:
    """The version can be compared with another."""
    version = subject.golden.version
    try:
        parse_version(version)
    except InputError:
        yield _warning("", f"'{version}' is not a semantic version", "write major.minor.patch like 1.0.0")


def unique_ids(subject: ValidatedSet) -> Problems:
    """No id stands for two things, no pair is judged twice."""
    golden = subject.golden
    queries, documents = [query.query_id for query in golden.queries], [document.doc_id for document in golden.documents]
    for what, names in (("query", queries), ("document", documents)):
        for name in _repeated(names):
            yield _error(name, f"the {what} id is given twice", f"give each {what} its own id")
    for query_id, judgments in subject.judged.items():
        for doc_id in _repeated(judgment.doc_id for judgment in judgments):
            grades = [str(grade) for grade in sorted(one.grade for one in judgments if one.doc_id == doc_id)]
            message = f"document '{doc_id}' is judged {len(grades)} times, as {' and '.join(grades)}"
            yield _error(query_id, message, "keep one judgment")


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def grades_in_scale(subject: ValidatedSet) -> Problems:
    """Grades lie on the declared scale, and the threshold divides it."""
    lowest, highest = subject.golden.scale
    threshold = subject.golden.relevance_threshold
    if not max(lowest, 0) < threshold <= highest:
        cure = f"choose {max(lowest, 0) + 1} to {highest}, or declare another scale"
        yield _error("", f"the relevance threshold {threshold} does not split the scale {lowest} to {highest}", cure)
    yield from grades_outside_scale(subject.golden)
    for said in about_scale(subject.golden):
        yield _warning("", said, "correct the grades, or declare the scale in a JSON or YAML set")


def about_scale(golden: GoldenSet) -> Iterator[str]:
    """Yield what is unusual about the grades of a table, from which its scale was taken."""
    lowest, highest = golden.scale
    if golden.scale_taken and highest > USUAL[1]:
        yield f"grades go up to {highest}; the scale is taken as {max(lowest, 0)} to {highest}"
    below = [judgment for judgment in golden.judgments if judgment.grade < USUAL[0]] if golden.scale_taken else []
    if below:
        first = f"grade {below[0].grade} of document '{below[0].doc_id}' for query '{below[0].query_id}'"
        more = f" (and {len(below) - 1} more)" if below[1:] else ""
        yield f"{first}{more} is negative and counts as not judged"


def grades_outside_scale(golden: GoldenSet) -> Problems:
    """Yield an error for every grade that is not on the scale of its set."""
    lowest, highest = golden.scale
    for judgment in golden.judgments:
        if not lowest <= judgment.grade <= highest:
            message = f"grade {judgment.grade} of document '{judgment.doc_id}' is outside {lowest} to {highest}"
            yield _error(judgment.query_id, message, f"use {lowest} to {highest}, or declare another scale")


def check_grades(golden: GoldenSet) -> None:
    """Raise InputError for a set with a grade that is not on its scale: nothing measured with it would mean anything."""
    wrong = list(grades_outside_scale(golden))
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
        raise InputError(f"golden set '{golden.id}', query '{wrong[0].place}': {wrong[0].message}{more}; {wrong[0].cure}")


def has_relevant(subject: ValidatedSet) -> Problems:
    """Every query has something to find, unless it is marked as one that should be answered by silence."""
    threshold = subject.golden.relevance_threshold
    for query in subject.queries.values():
        best = max((judgment.grade for judgment in subject.judged[query.query_id]), default=0)
        if query.negative and best >= threshold:
            message = f"the query is negative, but has a document of grade {best}"
            yield _error(query.query_id, message, "remove the mark 'negative' or lower the grade")
        elif not query.negative and best <= 0:
            cure = "judge a relevant document, or mark the query as negative"
            yield _error(query.query_id, "no document is relevant to the query", cure)
        elif not query.negative and best < threshold:
            message = f"the best grade is {best}, below the threshold {threshold}: the query counts in no mean"
            yield _warning(query.query_id, message, "judge a better document or lower the threshold")


def judged_exist(subject: ValidatedSet) -> Problems:
    """Judgments speak of queries and documents that the set has."""
    golden = subject.golden
    for query_id in [name for name in subject.judged if name not in subject.queries]:
        cure = f"add the query or correct its id{_near(query_id, subject.queries)}"
        yield _error(query_id, f"{len(subject.judged[query_id])} judgments are for a query that is not in the set", cure)
    if not golden.documents:
        if golden.corpus_hash is None:
            cure = "add the documents, or declare the corpus_hash of the corpus"
            yield _warning("", "the set has no documents, so judged ids cannot be checked", cure)
        return
    for judgment in golden.judgments:
        if judgment.doc_id not in subject.documents:
            cure = f"add the document or correct the id{_near(judgment.doc_id, subject.documents)}"
            yield _error(judgment.query_id, f"judged document '{judgment.doc_id}' is not in the corpus", cure)


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    meant = alike(name, names) if len(names) <= _SEARCHED_FOR_NAMES else None
    return f" (did you mean '{meant}'?)" if meant else ""


def consistent_lists(subject: ValidatedSet) -> Problems:
    """What a file lists as relevant is also graded as relevant, and the other way round."""
    threshold = subject.golden.relevance_threshold
    for judgment in subject.golden.judgments:
        said = judgment.metadata.get("listed")
        if said is True and judgment.grade < threshold:
            message = f"'{judgment.doc_id}' is listed as relevant, but labelled {judgment.grade}, below {threshold}"
            yield _error(judgment.query_id, message, f"take it off the list or label it {threshold} or more")
        elif said is False and judgment.grade >= threshold:
            message = f"'{judgment.doc_id}' is labelled {judgment.grade}, but not listed as relevant"
            yield _warning(judgment.query_id, message, "add it to relevant_entities")
    for query in subject.golden.queries:
        chunk = query.metadata.get("top_1_chunk")
        doc_id = chunk.split(":chunk:")[0] if isinstance(chunk, str) else None
        if doc_id is not None and subject.documents and doc_id not in subject.documents:
            cure = f"name a chunk of a document in the set{_near(doc_id, subject.documents)}"
            yield _error(query.query_id, f"top_1_chunk '{chunk}' belongs to no document", cure)


def distinct_queries(subject: ValidatedSet) -> Problems:
    """No query is asked twice, in the same or nearly the same words."""
    for pair in pairs_of(subject.golden.queries, scope=subject.golden.scope):
        if pair.first == pair.second:
            continue
        if pair.same:
            yield _error(pair.second, f"the query repeats '{pair.first}'", "remove one of the two")
        else:
            message = f"the query shares {pair.similarity:.0%} of its words with '{pair.first}'"
            yield _warning(pair.second, message, "remove one of the two or make them differ")


def no_leakage(subject: ValidatedSet) -> Problems:
    """Queries that declare a split have no double on the other side."""
    sides = {query.query_id: query.metadata.get("split") for query in subject.golden.queries}
    if len(_texts(sides.values())) < 2:
        return
    for pair in pairs_of(subject.golden.queries, scope=subject.golden.scope):
        first, second = sides[pair.first], sides[pair.second]
        if None not in (first, second) and first != second:
            message = f"'{pair.first}' ({first}) asks the same as this query ({second})"
            yield _error(pair.second, message, "put both on the same side")


def minimum_documents(subject: ValidatedSet) -> Problems:
    """The corpus is large enough for finding to be harder than guessing."""
    if subject.golden.documents:
        yield from _too_few("documents", len(subject.golden.documents), subject.minimum_documents)


def minimum_queries(subject: ValidatedSet) -> Problems:
    """There are enough queries for a mean to say something."""
    yield from _too_few("queries", len(subject.golden.queries), subject.minimum_queries)


def _too_few(what: str, found: int, wanted: int) -> Problems:
    if found < wanted:
        cure = f"add {wanted - found} or lower the minimum (--minimum-{what})"
        yield _error("", f"the set has {found} {what}, fewer than {wanted}", cure)


def covered_lengths(subject: ValidatedSet) -> Problems:
    """Short and long documents both occur; a retriever that only copes with one kind must not look good."""
    if not subject.words:
        return
    if min(subject.words) >= SHORT:
        yield _warning("", f"no document is shorter than {SHORT} words", "add short ones, as real collections have")
    if max(subject.words) <= LONG:
        yield _warning("", f"no document is longer than {LONG:,} words", "add long ones, as real collections have")


def covered_kinds(subject: ValidatedSet) -> Problems:
    """All kinds of question are asked, of more than one type and format of document."""
    asked = _texts(query.metadata.get("query_type") for query in subject.golden.queries)
    for kind in KINDS:
        if kind not in asked:
            yield _warning("", f"no query has the query_type '{kind}'", "add some, or choose the profile test-set")
    for field in ("entity_type", "format"):
        values = _texts(document.metadata.get(field) for document in subject.golden.documents)
        if len(values) == 1:
            yield _warning("", f"all documents have the {field} '{next(iter(values))}'", "add documents of other kinds")


def _texts(values: Iterable[object]) -> set[str]:
    return {value for value in values if isinstance(value, str)}


def not_copied(subject: ValidatedSet) -> Problems:
    """No query is copied out of the document it should find."""
    copied = subject.overlap.copied
    # A few borrowed phrases are a weakness; if a tenth of the queries is copied, the set measures copying.
    report = _error if len(copied) > MANY_COPIED * len(subject.golden.queries) else _warning
    for copy in copied:
        message = f"{copy.share:.0%} of the query stands in its document '{copy.doc_id}' as it is: '{copy.phrase:.80}'"
        yield report(copy.query_id, message, "ask it in the words of somebody who has not read the document")


def reachable_precision(subject: ValidatedSet) -> Problems:
    """The usual floor on P@5 can be reached at all."""
    best = subject.reachable_precision
    if best is not None and best < REACHABLE:
        message = f"even a perfect search reaches only P@5 = {best:.2f}, because queries have too few relevant documents"
        yield _warning("", message, f"judge more documents, or set no floor on P@5 above {best:.2f}")


def known_scope(subject: ValidatedSet) -> Problems:
    """In a set with a scope, each query names its scope and finds its documents inside it."""
    scope = subject.golden.scope
    if scope is None:
        return
    for query in subject.queries.values():
        value = query.metadata.get(scope)
        if value is None:
            yield _error(query.query_id, f"the query has no '{scope}', by which the set is scoped", f"write its {scope}")
            continue
        for document in subject.found(query.query_id):
            if document.metadata.get(scope) != value:
                there = f"'{document.metadata.get(scope)}', not in '{value}'"
                message = f"relevant document '{document.doc_id}' lies in {scope} {there}"
                yield _error(query.query_id, message, "correct one of the two, or nobody can find it")


def sound_classes(subject: ValidatedSet) -> Problems:
    """Interchangeable documents exist and belong to one class."""
    for doc_id in _repeated(member for members in subject.golden.equivalence_classes for member in members):
        yield _error(doc_id, "the document is in two equivalence classes, or twice in one", "join the classes")
    for members in subject.golden.equivalence_classes:
        for doc_id in members:
            if subject.documents and doc_id not in subject.documents:
                yield _error(doc_id, "an equivalence class names a document that is not in the corpus", "correct the id")


def visible_memories(subject: ValidatedSet) -> Problems:
    """What is retired or archived is never the right answer; a causal chain names memories that exist."""
    for query in subject.queries.values():
        for document in subject.found(query.query_id):
            status = document.metadata.get("record_status")
            if status in HIDDEN:
                message = f"relevant memory '{document.doc_id}' is {status}, so it is never shown"
                yield _error(query.query_id, message, "judge what replaced it")
        chain = query.metadata.get("chain")
        for doc_id in chain if isinstance(chain, list) and subject.documents else ():
            if not isinstance(doc_id, str) or doc_id not in subject.documents:
                yield _error(query.query_id, f"the chain names '{doc_id}', which is not a memory", "correct the id")


ALL = frozenset(PROFILES)
RULES: dict[Callable[[ValidatedSet], Problems], frozenset[str]] = {
    known_profile: ALL,
    required_fields: ALL,
    semantic_version: ALL,
    unique_ids: ALL,
    grades_in_scale: ALL,
    has_relevant: ALL,
    judged_exist: ALL,
    consistent_lists: ALL,
    sound_classes: ALL,
    known_scope: ALL,
    distinct_queries: ALL,
    no_leakage: ALL,
    not_copied: ALL,
    minimum_queries: ALL,
    # An agent's memory begins empty; fifty memories are many.
    minimum_documents: ALL - {"memory"},
    visible_memories: frozenset({"memory"}),
    covered_lengths: frozenset({"general"}),
    covered_kinds: frozenset({"general"}),
    # A known-item query has one answer by design; elsewhere many set a floor on P@5 that cannot be reached.
    reachable_precision: frozenset({"general"}),
}
"""Each rule with the profiles it applies to."""
