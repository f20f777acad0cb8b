"""Settings for a JSON endpoint, found by asking it: which fields take the question and the number of hits, where the hits are.

Nothing is guessed in silence: a field counts only if another question gets another answer, and the settings that go out have
answered one search through the connector itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ringtrue.errors import BadAnswer, SearchFailed, TimedOut, Unreachable
from ringtrue.retrieve.connectors.http import Http
from ringtrue.retrieve.connectors.mapped import at, shown
from ringtrue.traffic import marked

TEXT = ("q", "query", "text", "question", "search", "term", "keywords", "input", "prompt")
COUNT = ("k", "limit", "top_k", "topK", "size", "n", "count", "rows", "per_page", "max_results", "num_results")
ASIDE = ("facets", "aggregations", "aggs", "filters", "suggestions")
"""Lists that stand beside the hits."""
HITS = ("hits", "results", "documents", "items", "docs", "matches", "records", "passages", "data", "response")
DOCUMENTS = ("doc_id", "docId", "document_id", "documentId")
IDS = (*DOCUMENTS, "id", "_id", "uuid", "key", "slug", "url", "path", "name")
PASSAGES = ("chunk_id", "chunkId", "passage_id", "passageId")
TITLES = ("title", "name", "heading", "headline")
BODIES = ("text", "content", "body", "snippet", "passage", "description", "summary")
SCORES = ("score", "_score", "similarity", "relevance", "distance")
INSIDE = ("", "document.", "doc.", "source.", "_source.", "metadata.", "payload.", "item.")
"""Where in a hit these fields may be, besides its other objects."""
NONSENSE = "qxzvk wjfpq"
PATIENCE = 5.0  # seconds for each question
SIZES = (20, 10, 5, 1)
"""Numbers of hits that the found settings are tried with; an evaluation asks for 20."""
WHO = "the endpoint"


@dataclass(frozen=True)
class Probed:
    """Settings of a connection that has answered, or all but the id."""

    settings: Mapping[str, Any]
    question: str
    hits: int
    """Documents that the search for the question found."""
    notes: tuple[str, ...] = ()
    problem: str = ""
    """Why the id is missing; empty if it is there."""


@marked("test")
def probe(url: str, question: str, access: Mapping[str, Any] = MappingProxyType({})) -> Probed:
    """Return settings with which an endpoint can be searched; raises SearchFailed with the reason if there are none.

    The address may be an example of a search: ``http://localhost:8000/search?q=quiet room&limit=10``. ``access`` has its
    credentials, as settings of a connection.
    """
    given = dict(parse_qsl(urlsplit(url).query))
    server = Http(name=WHO, url=_without(url, *TEXT, *COUNT), params={"q": "{text}"}, timeout=PATIENCE, **access)
    words = sorted((name for name, value in given.items() if not value.isdecimal()), key=lambda name: " " not in given[name])
    texts = [name for name in TEXT if name in given] or [*(name for name in words if name not in COUNT), *TEXT]
    problem, refused = "", f"{WHO} does not answer searches at this address"
    for method, name in ((method, name) for method in ("GET", "POST") for name in texts):
        asked = given.get(name) or question
        try:
            where, found = _hits(_asked(server, method, {name: asked}))
        except (TimedOut, Unreachable, BadAnswer) as failed:
            if not isinstance(failed, BadAnswer) and "answered HTTP" not in str(failed):
                raise
            refused = refused if re.search("HTTP (404|405|501)", str(failed)) else str(failed)
            continue
        changing = _changing(found, _again(server, method, {name: asked}, where))
        steady = [_kept(hit, changing) for hit in found]
        if not found:
            problem = problem or f"{WHO} found nothing for '{asked}'; give a query that has results with --question"
        elif "" in changing or (not _identified(steady) and any(_fields(found, IDS, (str, int)))):
            problem = problem or f"{WHO} gives other ids when '{asked}' is asked again, so nothing can be proven by asking"
        elif not _takes_text(server, method, name, where, steady, asked, changing):
            problem = problem or f"{WHO} gives the same answer for every value of '{name}'"
        else:
            numbers = [part for part in given if part in COUNT or (part != name and given[part].isdecimal())]
            numbers.sort(key=lambda part: part not in COUNT)
            return _proven(server, access, method, name, where, steady, numbers, asked, changing)
    raise BadAnswer(f"{problem or refused} (tried GET and POST with {', '.join(texts)})")


def _without(url: str, *names: str) -> str:
    """Return an address without some of its parameters."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    return urlunsplit(parts._replace(query=urlencode([pair for pair in pairs if pair[0] not in names])))


def _asked(server: Http, method: str, values: Mapping[str, Any]) -> Any:
    sent: dict[str, Any] = {"params": values} if method == "GET" else {"json": values}
    return server.request(method, server.url, server.deadline(), **sent)


