"""The recipe of the reference data: seeded qrels and runs, and the values that pytrec-eval-terrier computes for them.

Run ``python tests/reference/make_reference.py`` with pytrec-eval-terrier installed; it rewrites the files in
``src/ringtrue/testing/reference``. Scores are exact in single precision, because pytrec_eval stores them so while trec_eval 10
keeps doubles.
"""

from __future__ import annotations

import json
import random
from importlib.metadata import version
from pathlib import Path

from ringtrue.formats import read_qrels, read_run, write_qrels, write_run
from ringtrue.records import Qrels, Run

HERE = Path(__file__).parents[2] / "src" / "ringtrue" / "testing" / "reference"
ASKED = (
    "map", "map_cut.5,10,100", "P.1,5,10,20,100", "recall.5,10,100,1000", "ndcg", "ndcg_cut.5,10,20,100", "recip_rank", "bpref",
    "Rprec", "infAP", "success.1,5,10", "set_P", "set_recall", "set_F", "num_ret", "num_rel", "num_rel_ret",
)  # fmt: skip
# name: (queries, documents, judged per query, returned per query, grades, distinct scores or None, relevance level)
CASES: dict[str, tuple[int, int, int, int, tuple[int, ...], int | None, int]] = {
    "binary": (30, 400, 25, 60, (0, 0, 0, 1), None, 1),
    "graded": (30, 300, 30, 100, (0, 0, 1, 2, 3), None, 1),
    "graded-level-2": (25, 300, 30, 80, (0, 0, 1, 2, 3), None, 2),
    "ties": (30, 120, 20, 60, (0, 1, 2), 4, 1),
    "pooled-unjudged": (25, 150, 40, 80, (-1, -1, 0, 0, 1), 40, 1),
    "short-lists": (40, 60, 12, 3, (0, 1, 2, 3), 6, 1),
    "deep": (6, 1500, 120, 1200, (0, 0, 0, 1, 2), None, 1),
}


def generate(name: str) -> tuple[Qrels, Run]:
    """Return the judgments and the run of one case; every fifth query is missing from one of the two files."""
    queries, documents, judged, returned, grades, levels, _ = CASES[name]
    dice = random.Random(f"ringtrue {name}")
    pool = [f"{dice.choice(['doc', 'D', 'x-'])}{number}" for number in range(documents)]
    judgments: dict[str, dict[str, int]] = {}
    answers: dict[str, dict[str, float]] = {}
    for number in range(queries):
        query_id = f"{name}-{number}"
        if number % 5 != 3:
            shown = dice.sample(pool, dice.randint(1, returned))
            scores = [dice.randrange(levels or 1_000_000) / 64 for _ in shown]
            answers[query_id] = dict(zip(shown, scores, strict=True))
        if number % 5 != 4:
            chosen = dice.sample(pool, dice.randint(1, judged))
            judgments[query_id] = {doc_id: dice.choice(grades) for doc_id in chosen}
            # pytrec_eval needs one grade from 0 up in every query; trec_eval itself has no such wish.
            judgments[query_id][dice.choice(pool)] = dice.choice([0, 1])
    return Qrels.from_dict(judgments), Run.from_dict(answers, name=f"reference-{name}")


def main() -> None:
    """Rewrite the files and their expected values."""
    import pytrec_eval

    expected: dict[str, object] = {}
    for name in CASES:
        qrels, run = generate(name)
        write_qrels(qrels, HERE / f"{name}.qrels")
        write_run(run, HERE / f"{name}.run")
        level = CASES[name][-1]
        evaluator = pytrec_eval.RelevanceEvaluator(
            read_qrels(HERE / f"{name}.qrels").to_dict(), set(ASKED), relevance_level=level
        )
        values = evaluator.evaluate(read_run(HERE / f"{name}.run").to_dict())
        expected[name] = {"relevance_level": level, "per_query": {key: values[key] for key in sorted(values)}}
    record = {"made_with": f"pytrec-eval-terrier {version('pytrec-eval-terrier')}", "cases": expected}
    (HERE / "expected.json").write_text(json.dumps(record, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
