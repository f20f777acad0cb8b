"""A retriever that a request names reaches no file, no model and no address that the server's operator did not name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError
from ringtrue.retrieve import ALL, Name, admission, expression
from ringtrue.retrieve.admission import CONNECTIONS, MOMENTS, OPEN, OWN, admitted
from ringtrue.retrieve.channels.bm25 import LANGUAGES
from ringtrue.retrieve.channels.dense import FIELDS, STORAGE
from ringtrue.retrieve.channels.graph import DIRECTIONS
from ringtrue.retrieve.channels.memory import STRATEGIES
from ringtrue.retrieve.fuse import NORMS
from ringtrue.spec import show_value

OUTSIDE = (
    "/etc/passwd",
    "../../secret",
    "~/.ssh/id_rsa",
    "models/bert",
    "owner/model",
    "http://169.254.169.254/latest/meta-data",
    "file:///etc/passwd",
    "C:\\Windows\\win.ini",
    "a\0b",
    "x" * 100,
)
OWNED = ("hybrid",)
TEXTS = [
    (name, option)
    for name, row in ALL.items()
    for option, default in row.options.items()
    if isinstance(default, str) or (isinstance(default, tuple) and isinstance(default[0], str))
]
NUMBERS = [
    (name, option, default)
    for name, row in ALL.items()
    for option, default in row.options.items()
    if (name, option) not in TEXTS and not isinstance(default, bool)
]


def using(name: str, /, **options: Any) -> str:
    """Return an expression that has the name with these options, whatever kind it is of."""
    row = ALL[name]
    said = ", ".join(f"{option}={show_value(value)}" for option, value in options.items())
    if row.kind == "stage":
        return f"bm25 >> {name}({said})"
    inside = "bm25, fts5, " if row.kind == "fusion" else "bm25, " if row.of == "one" else ""
    return f"{name}({inside}{said})"


@pytest.mark.parametrize(("name", "option"), TEXTS)
def test_every_text_option_is_classified(name: str, option: str) -> None:
    """A new option that holds a text fails here until somebody says what it may hold."""
    places = [(name, option) in table for table in (OPEN, MOMENTS, OWN, CONNECTIONS)]
    assert places.count(True) == 1


@pytest.mark.parametrize(("name", "option"), TEXTS)
@pytest.mark.parametrize("value", OUTSIDE)
def test_no_text_option_takes_what_lies_outside(name: str, option: str, value: str) -> None:
    with pytest.raises(InputError):
        admitted(using(name, **{option: value}), OWNED)


@pytest.mark.parametrize(
    ("name", "option", "choices"),
    [
        ("bm25", "language", LANGUAGES),
        ("memory", "strategy", STRATEGIES),
        ("dense", "fields", FIELDS),
        ("dense", "store", STORAGE),
        ("graph", "direction", DIRECTIONS),
        ("weighted", "norm", NORMS),
    ],
)
def test_every_choice_is_admitted(name: str, option: str, choices: Iterable[str]) -> None:
    for value in choices:
        text = using(name, **{option: value})
        assert admitted(text, OWNED) == text


def test_a_new_text_option_is_closed_until_somebody_opens_it(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Name("channel", "reads a file", {"wordlist": ""})
    for table in (expression.ALL, admission.ALL):
        monkeypatch.setitem(table, "newcomer", row)  # type: ignore[arg-type]
    assert admitted("newcomer", OWNED) == "newcomer"
    with pytest.raises(InputError, match=r"newcomer\(wordlist='words'\) may not be named here"):
        admitted("newcomer(wordlist='words')", OWNED)


@pytest.mark.parametrize(("name", "option", "default"), NUMBERS)
def test_numbers_are_free_within_bounds(name: str, option: str, default: Any) -> None:
    if isinstance(default, tuple):
        assert admitted(using(name, **{option: (1.0, 2.0)}), OWNED)
        with pytest.raises(InputError, match="too large"):
            admitted(using(name, **{option: (1.0, 1e9)}), OWNED)
        return
    if (name, option) in OWN:
        with pytest.raises(InputError, match="may not be named here"):
            admitted(using(name, **{option: 7}), OWNED)
        return
    value = 3 if isinstance(default, int) else 0.5
    assert admitted(using(name, **{option: value}), OWNED)
    with pytest.raises(InputError, match="too large"):
        admitted(using(name, **{option: 10**9 if isinstance(default, int) else 1e9}), OWNED)


def test_free_options_are_names_and_numbers() -> None:
    assert admitted("bm25 >> tier(core=1.5, archive=0.5)", OWNED) == "bm25 >> tier(archive=0.5, core=1.5)"
    with pytest.raises(InputError):
        admitted("bm25 >> tier(core='/etc/passwd')", OWNED)
    with pytest.raises(InputError, match="cannot be a name"):
        admitted("bm25 >> tier(a.b.c=1.5)", OWNED)


def test_the_operators_own_retrievers_may_be_named_with_all_they_hold() -> None:
    own = (*OWNED, "bm25 >> rerank('/models/cross-encoder')")
    assert admitted("bm25 >> rerank('/models/cross-encoder')", own)
    assert admitted("rrf(bm25, fts5) >> rerank('/models/cross-encoder', depth=20)", own)
    with pytest.raises(InputError) as refusal:
        admitted("bm25 >> rerank('/models/other')", own)
    assert "/models/cross-encoder" not in str(refusal.value)  # a path of the machine is nobody's business


def test_connections_are_those_of_the_servers_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ringtrue.toml").write_text(
        "[connections.shop]\nkind = 'http'\nurl = 'http://127.0.0.1:1/'\n[connections.judge]\nkind = 'rerank'\nurl = 'http://127.0.0.1:1/'\n"
    )
    monkeypatch.chdir(tmp_path)
    assert admitted("connect('shop')", OWNED) == "connect('shop')"
    assert admitted("rrf(bm25, connect('shop')) >> rerank(connection='judge')", OWNED)
    for text in ("connect('judge')", "bm25 >> rerank(connection='shop')", "connect('elsewhere')"):
        with pytest.raises(InputError, match="is not described on the server"):
            admitted(text, OWNED)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rrf(" + ", ".join(["bm25"] * 30) + ")", "has 31 parts; 24 are allowed"),
        ("graph(" * 30 + "bm25" + ")" * 30, "has 31 parts; 24 are allowed"),
        ("(" * 60, "cannot read"),
        ("bm25" + " " * 3000, "letters; 2,000 are allowed"),
        ("bm52", "did you mean 'bm25'"),
        ("dense(fields=['title', 'title'])", "names a value twice"),
        ("", "cannot read"),
        ("bm25 +", "write it like bm25, rrf(bm25, dense) or hybrid >> mmr(0.5)"),
    ],
)
def test_what_is_too_large_or_unreadable_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(InputError) as refusal:
        admitted(text, OWNED)
    assert says in str(refusal.value)