def _changing(one: Any, other: Any, path: str = "") -> set[str]:
    """Return the paths of fields that differ between two answers to one question; the path '' if all does."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return {part for pair in zip(one, other, strict=True) for part in _changing(*pair)}
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {part for name in one for part in _changing(one[name], other.get(name), f"{path}.{name}".lstrip("."))}
    return set() if one == other else {path}


def _kept(hit: Any, without: Set[str], path: str = "") -> Any:
    """Return a hit without some of its fields, by their paths."""
    if not isinstance(hit, Mapping):
        return None if "" in without else hit
    inner = {name: f"{path}.{name}".lstrip(".") for name in hit}
    return {name: _kept(value, without - {""}, inner[name]) for name, value in hit.items() if inner[name] not in without}


def _identified(found: list[Any]) -> bool:
    """Return whether hits have an id, by its name or by being one."""
    if not found or not isinstance(found[0], Mapping):
        return bool(found) and None not in found
    return any(_fields(found, IDS, (str, int))) or _own_id([found, found]) is not None


def _takes_text(server: Http, method: str, name: str, where: str, found: list[Any], asked: str, changing: Set[str]) -> bool:
    """Return whether a field takes the question: nonsense, or the words of another hit, get another answer.

    If the name is unusual, such words must also find something: they are no legal value of a filter. Plain ids have no words,
    but each word of the question may find something.
    """
    texts = [_words(found[-1]), _words(found[len(found) // 2])]
    if not isinstance(found[0], Mapping) and " " in asked:
        texts += asked.split()[:3]
    nonsense, *others = (_again(server, method, {name: text}, where, changing) for text in (NONSENSE, *texts))
    return any(other != found for other in (nonsense, *others)) and (name in TEXT or any(others))


def _again(server: Http, method: str, values: Mapping[str, Any], where: str, changing: Set[str] = frozenset()) -> list[Any]:
    """Return the hits of another answer, without the fields that change; none if there are none where the first has them."""
    try:
        found = at(_asked(server, method, values), where, WHO, "the answer")
    except SearchFailed:
        return []
    return [_kept(hit, changing) for hit in found] if isinstance(found, list) else []


def _words(hit: Any) -> str:
    """Return the longest text in a hit, shortened to a question."""
    if not isinstance(hit, Mapping):
        return str(hit)
    return max((str(value) for value in hit.values() if isinstance(value, str)), key=len, default=NONSENSE)[:100]


def _hits(answer: Any) -> tuple[str, list[Any]]:
    """Return the path of the list of hits, and the hits, which may be none or plain ids.

    Raises BadAnswer if the answer has no such list.
    """
    lists = list(_lists(answer))
    for kind in (Mapping, str | int):
        for path, value in lists:
            if value and all(isinstance(hit, kind) and not isinstance(hit, bool) for hit in value):
                return path, value
    if not lists:
        raise BadAnswer(f"{WHO} returned {shown(answer)}, which has no list of hits")
    path, value = lists[0]
    if value:
        raise BadAnswer(f"{WHO} returned a list of {shown(value[0])}; hits must be ids or objects with an id")
    return path, []


def _lists(answer: Any, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists in an answer with their paths, the most likely first."""
    if isinstance(answer, list):
        yield path, answer
    elif isinstance(answer, Mapping) and path.count(".") < 3:
        for name in sorted(answer, key=lambda name: HITS.index(name) if name in HITS else len(HITS) + (name in ASIDE)):
            if isinstance(answer[name], list | Mapping) and "." not in name:
                yield from _lists(answer[name], f"{path}.{name}".lstrip("."))


