"""The tree of errors, its exit codes and the words that point to the nearest legal value."""

from __future__ import annotations

import re

import pytest

from ringtrue import errors
from ringtrue.errors import (
    AccessDenied,
    BadAnswer,
    CannotDecide,
    InputError,
    MissingInput,
    RingtrueError,
    SearchFailed,
    SpecError,
    TimedOut,
    Unreachable,
    Unusable,
    ValidationFailed,
    nearest,
)

CODES = {
    RingtrueError: 2,
    SpecError: 2,
    InputError: 2,
    MissingInput: 2,
    Unusable: 2,
    ValidationFailed: 2,
    CannotDecide: 3,
    SearchFailed: 3,
    Unreachable: 3,
    TimedOut: 3,
    AccessDenied: 3,
    BadAnswer: 3,
}


@pytest.mark.parametrize(("error", "code"), CODES.items(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_every_error_ends_a_command_with_its_exit_code(error: type[RingtrueError], code: int) -> None:
    assert error.exit_code == code
    assert error("told").exit_code == code


def test_the_four_exit_codes_differ() -> None:
    assert (errors.OK, errors.REGRESSION, errors.BAD_INPUT, errors.UNDECIDED) == (0, 1, 2, 3)


def test_catching_the_base_catches_every_deliberate_error() -> None:
    assert all(issubclass(error, RingtrueError) for error in CODES)
    assert issubclass(MissingInput, InputError)
    assert issubclass(Unusable, InputError)
    assert not issubclass(CannotDecide, InputError), "an undecidable comparison is not a malformed input"
    assert not issubclass(RingtrueError, ValueError | KeyError)


def test_the_tree_drawn_in_the_docstring_is_the_tree() -> None:
    drawn = dict(re.findall(r"^[ │├└─]*([A-Z]\w+) +(\d)", errors.__doc__ or "", re.MULTILINE))
    assert drawn == {error.__name__: str(code) for error, code in CODES.items()}
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert defined == set(drawn)


def test_an_error_prints_as_its_message() -> None:
    assert str(InputError("run.txt:3: 'abc' is not a number; write one like 12.5")).startswith("run.txt:3: ")


@pytest.mark.parametrize(
    ("value", "legal", "expected"),
    [
        ("grde", ["grade", "doc_id"], "'grade'"),
        ("GRADE", ["grade", "doc_id"], "'grade'"),
        ("ndgc", ["AP", "nDCG", "RR"], "'nDCG'"),
        ("exlude", ["exclude", "zero", "one"], "'exclude'"),
        ("hit", ["hit", "hits", "his", "hitrate"], "'hit', 'hits' or 'his'"),
        ("zzzz", ["a", "b", "c", "d"], "'a', 'b', 'c' or 'd'"),
        ("zzzz", [str(number) for number in range(20)], "'0', '1' or '2'"),
        ("zzzz", ["a", "b"], "'a' or 'b'"),
        ("x", ["one"], "'one'"),
        ("a", ["a", "a"], "'a'"),
    ],
)
def test_nearest_quotes_the_closest_legal_values_or_all_when_none_is_close(value: str, legal: list[str], expected: str) -> None:
    assert nearest(value, legal) == expected


def test_nearest_takes_any_iterable_and_a_count() -> None:
    assert nearest("abc", iter(["abc", "abd", "abe"]), count=1) == "'abc'"
