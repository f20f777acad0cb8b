"""The agent memory: how good it is on judged sets, and what its hook costs a prompt.

``ringtrue bench memory --check`` measures

- **quality**: the shipped sets by every way of searching, what the hook shows unasked and what a search on demand finds, with
  the measures of an agent memory;
- **hook**: the whole process as a host runs it, by the hooks.json of a plugin installed into a scratch project, a new process
  for every prompt, at several numbers of memories; ``python3 -c pass`` and the bare start of the same Python beside it.
  *words* compares words alone, *cold* meaning too, with NumPy in the process, *warm* asks a server of the session. The vectors
  of memories are random, which costs the same. *First* is the prompt after a change, which makes the index, the vectors of
  what changed and the null distributions anew;
- **parts**: what the hook itself works after its start, the hook of a read, the session boost, the causal links, and a thousand
  searches at once;
- **search on demand**: a process that opens the hybrid with its vectors made before, answers one question and ends.

The bars on LoCoMo are measured by ``ringtrue bench quality --memory``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import (
    ROOT,
    Failure,
    add_common_options,
    busy_seconds,
    carry_out,
    limit,
    limits_table,
    machine,
    machine_line,
    marks,
    measure,
    positive,
    say,
    source_environment,
    source_version,
    table,
)

SIZES = (100, 500, 1_000, 5_000, 10_000)
MODES = ("words", "cold", "warm")
HOOK_MS = {("words", 500): 150.0, ("warm", 500): 150.0, ("cold", 500): 350.0, ("words", 5_000): 400.0, ("cold", 5_000): 500.0}
"""Whole process, p95."""
BOTH_MS = {500: 15.0, 1_000: 30.0}
"""Loading, index and query, p50."""
QUERY_MS = {10_000: 50.0}
"""The query alone where the index persists, p95."""
PARTS_MS = {"session boost": 10.0, "causal links": 20.0, "read hook": 5.0}
"""p95 of each."""
AT_ONCE = 1_000
VECTORS = 500
QUALITY = {"SetP@3": ("≥", 0.70), "R@10": ("≥", 0.90), "FalseInject@3": ("<", 0.10), "off-topic silent": ("=", 1.0)}
"""Of the shipped default on memory-bench."""
DEFAULT, WORDS = "hybrid, null", "fts5_bm25, null"
SHOWN = ("SetP@3", "P@3", "answered", "off-topic silent", "Silent", "FalseInject@3", "R@10", "RR", "nDCG@10")
ABOUT_QUALITY = (
    "**Quality.** What the hook shows unasked, at most 3 (*answered*: the share of the questions with an answer that were "
    "shown anything; *off-topic silent*: the share of the others that were shown nothing; *false inject*: questions with an "
    "irrelevant memory shown ÷ all), and what a search on demand finds (R@10, MRR, nDCG@10)."
)
ABOUT_HOOK = (
    "**Hook.** Whole process, a new one for each of {} prompts, as the installed hooks.json says; *work* is what it notes "
    "itself, modules it imports on the way included; *load + index* and *query* (with deciding) are timed apart, in a process "
    "that has them. *First* is the slowest of three prompts after a change, all processes until the index is made; "
    "*unanswered* prompts ran out of their second; *by words*: prompts for which meaning took too long."
)
ABOUT_VECTORS = (
    "**Search on demand.** A process that answers one question by the hybrid over {memories:,} memories, vectors made before: "
    "p50 {p50:,.0f} ms, p95 {p95:,.0f} ms (making them took {made:.1f} s). "
)
TITLES = {"RR": "MRR", "Silent": "silent", "FalseInject@3": "false inject"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a limit missed, or 2 when it cannot be run."""
    parser = argparse.ArgumentParser(
        prog="ringtrue bench memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prompts", type=positive, default=40, help="timed prompts at each size (default 40)")
    parser.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), help="numbers of memories")
    parser.add_argument(
        "--skip", action="append", choices=("quality", "hook", "parts", "vectors"), default=[], help="leave out"
    )
    parser.add_argument("--worker", choices=tuple(WORK), help=argparse.SUPPRESS)
    parser.add_argument("--root", help=argparse.SUPPRESS)
    add_common_options(parser, marks("memory"))
    options = parser.parse_args(argv)
    if options.worker:
        print(json.dumps(WORK[options.worker](options)))
        return 0
    return carry_out("memory", run, render, options)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was measured, and every limit with what was found."""
    here, others = machine(), []
    found: dict[str, Any] = {"quality": [], "hook": [], "parts": {}, "vectors": None}
    with tempfile.TemporaryDirectory(prefix="ringtrue-bench-memory-") as folder:
        if "hook" not in options.skip:
            found["hook"], found["bare"] = _hook(Path(folder), options.sizes, options.prompts, others)
        for job in ("parts", "vectors", "quality"):
            if job not in options.skip:
                say(job)
                command = [sys.executable, __file__, "--worker", job, "--root", folder]
                sample = measure(command, {**source_environment(), "RINGTRUE_CACHE": f"{folder}/cache"})
                others.append(sample.others)
                found[job] = json.loads(sample.output)
    say("")
    limits = [*_quality_limits(found["quality"]), *_hook_limits(found["hook"]), *_part_limits(found["parts"])]
    return {
        "version": source_version(),
        "machine": here,
        "others": others,
        "prompts": options.prompts,
        "limits": limits,
        **found,
    }


# ── the hook as a host runs it ──────────────────────────────────────────────────────────────────────────────────────────


def _hook(folder: Path, sizes: Sequence[int], prompts: int, others: list[float | None]) -> tuple[list[dict[str, Any]], Any]:
    sys.path.insert(0, str(ROOT / "src"))
    from ringtrue.memory.hook.journal import events
    from ringtrue.memory.install import install
    from ringtrue.memory.warm_hook import WarmHook

    rows: list[dict[str, Any]] = []
    texts = _prompts(prompts)
    bare: dict[str, list[float]] = {"bare": [], "python3": []}
    for size in sizes:
        say(f"hook: {size:,} memories")
        project = folder / f"project-{size}"
        root = project / ".claude" / "memory"
        written = write_memories(root, size)
        _settings(root, "words")
        _write_vectors(root)
        install("claude", base=project)
        hooks = json.loads((project / ".claude/skills/memory/hooks/hooks.json").read_text(encoding="utf-8"))["hooks"]
        command = _command(hooks["UserPromptSubmit"], project)
        for mode in MODES:
            _settings(root, mode)
            time.sleep(2.1)  # files changed just now are read again, as their time of change may not tell a second change
            first = []
            for number in range(3):
                _touch(written[number], f"{mode} {number}")
                time.sleep(0.1)
                first.append(_timed(command, _payload(project, texts[number], f"first-{mode}-{number}")))
                while not (root / ".ringtrue" / "null.json").is_file():  # a large index is made over several prompts
                    first[-1] += _timed(command, _payload(project, texts[number], f"first-{mode}-{number}"))
            server = WarmHook(str(root))
            if mode == "warm":
                server.start()
            time.sleep(2.1)
            _timed(command, _payload(project, texts[0], "settle"))
            busy, start, own = busy_seconds(), time.perf_counter(), 0.0
            spent = []
            for number, text in enumerate(texts):
                spent.append(_timed(command, _payload(project, text, f"{mode}-{number}")))
                bare["bare"].append(_timed([sys.executable, "-I", "-S", "-c", "pass"], ""))
                bare["python3"].append(_timed([sys.executable, "-c", "pass"], ""))
                own += spent[-1] + bare["bare"][-1] + bare["python3"][-1]
            after = busy_seconds()
            seconds = time.perf_counter() - start
            others.append(None if busy is None or after is None else max(0.0, after - busy - own) / seconds)
            server.close()
            done = [one for one in events(str(root)) if one["event"] == "prompt" and one["prompt_id"].startswith(f"{mode}-")]
            rows.append(
                {"memories": size, "mode": mode, "whole": _times(spent), "work": _times([one["ms"] / 1000 for one in done]),
                 "first": max(first) * 1000, "unanswered": len(texts) - len(done),
                 "by": {by: sum(one["by"] == by for one in done) for by in ("server", "numpy", "words")}}
            )  # fmt: skip
        rows[-len(MODES)] |= _inside(str(root), texts)
        reads = _reads(hooks, project, written[: min(20, prompts)]) if size == max(s for s in sizes if s <= 1_000) else []
        rows[-len(MODES)]["reads"] = _times([one / 1000 for one in reads]) if reads else None
    return rows, {name: _times(values) for name, values in bare.items()}


def _inside(root: str, texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the times of opening the index and of the query, in a process that has everything imported."""
    from ringtrue.memory.hook.cache import open_index
    from ringtrue.memory.hook.respond import CANDIDATES
    from ringtrue.memory.hook.settings import Settings
    from ringtrue.memory.hook.threshold import decide

    settings = Settings()
    opening, asking = [], []
    for text in texts:
        start = time.perf_counter()
        index = open_index(root, settings)
        ready = time.perf_counter()
        decide(index, index.search(text, k=CANDIDATES, now=time.time()), text, settings, root=root)
        opening.append(ready - start)
        asking.append(time.perf_counter() - ready)
        index.close()
    both = [one + other for one, other in zip(opening, asking, strict=True)]
    return {"open": _times(opening), "query": _times(asking), "both": _times(both)}


