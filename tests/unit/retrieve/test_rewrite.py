"""A retriever restricted to some of its channels."""

from __future__ import annotations

import pytest

from ringtrue.errors import InputError
from ringtrue.retrieve import canonical, channels_in, only


@pytest.mark.parametrize(
    ("text", "channels", "left"),
    [
        ("hybrid", ["bm25"], "bm25"),
        ("hybrid", ["bm25", "dense"], "weighted(bm25, dense, depth=50, norm='z', w=[0.5, 0.5])"),
        ("rrf(bm25(title=2), dense, fts5) >> top(5)", ["bm25"], "bm25(title=2)"),
        ("rrf(bm25, dense, fts5, k=10, w=[1, 2, 3])", ["bm25", "fts5"], "rrf(bm25, fts5, k=10, w=[1, 3])"),
        ("rrf(weighted(bm25, dense) >> top(9), fts5)", ["bm25", "fts5"], "rrf(bm25 >> top(9), fts5)"),
        ("bm25", ["bm25"], "bm25"),
        ("graph(bm25)", ["graph"], "graph(bm25)"),
    ],
)
def test_a_retriever_restricted_to_some_of_its_channels(text: str, channels: list[str], left: str) -> None:
    assert only(text, channels) == left
    assert canonical(only(text, channels))


def test_an_unknown_channel_is_told_with_those_there_are() -> None:
    assert channels_in("hybrid") == ["bm25", "dense"]
    with pytest.raises(InputError, match="no channel 'splade'; it has 'bm25', 'dense'"):
        only("hybrid", ["bm25", "splade"])
