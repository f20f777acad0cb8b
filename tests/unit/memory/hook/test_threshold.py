"""Speaking only when a memory stands out from chance, whatever the size of the store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.evidence import MemoryWords, evidence, weights, words_of
from ringtrue.memory.hook.index import Index, MemoryHit
from ringtrue.memory.hook.memory import Memory, from_record
from ringtrue.memory.hook.null_level import (
    DRAWS,
    PERCENTILE,
    SAMPLE,
    EvidenceTable,
    Level,
    draw_level,
    drawn_text,
    null_level,
    random_shares,
)
from ringtrue.memory.hook.rarity import stem
from ringtrue.memory.hook.respond import enriched
from ringtrue.memory.hook.settings import AutoInject, Settings
from ringtrue.memory.hook.threshold import HookDecision, decide

ROOT = Path(__file__).parents[4]
SETS = ROOT / "src" / "ringtrue" / "golden" / "sets"
GLASSHOUSE = ROOT / "tests" / "fixtures" / "glasshouse"
SETTINGS = Settings(retention_days={})
"""Without retention, so that nothing depends on the day the tests run."""
SIZES = (1, 2, 3, 28, 500, 5000)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def bench() -> tuple[Memory, ...]:
    return tuple(from_record(json.loads(path.read_text())) for path in sorted((SETS / "memory-bench/memories").rglob("*.json")))


@cache
def agent() -> tuple[Memory, ...]:
    return tuple(
        Memory(
            id=f"agent-{one['memoryId']}",
            category="decision",
            title=one["title"],
            body=one["content"],
            tags=tuple(one["tags"]),
            trigger_phrases=tuple(one["trigger_phrases"]),
            status=one["record_status"],
        )
        for one in lines(SETS / "agent-280/memories.jsonl")
    )


@cache
def glasshouse() -> tuple[Memory, ...]:
    return tuple(from_record(one) for one in lines(GLASSHOUSE / "memories.jsonl"))


Question = tuple[str, list[str], set[str]]


def bench_questions() -> list[Question]:
    return [
        (one["query"], one["transcript_context"], {Path(path).stem for path in one["expected_relevant"]})
        for one in lines(SETS / "memory-bench/queries.jsonl")
    ]


def glasshouse_questions() -> list[Question]:
    return [(one["prompt"], one["turns"], set(one["relevant"])) for one in lines(GLASSHOUSE / "prompts.jsonl")]


OFF_TOPIC = [question for question, _, relevant in bench_questions() if not relevant and "iOS" not in question]
"""Eleven prompts that no memory here answers; the glasshouse has one about notifications in an app."""


def ask(index: Index, text: str, level: Level, settings: Settings = SETTINGS, **more: Any) -> HookDecision:
    return decide(index, index.search(text, k=10, now=0.0), text, settings, level=level, **more)


class Outcome:
    """How a store answered a set of questions."""

    def __init__(self, memories: tuple[Memory, ...], questions: list[Question]) -> None:
        index = Index(memories, SETTINGS)
        level = null_level(index, SETTINGS)
        self.precision: list[float] = []
        self.false = self.right = self.off_topic = 0
        for prompt, turns, relevant in questions:
            shown = [hit.memory.id for hit in ask(index, enriched(prompt, SETTINGS, turns=turns), level, prompt=prompt).inject]
            if shown:
                good = sum(one in relevant for one in shown)
                self.precision.append(good / len(shown))
                self.false += good < len(shown)
                self.right += good > 0
                self.off_topic += not relevant

    @property
    def set_precision(self) -> float:
        return sum(self.precision) / len(self.precision)


def store(target: Memory, size: int) -> list[Memory]:
    """A store of any size around a memory: real memories first, then new ones made of their sentences."""
    real = [one for one in (*agent(), *glasshouse()) if one.status == "active"]
    others = real[: size - 1]
    sentences = [sentence for one in real for sentence in one.body.replace("\n", ". ").split(". ")]
    for place in range(size - 1 - len(others)):
        first, second = real[place % len(real)], real[(place * 7 + place // len(real) + 1) % len(real)]
        body = ". ".join(sentences[(place * 31 + step * 97) % len(sentences)] for step in range(6))
        title = " ".join((*first.title.split()[: 2 + place % 3], *second.title.split()[-3:]))
        others.append(Memory(id=f"made-{place}", category="decision", title=title, body=body, tags=second.tags))
    return [target, *others]


@cache
def sized(size: int, target: str) -> tuple[Index, Level]:
    (memory,) = [one for one in bench() if one.id == target]
    index = Index(store(memory, size), SETTINGS)
    assert len(index) == size
    return index, null_level(index, SETTINGS)


TITLE_MATCHES = {
    "redis-broker-out-of-memory": "the broker redis is full and refuses new messages, what now?",
    "terraform-state-lock-left-behind": "terraform refuses to run because of a lock nobody holds",
    "issued-invoices-are-immutable": "may an issued invoice be changed or deleted?",
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", TITLE_MATCHES)
def test_trap_25_a_clear_title_match_is_shown_whatever_the_size_of_the_store(size: int, target: str) -> None:
    index, level = sized(size, target)
    shown = ask(index, TITLE_MATCHES[target], level)
    assert [hit.memory.id for hit in shown.inject][:1] == [target]
    assert shown.confidence[0] == "high"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", TITLE_MATCHES)
def test_trap_26_the_same_off_topic_prompts_stay_silent_whatever_the_size_of_the_store(size: int, target: str) -> None:
    index, level = sized(size, target)
    assert [prompt for prompt in OFF_TOPIC if ask(index, prompt, level).inject] == []


def test_trap_25_a_store_of_any_single_memory_answers_its_own_title_and_nothing_off_topic() -> None:
    for memory in bench():
        if memory.status != "active":
            continue
        index = Index([memory], SETTINGS)
        level = null_level(index, SETTINGS)
        assert ask(index, memory.title, level).inject, memory.title
        assert len(OFF_TOPIC) == 11
        assert [prompt for prompt in OFF_TOPIC if ask(index, prompt, level).inject] == []


def test_trap_26_the_level_hardly_moves_with_the_size_of_the_store() -> None:
    levels = [sized(size, "redis-broker-out-of-memory")[1].value for size in SIZES]
    assert all(0.2 < level < 0.9 for level in levels)


def test_memory_bench_is_precise_silent_off_topic_and_not_mute() -> None:
    outcome = Outcome(bench(), bench_questions())
    assert outcome.set_precision >= 0.70
    assert outcome.false / 35 < 0.10
    assert outcome.off_topic == 0
    assert outcome.right >= 11


def test_memory_bench_stays_so_among_the_memories_of_another_project() -> None:
    outcome = Outcome((*bench(), *agent()), bench_questions())
    assert outcome.set_precision >= 0.70
    assert outcome.false / 35 < 0.10
    assert outcome.off_topic == 0
    assert outcome.right >= 10


def test_another_store_that_nothing_was_set_by_behaves_alike() -> None:
    questions = glasshouse_questions()
    assert len(glasshouse()) == 40
    assert len(questions) == 43
    outcome = Outcome(glasshouse(), questions)
    assert outcome.set_precision >= 0.90
    assert outcome.false / len(questions) < 0.10
    assert outcome.off_topic == 0
    assert outcome.right >= 18


def test_one_word_by_accident_is_never_enough() -> None:
    index = Index(bench(), SETTINGS)
    level = null_level(index, SETTINGS)
    for prompt in (
        "which lock fits a barn door made of oak?",
        "how do I pay the invoice of my dentist?",
        "migration routes of storks",
    ):
        assert not ask(index, prompt, level).inject


def test_trap_28_a_single_weak_hit_is_never_of_high_confidence() -> None:
    memory = Memory(id="redis", category="decision", title="Redis holds the cache", body="and nothing else")
    index = Index([memory], SETTINGS)
    weak = "does redis matter for the colour of the landing page or the font of its headings?"
    fixed = Settings(threshold="fixed", auto_inject=AutoInject(min_score_abs=0.0), retention_days={})
    shown = decide(index, [MemoryHit(memory, 9.0, 1)], weak, fixed)
    assert shown.confidence == ["low"]
    assert not decide(index, [MemoryHit(memory, 9.0, 1)], weak, SETTINGS).inject


def test_fixed_keeps_the_scores_of_before() -> None:
    memories = [Memory(id=name, category="decision", title="Redis cache", body="") for name in "abcdef"]
    index = Index(memories, SETTINGS)
    fixed = Settings(threshold="fixed", retention_days={})

    def shown(*scores: float) -> list[float]:
        hits = [MemoryHit(memory, score, rank) for rank, (memory, score) in enumerate(zip(memories, scores, strict=False), 1)]
        return [hit.score for hit in decide(index, hits, "redis cache", fixed).inject]

    assert shown(0.49) == []
    assert shown(0.5) == [0.5]
    assert shown(1.0, 0.61, 0.59) == [1.0, 0.61]
    assert shown(9.0, 8.0, 7.0, 6.0) == [9.0, 8.0, 7.0]


def test_no_more_than_the_settings_allow_is_shown() -> None:
    memories = [Memory(id=f"m{place}", category="decision", title="Broker Redis is full", body="") for place in range(6)]
    index = Index(memories, SETTINGS)
    level = null_level(index, SETTINGS)
    for most in (0, 1, 3):
        settings = Settings(auto_inject=AutoInject(max_results=most), retention_days={})
        assert len(ask(index, "the broker redis is full", level, settings).inject) == most


def test_what_is_shown_keeps_the_order_of_the_index() -> None:
    index = Index(bench(), SETTINGS)
    shown = ask(index, "auth: what do I need to know before I change how people sign in?", null_level(index, SETTINGS))
    ranks = [hit.rank for hit in shown.inject]
    assert len(ranks) > 1
    assert ranks == sorted(ranks)


def test_nothing_found_is_nothing_shown() -> None:
    for memories in ((), bench()):
        index = Index(memories, SETTINGS)
        assert not ask(index, "zzz qqq xxyzzy", null_level(index, SETTINGS)).inject
        assert not ask(index, "", null_level(index, SETTINGS)).inject


def test_the_null_distribution_has_at_least_two_hundred_draws_and_the_99th_percentile() -> None:
    assert DRAWS >= 200
    assert PERCENTILE == 0.99


def test_the_level_is_that_of_the_99th_percentile_of_drawn_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other draws than those it was made from pass it about once in a hundred times."""
    said = [MemoryWords(memory, 2000) for memory in bench() if memory.status == "active"]
    level = draw_level(bench(), 2000, total=len(bench()))
    table, dice = EvidenceTable(said), random_shares(20261116)
    passed = sum(table.best(drawn_text(dice, table.own_words)) > level.value for _ in range(4000))
    assert 0.004 < passed / 4000 < 0.02