def _command(groups: list[dict[str, Any]], project: Path) -> list[str]:
    (hook,) = groups[0]["hooks"]
    plugin = str(project / ".claude" / "skills" / "memory")
    return [part.replace("${CLAUDE_PLUGIN_ROOT}", plugin) for part in (hook["command"], *hook["args"])]


def _reads(hooks: dict[str, Any], project: Path, paths: Sequence[Path]) -> list[float]:
    """Return the milliseconds of its own work that the hook of a read noted."""
    from ringtrue.memory.hook.journal import events

    for path in paths:
        payload = {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"file_path": str(path)},
                   "cwd": str(project), "session_id": "s", "prompt_id": "p-0"}  # fmt: skip
        _timed(_command(hooks["PostToolUse"], project), json.dumps(payload))
    root = str(project / ".claude" / "memory")
    return [event["ms"] for event in events(root) if event["event"] == "read"]


def _payload(project: Path, prompt: str, prompt_id: str) -> str:
    return json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": prompt, "cwd": str(project), "session_id": "s",
                       "prompt_id": prompt_id, "transcript_path": "", "permission_mode": "default"})  # fmt: skip


def _timed(command: Sequence[str], text: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode or done.stderr:
        raise Failure(f"{' '.join(command)[:200]} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    return seconds


def _times(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000
        for name, share in (("p50", 0.50), ("p95", 0.95), ("worst", 1.0))
    }


def _touch(path: Path, title: str) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, "title": title}), encoding="utf-8")


