"""What must hold before any number. One that fails means no number: the reason, the cure, and exit code 3.

Some can be seen before a question is asked (are the judged documents there?), some only in the answers (are these the same kind
of ids? do answers end where a measure still looks?). A user who knows better may allow one by its name; that is noted in the
result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.measures import Measure
from ringtrue.records import GoldenSet, Ranking
from ringtrue.retrieve import Staged, Threshold, Top, document_hash, indexes_of
from ringtrue.run.ask import with_parts
from ringtrue.run.evaluation import Precondition, Status
from ringtrue.run.named import IdOf
from ringtrue.run.subject import Routed, Subject

NAMES = ("index", "documents", "cut-off", "ids", "depth")
ANY_PATTERN = "REGEX"
"""Stands for a pattern that only the user can write."""
ENOUGH = 5
"""Fewer answers of one length may be a coincidence."""
_GUESSES = (
    (r"^[A-Za-z_-]+[:/](.+)$", "a prefix before the judged id"),
    (r"^.*[:/]([^:/]+)$", "several prefixes before the judged id"),
    (r"^.*/([^/]+)\.[A-Za-z0-9]{1,5}$", "a path before the judged id and a file ending after it"),
    (r"^(.+?)(?:#|::|@)[^#:@]+$", "a part after the judged id"),
    (r"^(.+?)[-_/.](?:chunk|passage|part|p|c)?[-_]?\d+$", "the number of a passage after the judged id"),
    (r"^(.+)\.[A-Za-z0-9]{1,5}$", "a file ending after the judged id"),
    (r"^0+(.+)$", "leading zeros before the judged id"),
)


_OWN = "to search the set's own documents, leave out --in and folder under [eval] in ringtrue.toml; otherwise "


Checked = tuple[Precondition, str]
"""What one check found, and the cure for what failed."""


def _checked(status: Status, name: str, detail: str, cure: str = "") -> Checked:
    return Precondition(name, status, detail), cure


_met, _unseen, _failed = partial(_checked, "met"), partial(_checked, "not checked"), partial(_checked, "failed")


def check_allowed(allowed: Iterable[str]) -> frozenset[str]:
    """Return the names of preconditions that may fail; raises InputError for one that is none."""
    names = frozenset(allowed)
    for name in sorted(names - set(NAMES)):
        raise InputError(f"there is no precondition '{name}' to allow; use {nearest(name, NAMES)}")
    return names


def settle(found: Iterable[Checked], allowed: Collection[str]) -> tuple[Precondition, ...]:
    """Return the preconditions with how they stand; raises CannotDecide for those that failed and are not allowed."""
    checked = list(found)
    wrong = [(one, cure) for one, cure in checked if one.status == "failed" and one.name not in allowed]
    if wrong:
        (first, cure), *others = wrong
        more = f" (also: {'; '.join(one.detail for one, _ in others)})" if others else ""
        raise CannotDecide(
            f"no number: {first.detail}; {cure}, or accept it with --allow {first.name} (allow= in Python){more}"
        )
    return tuple(one for one, _ in checked)


def deepest(measures: Sequence[Measure]) -> int | None:
    """Return the deepest rank that a measure with a cut-off looks at; None if none has one."""
    return max((int(measure.at) for measure in measures if measure.at is not None and measure.at >= 1), default=None)


# ── before asking ───────────────────────────────────────────────────────────────────────────────────────────────────


def before(
    subjects: Routed, golden: GoldenSet, measures: Sequence[Measure], *, id_of: IdOf, there: IdOf | None
) -> Iterator[Checked]:
    """Yield what can be seen before the first question.

    ``id_of`` turns ids of the system into those of the set, ``there`` does the reverse where that is possible.
    """
    for subject, part in subjects.parts_of(golden):
        yield _index(subject)
        yield _documents(subject, part, id_of, there)
        yield _cut_off(subject, deepest(measures))


def _index(subject: Subject) -> Checked:
    collection = subject.collection
    if collection is None:
        return _unseen("index", "Ringtrue cannot see the index")
    if collection.unfinished:
        return _failed("index", f"{collection.folder}: the last ingest did not finish, documents are missing", "ingest again")
    for index in indexes_of(subject.retriever):
        index.ready()
        done, of = index.coverage() if hasattr(index, "coverage") else (0, 0)
        if done < of:
            problem = f"the index '{index.folder.name}' holds {done} of {of} passages"
            return _failed("index", problem, "run `ringtrue ingest` again until it is whole")
    return _met("index", f"{len(collection)} documents, every index whole")


def _documents(subject: Subject, golden: GoldenSet, id_of: IdOf, there: IdOf | None) -> Checked:
    judged = list(dict.fromkeys(judgment.doc_id for judgment in golden.judgments if judgment.grade >= 0))
    collection = subject.collection
    if collection is not None:
        here = {id_of(doc_id) for doc_id in collection.ids().values()}
        known: set[str] | None = here & set(judged)
    else:
        here = set()
        found = None if there is None else subject.known([there(doc_id) for doc_id in judged])
        known = None if found is None else {id_of(doc_id) for doc_id in found}
    if known is None:
        brought = {document.doc_id for document in golden.documents}
        strays = [doc_id for doc_id in judged if brought and doc_id not in brought]
        if strays:
            problem = f"{len(strays)} of {len(judged)} judged documents are none of '{golden.id}', such as '{strays[0]}'"
            return _failed("documents", problem, "fix the judgments, or add the documents to the set")
        return _unseen("documents", "the system cannot be asked which documents it has")
    missing = [doc_id for doc_id in judged if doc_id not in known]
    if missing:
        where = "the index" if collection is None else str(collection.folder)
        problem = f"{len(missing)} of {len(judged)} judged documents are not in {where}, such as '{missing[0]}'"
        guess = _guess(here - known, missing, right=known) or _planted(subject, golden, missing)
        cure = (
            f"its ids look like '{guess[1]}': map them with --id-pattern '{guess[0]}' (ids= in Python)"
            if guess
            else f"{_OWN if collection is not None and golden.documents else ''}index these documents"
        )
        return _failed("documents", problem, cure)
    if collection is not None and golden.documents:
        hashes = collection.hashes()
        stale = [d.doc_id for d in golden.documents if d.doc_id in hashes and hashes[d.doc_id] != document_hash(d)]
        if stale:
            problem = f"{len(stale)} documents in {collection.folder} differ from those of '{golden.id}', such as '{stale[0]}'"
            return _failed("documents", problem, "ingest the set's documents again")
    return _met("documents", f"all {len(judged)} judged documents are there")


def _planted(subject: Subject, golden: GoldenSet, missing: Sequence[str]) -> tuple[str, str, str, int] | None:
    """Return the mapping of ids that `golden ingest` gave, where the system knows such ids."""
    some = {f"golden:{golden.id}:{doc_id}" for doc_id in missing[:10]}
    found = None if subject.collection is not None else subject.known(sorted(some))
    if not found:
        return None
    return f"^golden:{re.escape(golden.id)}:(.+)$", min(found), "the prefix of `golden ingest`", len(found)


def _cut_off(subject: Subject, deep: int | None) -> Checked:
    wanted = f"rank {deep}" if deep is not None else "every rank"
    for step in (step for part in with_parts(subject.retriever) if isinstance(part, Staged) for step in part.steps):
        if isinstance(step, Threshold):
            problem = f"a threshold is active while measures look down to {wanted}: what it cuts would count as not found"
            return _failed("cut-off", problem, "evaluate without threshold(…)")
        if isinstance(step, Top) and (deep is None or step.n < deep):
            problem = f"top({step.n}) cuts answers while measures look down to {wanted}"
            return _failed("cut-off", problem, f"evaluate without it, or with measures down to {step.n}")
    if subject.collection is None or not subject.in_process:
        return _unseen("cut-off", "Ringtrue cannot see whether the search limits its results")
    return _met("cut-off", f"nothing is cut above {wanted}")


# ── in the answers ──────────────────────────────────────────────────────────────────────────────────────────────────


def after(
    rankings: Sequence[Ranking], golden: GoldenSet, measures: Sequence[Measure], *, visible: bool, ids: Mapping[str, str]
) -> Iterator[Checked]:
    """Yield what the answers themselves show; ``visible`` retrievers were seen to cut nothing before they were asked.

    ``ids`` has the set's id of every id that was returned, if the user maps them.
    """
    yield _mapping(ids, golden) or _ids(rankings, golden)
    yield _met("depth", "the retriever cuts nothing") if visible else _depth(rankings, golden, deepest(measures))


def reaches(rank: int, rankings: Sequence[Ranking], golden: GoldenSet, subjects: Routed) -> bool:
    """Return whether nothing is known to cut the answers above a rank."""
    checked = [_cut_off(one, rank) for one in subjects.all]
    if not subjects.visible:
        checked.append(_depth(rankings, golden, rank))
    return all(one.status != "failed" for one, _ in checked)


def _mapping(ids: Mapping[str, str], golden: GoldenSet) -> Checked | None:
    """Return what is wrong with a mapping that changes few ids or makes few that were judged; None if it works."""
    judged = {judgment.doc_id for judgment in golden.judgments}
    universe = judged | {document.doc_id for document in golden.documents}
    made = {returned: doc_id for returned, doc_id in ids.items() if returned != doc_id}
    if not made or not universe.isdisjoint(ids.keys()):
        return None
    parents = set(made.values())
    known = parents & universe
    # A poor search finds few judged documents, too; three that fit are hardly chance.
    if 4 * len(made) >= len(ids) and (len(known) >= 3 or 4 * len(known) >= min(len(judged), len(parents))):
        return None
    first = next(iter(made))
    problem = (
        f"--id-pattern (ids= in Python) changes {len(made)} of {len(ids)} returned ids, such as '{first}' to '{made[first]}', "
        f"and makes {len(known)} of the {len(universe)} ids of '{golden.id}'"
    )
    return _failed("ids", problem, "write a pattern whose group is the judged id in every returned id")


def _ids(rankings: Sequence[Ranking], golden: GoldenSet) -> Checked:
    judged = {judgment.doc_id for judgment in golden.judgments}
    universe = judged | {document.doc_id for document in golden.documents}
    returned = Counter(hit.doc_id for ranking in rankings for hit in ranking.hits)
    if not returned and judged and not all(query.negative for query in golden.queries):
        problem = f"none of the {len(rankings)} answers has a single hit"
        return _failed("ids", problem, "see whether the search has documents at all")
    if not returned or not judged:
        return _unseen("ids", "there are no ids to compare")
    strangers = [doc_id for doc_id in returned if doc_id not in universe]
    guess = _guess(strangers, universe, right=[doc_id for doc_id in returned if doc_id in universe])
    if len(strangers) == len(returned):
        problem = (
            f"none of the {len(returned)} documents in the answers, such as '{strangers[0]}', has the id of a document of "
            f"'{golden.id}', such as '{min(universe)}'"
        )
        cure = _as_returned(returned, universe) or (
            f"search the documents that the set judges, or map them with --id-pattern '{ANY_PATTERN}' (ids= in Python)"
        )
        if guess and guess[0] != ANY_PATTERN:
            cure = f"map them with --id-pattern '{guess[0]}' (ids= in Python) ({guess[2]})"
        return _failed("ids", problem, cure)
    likely = _guess(strangers, universe)
    if likely and likely[3] >= max(2, len(strangers) // 2):
        problem = f"{likely[3]} ids in the answers, such as '{likely[1]}', are parts of documents of '{golden.id}': {likely[2]}"
        cure = "make the search return document ids only; a pattern for these would also change ids that are correct"
        if guess and guess[0] != ANY_PATTERN:
            cure = f"map them with --id-pattern '{guess[0]}' (ids= in Python)"
        return _failed("ids", problem, cure)
    return _met("ids", f"{len(returned) - len(strangers)} of {len(returned)} returned documents are known to the set")


def foreign_ids(golden: GoldenSet, rankings: Sequence[Ranking]) -> Iterator[str]:
    """Yield a sentence if many returned ids are those of judged documents with something around them."""
    found, _ = _ids(rankings, golden)
    if found.status == "failed":
        yield found.detail


def _as_returned(returned: Collection[str], universe: Collection[str]) -> str:
    """Return the cure if the ids of the set, not those of the answers, have a case of their own or something around them."""
    folded = {doc_id.casefold(): doc_id for doc_id in universe}
    pair = next(((folded[doc_id.casefold()], doc_id) for doc_id in returned if doc_id.casefold() in folded), None)
    if pair is None and (around := _guess(universe, returned)) and around[0] != ANY_PATTERN:
        pair = around[1], cast("re.Match[str]", re.match(around[0], around[1]))[1]
    if pair is None:
        return ""
    return f"write the ids in the golden set as the search returns them: '{pair[1]}' instead of '{pair[0]}'"


def _guess(strangers: Iterable[str], wanted: Collection[str], *, right: Iterable[str] = ()) -> tuple[str, str, str, int] | None:
    """Return (pattern, example, what it takes away, how many fit) of the mapping that turns most strangers into wanted ids.

    A pattern that would change an id that is ``right`` already is not offered; one that leaves strangers as they are, or finds
    few of the wanted ids, is ``ANY_PATTERN``.
    """
    some = list(strangers)[:2000]
    known, kept = set(wanted), list(right)[:2000]
    best: tuple[str, str, str, int] | None = None
    most = (0, 0)
    for pattern, means in (*_GUESSES, *_shapes(some, known)):
        if any((match := re.match(pattern, doc_id)) and match[1] != doc_id for doc_id in kept):
            continue
        matches = {doc_id: match[1] for doc_id in some if (match := re.match(pattern, doc_id))}
        fits = [doc_id for doc_id, cut in matches.items() if cut in known]
        reached = len({matches[doc_id] for doc_id in fits})
        if (len(fits), reached) > most:
            most = len(fits), reached
            onto = len(fits) >= 0.9 * len(some) or reached >= min(len(known), len(some)) / 4
            sure = onto and len(matches) >= 0.9 * len(some)
            best = pattern if sure else ANY_PATTERN, fits[0], means, len(fits)
    return best


def _shapes(strangers: Sequence[str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the patterns of what stands around a known id in the strangers, the most frequent first: pool:chunk:3, kb/pool/3.

    Numbers stand for any number. If the words around the id differ from one stranger to the next, they stand for any words.
    """
    around = [parts for stranger in strangers[:200] if (parts := _around(stranger, known)) is not None]
    for word in (r"\d+", r"[^\W_]+"):
        runs = re.compile(word)

        def shape(text: str, word: str = word, runs: re.Pattern[str] = runs) -> str:
            return word.join(map(re.escape, runs.split(text)))

        for (before, after), _ in Counter((shape(before), shape(after)) for before, after in around).most_common(3):
            yield f"^{before}(.+?){after}$", "what stands around the judged id"


