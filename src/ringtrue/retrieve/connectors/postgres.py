"""PostgreSQL as a search system: its full text search (``Postgres``) and pgvector (``Pgvector``).

Every question runs in a read-only transaction with a time limit. Question, scope and planted documents are only ever
parameters; names from the settings are quoted as identifiers. Who has a statement of his own gives it as ``sql``.
In: a question; out: a statement for ``pg_connection`` to run, and its rows.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.connectors.base import Row, enough
from ringtrue.retrieve.connectors.pg_connection import Server
from ringtrue.retrieve.connectors.settings import Rule, Text, Weight
from ringtrue.retrieve.connectors.writing import Mark, Planted, VectorConnector, one_each
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import Scope, plain

LETTERS = ("A", "B", "C", "D")
DEFAULT_WEIGHTS = {"A": 1.0, "B": 0.4, "C": 0.2, "D": 0.1}
"""PostgreSQL's own weights of the four classes of a tsvector."""
METRICS = {"cosine": ("<=>", "1 - ({})"), "l2": ("<->", "-({})"), "inner_product": ("<#>", "-({})")}
"""Metric → pgvector's operator, which gives a distance, and the score made of it, where higher is better."""
Column = Text
"""A name as it is in the catalogue."""
PLAIN: Mapping[type, Callable[[Any], Any]] = {Decimal: float, UUID: str}
"""PostgreSQL's own types of numbers and ids → how everybody writes them."""
MOST = 2**63 - 1
"""The largest number that LIMIT takes."""
_ONE_OF = "document.{id}::text = ANY(%(ids)s::text[])"
_PLACEHOLDER = re.compile(r"%(?:%|\(([^)]*)\)s|.?)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Database(Server):
    """What both ways to search a PostgreSQL table share."""

    QUESTION: ClassVar[str]
    """The placeholder of the question."""
    CHECKED: ClassVar[str]
    """The settings that a failing search of a table may be mended by."""

    table: Column | None = None
    """``table`` or ``schema.table``, spelled as in the catalogue."""
    id: Column = "id"
    """Column with the document id."""
    chunk: Column | None = None
    """Column with the passage's id, where a document has several rows; its best row counts."""
    vector: Column | None = None
    """Column with what is compared: a tsvector, or an embedding."""
    metadata: Column | None = None
    """JSON column in which a scope is looked up; without it a scope names columns."""
    sql: str | None = None
    """A statement of one's own with ``%(text)s`` or ``%(vector)s``, and ``%(k)s``; it returns id, score and perhaps chunk."""
    session: Annotated[Mapping[str, Any], Rule(lambda _: True, 'a table like {"hnsw.ef_search" = 100}')] = field(
        default_factory=dict
    )
    """Server settings that hold for each question, such as ``{"hnsw.ef_search": 100}``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse(
            (
                (self.table is None) == (self.sql is None),
                "has both or neither of table and sql; give a table to search, or a statement of your own",
            ),
            (
                self.table is not None and not all(part.strip() for part in self._table()),
                f"invalid table={self.table!r}; write it like hotels or shop.hotels",
            ),
        )
        if self.sql is not None:
            self._check_statement(self.sql)

    def _table(self) -> list[str]:
        return self.table.split(".", 1) if isinstance(self.table, str) else [""]

    def _check_statement(self, statement: str) -> None:
        named = {match[1] or match[0] for match in _PLACEHOLDER.finditer(statement)} - {"%%"}
        for name in sorted(named):
            if name not in (self.QUESTION, "k") and not name.startswith("scope."):
                raise InputError(
                    f"{self.name}: the sql holds {name!r:.40}, which is not a placeholder; "
                    f"write %({self.QUESTION})s, %(k)s or %(scope.NAME)s, and %% for a percent sign"
                )
        for name in (self.QUESTION, "k"):
            if name not in named:
                raise InputError(
                    f"{self.name}: the sql never uses %({name})s; write it where it belongs, LIMIT %(k)s at the end"
                )

    @abstractmethod
    def asked(self, text: str) -> str:
        """Return the question as the parameter it becomes."""

    @abstractmethod
    def found(self) -> tuple[str, str]:
        """Return (score, condition) over the row ``document`` and the parameter of the question."""

    def names(self) -> dict[str, Any]:
        """Return what stands for the names in braces of a statement."""
        source_hash, tenant = self.mark_fields()
        columns = {"id": self.id, "chunk": self.chunk, "vector": self.vector, "metadata": self.metadata}
        columns |= {"source_hash": source_hash, "tenant": tenant}
        return {"table": _named(*self._table())} | {key: _named(name) for key, name in columns.items() if name is not None}

    def composed(self, statement: str, **further: Any) -> Any:
        """Return a statement with names from the settings as quoted identifiers, ``{table}`` or ``{id}``."""
        return _sql().SQL(statement).format(**self.names(), **further)

    def ask(self, text: str, *, k: int, scope: Scope | None) -> list[dict[str, Any]]:
        parameters: dict[str, Any] = {self.QUESTION: self.asked(text)}
        if self.sql is not None:
            statement: Any = self.sql
            parameters |= self._named_scope(self.sql, scope)
        else:
            statement = self._statement(scope, parameters)
        left = self.deadline()

        def best(count: int) -> list[Row]:
            found = self.fetch(statement, {**parameters, "k": min(count, MOST)}, session=self.session, left=left, scope=scope)
            return [{key: PLAIN.get(type(value), lambda same: same)(value) for key, value in row.items()} for row in found]

        # The statement made here collapses passages itself; one of somebody's own returns k rows, whatever they are.
        return best(k) if self.sql is None else enough(best, k, document=self._passage_of)

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        found = f"SELECT DISTINCT document.{{id}}::text AS doc_id FROM {{table}} AS document WHERE {_ONE_OF} AND {self.ready()}"
        return {row["doc_id"] for row in self.fetch(self.composed(found), {"ids": list(doc_ids)})}

    def ready(self) -> str:
        """Return the condition under which a row can be found at all: what has no vector yet is not part of the search."""
        return "TRUE" if self.vector is None else "document.{vector} IS NOT NULL"

    def looks_up(self) -> bool:
        return self.table is not None

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        marks = zip(Mark._fields, self.mark_fields(), strict=True)
        columns = ["document.{id}::text AS doc_id", *(f"document.{{{mark}}}::text AS {mark}" for mark, name in marks if name)]
        statement = self.composed(f"SELECT {', '.join(columns)} FROM {{table}} AS document WHERE {_ONE_OF}")
        rows = self.fetch(statement, {"ids": list(ids)})
        return one_each((row["doc_id"], Mark(row.get("source_hash"), row.get("tenant"))) for row in rows)

    def check_plant(self, documents: Sequence[Planted]) -> None:
        super().check_plant(documents)
        if self.table is None:
            raise InputError(f"{self.name}: a statement of one's own cannot be written to; name the table instead of sql")

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        rows = [self._row_of(document, own) for document, own in zip(documents, self.own(documents), strict=True)]
        # Delete and insert: not every table has a key that an upsert could go by.
        statements = [self._deletion([document.id for document in documents], there)]
        statements += [self._insertion(row) for row in rows]
        statements += self.afterwards(documents)
        self.change(statements)

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        self.change([self._deletion(ids, there)])

    def own(self, documents: Sequence[Planted]) -> Sequence[Mapping[str, Any]]:
        """Return the columns that the connector fills itself, for each document."""
        return [{} for _ in documents]

    def afterwards(self, documents: Sequence[Planted]) -> list[tuple[Any, Mapping[str, Any]]]:
        """Return what is to be done after rows were written, so that they are found."""
        return []

    def _row_of(self, document: Planted, own: Mapping[str, Any]) -> dict[str, Any]:
        from psycopg.types.json import Jsonb

        record = {**own, **self.record(document, self.id, self.chunk)}
        return {name: Jsonb(value) if isinstance(value, Mapping) else value for name, value in record.items()}

    def _insertion(self, row: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        sql = _sql()
        values = {f"value{place}": value for place, value in enumerate(row.values())}
        columns, given = sql.SQL(", ").join(map(_named, row)), sql.SQL(", ").join(map(sql.Placeholder, values))
        return self.composed("INSERT INTO {table} ({columns}) VALUES ({given})", columns=columns, given=given), values

    def _deletion(self, ids: Sequence[str], there: Mapping[str, Mark]) -> tuple[Any, Mapping[str, Any]]:
        """Return the statement that deletes rows with the marks that were seen; what came to be since then stays."""
        gone = f"DELETE FROM {{table}} AS document WHERE {_ONE_OF} AND document.{{source_hash}}::text = ANY(%(marks)s::text[])"
        marks = [there[doc_id].source_hash for doc_id in ids if doc_id in there]
        return self.composed(gone), {"ids": list(ids), "marks": marks}

    def _passage_of(self, row: Row) -> Any:
        """Return the document of a row that is a passage; a row that is none counts by itself, so that no more are fetched."""
        if row.get("chunk") is None and self.duplicates == "error":
            return object()
        return next((str(row[name]) for name in ("doc_id", "id", "_id", "document_id") if name in row), None)

    def _named_scope(self, statement: str, scope: Scope | None) -> dict[str, str | None]:
        """Return the scope for a statement of one's own; what the scope leaves open is NULL there."""
        wanted = {match[1] for match in _PLACEHOLDER.finditer(statement) if match[1] and match[1].startswith("scope.")}
        for name in scope or {}:
            if f"scope.{name}" not in wanted:
                raise InputError(
                    f"{self.name}: the sql takes no scope '{name}'; write %(scope.{name})s into it, or search without"
                )
        return {name: plain(str(scope[name[6:]])) if scope and name[6:] in scope else None for name in wanted}

    def _statement(self, scope: Scope | None, parameters: dict[str, Any]) -> Any:
        score, condition = self.found()
        columns = ["document.{id}::text AS doc_id", *(["document.{chunk}::text AS chunk"] if self.chunk is not None else [])]
        conditions, fields = [condition], {}
        for place, (name, value) in enumerate((scope or {}).items()):
            parameters[f"field{place}"], parameters[f"value{place}"] = plain(str(name)), plain(str(value))
            fields[f"field{place}"] = _named(plain(str(name)))
            if self.metadata is not None:
                conditions.append(f"(document.{{metadata}}::jsonb ->> %(field{place})s::text) = %(value{place})s::text")
            else:
                conditions.append(f"document.{{field{place}}} = %(value{place})s")
        rows = f"SELECT {', '.join(columns)}, ({score})::float8 AS score FROM {{table}} AS document{self.beside()}"
        return self.composed(self.ranked(f"{rows} WHERE {' AND '.join(conditions)}"), **fields)

    def beside(self) -> str:
        """Return what stands in FROM beside the table."""
        return ""

    def ranked(self, rows: str) -> str:
        """Return the best k of the rows, each document once where passages are known, ties by document id descending."""
        # PostgreSQL puts NaN above every number; a vector of zeros has no angle to anything.
        if self.chunk is not None:
            best = f"SELECT DISTINCT ON (doc_id) * FROM ({rows}) AS passages WHERE score <> 'NaN'"
            rows = f"{best} ORDER BY doc_id, score DESC, chunk"
        return f"SELECT * FROM ({rows}) AS f WHERE score <> 'NaN' ORDER BY score DESC, doc_id COLLATE \"C\" DESC LIMIT %(k)s"

    @property
    def checked(self) -> str:
        """The settings that a failing statement may be mended by."""
        return self.CHECKED if self.sql is None else "sql"


@dataclass(frozen=True, kw_only=True)
class Postgres(Database):
    """PostgreSQL's full text search over columns, or over a tsvector column.

    The score is ``ts_rank_cd`` as PostgreSQL gives it: good for an order, not comparable between questions.
    """

    QUESTION: ClassVar[str] = "text"
    CHECKED: ClassVar[str] = "table, id, chunk, columns, vector, language"

    columns: Annotated[Sequence[Column], Rule(lambda _: True, "a list of columns like ['title', 'body']")] = ()
    """Columns to search, where there is no tsvector column; the whole table is read for each question."""
    vector: Column | None = None
    """A tsvector column, which an index can serve."""
    language: Annotated[
        str, Rule(lambda name: bool(name.strip()), "the name of a text search configuration, like 'english' or 'simple'")
    ] = "english"
    """Text search configuration (regconfig): it decides on stems and stop words, and must be that of the tsvector column."""
    weights: Mapping[str, Weight] = field(default_factory=dict)
    """Weight of each column, at most four different ones; for a tsvector column, of each of its classes A, B, C, D."""
    match: Literal["any", "all"] = "any"
    """'any': a document needs one word of the question; 'all': it needs every one."""
    rank: Literal["ts_rank_cd", "ts_rank"] = "ts_rank_cd"
    """'ts_rank_cd' (how close the words stand) or 'ts_rank' (how often they come)."""
    normalization: Annotated[int, Rule(lambda value: 0 <= value < 64, "a sum of 1, 2, 4, 8, 16 and 32, or 0")] = 0
    """How the length of a document counts, as PostgreSQL's ranking functions number it; 0: not at all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        legal = list(self.columns) or LETTERS
        unknown = next((name for name in self.weights if name not in legal), "")
        self.refuse(
            (
                self.table is not None and bool(self.columns) == (self.vector is not None),
                "has both or neither of columns and vector; give columns to search, or a tsvector column",
            ),
            (unknown, f"weights name '{unknown}', which is not searched; did you mean {nearest(unknown, legal)}?"),
            (
                self.columns and len(set(self._column_weights())) > len(LETTERS),
                "the weights have more than four values; PostgreSQL tells only four apart",
            ),
        )
        self.refuse((self.weights and not any(self._classes()), "all weights are 0; give at least one above 0"))

    def _column_weights(self) -> list[float]:
        return [float(self.weights.get(name, 1.0)) for name in self.columns]

    def _classes(self) -> list[float]:
        """Return the weights of the classes A to D; PostgreSQL takes none above 1."""
        if self.columns:
            values = sorted(set(self._column_weights()), reverse=True)
            values += [0.0] * (len(LETTERS) - len(values))
        else:
            values = [float(self.weights.get(letter, DEFAULT_WEIGHTS[letter])) for letter in LETTERS]
        largest = max(*values, 0.0)
        return [value / largest for value in values] if largest > 1 or (self.columns and largest) else values

    def asked(self, text: str) -> str:
        return text

    def names(self) -> dict[str, Any]:
        weights = "{" + ",".join(repr(weight) for weight in reversed(self._classes())) + "}"
        columns = {f"column{place}": _named(name) for place, name in enumerate(self.columns)}
        return super().names() | columns | {"language": _quoted(self.language), "weights": _quoted(weights)}

    def afterwards(self, documents: Sequence[Planted]) -> list[tuple[Any, Mapping[str, Any]]]:
        if self.vector is None or self.vector in (self.plant or {}) or self._generated():
            return []
        # A trigger may have filled it; what is still empty would never be found.
        statement = self.composed(
            "UPDATE {table} AS document SET {vector} = setweight(to_tsvector({language}::regconfig, %(title)s::text), 'A')"
            " || setweight(to_tsvector({language}::regconfig, %(text)s::text), 'B')"
            " WHERE document.{vector} IS NULL AND document.{id}::text = %(id)s::text"
        )
        texts = [(document.id, plain(document.title), plain(document.text)) for document in documents]
        return [(statement, {"id": doc_id, "title": title, "text": text}) for doc_id, title, text in texts]

    def _generated(self) -> bool:
        """Whether PostgreSQL itself makes the tsvector of each row."""
        table = _sql().Literal(_named(*self._table()).as_string(None))
        statement = (
            "SELECT attgenerated <> '' AS made FROM pg_attribute WHERE attrelid = {place}::regclass AND attname = %(name)s"
        )
        found = self.fetch(self.composed(statement, place=table), {"name": self.vector})
        return bool(found and found[0]["made"])

    def found(self) -> tuple[str, str]:
        vector = "document.{vector}" if self.vector is not None else self._of_columns()
        score = f"pg_catalog.{self.rank}({{weights}}::float4[], {vector}, question.query, {self.normalization})"
        return score, f"{vector} @@ question.query"

    def _of_columns(self) -> str:
        """Return the tsvector of the columns, each in the class of its weight."""
        weights = self._column_weights()
        values = sorted(set(weights), reverse=True)
        parts = [
            f"setweight(to_tsvector({{language}}::regconfig, coalesce(document.{{column{place}}}::text, '')), "
            f"'{LETTERS[values.index(weight)]}')"
            for place, weight in enumerate(weights)
        ]
        return f"({' || '.join(parts)})"

    def beside(self) -> str:
        """Return the question as a tsquery, of which no part was read as an operator.

        ``websearch_to_tsquery`` and ``to_tsquery`` read operators from the question; ``plainto_tsquery`` reads none but wants
        every word. For any of the words, the question is cut into lexemes as a document is; each is quoted, and OR joins them.
        """
        query = "plainto_tsquery({language}::regconfig, %(text)s::text)"
        if self.match == "any":
            quoted = r"'''' || replace(replace(word.lexeme, E'\\', E'\\\\'), '''', '''''') || ''''"
            lexemes = "unnest(to_tsvector({language}::regconfig, %(text)s::text)) AS word"
            query = f"(SELECT string_agg({quoted}, ' | ')::tsquery FROM {lexemes})"
        return f", (SELECT {query} AS query) AS question"


@dataclass(frozen=True, kw_only=True)
class Pgvector(Database, VectorConnector):
    """Nearest vectors of a pgvector column; the question becomes a vector by the model that made the column's.

    The score is the cosine, the negated distance (l2) or the inner product.
    """

    QUESTION: ClassVar[str] = "vector"
    CHECKED: ClassVar[str] = "table, id, chunk, vector, and that pgvector is installed there,"

    vector: Column = "embedding"
    """Column of type vector or halfvec."""
    metric: Literal["cosine", "l2", "inner_product"] = "cosine"
    """'cosine', 'l2' or 'inner_product'."""
    exact: bool = True
    """True compares every row. False lets an index of the column answer, which may miss some."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.exact and self.chunk is not None:
            raise InputError(
                f"{self.name}: exact=False cannot collapse passages; leave chunk or exact out, or give your own sql"
            )

    def asked(self, text: str) -> str:
        return _written(self.query_vector(text))

    def own(self, documents: Sequence[Planted]) -> Sequence[Mapping[str, Any]]:
        return [{self.vector: _written(row)} for row in self.document_vectors(documents)]

    def _distance(self) -> str:
        # The parameter has no type of its own, so that it takes the column's: vector or halfvec.
        return f"document.{{vector}} {METRICS[self.metric][0]} %(vector)s"

    def found(self) -> tuple[str, str]:
        return METRICS[self.metric][1].format(self._distance()), self.ready()

    def ranked(self, rows: str) -> str:
        # An index answers only an order by the bare distance; by the score, every row is compared.
        return super().ranked(rows if self.exact else f"{rows} ORDER BY {self._distance()} LIMIT %(k)s")


def _sql() -> Any:
    return library("psycopg.sql", "postgres")


def _written(vector: Iterable[float]) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(repr(float(value)) for value in vector) + "]"


def _named(*parts: str) -> Any:
    """Return a name as it stands in a statement; a percent sign in it would pass for a placeholder."""
    return _sql().Identifier(*(part.replace("%", "%%") for part in parts))


def _quoted(text: str) -> Any:
    return _sql().Literal(text.replace("%", "%%"))