def _settings(root: Path, mode: str) -> None:
    strategy = "fts5_bm25" if mode == "words" else "hybrid"
    (root / "memory-config.json").write_text(json.dumps({"retrieval": {"match_strategy": strategy}}), encoding="utf-8")


def _write_vectors(root: Path) -> None:
    """Write random vectors of all memories: making real ones takes a tenth of a second each, and comparing costs the same."""
    import numpy as np

    from ringtrue.memory.engine import loaded_encoder
    from ringtrue.memory.hook.files import load
    from ringtrue.memory.hook.settings import Settings
    from ringtrue.memory.hook.vectors import (
        AT_ONCE,
        EVERYDAY,
        StoreVectors,
        everyday_prompts,
        passages,
        text_key,
        write_vectors,
    )

    encoder, everyday, dice = loaded_encoder(), everyday_prompts(), np.random.default_rng(1)
    parts = {
        f"{EVERYDAY} {start}": encoder.encode(everyday[start : start + AT_ONCE]) for start in range(0, len(everyday), AT_ONCE)
    }
    for memory in load(str(root), Settings()).memories:
        rows = dice.normal(size=(len(passages(memory, 2000)), encoder.size)).astype(np.float32)
        parts[text_key(memory, 2000)] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    spans, start = {}, 0
    for name, part in parts.items():
        spans[name] = start, len(part)
        start += len(part)
    write_vectors(str(root), encoder, StoreVectors(np.concatenate(list(parts.values())), spans))


