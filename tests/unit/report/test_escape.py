"""Text from documents and questions inside Markdown: shown, never obeyed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.report.formatting import clip, md, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b", r"a \| b"),
        ("two\nlines\r\n\tand more", "two lines and more"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("`rm -rf`", r"\`rm -rf\`"),
        ("**bold** and _soft_", r"\*\*bold\*\* and \_soft\_"),
        ("snake_case_id", "snake_case_id"),
        ("[click](http://x)", "\\[click\\](http:\u200b//x)"),
        ("ask @team", "ask @\u200bteam"),
        ("nDCG@10", "nDCG@10"),
        ("P(rel=2)@5", "P(rel=2)@\u200b5"),
        ("owner/repo#12 and #3", "owner/repo#\u200b12 and #\u200b3"),
        ("www.example.org", "www\u200b.example.org"),
        ("- item", r"\- item"),
        ("-0.25", "-0.25"),
        ("1. first", r"1\. first"),
        ("&amp; &lt;", "&amp;amp; &amp;lt;"),
        ("\u202etxt.exe", "txt.exe"),
        ("half \ud83d pair", "half pair"),
        ("bell\x07", "bell"),
        ("\\| tricky", r"\\\| tricky"),
    ],
)
def test_text_is_shown_as_it_is(text: str, shown: str) -> None:
    assert md(text) == shown


@given(st.text(max_size=200))
def test_no_text_breaks_out_of_its_cell(text: str) -> None:
    shown = md(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", shown)
    shown.encode("utf-8")
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", table((shown, shown), ()).splitlines()[0])) == 3


def test_a_long_text_says_that_it_was_cut() -> None:
    assert clip("abcdef", 4) == "abc…"
    assert md("x" * 1000).endswith("…")
    assert len(md("x" * 1000)) == 300
