"""Settings for a JSON endpoint, found by asking it: which fields take the question and the number of hits, where the hits are.

Nothing is guessed in silence: a field counts only if another question gets another answer, and the settings that go out have
answered one search through the connector itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ringtrue.errors import BadAnswer, SearchFailed, TimedOut, Unreachable
from ringtrue.retrieve.connectors.http import Http, at, shown
from ringtrue.traffic import marked

TEXT = ("q", "query", "text", "question", "search", "term", "keywords", "input", "prompt")
COUNT = ("k", "limit", "top_k", "topK", "size", "n", "count", "rows", "per_page", "max_results", "num_results")
ASIDE = ("facets", "aggregations", "aggs", "filters", "suggestions")
"""Lists that stand beside the hits."""
HITS = ("hits", "results", "documents", "items", "docs", "matches", "records", "passages", "data", "response")
DOCUMENTS = ("doc_id", "docId", "document_id", "documentId")
IDS = (
    *DOCUMENTS,
    *("id", "_id", "uuid", "guid", "uid", "key", "ref", "sku", "ean", "isbn", "doi", "code", "slug", "url", "path", "name"),
)
PASSAGES = ("chunk_id", "chunkId", "passage_id", "passageId")
TITLES = ("title", "name", "heading", "headline")
BODIES = ("text", "content", "body", "snippet", "passage", "description", "summary")
SCORES = ("score", "_score", "similarity", "relevance", "distance")
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
    for method, name in product(("GET", "POST"), texts):
        asked = given.get(name) or question
        field = _Field(server, method, name)
        try:
            where, found = _hits(field.answer(asked))
        except (TimedOut, Unreachable, BadAnswer) as failed:
            if not isinstance(failed, BadAnswer) and "answered HTTP" not in str(failed):
                raise
            refused = refused if re.search("HTTP (404|405|501)", str(failed)) else str(failed)
            continue
        ids = _ids(found)
        if not found:
            problem = problem or f"{WHO} found nothing for '{asked}'; give a query that has results with --question"
        elif ids != _ids(field.hits(asked, where)):
            problem = problem or f"{WHO} gives other ids when '{asked}' is asked again, so nothing can be proven by asking"
        elif not field.takes_text(where, found, asked):
            problem = problem or f"{WHO} gives the same answer for every value of '{name}'"
        else:
            numbers = [part for part in given if part in COUNT or (part != name and given[part].isdecimal())]
            return _proven(field, access, where, found, sorted(numbers, key=lambda part: part not in COUNT), asked)
    raise BadAnswer(f"{problem or refused} (tried GET and POST with {', '.join(texts)})")


def _without(url: str, *names: str) -> str:
    """Return an address without some of its parameters."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    return urlunsplit(parts._replace(query=urlencode([pair for pair in pairs if pair[0] not in names])))


@dataclass(frozen=True)
class _Field:
    """A field of the request that may take the question."""

    server: Http
    method: str
    name: str

    def answer(self, text: str, **more: Any) -> Any:
        """Return the whole answer to a question."""
        sent = {"params" if self.method == "GET" else "json": {self.name: text, **more}}
        return self.server.request(self.method, self.server.url, self.server.deadline(), **sent)

    def hits(self, text: str, where: str, **more: Any) -> list[Any]:
        """Return the hits of another answer; none if there are none if the first has them."""
        try:
            found = at(self.answer(text, **more), where, WHO, "the answer")
        except SearchFailed:
            return []
        return found if isinstance(found, list) else []

    def takes_text(self, where: str, found: list[Any], asked: str) -> bool:
        """Return whether the field takes the question: nonsense, or the words of another hit, get another answer.

        If the name is unusual, such words must also find something: they are not legal values of a filter. Plain ids have no
        words, but each word of the question may find something.
        """
        texts = [_words(found[-1]), _words(found[len(found) // 2])]
        if not isinstance(found[0], Mapping) and " " in asked:
            texts += asked.split()[:3]
        answers = [_ids(self.hits(text, where)) for text in (NONSENSE, *texts)]
        return any(ids != _ids(found) for ids in answers) and (self.name in TEXT or any(answers[1:]))


def _ids(hits: list[Any]) -> list[Any]:
    """Return the ids of hits, by a usual name; else the hits as they are."""
    return next((values for _, values in _fields(hits, IDS, (str, int)) if not _count(values)), hits)


def _count(values: list[Any]) -> bool:
    """Return whether values only count the hits, as ranks do."""
    return len(values) > 1 and list(map(str, values)) in ([str(n + start) for n in range(len(values))] for start in (0, 1))


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
    """Yield the paths of fields that every hit has, itself or in an object, with their values."""
    if not hits or not all(isinstance(hit, Mapping) for hit in hits):
        return
    objects = [name for name, value in hits[0].items() if isinstance(value, Mapping) and "." not in name]
    for inside, name in product(("", *objects), names):
        parts = [hit.get(inside) or {} for hit in hits] if inside else hits
        values = [part.get(name) if isinstance(part, Mapping) else None for part in parts]
        if all(isinstance(value, kinds) and not isinstance(value, bool) and value != "" for value in values):
            yield f"{inside}.{name}".lstrip("."), values


def _proven(
    field: _Field, access: Mapping[str, Any], where: str, found: list[Any], given: Sequence[str], question: str
) -> Probed:
    """Return the settings, after a search with them, or all but the id if no field is surely that.

    ``given`` are the fields with numbers in the user's own address.
    """
    asked: dict[str, str] = {field.name: "{text}"}
    notes = []
    paths = _paths(found)
    if _count([at(hit, paths.get("id", ""), WHO, "a hit") for hit in found]):
        notes.append(f"'{paths['id']}' counts 1, 2, 3 … in the answer, so it may be the rank; correct id if it is")
    wanted = 1 if len(found) > 1 else 2
    counts = list(dict.fromkeys([*given, *COUNT]))
    count = next((part for part in counts if len(field.hits(question, where, **{part: wanted})) == wanted), None)
    if not count and len(found) == 1 and given and given[0] in COUNT:
        count = given[0]
        notes.append(f"'{count}' of your URL is taken for the number of hits; '{question}' finds one hit, too few to check it")
    if count:
        asked[count] = "{k}"
    else:
        cure = "; give a query that finds more with --question" if len(found) == 1 else ""
        tried = ", ".join(counts)
        notes.append(f"it returns {len(found)} hits; no field found that changes this number (tried {tried}){cure}")
    sent = "params" if field.method == "GET" else "body"
    options: dict[str, Any] = {"url": _without(field.server.url, *asked), sent: asked, "hits": where, **paths, **access}
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


def _paths(found: Sequence[Any]) -> dict[str, Any]:
    """Return the settings that say where the id (if a name fits), the passage, the score and what people read are."""
    if not isinstance(found[0], Mapping):
        return {"id": "", "score": "", **({"duplicates": "first"} if len(set(found)) < len(found) else {})}
    ids = sorted(_fields(found, IDS, (str, int)), key=lambda one: _count(one[1]))
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