def _documents() -> list[Any]:
    sys.path.insert(0, str(ROOT / "src"))
    from ringtrue.golden import load

    return [document for name in ("memory-bench", "agent-280") for document in load(name).documents]


def _prompts(count: int) -> list[str]:
    from ringtrue.golden import load

    texts = [query.text for name in ("memory-bench", "agent-280") for query in load(name).queries if len(query.text) < 300]
    return random.Random(1).sample(texts, count) if count <= len(texts) else [texts[n % len(texts)] for n in range(count)]


def write_memories(root: Path, count: int) -> list[Path]:
    """Write memories made of sentences of the shipped sets, about as long as those; return their files."""
    from ringtrue.memory.hook.memory import BODY_FIELDS, CATEGORIES

    dice = random.Random(count)
    documents = _documents()
    sentences = [part for document in documents for part in re.split(r"(?<=[.;])\s+", document.text) if len(part) > 20]
    words = sorted({word.lower() for document in documents for word in re.findall(r"[A-Za-z]{5,}", document.title)})
    paths = []
    for number in range(count):
        category = CATEGORIES[number % len(CATEGORIES)]
        fields = BODY_FIELDS[category][:3]
        record = {
            "schema_version": "1.0", "category": category, "id": f"memory-{number:05}",
            "title": " ".join(dice.sample(words, 6)).capitalize(), "created_at": "2026-03-01T12:00:00Z",
            "updated_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "tags": dice.sample(words, 3),
            "content": {name: " ".join(dice.choices(sentences, k=2)) for name in fields},
        }  # fmt: skip
        path = root / category / f"{record['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=2), encoding="utf-8")
        paths.append(path)
    return paths


# ── in a process of its own ─────────────────────────────────────────────────────────────────────────────────────────────


