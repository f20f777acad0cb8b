"""The planted optimum is found and confirmed, noise is not, and nobody peeks at the held-out queries."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ringtrue.errors import CannotDecide, InputError, MissingInput, SpecError
from ringtrue.experiment import Space, Undefined, effects, parameter, sweep, tracked
from ringtrue.experiment import sweep as sweep_function
from ringtrue.experiment.outcome import outcome_of, overfitting
from ringtrue.golden import read_looks, split
from ringtrue.retrieve import Collection, build
from ringtrue.run import evaluate

WHEN = "2026-11-16T08:00:00+00:00"
TITLE = "fts5(title={t}, tags=1, body=1)"
OPTIMUM = (2, 6)


def run(golden, documents, space, folder: Path, **options):
    """A sweep over one collection, with ledger and time filled in."""
    given = {"ledger": folder / "looks.jsonl", "when": WHEN, **options}
    return sweep_function(space, golden, lambda chunks: documents, **given)


@pytest.fixture
def planted_sweep(planted, planted_documents, tmp_path):
    return partial(run, planted, planted_documents, folder=tmp_path)


@pytest.mark.parametrize(
    ("method", "values", "trials"),
    [("grid", "0.5,1,4,10,20", None), ("random", "0.5:20.0:log", 12), ("model", "0.5:20.0:log", 12)],
)
def test_a_planted_optimum_is_found_and_confirmed(planted_sweep, method, values, trials) -> None:
    space = Space(TITLE, (parameter(f"t={values}"),))
    found = planted_sweep(space, method=method, trials=trials, baseline="fts5(title=0.5, tags=1, body=1)", seed=1)
    assert found.best is not None
    assert OPTIMUM[0] < found.best.values["t"] < OPTIMUM[1]
    assert found.best.value == pytest.approx(1.0)
    assert [trial.value for trial in found.trials] == sorted((trial.value for trial in found.trials), reverse=True)
    assert found.outcome == "confirmed"
    assert "confirmed on 20 held-out queries" in found.sentence
    assert found.held_out.diff > 0.1
    assert found.tuning.p_corrected == pytest.approx(min(1, found.tuning.p * found.tuning.tests))
    assert found.overfitting.flagged is False
    assert len(found.trials) == (trials or 5)


def test_the_numbers_of_the_winner_are_those_of_evaluate(planted, planted_documents, planted_sweep) -> None:
    space = Space("rrf(bm25(title={t}), fts5(title={u}), k={k})", tuple(map(parameter, ("t=1,8", "u=0.5,4", "k=60,2"))))
    found = planted_sweep(space)
    tuning, held_out = split(planted)
    for part, side in ((tuning, found.tuning), (held_out, found.held_out)):
        for retriever, value in ((found.best.point.retriever, side.best), (found.baseline.retriever, side.baseline)):
            evaluated = evaluate(retriever, part, measures=["nDCG@10"], collection=planted_documents, cache=False)
            assert evaluated.metrics["nDCG@10"] == pytest.approx(value, abs=1e-12)
    for trial in found.trials[::3]:  # and so are those of the trials
        evaluated = evaluate(trial.point.retriever, tuning, measures=["nDCG@10"], collection=planted_documents)
        assert evaluated.metrics["nDCG@10"] == pytest.approx(trial.value, abs=1e-12)
    assert found.notes == ()


def test_the_held_out_queries_are_never_asked_by_a_trial(planted, planted_documents, tmp_path, monkeypatch) -> None:
    from ringtrue.retrieve.channels.fts5 import Fts5

    _, held_out = split(planted)
    secret = {query.text for query in held_out.queries}
    ledger = tmp_path / "looks.jsonl"
    asked: list[tuple[str, bool]] = []
    real = Fts5.search

    def search(self, text, *, k=10, scope=None):
        asked.append((text, ledger.exists()))
        return real(self, text, k=k, scope=scope)

    monkeypatch.setattr(Fts5, "search", search)
    done: list[int] = []

    def progress(count: int) -> None:
        done.append(count)
        assert not secret & {text for text, _ in asked}

    found = run(planted, planted_documents, Space(TITLE, (parameter("t=0.5,1,4,10"),)), tmp_path, progress=progress)
    assert sum(done) == 4
    assert {text for text, looked in asked if looked} == secret  # recorded first, then looked at
    assert not {text for text, looked in asked if not looked} & secret
    assert found.held_out.looks == 1
    (look,) = read_looks(ledger)
    assert look.who == "ringtrue sweep"
    assert look.what == "nDCG@10 of fts5(title=4, tags=1, body=1) against fts5(title=0.5, tags=1, body=1)"
    assert look.when == WHEN


def test_a_sweep_that_beats_nothing_spends_no_look(planted_sweep, tmp_path) -> None:
    found = planted_sweep(Space(TITLE, (parameter("t=3,4,5"),)))
    assert found.outcome == "baseline"
    assert found.best is None
    assert found.held_out is None
    assert "none of 2 trials beat the baseline on 80 tuning queries" in found.sentence
    assert not (tmp_path / "looks.jsonl").exists()


def test_the_best_of_noise_is_not_confirmed(noise, noise_documents, tmp_path) -> None:
    """Twenty sweeps where nothing is better: the best looks better on the queries that chose it, and seldom elsewhere."""
    space = Space("weighted(bm25(title={t}), fts5, w=[{w}, 1])", (parameter("t=1,4"), parameter("w=0.2,1,3,10")))
    found = [
        run(noise(seed), noise_documents, space, tmp_path / str(seed), held_out=0.4, measure="nDCG@10") for seed in range(20)
    ]
    winners = [one for one in found if one.best is not None]
    assert len(winners) >= 18
    assert all(one.tuning.diff > 0 for one in winners)
    assert np.mean([one.held_out.diff for one in winners]) < np.mean([one.tuning.diff for one in winners]) / 2
    # 5 % of tests err, half of them to this side: more than two of twenty have a chance of 1.3 %.
    assert sum(one.outcome == "confirmed" for one in found) <= 2
    # On the tuning queries alone, the p of the best has to count for all eight.
    assert sum(one.tuning.p_corrected <= 0.05 for one in found) <= 2


def test_earlier_winners_on_the_same_held_out_part_count(planted_sweep) -> None:
    def with_best(values: str):
        return planted_sweep(Space(TITLE, (parameter(f"t={values}"),)), baseline="fts5(title=0.5, tags=1, body=1)")

    first, again, other = with_best("1,4"), with_best("1,4"), with_best("1,5")
    assert [one.held_out.looks for one in (first, again, other)] == [1, 2, 3]
    assert [one.held_out.confirmations for one in (first, again, other)] == [1, 1, 2]  # the same claim is the same test
    assert other.held_out.p_corrected == pytest.approx(2 * other.held_out.p)


def test_every_measure_and_scope_is_a_claim_of_its_own(planted, planted_documents, tmp_path) -> None:
    """The same pair, put to the same queries until some measure likes it, is not one test."""
    scoped = replace(
        planted,
        queries=tuple(replace(query, metadata={"lang": "en"}) for query in planted.queries),
        documents=tuple(replace(document, metadata={"lang": "en"}) for document in planted.documents),
    )
    documents = Collection.create(tmp_path / "documents")
    documents.ingest(scoped.documents)
    space = Space(TITLE, (parameter("t=0.5,4"),))
    found = [
        run(scoped, documents, space, tmp_path, measure=measure, scope=scope)
        for measure, scope in (("nDCG@10", None), ("RR", None), ("P@1", None), ("P@1", None), ("P@1", "lang"))
    ]
    assert [one.held_out.confirmations for one in found] == [1, 2, 3, 3, 4]
    assert [one.held_out.looks for one in found] == [1, 2, 3, 4, 5]
    assert found[-1].held_out.p_corrected == pytest.approx(4 * found[-1].held_out.p)
    assert read_looks(tmp_path / "looks.jsonl")[-1].what.startswith("P@1 within lang of fts5(")


def test_a_new_version_of_the_set_does_not_start_the_count_anew(planted, planted_documents, tmp_path) -> None:
    space = Space(TITLE, (parameter("t=0.5,4"),))
    first = run(planted, planted_documents, space, tmp_path)
    newer = replace(planted, version="1.1.0")
    second = run(newer, planted_documents, space, tmp_path, measure="RR")
    assert (first.held_out.looks, first.held_out.earlier, first.held_out.confirmations) == (1, 0, 1)
    assert (second.held_out.looks, second.held_out.earlier, second.held_out.confirmations) == (2, 1, 2)
    assert not any("other versions" in note for note in first.notes)
    assert any("1 of the 2 looks at 'planted-held-out' were at other versions of it" in note for note in second.notes)
    other = run(
        replace(planted, id="another"), planted_documents, space, tmp_path
    )  # its ledger is the same, its queries are not
    assert (other.held_out.looks, other.held_out.confirmations) == (1, 1)


def test_a_winner_that_leaves_queries_undefined_is_not_confirmed(planted, planted_documents, tmp_path) -> None:
    """The precision of an empty answer has no value: a threshold that empties answers looks better for it."""
    retriever = build("fts5(title=0.5)", planted_documents)
    middle = float(np.median([retriever.search(query.text, k=1)[0].score for query in planted.queries]))
    space = Space("fts5(title=0.5) >> threshold(min={m})", (parameter(f"m=0.0,{middle}"),))
    found = run(planted, planted_documents, space, tmp_path, measure="SetP", allow=["cut-off"])
    assert found.best is not None
    assert found.best.values["m"] == middle
    assert found.tuning.undefined.baseline == 0
    assert 0 < found.tuning.undefined.best == found.tuning.undefined.queries - found.tuning.n
    assert found.outcome == "not enough evidence"
    assert (
        f"SetP is not defined for {found.tuning.undefined.best} of 80 tuning queries with the best and for 0" in found.sentence
    )
    assert found.held_out is None
    assert not (tmp_path / "looks.jsonl").exists()


def test_undefined_held_out_queries_are_told_and_may_not_be_more_than_the_baselines(planted_sweep) -> None:
    held = planted_sweep(Space(TITLE, (parameter("t=0.5,4"),))).held_out
    assert held.undefined == Undefined(0, 0, 20)
    assert outcome_of(held, "nDCG@10", alpha=0.05)[0] == "confirmed"
    assert "not defined" not in outcome_of(held, "nDCG@10", alpha=0.05)[1]
    word, sentence = outcome_of(replace(held, undefined=Undefined(1, 3, 20)), "SetP", alpha=0.05)
    assert word == "not enough evidence"
    assert "SetP is not defined for 3 of 20 held-out queries with the best and for 1 with the baseline" in sentence
    word, sentence = outcome_of(replace(held, undefined=Undefined(3, 1, 20)), "SetP", alpha=0.05)
    assert word == "confirmed"
    assert "not defined for 1 of 20" in sentence


def test_a_winner_that_needed_too_many_chances_is_not_confirmed(planted_sweep, tmp_path) -> None:
    rows = [
        {"who": "ringtrue sweep", "what": f"claim {n}", "when": WHEN, "version": "planted-held-out-v1.0.0"} for n in range(300)
    ]
    (tmp_path / "looks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = planted_sweep(Space(TITLE, (parameter("t=0.5,4"),)))
    assert found.outcome == "not enough evidence"
    assert "301 claims were put to these queries" in found.sentence


def test_trials_that_differ_in_fusion_only_do_not_search_again(planted_sweep, planted) -> None:
    space = Space("rrf(bm25, fts5(title=0.5), k={k}, w=[{w}, 1])", (parameter("k=1,10,60"), parameter("w=0.1,1,9")))
    found = planted_sweep(space)
    assert len(found.trials) == 9
    assert found.searches == 2 * len(split(planted)[0].queries)


def test_an_interrupted_sweep_goes_on_where_it_ended(planted_sweep, tmp_path, monkeypatch) -> None:
    space = Space(TITLE, (parameter("t=0.5:20.0:log"),))
    options = {"method": "model", "trials": 8, "journal": tmp_path / "journal", "baseline": "fts5(title=0.5, tags=1, body=1)"}

    def stop(count: int, seen: list[int] = []) -> None:  # noqa: B006  # it counts over all calls
        seen.append(count)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planted_sweep(space, progress=stop, **options)
    (journal,) = (tmp_path / "journal").iterdir()
    assert len([line for line in journal.read_text().splitlines() if line]) == 5
    with journal.open("a") as file:
        file.write('{"fingerprint": "torn')  # as a killed process leaves it
    resumed = planted_sweep(space, **options)
    assert sum(trial.reused for trial in resumed.trials) == 5
    assert "5 of 8 trials were made before" in resumed.notes[0]
    whole = planted_sweep(space, **{**options, "journal": None})
    assert [(trial.number, trial.values, trial.value) for trial in resumed.trials] == [
        (trial.number, trial.values, trial.value) for trial in whole.trials
    ]
    assert sum(trial.reused for trial in planted_sweep(space, **options).trials) == 8
    assert sum(trial.reused for trial in planted_sweep(space, fresh=True, **options).trials) == 0
    assert sum(trial.reused for trial in planted_sweep(space, **{**options, "measure": "RR"}).trials) == 0


def test_a_changed_collection_is_another_sweep(planted, tmp_path) -> None:
    from ringtrue.records import Document

    documents = Collection.create(tmp_path / "documents")
    documents.ingest(planted.documents)
    space = Space(TITLE, (parameter("t=0.5,4"),))
    mine = partial(
        run, replace(planted, documents=(), corpus_hash=None), documents, space, tmp_path, journal=tmp_path / "journal"
    )
    mine()
    assert all(trial.reused for trial in mine().trials)
    documents.ingest([Document("new", "word1 word2", "word3")])
    assert not any(trial.reused for trial in mine().trials)


def test_combinations_that_cannot_be_are_left_out_and_told(planted_sweep) -> None:
    found = planted_sweep(Space("rrf(bm25(title={t}), fts5(title=0.5), k={k})", (parameter("t=1,99"), parameter("k=2,-1,60"))))
    assert len(found.trials) == 2
    assert found.impossible[0].point.values == {"t": 1, "k": -1}
    assert found.impossible[0].reason.startswith("rrf cannot have k=-1; write")
    assert len(found.impossible) == 4
    with pytest.raises(SpecError, match="bm25 has no option 'titel'"):
        planted_sweep(Space("bm25(titel={t})", (parameter("t=1,2"),)))
    with pytest.raises((SpecError, InputError), match="bm25 cannot have title=98"):
        planted_sweep(Space("bm25(title={t})", (parameter("t=98,99"),)), baseline="bm25")


def test_a_model_that_is_not_there_ends_the_sweep(planted_sweep) -> None:
    with pytest.raises(MissingInput):
        planted_sweep(Space("{base}", (parameter("base=bm25,dense('/nowhere/model')"),)), baseline="bm25")


def test_thresholds_can_be_swept_where_the_cut_off_is_allowed(planted_sweep) -> None:
    space = Space("fts5(title=0.5) >> threshold(relative={r})", (parameter("r=0.0,0.9"),))
    with pytest.raises(CannotDecide, match="--allow cut-off"):
        planted_sweep(space)
    with pytest.raises(CannotDecide, match="--allow cut-off"):  # said before the trials, though the baseline has none
        planted_sweep(space, baseline="fts5")
    assert len(planted_sweep(space, allow=["cut-off"], measure="P@1").trials) == 2


def test_chunk_sizes_are_parameters_like_any_other(planted, planted_documents, tmp_path) -> None:
    from ringtrue.experiment import Variants

    variants, used = Variants(planted_documents), []

    def collection_for(chunks):
        used.append(chunks)
        return variants(chunks)

    space = Space(TITLE, (parameter("t=0.5,4"), parameter("n=16,64")), "fixed(tokens={n}, overlap=2)")
    found = sweep(space, planted, collection_for, ledger=tmp_path / "looks", when=WHEN)
    assert {"fixed(tokens=16, overlap=2)", "fixed(tokens=64, overlap=2)"} == set(used)
    assert found.best.point.chunks == "fixed(tokens=16, overlap=2)"
    assert found.baseline.chunks == "fixed(tokens=16, overlap=2)"
    assert len(found.trials) == 4


def test_parts_made_before_are_used_as_they_are(planted, planted_documents, tmp_path) -> None:
    tuning, held_out = split(planted, held_out=0.3, seed=5)
    space = Space(TITLE, (parameter("t=0.5,4"),))
    with pytest.raises(InputError, match="name the part that was held out with --held-out"):
        run(tuning, planted_documents, space, tmp_path)
    with pytest.raises(InputError, match="is a held-out part; tune on the other one"):
        run(held_out, planted_documents, space, tmp_path)
    with pytest.raises(InputError, match="share 80 queries"):
        run(split(planted)[0], planted_documents, space, tmp_path, held_out=planted)
    found = run(tuning, planted_documents, space, tmp_path, held_out=held_out)
    assert (found.tuning.n, found.held_out.n) == (70, 30)
    assert found.golden == "planted-tuning-v1.0.0"


def test_a_range_has_no_first_value_that_anybody_uses(planted_sweep) -> None:
    with pytest.raises(InputError, match=r"the range t=0\.5:20\.0:log has no value to start from; .* --baseline"):
        planted_sweep(Space(TITLE, (parameter("t=0.5:20.0:log"),)), method="random")


def test_too_few_queries_cannot_be_swept(planted, planted_documents, tmp_path) -> None:
    few = replace(planted, queries=planted.queries[:4], judgments=planted.judgments[:4])
    with pytest.raises(CannotDecide, match="too few to tell settings apart"):
        run(few, planted_documents, Space(TITLE, (parameter("t=0.5,4"),)), tmp_path)


def test_few_held_out_queries_are_not_enough_evidence(planted, planted_documents, tmp_path) -> None:
    small = replace(planted, queries=planted.queries[:20], judgments=planted.judgments[:20])
    found = run(small, planted_documents, Space(TITLE, (parameter("t=0.5,4"),)), tmp_path)
    assert found.outcome == "not enough evidence"
    assert found.sentence.startswith("not confirmed on 4 held-out queries: not enough evidence, ")
    (verdict,) = [one.verdict for one in tracked(found, on=_day()) if one.decision == "UNDECIDED"]
    assert verdict.startswith("UNDECIDED (not confirmed on 4 held-out queries")


def test_lower_is_better_turns_the_search_around(planted_sweep) -> None:
    found = planted_sweep(Space(TITLE, (parameter("t=0.5,4,20"),)), measure="FalseInject@1")
    assert found.best.values == {"t": 4}
    assert [trial.value for trial in found.trials] == sorted(trial.value for trial in found.trials)
    assert (found.outcome, found.lower_is_better) == ("confirmed", True)
    assert found.held_out.diff < 0
    assert found.overfitting.held_out_gain > 0
    assert effects(found)["t"][1].best == 0.0


def test_overfitting_is_a_gap_that_chance_does_not_explain() -> None:
    rng = np.random.default_rng(1)
    gained, lost = rng.normal(0.10, 0.05, 60), rng.normal(0.0, 0.05, 30)
    assert overfitting(gained, lost).flagged
    assert overfitting(gained, lost).gap == pytest.approx(gained.mean() - lost.mean())
    assert not overfitting(gained, rng.normal(0.10, 0.05, 30)).flagged
    assert not overfitting(lost, gained).flagged
    assert math.isnan(overfitting(gained, np.array([0.1])).p)
    assert not overfitting(gained, np.array([0.1])).flagged


def test_overfitting_is_flagged_in_a_sweep(planted, planted_documents, tmp_path) -> None:
    """The tuning part has only queries that want a heavy title, the held-out part only those that want a light one."""

    def part(side: str, odd: int):
        queries = tuple(query for n, query in enumerate(planted.queries) if n % 2 == odd)
        ids = {query.query_id for query in queries}
        judged = tuple(judgment for judgment in planted.judgments if judgment.query_id in ids)
        return replace(planted, id=f"p-{side}", queries=queries, judgments=judged, metadata={"split": side})

    space = Space(TITLE, (parameter("t=4,0.5,20"),))
    tuned = run(part("tuning", 1), planted_documents, space, tmp_path, held_out=part("held_out", 0), baseline="fts5(title=1)")
    assert tuned.outcome != "confirmed"
    light = run(
        part("tuning", 1), planted_documents, Space(TITLE, (parameter("t=0.5,20"),)), tmp_path, held_out=part("held_out", 0)
    )
    assert light.best.values == {"t": 20}
    assert light.outcome == "worse"
    assert "refuted on 50 held-out queries" in light.sentence
    assert light.overfitting.tuning_gain > 0 > light.overfitting.held_out_gain


def _day():
    from datetime import date

    return date(2026, 11, 16)


def test_every_trial_can_be_tracked_as_an_experiment(planted_sweep) -> None:
    found = planted_sweep(Space(TITLE, (parameter("t=0.5,4,20"),)))
    made = tracked(found, on=_day(), commit="abc")
    assert [one.decision for one in made] == ["REJECTED", "ACCEPTED", "REJECTED"]
    assert made[1].verdict == f"ACCEPTED ({found.sentence})"
    assert "trial 2 reached nDCG@10 1.0000" in made[0].reason
    assert made[2].config_changes == {"t": 20}
    assert [one.metrics["nDCG@10"] for one in made] == [
        trial.value for trial in sorted(found.trials, key=lambda trial: trial.number)
    ]
    assert {one.golden for one in made} == {"planted-tuning-v1.0.0"}
    assert made[0].commit == "abc"


def test_effects_tell_how_each_parameter_moved_the_measure(planted_sweep) -> None:
    space = Space("rrf(bm25(title={t}), fts5(title={u}), k={k})", tuple(map(parameter, ("t=1,2", "u=0.5,4,20", "k=1:40:3"))))
    found = planted_sweep(space, baseline="rrf(bm25, fts5)")
    shown = effects(found)
    assert [step.label for step in shown["u"]] == ["0.5", "4", "20"]
    assert shown["u"][1].mean == max(step.mean for step in shown["u"])
    assert sum(step.trials for step in shown["k"]) == len(found.trials)
    assert len(shown["k"]) == 6
    assert shown["k"][0].label == "1 … 7"
    mean = np.mean([trial.value for trial in found.trials if trial.values["t"] == 1])
    assert shown["t"][0].mean == pytest.approx(mean)
    for steps in shown.values():
        assert all(step.low <= step.mean <= step.high for step in steps)
    # Two halves lie equally far from their middle, and so do their intervals.
    assert shown["t"][0].high - shown["t"][0].low == pytest.approx(shown["t"][1].high - shown["t"][1].low)