def test_drawn_texts_are_judged_as_real_ones_are() -> None:
    said = [MemoryWords(memory, 2000) for memory in bench()]
    table = EvidenceTable(said)
    counts = Counter(short for one in said for short in one.places)
    for text in ("auth config for the queue", "rows of one tenant", "migration lock timeout redis", "authentication"):
        words = words_of(text, 15)
        weighed = weights(words, counts, len(said))
        assert table.best(words) == pytest.approx(max(evidence(words, weighed, one) for one in said))


def test_the_level_of_a_sample_is_near_that_of_the_whole_store() -> None:
    memories = list(sized(5000, "redis-broker-out-of-memory")[0].memories)[:1000]
    whole = draw_level(memories, 2000, total=1000)
    sampled = null_level(Index(memories, SETTINGS), SETTINGS)
    assert sampled.size == SAMPLE
    assert sampled.value == pytest.approx(whole.value, rel=0.25)


def test_the_level_does_not_depend_on_how_python_orders_sets() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from ringtrue.memory.hook.memory import Memory\nfrom ringtrue.memory.hook.null_level import draw_level\n"
        "m = [Memory(id=str(i), category='decision', title=f'Cache {i}', body=f'job {i} ran full') for i in range(9)]\n"
        "print(repr(draw_level(m, 2000, total=9).value))"
    )
    values = {
        subprocess.run(
            [sys.executable, "-c", code, str(ROOT / "src")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(values) == 1


def write(root: Path, *memories: Memory) -> None:
    for memory in memories:
        record = {"category": memory.category, "id": memory.id, "title": memory.title, "content": {"context": memory.body}}
        path = root / memory.category / f"{memory.id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record), encoding="utf-8")


def test_the_level_is_kept_until_the_store_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        *(Memory(id=f"m{place}", category="decision", title=f"Choice {place}", body="of a cache") for place in range(5)),
    )
    first = null_level(open_index(str(tmp_path), SETTINGS), SETTINGS, root=str(tmp_path))
    kept = tmp_path / ".ringtrue" / "null.json"
    before = kept.read_bytes()

    from ringtrue.memory.hook import null_level as module

    with monkeypatch.context() as patch:
        patch.setattr(module, "draw_level", lambda *_, **__: pytest.fail("it was kept"))
        again = null_level(open_index(str(tmp_path), SETTINGS), SETTINGS, root=str(tmp_path))
    assert (again.value, again.shares, again.size) == (first.value, first.shares, first.size)

    write(tmp_path, Memory(id="another", category="decision", title="A sixth thing entirely", body="about webhooks"))
    after = null_level(open_index(str(tmp_path), SETTINGS), SETTINGS, root=str(tmp_path))
    assert after.size == 6
    assert kept.read_bytes() != before


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"[]",
        b"{}",
        b'{"key": 1}',
        b"\xff",
        b'{"key": "KEY", "base": "x", "step": 0.1, "files": 1, "total": 1, "sample": "", "shares": {}, "size": 1}',
    ],
)
def test_a_damaged_level_is_drawn_again(tmp_path: Path, broken: bytes) -> None:
    write(tmp_path, Memory(id="one", category="decision", title="Sessions are JWT", body="without state"))
    index = open_index(str(tmp_path), SETTINGS)
    good = null_level(index, SETTINGS, root=str(tmp_path))
    kept = tmp_path / ".ringtrue" / "null.json"
    key = json.loads(kept.read_bytes())["key"]
    kept.write_bytes(broken.replace(b"KEY", key.encode()))
    assert null_level(index, SETTINGS, root=str(tmp_path)).value == good.value


