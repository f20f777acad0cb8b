"""PostgreSQL as a search system: its full text search (``Postgres``) and pgvector (``Pgvector``).

Every question runs in a read-only transaction with a time limit. Question, scope and planted documents are only ever
parameters; names from the settings are quoted as identifiers. Who has a statement of his own gives it as ``sql``.
In: a question; out: a statement for ``pg_connection`` to run, and its rows.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.connectors.passages import Row, enough
from ringtrue.retrieve.connectors.pg_connection import Server, literal, name_of, psycopg
from ringtrue.retrieve.connectors.settings import Rule, Text, Weight
from ringtrue.retrieve.connectors.vectors import VectorConnector
from ringtrue.retrieve.connectors.writing import Mark, Planted, one_each
from ringtrue.retrieve.protocol import Scope, plain

LETTERS = ("A", "B", "C", "D")
DEFAULT_WEIGHTS = {"A": 1.0, "B": 0.4, "C": 0.2, "D": 0.1}
"""PostgreSQL's own weights of the four classes of a tsvector."""
METRICS = {"cosine": ("<=>", "1 - ({})"), "l2": ("<->", "-({})"), "inner_product": ("<#>", "-({})")}
"""Metric → pgvector's operator, which gives a distance, and the score made of it, where higher is better."""
Column = Text
"""A name as it is in the catalogue."""
MOST = 2**63 - 1
"""The largest number that LIMIT takes."""
Statement = tuple[str, Mapping[str, Any]]
"""A statement and its parameters."""
_PLACEHOLDER = re.compile(r"%(?:%|\(([^)]*)\)s|.?)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Database(Server):
    """What both ways to search a PostgreSQL table share."""

    QUESTION: ClassVar[str] = "text"
    """The placeholder of the question: ``text`` or ``vector``."""

    table: Column | None = None
    """``table`` or ``schema.table``, spelled as in the catalogue."""
    id: Column = "id"
    """Column with the document id."""
    chunk: Column | None = None
    """Column with the passage's id, where a document has several rows; its best row counts."""
    metadata: Column | None = None
    """JSON column in which a scope is looked up; without it a scope names columns."""
    sql: str | None = None
    """A statement of one's own with ``%(text)s`` or ``%(vector)s``, and ``%(k)s``; it returns id, score and perhaps chunk."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """Server settings that hold for each question, such as ``{"hnsw.ef_search": 100}``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.table is None) == (self.sql is None):
            raise InputError(
                f"{self.name}: has both or neither of table and sql; give a table to search, or a statement of your own"
            )
        if self.table is not None and not all(part.strip() for part in self._table()):
            raise InputError(f"{self.name}: invalid table={self.table!r}; write it like hotels or shop.hotels")
        if self.sql is not None:
            self._check_statement(self.sql)

    def _table(self) -> list[str]:
        return self.table.split(".", 1) if isinstance(self.table, str) else [""]

    def _check_statement(self, statement: str) -> None:
        named = {match[1] or match[0] for match in _PLACEHOLDER.finditer(statement)} - {"%%"}
        for name in sorted(named):
            if name not in (self.QUESTION, "k") and not name.startswith("scope."):
                raise InputError(
                    f"{self.name}: the sql holds {name!r:.40}, which is no placeholder; "
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

    def ask(self, text: str, *, k: int, scope: Scope | None) -> list[dict[str, Any]]:
        psycopg()
        parameters: dict[str, Any] = {self.QUESTION: self.asked(text)}
        if self.sql is not None:
            statement = self.sql
            parameters |= self._named_scope(self.sql, scope)
        else:
            statement = self._statement(scope, parameters)
        left = self.deadline()

        def best(count: int) -> list[Row]:
            found = self.fetch(statement, {**parameters, "k": min(count, MOST)}, session=self.session, left=left, scope=scope)
            return [{name: _plain(value) for name, value in row.items()} for row in found]

        # The statement made here collapses passages itself; one of somebody's own returns k rows, whatever they are.
        return best(k) if self.sql is None else enough(best, k, document=self._passage_of)

    @property
    def _source(self) -> str:
        return f"{name_of(*self._table())} AS document"

    @property
    def _id(self) -> str:
        return f"document.{name_of(self.id)}::text"

    def _stored(self, columns: str, ids: Sequence[str], condition: str = "TRUE") -> list[dict[str, Any]]:
        statement = f"SELECT DISTINCT {columns} FROM {self._source} WHERE {self._id} = ANY(%(ids)s::text[]) AND {condition}"
        return self.fetch(statement, {"ids": list(ids)}, session={})

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        return {row["doc_id"] for row in self._stored(f"{self._id} AS doc_id", doc_ids, self.ready())}

    @abstractmethod
    def ready(self) -> str:
        """Return the condition under which a row can be found at all: what has no vector yet is no part of the search."""

    def looks_up(self) -> bool:
        return self.table is not None

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        columns = [f"{self._id} AS doc_id"]
        for mark, name in zip(Mark._fields, self.mark_fields(), strict=True):
            if name is not None:
                columns.append(f"document.{name_of(name)}::text AS {mark}")
        rows = self._stored(", ".join(columns), ids)
        return one_each((row["doc_id"], Mark(row.get("source_hash"), row.get("tenant"))) for row in rows)

    def check_plant(self, documents: Sequence[Planted]) -> None:
        super().check_plant(documents)
        if self.table is None:
            raise InputError(f"{self.name}: a statement of one's own cannot be written to; name the table instead of sql")

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        # Delete and insert: not every table has a key that an upsert could go by.
        inserts = [self._insertion(document, own) for document, own in zip(documents, self.own(documents), strict=True)]
        self.change([self._deletion([document.id for document in documents], there), *inserts, *self.afterwards(documents)])

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        self.change([self._deletion(ids, there)])

    def own(self, documents: Sequence[Planted]) -> Sequence[Mapping[str, Any]]:
        """Return the columns that the connector fills itself, for each document."""
        return [{} for _ in documents]

    def afterwards(self, documents: Sequence[Planted]) -> list[Statement]:
        """Return what is to be done after rows were written, so that they are found."""
        return []

    def _insertion(self, document: Planted, own: Mapping[str, Any]) -> Statement:
        jsonb = import_module("psycopg.types.json").Jsonb
        row = {self.id: document.id, **({self.chunk: document.id} if self.chunk else {}), **own, **self.record(document)}
        values = {
            f"value{place}": jsonb(value) if isinstance(value, Mapping) else value for place, value in enumerate(row.values())
        }
        places = ", ".join(f"%({place})s" for place in values)
        return f"INSERT INTO {name_of(*self._table())} ({', '.join(map(name_of, row))}) VALUES ({places})", values

    def _deletion(self, ids: Sequence[str], there: Mapping[str, Mark]) -> Statement:
        """Return the statement that deletes rows with the marks that were seen; what came to be since then stays."""
        hashed = self.mark_fields()[0]
        assert hashed is not None  # check_plant has seen it
        statement = (
            f"DELETE FROM {self._source} WHERE {self._id} = ANY(%(ids)s::text[]) "
            f"AND document.{name_of(hashed)}::text = ANY(%(marks)s::text[])"
        )
        return statement, {"ids": list(ids), "marks": [there[doc_id].source_hash for doc_id in ids if doc_id in there]}

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

    def _statement(self, scope: Scope | None, parameters: dict[str, Any]) -> str:
        score, condition = self.found()
        chunk = "" if self.chunk is None else f"document.{name_of(self.chunk)}::text AS chunk, "
        conditions = [condition]
        for place, (name, value) in enumerate((scope or {}).items()):
            parameters[f"field{place}"], parameters[f"value{place}"] = plain(str(name)), plain(str(value))
            if self.metadata is not None:
                field = f"(document.{name_of(self.metadata)}::jsonb ->> %(field{place})s::text)"
                conditions.append(f"{field} = %(value{place})s::text")
            else:
                conditions.append(f"document.{name_of(plain(str(name)))} = %(value{place})s")
        return self.ranked(
            f"SELECT {self._id} AS doc_id, {chunk}({score})::float8 AS score "
            f"FROM {self._source} {self.beside()} WHERE {' AND '.join(conditions)}"
        )

    def beside(self) -> str:
        """Return what stands in FROM beside the table."""
        return ""

    def ranked(self, rows: str) -> str:
        """Return the best k of the rows, each document once where passages are known, ties by document id descending."""
        # PostgreSQL puts NaN above every number; a vector of zeros has no angle to anything.
        if self.chunk is not None:
            rows = f"SELECT DISTINCT ON (doc_id) * FROM ({rows}) AS passages WHERE score <> 'NaN'"
            rows += " ORDER BY doc_id, score DESC, chunk"
        order = 'ORDER BY score DESC, doc_id COLLATE "C" DESC LIMIT %(k)s'
        return f"SELECT * FROM ({rows}) AS found WHERE score <> 'NaN' {order}"

    @property
    def checked(self) -> str:
        """The settings that a failing statement may be mended by."""
        return "sql" if self.sql is not None else "table, id, chunk"


@dataclass(frozen=True, kw_only=True)
class Postgres(Database):
    """PostgreSQL's full text search over columns, or over a tsvector column.

    The score is ``ts_rank_cd`` as PostgreSQL gives it: good for an order, not comparable between questions.
    """

    ASKS_BLANK: ClassVar[bool] = True

    columns: Sequence[Column] = ()
    """Columns to search, where there is no tsvector column; the whole table is read for each question."""
    vector: Column | None = None
    """A tsvector column, which an index can serve."""
    language: Text = "english"
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
        if self.table is not None and bool(self.columns) == (self.vector is not None):
            raise InputError(
                f"{self.name}: has both or neither of columns and vector; give columns to search, or a tsvector column"
            )
        self._check_weights()

    def _check_weights(self) -> None:
        legal = list(self.columns) or LETTERS
        for name in self.weights:
            if name not in legal:
                raise InputError(
                    f"{self.name}: weights name '{name}', which is not searched; did you mean {nearest(name, legal)}?"
                )
        if self.columns and len(set(self._column_weights())) > len(LETTERS):
            raise InputError(f"{self.name}: the weights have more than four values; PostgreSQL tells only four apart")
        if self.weights and not any(self._classes()):
            raise InputError(f"{self.name}: all weights are 0; give at least one above 0")

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

    @property
    def checked(self) -> str:
        return "sql" if self.sql is not None else "table, id, chunk, columns, vector, language"

    def asked(self, text: str) -> str:
        return text

    def ready(self) -> str:
        return "TRUE" if self.vector is None else f"document.{name_of(self.vector)} IS NOT NULL"

    def afterwards(self, documents: Sequence[Planted]) -> list[Statement]:
        if self.vector is None or self.vector in (self.plant or {}) or self._generated():
            return []
        # A trigger may have filled it; what is still empty would never be found.
        vector = name_of(self.vector)
        made = " || ".join(
            f"setweight({self._words(f'%({name})s')}, '{weight}')" for name, weight in (("title", "A"), ("text", "B"))
        )
        statement = f"UPDATE {self._source} SET {vector} = {made} WHERE document.{vector} IS NULL AND {self._id} = %(id)s::text"
        return [(statement, {"title": plain(item.title), "text": plain(item.text), "id": item.id}) for item in documents]

    def _generated(self) -> bool:
        """Whether PostgreSQL itself makes the tsvector of each row."""
        table = literal(name_of(*self._table()).replace("%%", "%"))
        statement = (
            f"SELECT attgenerated <> '' AS made FROM pg_attribute WHERE attrelid = {table}::regclass AND attname = %(name)s"
        )
        found = self.fetch(statement, {"name": self.vector}, session={})
        return bool(found and found[0]["made"])

    def _words(self, text: str) -> str:
        return f"to_tsvector({literal(self.language)}::regconfig, {text}::text)"

    def found(self) -> tuple[str, str]:
        weights = literal("{" + ",".join(repr(weight) for weight in reversed(self._classes())) + "}")
        score = f"pg_catalog.{self.rank}({weights}::float4[], {self._vector()}, question.query, {self.normalization})"
        return score, f"{self._vector()} @@ question.query"

    def _vector(self) -> str:
        if self.vector is not None:
            return f"document.{name_of(self.vector)}"
        weights = self._column_weights()
        letters = dict(zip(sorted(set(weights), reverse=True), LETTERS, strict=False))
        texts = [self._words(f"coalesce(document.{name_of(name)}::text, '')") for name in self.columns]
        parts = [f"setweight({text}, '{letters[weight]}')" for text, weight in zip(texts, weights, strict=True)]
        return f"({' || '.join(parts)})"

    def beside(self) -> str:
        """Return the question as a tsquery, of which no part was read as an operator.

        ``websearch_to_tsquery`` and ``to_tsquery`` read operators from the question; ``plainto_tsquery`` reads none but wants
        every word. For any of the words, the question is cut into lexemes as a document is; each is quoted, and OR joins them.
        """
        if self.match == "all":
            query = f"plainto_tsquery({literal(self.language)}::regconfig, %(text)s::text)"
        else:
            quoted = r"'''' || replace(replace(word.lexeme, E'\\', E'\\\\'), '''', '''''') || ''''"
            query = f"(SELECT string_agg({quoted}, ' | ')::tsquery FROM unnest({self._words('%(text)s')}) AS word)"
        return f", (SELECT {query} AS query) AS question"


@dataclass(frozen=True, kw_only=True)
class Pgvector(Database, VectorConnector):
    """Nearest vectors of a pgvector column; the question becomes a vector by the model that made the column's.

    The score is the cosine, the negated distance (l2) or the inner product.
    """

    QUESTION: ClassVar[str] = "vector"

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

    @property
    def checked(self) -> str:
        return "sql" if self.sql is not None else "table, id, chunk, vector, and that pgvector is installed there,"

    def asked(self, text: str) -> str:
        return _written(self.query_vector(text))

    def ready(self) -> str:
        return f"document.{name_of(self.vector)} IS NOT NULL"

    def own(self, documents: Sequence[Planted]) -> Sequence[Mapping[str, Any]]:
        return [{self.vector: _written(row)} for row in self.document_vectors(documents)]

    def _distance(self) -> str:
        # The parameter has no type of its own, so that it takes the column's: vector or halfvec.
        return f"document.{name_of(self.vector)} {METRICS[self.metric][0]} %(vector)s"

    def found(self) -> tuple[str, str]:
        return METRICS[self.metric][1].format(self._distance()), self.ready()

    def ranked(self, rows: str) -> str:
        # An index answers only an order by the bare distance; by the score, every row is compared.
        return super().ranked(rows if self.exact else f"{rows} ORDER BY {self._distance()} LIMIT %(k)s")


def _written(vector: Iterable[float]) -> str:
    """Return a vector as pgvector reads it."""
    return "[" + ",".join(repr(float(value)) for value in vector) + "]"


def _plain(value: Any) -> Any:
    """Return a number or id as everybody writes them; PostgreSQL has types of its own for both."""
    return float(value) if isinstance(value, Decimal) else str(value) if isinstance(value, UUID) else value