def _around(stranger: str, known: Collection[str]) -> tuple[str, str] | None:
    """Return what stands before and after the longest known id that is a part of a longer id, between signs."""
    if len(stranger) > 300:
        return None
    ends = sorted({0, len(stranger), *(edge for sign in re.finditer(r"[\W_]", stranger) for edge in sign.span())})
    parts = ((end - start, start, end) for start in ends for end in ends if start < end and stranger[start:end] in known)
    best = max(parts, default=None)
    return None if best is None else (stranger[: best[1]], stranger[best[2] :])


def _depth(rankings: Sequence[Ranking], golden: GoldenSet, deep: int | None) -> Checked:
    """Suspect a limit if answers pile up at one length; answers that end wherever the matches end have many lengths."""
    lengths = Counter(len(ranking.hits) for ranking in rankings if ranking.error is None)
    if deep is None or not lengths:
        return _unseen("depth", "no measure has a cut-off")
    longest = max(lengths)
    at_longest, elsewhere = lengths.pop(longest), max(lengths.values(), default=0)
    asked = at_longest + lengths.total()
    piled = 2 * at_longest >= asked or (at_longest >= ENOUGH and at_longest >= 2 * elsewhere)
    more = {document.doc_id for document in golden.documents} | {judgment.doc_id for judgment in golden.judgments}
    more |= {hit.doc_id for ranking in rankings for hit in ranking.hits}
    if 0 < longest < min(deep, len(more)) and asked >= ENOUGH and piled:
        problem = f"{at_longest} of {asked} answers end at exactly {longest} hits and none is longer"
        cure = f"let the search return {deep}, or measure down to {longest}"
        return _failed("depth", f"{problem}, but measures look down to rank {deep}", cure)
    return _met("depth", f"up to {longest} hits per answer")
