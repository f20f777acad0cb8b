"""A field of an answer is written once: REST, the client and the store take it from the record."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import TypeAdapter
from sqlalchemy import MetaData, create_engine

from ringtrue import answers
from ringtrue.answers import KeptJudgment, ListedFlag
from ringtrue.client.wire import read
from ringtrue.service.models import Page, record_from
from ringtrue.store import DEFAULT_PROJECT
from ringtrue.store.tables import JUDGMENT, Form

RECORDS = [kind for kind in map(partial(getattr, answers), dir(answers)) if is_dataclass(kind)]


@dataclass(frozen=True, slots=True)
class Judgment(KeptJudgment):
    """A judgment with one field more than today."""

    reviewed_at: str | None = None
    """When somebody looked at it again."""


@dataclass(frozen=True, slots=True)
class JudgmentRow(Judgment):
    """That judgment as the store has it."""

    project: str = DEFAULT_PROJECT


ROW = JudgmentRow("q1", "d1", 3, "manual", "2026-03-01T12:00:00.000000Z", metadata={"key": "pool"}, reviewed_at="2026-03-02")


def _rest(answer: Any, kind: Any) -> tuple[Any, dict[str, Any]]:
    """Return what a route answers, and the schemas that describe it."""
    app = FastAPI()
    app.add_api_route("/", lambda: answer, response_model=kind)
    with TestClient(app) as client:
        return client.get("/").json(), client.get("/openapi.json").json()["components"]["schemas"]


def test_a_new_field_reaches_rest_and_the_client() -> None:
    told, schemas = _rest(Page[Judgment](items=[ROW], next=None), Page[Judgment])
    assert told["items"][0]["reviewed_at"] == "2026-03-02"
    assert schemas["Judgment"]["properties"]["reviewed_at"]["description"] == "When somebody looked at it again."
    assert "reviewed_at" in schemas["Judgment"]["required"]
    assert read(Judgment, told["items"][0]) == record_from(Judgment, ROW)


def test_a_new_field_reaches_the_store() -> None:
    metadata = MetaData()
    form = Form(JudgmentRow, "eval_judgments", JUDGMENT.key, renamed=JUDGMENT.renamed, metadata=metadata)
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(form.table.insert(), form.rows([ROW]))
        (row,) = connection.execute(form.table.select()).mappings()
    assert form.read(row) == JudgmentRow(**{**_values(ROW), "reviewed_at": "2026-03-02T00:00:00.000000Z"})


def _values(record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


def test_an_answer_has_only_the_fields_of_its_own_record() -> None:
    told, schemas = _rest(ROW, Judgment)
    assert "project" not in told
    assert schemas["Judgment"]["additionalProperties"] is False


def test_inherited_fields_keep_their_descriptions() -> None:
    described = TypeAdapter(ListedFlag).json_schema(mode="serialization")["properties"]
    assert described["rollout"]["description"] == "Percent of identities."
    assert "default" not in described["rollout"]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_every_record_describes_itself_and_requires_every_field(kind: Any) -> None:
    schema = TypeAdapter(kind).json_schema(mode="serialization")
    assert schema["description"]
    assert schema["required"] == [one.name for one in fields(kind)]


def test_a_record_from_sources_takes_the_first_that_has_a_field() -> None:
    @dataclass
    class Other:
        relevance: int = 1
        annotator: str = "bo"
        extra: dict[str, Any] = field(default_factory=dict)

    found = record_from(KeptJudgment, ROW, Other(), confidence=0.5)
    assert (found.relevance, found.annotator, found.confidence) == (3, "", 0.5)


def test_the_records_need_only_the_standard_library() -> None:
    code = "import sys, ringtrue.answers; print([name for name in ('pydantic', 'httpx2', 'numpy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_client_has_every_record() -> None:
    """What methods return is public: a caller can name it in a signature."""
    from ringtrue import client

    assert all(getattr(client, name) is getattr(answers, name) for name in dir(answers))