def _fields(hits: Sequence[Any], names: Sequence[str], kinds: tuple[type, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the paths of fields that every hit has, with their values."""
    first = hits[0] if hits else {}
    objects = (f"{name}." for name, value in first.items() if isinstance(value, Mapping) and "." not in name)
    for path in (inside + name for inside in dict.fromkeys([*INSIDE, *objects]) for name in names):
        values = [at(hit, path, WHO, "a hit", default=None) if _reaches(hit, path) else None for hit in hits]
        if all(isinstance(value, kinds) and not isinstance(value, bool) and value != "" for value in values):
            yield path, values


def _reaches(hit: Any, path: str) -> bool:
    return "." not in path or isinstance(hit.get(path.rpartition(".")[0]), Mapping)


def _proven(
    server: Http,
    access: Mapping[str, Any],
    method: str,
    name: str,
    where: str,
    found: list[Any],
    given: Sequence[str],
    question: str,
    changing: Set[str],
) -> Probed:
    """Return the settings, after a search with them, or all but the id if no field is surely that.

    ``given`` are the fields with numbers in the user's own address.
    """
    asked: dict[str, str] = {name: "{text}"}
    sent = "params" if method == "GET" else "body"
    notes = []
    others = [_again(server, method, {name: text}, where, changing) for text in (question, _words(found[-1]))]
    if ranks := _ranks([found, *others]):
        rest = [[_kept(hit, ranks) for hit in hits] for hits in (found, *others)]
        if _identified(rest[0]):
            found, *others = rest
        else:
            notes.append(f"'{min(ranks)}' counts 1, 2, 3 … in the answers, so it may be the rank; correct id if it is")
    paths = _paths(found, IDS)
    if "id" not in paths and len(found) > 1 and (own := _own_id([found, *others])):
        paths = _paths(found, [own])
        notes.append(f"'{own}' is taken for the id, as it differs in each hit; correct id if it is another field")
    wanted = 1 if len(found) > 1 else 2
    counts = [*given, *COUNT]
    count = next(
        (part for part in counts if len(_again(server, method, {name: question, part: wanted}, where)) == wanted), None
    )
    if not count and len(found) == 1 and given and given[0] in COUNT:
        count = given[0]
        notes.append(f"'{count}' of your URL is taken for the number of hits; '{question}' finds one hit, too few to check it")
    if count:
        asked[count] = "{k}"
    else:
        cure = "; give a query that finds more with --question" if len(found) == 1 else ""
        tried = ", ".join(dict.fromkeys(counts))
        notes.append(f"it returns {len(found)} hits; no field found that changes this number (tried {tried}){cure}")
    options: dict[str, Any] = {"url": _without(server.url, *asked), sent: asked, "hits": where, **paths, **access}
    if "id" not in options:
        problem = f"{WHO} returned hits without an id: no field of {shown(found[0])} is surely one"
        return Probed({"kind": "http", **options}, question, len(found), tuple(notes), problem)
    connection = Http(name=WHO, timeout=PATIENCE, **options)
    for size in SIZES:
        try:
            hits = connection.search(question, k=size)
            break
        except BadAnswer as failed:
            if size == SIZES[-1] or "answered HTTP 4" not in str(failed):
                raise
    if size < SIZES[0]:
        notes.append(f"it refuses to return {SIZES[0]} hits; add k = {size} under [eval] in ringtrue.toml")
    return Probed({"kind": "http", **options}, question, len(hits), tuple(notes))


def _ranks(answers: Sequence[Sequence[Any]]) -> set[str]:
    """Return the fields with the name of an id that only count the hits of every answer."""
    if not isinstance(answers[0][0], Mapping):
        return set()
    found = [
        {path: list(map(str, values)) for path, values in _fields(hits, IDS, (str, int))} for hits in answers if len(hits) > 1
    ]

    def counts(values: list[str]) -> bool:
        return values in ([str(n + start) for n in range(len(values))] for start in (0, 1))

    return {path for path in (found[0] if found else {}) if path and all(counts(one.get(path, [""])) for one in found)}


def _own_id(answers: Sequence[Sequence[Any]]) -> str | None:
    """Return a field that only an id can be, whatever it is called: a short text or whole number, different in each hit.

    The first two answers are to one question: an id stays the same. Numbers in order in every answer are ranks or scores.
    """
    parts = (part for part in (answers[0][0], *answers[0][0].values()) if isinstance(part, Mapping))
    names = [name for part in parts for name in part if name not in (*TITLES, *BODIES, *SCORES)]
    for kind in (str, int):
        for path, values in _fields(answers[0], names, (kind,)):
            seen = [next((part for _, part in _fields(hits, [path], (kind,))), []) for hits in answers]
            words = kind is str and all(re.fullmatch(r"\S{1,100}", value) for value in values)
            mixed = kind is int and any(part not in (sorted(part), sorted(part, reverse=True)) for part in seen)
            if seen[1] == values and all(len(set(part)) == len(part) for part in seen) and (words or mixed):
                return path
    return None


def _paths(found: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the settings that say where the id (if a name fits), the passage, the score and what people read are."""
    if not isinstance(found[0], Mapping):
        return {"id": "", "score": "", **({"duplicates": "first"} if len(set(found)) < len(found) else {})}
    ids = list(_fields(found, names, (str, int)))
    path, values = ids[0] if ids else ("", [])
    several = len(set(values)) < len(values)
    of_document = path.rpartition(".")[2] in DOCUMENTS
    settings: dict[str, Any] = {"id": path} if ids else {}
    named = [field for field, _ in _fields(found, PASSAGES, (str, int)) if field != path]
    if of_document:
        named += [field for field, _ in ids[1:] if field.rpartition(".")[2] in ("id", "_id")]
    if named and (several or of_document):
        settings["chunk"] = named[0]
    elif several:
        settings["duplicates"] = "first"
    settings["score"] = score = next(_fields(found, SCORES, (int, float)), ("", []))[0]
    if score.endswith("distance"):
        settings["lower_is_better"] = True
    for setting, names in (("title", TITLES), ("text", BODIES)):
        field = next((field for field, _ in _fields(found, names, (str,)) if field != path), None)
        if field:
            settings[setting] = field
    return settings
