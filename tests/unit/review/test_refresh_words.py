"""What a refresh lacks is told in numbers and nouns that go together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ringtrue.review.refresh import _shortcomings


@pytest.mark.parametrize(
    ("new", "said", "left"),
    [
        (1, "only 1 new question with documents", "1 new query replaces none"),
        (2, "only 2 new questions with documents", "2 new queries replace none"),
    ],
)
def test_one_question_is_no_questions(new: int, said: str, left: str) -> None:
    proposal: Any = SimpleNamespace(new=("q",) * new, retire=())
    found = _shortcomings(proposal, 20, 30.0, first=False)
    assert said in found[0]
    assert left in found[1]