def test_the_level_of_a_large_folder_is_drawn_from_a_few_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = store(bench()[0], SAMPLE + 40)
    write(tmp_path, *memories)
    index = open_index(str(tmp_path), SETTINGS)
    expected = null_level(Index(index.memories, SETTINGS), SETTINGS)
    from ringtrue.memory.hook import files

    reads: list[str] = []
    real = files.read_one
    monkeypatch.setattr(files, "read_one", lambda path: (reads.append(path), real(path))[1])
    level = null_level(open_index(str(tmp_path), SETTINGS), SETTINGS, root=str(tmp_path))
    assert level.value == expected.value
    assert len(reads) == SAMPLE


@pytest.mark.parametrize(
    ("one", "other"), [("migrations", "migrate"), ("stopping", "stopped"), ("keys", "key"), ("rendering", "rendered")]
)
def test_forms_of_a_word_are_one_word(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_the_beginning_of_a_word_counts_less_than_the_word() -> None:
    said = MemoryWords(Memory(id="a", category="decision", title="Authentication by token", body=""), 2000)
    assert 0 < said.counts("auth") < said.counts("authentication") == 1.0
    assert said.counts("aut") == said.counts("author") == 0.0


def retitled(memory: Memory) -> Memory:
    return Memory(id=memory.id, category=memory.category, title="Another title altogether", body=memory.body)


def test_a_change_outside_the_sample_of_a_large_folder_draws_nothing_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringtrue.memory.hook import null_level as module

    memories = store(bench()[0], SAMPLE + 40)
    write(tmp_path, *memories)
    root, draws = str(tmp_path), []
    first = null_level(open_index(root, SETTINGS), SETTINGS, root=root)
    in_order = sorted(memories, key=lambda memory: (module._checksum(memory.id), memory.id))
    outside, inside = in_order[-1], in_order[0]
    real = module.draw_level
    monkeypatch.setattr(module, "draw_level", lambda *given, **more: (draws.append(given), real(*given, **more))[1])
    write(tmp_path, retitled(outside))
    assert null_level(open_index(root, SETTINGS), SETTINGS, root=root).value == first.value
    (tmp_path / outside.category / f"{outside.id}.json").unlink()
    fewer = null_level(open_index(root, SETTINGS), SETTINGS, root=root)
    assert fewer.value < first.value
    assert draws == []
    assert fewer.value == null_level(Index(open_index(root, SETTINGS).memories, SETTINGS), SETTINGS).value
    assert len(draws) == 1
    write(tmp_path, retitled(inside))
    changed = null_level(open_index(root, SETTINGS), SETTINGS, root=root)
    assert len(draws) == 2
    assert changed.value == null_level(Index(open_index(root, SETTINGS).memories, SETTINGS), SETTINGS).value


def test_a_memory_that_is_called_by_its_phrase_is_shown_with_high_confidence() -> None:
    release = Memory(
        id="release", category="runbook", title="Release", body="tag main", trigger_phrases=("ship it", "demurrage")
    )
    index = Index((*bench(), release), SETTINGS)
    level = null_level(index, SETTINGS)
    for prompt in ("looks good, ship it", "what is a Demurrage?", "def f():\n    return 1\n" * 3000 + "\nand now: ship it"):
        shown = ask(index, prompt, level)
        assert [hit.memory.id for hit in shown.inject] == ["release"], prompt[-30:]
        assert shown.confidence == ["high"]
    assert not ask(index, "the ship sank and it was old", level).inject
    # A phrase that was said before does not call now.
    assert not ask(index, "write one about spring\nlooks good, ship it", level, prompt="write one about spring").inject


def test_the_question_at_the_end_of_a_paste_is_heard() -> None:
    index = Index(bench(), SETTINGS)
    level = null_level(index, SETTINGS)
    prose = (
        "I was looking at the code this morning with a colleague from another department and after lunch we discussed several "
    )
    question = TITLE_MATCHES["redis-broker-out-of-memory"]
    for text in (f"{prose * 3}\n\n{question}", f"{question}\n\n{prose * 3}"):
        assert [hit.memory.id for hit in ask(index, text, level).inject] == ["redis-broker-out-of-memory"]


TURN = "the broker redis is full and refuses new messages, what now?"


@pytest.mark.parametrize(
    "prompt",
    ["tell me a joke", "Write a haiku about autumn", "run the test suite", "how is the weather", "write one about spring"],
)
def test_earlier_turns_do_not_bring_up_their_topic_when_the_prompt_has_another(prompt: str) -> None:
    index = Index(bench(), SETTINGS)
    level = null_level(index, SETTINGS)
    text = enriched(prompt, SETTINGS, turns=[TURN])
    assert TURN[:20] in text
    assert not ask(index, text, level, prompt=prompt).inject


def test_what_earlier_turns_bring_up_is_of_medium_confidence_and_not_shown_twice() -> None:
    index = Index(bench(), SETTINGS)
    level = null_level(index, SETTINGS)
    prompt = "and how do we fix it?"
    text = enriched(prompt, SETTINGS, turns=[TURN])
    shown = ask(index, text, level, prompt=prompt)
    assert [hit.memory.id for hit in shown.inject] == ["redis-broker-out-of-memory"]
    assert shown.confidence == ["medium"]
    again = ask(index, text, level, prompt=prompt, shown={"redis-broker-out-of-memory"})
    assert (again.inject, again.reason) == ([], "this session has seen it")
    alone = ask(index, f"{TURN}\n{TURN}", level, prompt=TURN, shown={"redis-broker-out-of-memory"})
    assert alone.confidence == ["high"]


def test_a_short_prompt_is_not_drowned_by_turns_about_something_else() -> None:
    index = Index(bench(), SETTINGS)
    level = null_level(index, SETTINGS)
    prompt = "broker redis full?"
    text = enriched(prompt, SETTINGS, turns=["paint the garden fence green before the autumn storms, with brush or roller?"])
    shown = ask(index, text, level, prompt=prompt)
    assert [hit.memory.id for hit in shown.inject] == ["redis-broker-out-of-memory"]


@pytest.mark.parametrize(
    "prompt",
    [
        *("Thank you very much!", "thanks, that was great", "looks good to me", "never mind, cancel that", "make it blue"),
        *("run the tests again", "commit this now", "undo that change", "who wrote this?", "can you run that again?"),
    ],
)
def test_thanks_and_new_tasks_do_not_open_the_earlier_topic(prompt: str) -> None:
    index = Index(bench(), SETTINGS)
    level = null_level(index, SETTINGS)
    assert not ask(index, enriched(prompt, SETTINGS, turns=[TURN]), level, prompt=prompt).inject


@pytest.mark.parametrize(
    "prompt", ["ok, go on with that", "please fix that", "remind me why that is so", "what should we do now?"]
)
def test_asking_about_the_earlier_topic_or_going_on_with_it_opens_it(prompt: str) -> None:
    index = Index(bench(), SETTINGS)
    level = null_level(index, SETTINGS)
    shown = ask(index, enriched(prompt, SETTINGS, turns=[TURN]), level, prompt=prompt)
    assert shown.inject[0].memory.id == "redis-broker-out-of-memory"


def test_a_shared_number_alone_is_no_evidence() -> None:
    limit = Memory(id="limit", category="constraint", title="API rate limit is 100 requests per minute", body="429 beyond 100")
    index = Index([limit], SETTINGS)
    level = null_level(index, SETTINGS)
    assert not ask(index, "what is 100 divided by 7", level).inject
    assert ask(index, "is the rate limit of the API 100 requests?", level).inject


def test_a_short_question_beside_a_long_log_is_heard() -> None:
    flags = Memory(
        id="flags", category="decision", title="Feature flags live in the database", body="table flag", tags=("flags",)
    )
    index = Index((*bench(), flags), SETTINGS)
    level = null_level(index, SETTINGS)
    log = "\n".join(f"12:00:{n % 60:02} worker-{n} handled job{n} for queue{n % 7} in {n * 3} ms" for n in range(300))
    for text in (f"{log}\nwhere do feature flags live?", f"where do feature flags live?\n{log}"):
        assert "flags" in [hit.memory.id for hit in ask(index, text, level).inject]