def quality(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure every way of searching on the shipped sets."""
    from ringtrue.golden import load
    from ringtrue.memory.bench import SETS, bench

    rows = [row for name in SETS for row in bench(load(name))]
    return [
        {"golden": row.golden, "arm": row.arm.name, "queries": row.queries, "off_topic": row.off_topic, **dict(row.measures)}
        for row in rows
    ]


def parts(options: argparse.Namespace) -> dict[str, Any]:
    """Time the session boost and the causal links by themselves, and a thousand searches at once."""
    from concurrent.futures import ThreadPoolExecutor

    from ringtrue.golden import load
    from ringtrue.memory.engine import Engine
    from ringtrue.memory.hook.settings import Settings
    from ringtrue.retrieve import Collection, build
    from ringtrue.retrieve.channels.memory import Held, Linked, holding

    golden = load("agent-280")
    collection = Collection.create(Path(options.root) / "agent-280")
    collection.ingest(golden.documents, remove_missing=True)
    hybrid: Any = build("memory", collection)
    texts = [query.text for query in golden.queries][:100]
    ids = sorted(hybrid.passages.metadata())
    answers = {text: hybrid.passages.search(text, k=200) for text in texts}

    class Known:
        """The passages with their answers at hand: what is timed is what comes after them."""

        collection = hybrid.passages.collection
        metadata = staticmethod(hybrid.passages.metadata)

        def search(self, text: str, *, k: int = 10, scope: Any = None) -> Any:
            return answers[text]

    linked, held = Linked(Known()), Held(Known())  # type: ignore[arg-type]
    linked.search(texts[0])
    causal, boost = [], []
    for place, text in enumerate(texts):
        start = time.perf_counter()
        linked.search(text, k=200)
        causal.append(time.perf_counter() - start)
        with holding(ids[place : place + 10]):
            start = time.perf_counter()
            held.search(text, k=200)
            boost.append(time.perf_counter() - start)
    root = Path(options.root) / "at-once" / "memory"
    write_memories(root, 500)
    engine = Engine(str(root), Settings(match_strategy="fts5_bm25"))
    prompts = _prompts(100)

    def ask(place: int) -> list[str]:
        return [hit.memory.id for hit in engine.search(prompts[place % 100], k=10, now=0.0).hits]

    alone = [ask(place) for place in range(100)]
    start = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        together = list(pool.map(ask, range(AT_ONCE)))
    seconds = time.perf_counter() - start
    same = sum(found == alone[place % 100] for place, found in enumerate(together))
    return {"session boost": _times(boost), "causal links": _times(causal), "at_once": {"seconds": seconds, "same": same}}


_ONE_PROMPT = (
    "import sys; from ringtrue.memory.engine import search_memories; "
    "print(len(search_memories(sys.argv[1], sys.argv[2], now=0.0, strategy='hybrid', k=10).hits))"
)


def vectors(options: argparse.Namespace) -> dict[str, Any]:
    """Time whole processes that answer one prompt by the hybrid, their vectors made before."""
    root = Path(options.root) / "vectors" / "memory"
    write_memories(root, VECTORS)
    prompts = _prompts(11)
    spent = [_timed([sys.executable, "-c", _ONE_PROMPT, str(root), prompt], "") for prompt in prompts]
    return {"memories": VECTORS, "made": spent[0], **_times(spent[1:])}


WORK = {"quality": quality, "parts": parts, "vectors": vectors}


# ── limits and the page ─────────────────────────────────────────────────────────────────────────────────────────────────


def _quality_limits(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    row = next((row for row in rows if row["golden"] == "memory-bench" and row["arm"] == DEFAULT), None)
    limits = []
    for name, (sign, bar) in QUALITY.items():
        value = None if row is None else row[name]
        met = None if value is None else value >= bar if sign == "≥" else value < bar if sign == "<" else value == bar
        found = "—" if value is None else f"{value:.3f}"
        limits.append(limit(f"memory-bench, {DEFAULT}: {TITLES.get(name, name)}", f"{sign} {bar:.2f}", found, met))
    return limits


def _hook_limits(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = {(row["mode"], row["memories"]): row for row in rows}
    limits = []
    kinds = {"whole": "hook, whole process", "both": "words, load + index + query", "query": "words, query, persistent index"}
    by_words = [{("words", size): bar for size, bar in bars.items()} for bars in (BOTH_MS, QUERY_MS)]
    for kind, percentile, bars in (("whole", "p95", HOOK_MS), ("both", "p50", by_words[0]), ("query", "p95", by_words[1])):
        for (mode, size), bar in bars.items():
            value = found[mode, size][kind][percentile] if (mode, size) in found else None
            met = None if value is None else value <= bar
            limits.append(
                limit(
                    f"{kinds[kind]}{f', {mode}' if kind == 'whole' else ''}, {size:,} memories, {percentile}",
                    f"≤ {bar:g} ms",
                    "—" if value is None else f"{value:.1f} ms",
                    met,
                )
            )
    reads = next((row["reads"]["p95"] for row in rows if row.get("reads")), None)
    said = "—" if reads is None else f"{reads:.2f} ms"
    bar = PARTS_MS["read hook"]
    limits.append(limit("read hook, own work, p95", f"< {bar:g} ms", said, None if reads is None else reads < bar))
    return limits


def _part_limits(found: dict[str, Any]) -> list[dict[str, Any]]:
    limits = []
    for name in ("session boost", "causal links"):
        value = found[name]["p95"] if found else None
        said = "—" if value is None else f"{value:.2f} ms"
        limits.append(
            limit(f"{name}, p95", f"< {PARTS_MS[name]:g} ms", said, None if value is None else value < PARTS_MS[name])
        )
    at_once = found.get("at_once")
    said = "—" if at_once is None else f"{at_once['same']:,} the same, {at_once['seconds']:.2f} s"
    met = None if at_once is None else at_once["same"] == AT_ONCE
    limits.append(limit(f"{AT_ONCE:,} searches at once", "each as if alone", said, met))
    return limits


def render(report: dict[str, Any]) -> str:
    """Return the result in Markdown."""
    lines: list[str] = []
    if report["quality"]:
        shown, of_memory = _quality_table(report["quality"]), _memory_table(report["quality"])
        lines += [ABOUT_QUALITY, "", shown, "", "Measures of an agent memory, on demand:", "", of_memory, ""]
    if report["hook"]:
        lines += [ABOUT_HOOK.format(report["prompts"]), "", _hook_table(report), ""]
    if report["vectors"]:
        lines += [ABOUT_VECTORS.format(**report["vectors"]) + _worth(report["quality"]), ""]
    return "\n".join([*lines, limits_table(report["limits"]), "", machine_line(report["machine"], report["others"]), ""])


def _quality_table(rows: list[dict[str, Any]]) -> str:
    cells = [[row["golden"], row["arm"], *(_figure(row.get(name)) for name in SHOWN)] for row in rows]
    return table(("set", "strategy, threshold", *(TITLES.get(name, name) for name in SHOWN)), cells)


def _memory_table(rows: list[dict[str, Any]]) -> str:
    known = {"golden", "arm", "queries", "off_topic", *SHOWN}
    names = list(dict.fromkeys(name for row in rows for name in row if name not in known))
    kept = [row for row in rows if not row["arm"].startswith("fts5_bm25, fixed")]  # on demand the threshold does not count
    heads = [f"{row['golden']}: {row['arm'].partition(',')[0]}" for row in kept]
    return table(("measure", *heads), [[name, *(_figure(row.get(name)) for row in kept)] for name in names], text_columns=1)


def _hook_table(report: dict[str, Any]) -> str:
    bare = report["bare"]
    starts = (("`python3 -c pass`", "python3"), ("its Python, `-I -S -c pass`", "bare"))
    rows = [[name, f"{bare[key]['p50']:.0f}", f"{bare[key]['p95']:.0f}", *[""] * 7] for name, key in starts]
    for row in report["hook"]:
        inner = (
            f"{row[kind][share]:.1f}" if kind in row else "—"
            for kind, share in (("work", "p50"), ("open", "p50"), ("query", "p50"), ("query", "p95"))
        )
        whole = (f"{row['whole'][share]:.0f}" for share in ("p50", "p95"))
        name = f"hook, {row['memories']:,} memories, {row['mode']}"
        by_words = "" if row["mode"] == "words" else str(row["by"]["words"])
        rows.append([name, *whole, *inner, f"{row['first']:.0f}", str(row["unanswered"]), by_words])
    heads = (
        "",
        "p50 ms",
        "p95 ms",
        "work p50",
        "load + index p50",
        "query p50",
        "query p95",
        "first",
        "unanswered",
        "by words",
    )
    return table(heads, rows, text_columns=1)


def _worth(rows: list[dict[str, Any]]) -> str:
    """Say what meaning adds to what the hook shows."""
    gains = []
    for name in dict.fromkeys(row["golden"] for row in rows):
        words, both = ({row["arm"]: row for row in rows if row["golden"] == name}.get(arm) for arm in (WORDS, DEFAULT))
        if words and both:
            said = (f"{measure} {words[measure]:.3f} → {both[measure]:.3f}" for measure in ("SetP@3", "answered", "R@10"))
            gains.append(f"{name}: {', '.join(said)}")
    return f"What meaning adds in the hook, and on demand: {'; '.join(gains)}." if gains else ""


def _figure(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main())
