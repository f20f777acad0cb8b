"""Milvus: nearest vectors of a collection, by the model that made them.

The client is ``pymilvus``. It writes addresses into its log and into the text of its errors; here neither gets out.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Annotated, Any, Literal

from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, RingtrueError, Unreachable, nearest
from ringtrue.retrieve.connectors.base import OpenResource, Row, SecondsLeft, all_found, enough, field_of, readings
from ringtrue.retrieve.connectors.objects import causes
from ringtrue.retrieve.connectors.settings import Rule, Url
from ringtrue.retrieve.connectors.writing import Mark, Planted, VectorConnector, one_each
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import Scope, plain

HIGHER = {"COSINE": 1.0, "IP": 1.0, "L2": -1.0}
"""Metric of an index → what makes its number a score, where higher is better."""
MOST = 16_384
"""Hits that Milvus returns at most."""
FLOAT_VECTOR = 101
"""Type of a field of vectors of 32-bit floats, as Milvus numbers them."""
VARCHAR = 21
"""Type of a field of texts."""
TYPES: Mapping[int, tuple[type, ...]] = {
    1: (bool,),
    **dict.fromkeys((2, 3, 4, 5), (int,)),
    **dict.fromkeys((10, 11), (int, float)),
    21: (str,),
}
"""Type of a field, as Milvus numbers them → what it can be compared with."""
Name = Annotated[str, Rule(lambda name: bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)), "a name of letters, digits and _")]
NOT_LOADED = InputError, "{name}: collection '{collection}' is not loaded; load it before it is searched"
NO_RIGHT = AccessDenied, "{name} refused access; grant its user the right to search '{collection}'"
NOT_READY = Unreachable, "{name} is not ready (Milvus code {code}); try again later"
UNKNOWN = BadAnswer, "{name} answered with an error ({said:.160}, code {code}); check its settings"
REFUSALS: Mapping[Any, tuple[type[RingtrueError], str]] = {
    100: (MissingInput, "{name}: there is no collection '{collection}'{where}; check collection= and database="),
    800: (MissingInput, "{name}: there is no database '{database}'; check database="),
    **dict.fromkeys((101, 103, 106), NOT_LOADED),
    **dict.fromkeys((1400, 1401), NO_RIGHT),
    **dict.fromkeys((1, 2, 3, 4, 8, 9, 10), NOT_READY),
}
"""Code of what Milvus refuses → our error."""
NO_LOGIN = AccessDenied, "{name} refused the credentials; check the variable that token_env names, and its rights"
UNREACHABLE = Unreachable, "{name} cannot be reached ({status}); check that it runs, the address, and the certificate"
STATUSES: Mapping[str, tuple[type[RingtrueError], str]] = {
    "UNAUTHENTICATED": NO_LOGIN,
    "PERMISSION_DENIED": NO_LOGIN,
    "UNIMPLEMENTED": (BadAnswer, "{name} does not speak Milvus; check the port"),
}
"""Status of gRPC → our error."""
_quiet = threading.local()


@dataclass(frozen=True, kw_only=True)
class Milvus(VectorConnector):
    """A collection of a Milvus server. The score is the cosine, the inner product, or the negated squared distance (L2)."""

    uri: Url = field(repr=False)
    """``http://host:19530``, or ``https://`` for TLS."""
    token_env: str | None = None
    """Environment variable with ``user:password`` or an API key."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's."""
    database: str = ""
    """Database of the collection; the server's default when empty."""
    collection: Name
    """The collection, which must be loaded."""
    vector: Name | None = None
    """Field with the vectors; not needed where there is only one."""
    id: Name | None = None
    """Field with the document id; the primary key when not given."""
    chunk: Name | None = None
    """Field with the passage's id, where a document has several records; its best one counts."""
    consistency: Literal["Strong", "Bounded", "Session", "Eventually"] = "Strong"
    """'Strong' sees every record written before the question; 'Bounded', 'Session' and 'Eventually' are faster."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """What the index takes for a search, such as ``{"ef": 64}`` or ``{"nprobe": 16}``."""

    def ask(self, text: str, *, k: int, scope: Scope | None) -> list[Row]:
        if k > MOST:
            raise InputError(f"{self.name}: k={k} is more than Milvus returns; ask for {MOST} or fewer")
        vector = self.query_vector(text)
        with self._asking() as opened:
            self.check_size(opened.size, vector)
            where = opened.condition(scope, self.name)
            if self.chunk is None:
                return self._nearest(opened, vector, where, k)
            return enough(lambda count: self._nearest(opened, vector, where, min(count, MOST)), k)

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        with self._asking() as opened:

            def found(ids: Sequence[str], count: int) -> list[str]:
                rows = self._with_ids(opened, ids, [opened.id], count)
                return [str(field_of(row, opened.id, self.name, "id")) for row in rows]

            return all_found(found, doc_ids, MOST)

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        with self._asking() as opened:
            rows = self._with_ids(opened, ids, [opened.id, *self.marking()])
            return one_each((str(row[opened.id]), self.mark_of(row)) for row in rows)

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        vectors = self.document_vectors(documents)
        with self._asking() as opened:
            self.check_size(opened.size, vectors[0])
            rows = [self._row_of(opened, document, vector) for document, vector in zip(documents, vectors, strict=True)]
            self._delete(opened, [document.id for document in documents if document.id in there], there)
            opened.client.insert(self.collection, rows, timeout=opened.left())

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        with self._asking() as opened:
            self._delete(opened, ids, there)

    def _row_of(self, opened: _OpenCollection, document: Planted, vector: list[float]) -> dict[str, Any]:
        keys = [opened.id] if opened.made_keys else [opened.id, opened.key]
        row = {opened.vector: vector} | self.record(document, *keys, self.chunk, scalars=True)
        unknown = [name for name in row if name not in opened.kinds and not opened.open_ended]
        if unknown:
            raise InputError(
                f"{self.name}: plant names the field '{unknown[0]}', which collection '{self.collection}' does not have; "
                f"did you mean {nearest(unknown[0], opened.kinds)}?"
            )
        for name in keys:
            if opened.kinds.get(name, VARCHAR) != VARCHAR:
                raise InputError(
                    f"{self.name}: ids of planted documents are texts, and field '{name}' holds none; "
                    "let Milvus make the keys (auto_id) and name a text field with id="
                )
        return row

    def _delete(self, opened: _OpenCollection, ids: Sequence[str], there: Mapping[str, Mark]) -> None:
        """Delete the records of these ids by their keys, those with the marks that were seen to be ours."""
        found = self._with_ids(opened, ids, [opened.key, opened.id, *self.marking()])
        rows = [row for row in found if self.mark_of(row) == there.get(str(row[opened.id]))]
        if rows:
            # Not ids=: pymilvus puts them between quotes as they are, and an apostrophe would end one.
            keys = ", ".join(_literal(row[opened.key]) for row in rows)
            opened.client.delete(self.collection, filter=f"{opened.key} in [{keys}]", timeout=opened.left())

    def _with_ids(
        self, opened: _OpenCollection, ids: Sequence[str], names: Sequence[str], count: int = MOST
    ) -> list[dict[str, Any]]:
        """Return the fields of these names of the records with these ids."""
        where = opened.one_of(opened.id, ids)
        if not where:
            return []
        fields = list(dict.fromkeys(names))
        limits = {"limit": count, "consistency_level": "Strong", "timeout": opened.left()}
        return [dict(row) for row in opened.client.query(self.collection, filter=where, output_fields=fields, **limits)]

    def _nearest(self, opened: _OpenCollection, vector: list[float], where: str, count: int) -> list[Row]:
        names = [opened.id] if self.chunk is None else [opened.id, self.chunk]
        found = opened.client.search(
            self.collection,
            data=[vector],
            anns_field=opened.vector,
            filter=where,
            limit=count,
            output_fields=names,
            search_params={"params": dict(self.params)},
            consistency_level=self.consistency,
            timeout=opened.left(),
        )
        rows: list[Row] = []
        for hit in found[0]:
            record = hit["entity"]
            row = {"doc_id": field_of(record, opened.id, self.name, "id"), "score": HIGHER[opened.metric] * hit["distance"]}
            if self.chunk is not None:
                row["chunk"] = field_of(record, self.chunk, self.name, "chunk")
            rows.append(row)
        return rows

    @contextmanager
    def _asking(self) -> Iterator[_OpenCollection]:
        """Give the open collection for one attempt; whatever pymilvus and gRPC raise becomes our errors."""
        left = self.deadline()
        milvus_error = _pymilvus().MilvusException
        grpc: Any = import_module("grpc")
        _quiet.now = True
        try:
            kept: OpenResource[_OpenCollection] = self.kept("collection", lambda opened: opened.client.close())
            yield replace(kept.get(lambda: self._open(left)), left=left)
        except (grpc.RpcError, grpc.FutureTimeoutError, milvus_error) as problem:
            # Not chained: the original names the address.
            raise self._failure(problem, grpc) from None
        finally:
            _quiet.now = False

    def _open(self, left: SecondsLeft) -> _OpenCollection:
        """Connect and read what the collection is made of; raises InputError if it cannot be searched."""
        client = _pymilvus().MilvusClient(
            uri=self.uri,
            token=self.secret(self.token_env) or "",
            db_name=self.database,
            timeout=left(),
            dedicated=True,  # clients are shared by address and token otherwise, whatever certificates they trust
            grpc_options={
                # A new connection does not wait for the failures of an old one to be forgotten, and has all the time there is.
                "grpc.use_local_subchannel_pool": 1,
                "grpc.initial_reconnect_backoff_ms": 100,
                "grpc.min_reconnect_backoff_ms": int(self.timeout * 1000) + 1000,
            },
            **({"server_pem_path": self.ca_file} if self.ca_file else {}),
        )
        try:
            return self._described(client, left)
        except BaseException:
            client.close()
            raise

    def _described(self, client: Any, left: SecondsLeft) -> _OpenCollection:
        about = client.describe_collection(self.collection, timeout=left())
        fields = {item["name"]: item for item in about["fields"]}
        open_ended = bool(about.get("enable_dynamic_field"))
        kinds = {name: int(item["type"]) for name, item in fields.items()}
        vectors = [name for name, kind in kinds.items() if kind == FLOAT_VECTOR]
        vector = self.vector or (vectors[0] if len(vectors) == 1 else "")
        if vector not in vectors:
            asked = f"no vector field '{vector}'" if vector else f"{len(vectors)} vector fields"
            known = ", ".join(vectors) or "none"
            raise InputError(
                f"{self.name}: collection '{self.collection}' has {asked}; set vector= (of 32-bit floats: {known})"
            )
        key, keyed = next((name, item) for name, item in fields.items() if item.get("is_primary"))
        for setting, name in (("id", self.id), ("chunk", self.chunk)):
            if name is not None and name not in fields and not open_ended:
                raise MissingInput(
                    f"{self.name}: collection '{self.collection}' has no field '{name}' for {setting}; "
                    f"did you mean {nearest(name, fields)}?"
                )
        metric = self._metric(client, vector, left)
        size = int(fields[vector]["params"]["dim"])
        made_keys = bool(keyed.get("auto_id"))
        return _OpenCollection(client, left, vector, self.id or key, metric, size, kinds, open_ended, key, made_keys)

    def _metric(self, client: Any, vector: str, left: SecondsLeft) -> str:
        names = client.list_indexes(self.collection, field_name=vector, timeout=left())
        if not names:
            raise InputError(
                f"{self.name}: field '{vector}' of '{self.collection}' has no index; create one and load the collection"
            )
        metric = str(client.describe_index(self.collection, names[0], timeout=left()).get("metric_type")).upper()
        if metric not in HIGHER:
            raise InputError(
                f"{self.name}: the index of '{vector}' compares by {metric}; only {', '.join(HIGHER)} can be asked"
            )
        return metric

    def _failure(self, problem: Any, grpc: Any) -> RingtrueError:
        status = next((cause.code().name for cause in causes(problem) if isinstance(cause, grpc.RpcError)), None)
        if status == "DEADLINE_EXCEEDED" or isinstance(problem, grpc.FutureTimeoutError):
            return self.too_slow()
        code, said = getattr(problem, "code", None), " ".join(str(getattr(problem, "message", "")).split())
        if status is not None:
            kind, message = STATUSES.get(status, UNREACHABLE)
        else:
            kind, message = UNKNOWN if "should create connection" in said else REFUSALS.get(code, UNKNOWN)
        where = f" in database '{self.database}'" if self.database else ""
        facts = {"name": self.name, "collection": self.collection, "database": self.database, "where": where}
        return kind(message.format(**facts, status=str(status).lower(), said=said, code=code))


@dataclass(frozen=True)
class _OpenCollection:
    """A connection and what the collection is made of."""

    client: Any
    left: SecondsLeft
    """The seconds left of this attempt."""
    vector: str
    id: str
    metric: str
    size: int
    kinds: Mapping[str, int]
    open_ended: bool
    """Whether records may have fields that the schema does not name."""
    key: str
    """The primary key."""
    made_keys: bool
    """Whether Milvus makes the keys itself."""

    def one_of(self, name: str, values: Sequence[str]) -> str:
        """Return the filter of records with one of these ids; empty if none of them fits the field."""
        kinds = TYPES.get(self.kinds[name], ()) if name in self.kinds else (str, int)
        fitting = [item for value in values for item in readings(value) if type(item) in kinds]
        left = name if name in self.kinds else f"$meta[{_literal(name)}]"
        return f"{left} in [{', '.join(map(_literal, fitting))}]" if fitting else ""

    def condition(self, scope: Scope | None, who: str) -> str:
        """Return a scope as a filter. Its values are written as literals: placeholders exist only in later servers."""
        parts: list[str] = []
        for name, value in (scope or {}).items():
            if name in self.kinds:
                of_its_type = [item for item in readings(value) if type(item) in TYPES.get(self.kinds[name], ())]
                left = name
            elif self.open_ended:
                of_its_type, left = list(readings(value)), f"$meta[{_literal(str(name))}]"
            else:
                raise InputError(
                    f"{who} has no field '{name}' to search within; did you mean {nearest(str(name), self.kinds)}?"
                )
            if not of_its_type:
                raise InputError(f"{who}: the scope {name}={value!r} does not fit the field; write a value of its type")
            parts.append("(" + " or ".join(f"{left} == {_literal(item)}" for item in of_its_type) + ")")
        return " and ".join(parts)


def _literal(value: str | int | float | bool) -> str:
    """Return a value as Milvus reads it. JSON's escapes are Milvus' too, but for those of pairs of surrogates.

    >>> _literal('a"b')
    '"a\\\\"b"'
    """
    return json.dumps(plain(value) if isinstance(value, str) else value, ensure_ascii=False)


def _pymilvus() -> Any:
    pymilvus = library("pymilvus", "milvus")
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] == "pymilvus" and isinstance(logger, logging.Logger):
            logger.addFilter(_loud)  # added once, however often
    return pymilvus


def _loud(record: logging.LogRecord) -> bool:
    """Whether a line of pymilvus' log may be written: not those of our own calls, which show the address."""
    return not getattr(_quiet, "now", False)
