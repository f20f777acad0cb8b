"""``ringtrue review``, ``golden refresh`` and ``golden bootstrap`` as a contract: outputs, keys, exit codes."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connectors import faults
from ringtrue.cli import show
from ringtrue.golden import load, save, worth_judging
from ringtrue.records import Document, GoldenSet, Judgment, Query, Run
from ringtrue.review import ReviewQueue, pairs_of
from ringtrue.store import FeedbackEvent, LoggedQuery, ReviewItem, Store, StoredJudgment, timestamp
from stores import empty as empty

NOW = datetime.now(UTC)
THINGS = ("pool", "sauna", "garage", "lift", "balcony", "kitchen", "garden", "roof", "cellar", "lobby", "chapel", "stable")
DEEDS = ("book", "clean", "heat", "light", "paint", "repair", "visit", "sell")


@pytest.fixture
def place(tmp_path, monkeypatch, empty) -> Path:
    """An empty store that every command finds by itself, and a golden set beside it."""
    monkeypatch.chdir(tmp_path)
    path = Path(empty("sqlite"))
    monkeypatch.setenv("RINGTRUE_STORE", str(path))
    return path


@pytest.fixture
def inn(place) -> Path:
    queries = tuple(Query(f"q{n:02}", f"old question {n} about matter{n}") for n in range(25))
    judgments = tuple(Judgment(f"q{n:02}", f"d{n % 5}", 3, "bootstrap" if n < 22 else "chair") for n in range(25))
    documents = tuple(
        Document(f"d{n}", f"Our {THINGS[n]} opens at nine and everybody may use it.", f"Title {n}") for n in range(5)
    )
    golden = GoldenSet("inn", "1.2.0", queries, judgments, documents, created_at="2026-01-01", relevance_threshold=2)
    save(golden, Path("inn.json"))
    return Path("inn.json")


@pytest.fixture
def log(place) -> None:
    texts = [f"who may {deed} our {thing}" for thing in THINGS for deed in DEEDS]
    with Store.open(place) as store:
        store.add_queries(
            [
                LoggedQuery(
                    f"eq_{n}", text, "desk", timestamp(NOW - timedelta(days=1 + n % 20)), intent=f"intent{n % 4}",
                    result_ids=(f"d{n % 5}", f"d{(n + 1) % 5}"), session_id=f"case{n % 3}",
                )
                for n, text in enumerate(texts)
            ]
        )  # fmt: skip


@pytest.fixture
def queued(inn, place) -> list[str]:
    """Four unjudged pairs in the queue, each for two reviewers, the most urgent first."""
    golden = load(inn)
    rivals = ({"q00": ["d1", "d2"], "q01": ["d3"]}, {"q00": ["d2", "d1"], "q01": ["d4"]})
    runs = [Run.from_rankings(answers, name=str(n)) for n, answers in enumerate(rivals)]
    with Store.open(place) as store:
        ReviewQueue(store).add(pairs_of(golden, worth_judging(golden, runs), now=NOW, wanted=2))
        return [item.item_key for item in store.review_items()]


def test_add_queues_what_would_change_a_comparison_most(ringtrue, inn) -> None:
    Path("a.run").write_text("q00 Q0 d1 1 2 a\nq00 Q0 d2 2 1 a\nq01 Q0 d3 1 2 a\n")
    Path("b.run").write_text("q00 Q0 d2 1 2 b\nq00 Q0 d1 2 1 b\nq01 Q0 d4 1 2 b\n")
    made = ringtrue("review", "add", inn, "--run", "a.run", "--run", "b.run", "--limit", "3", "--json").json
    assert made == {"unjudged": 4, "queued": 3, "new": 3}
    items = ringtrue("review", "list", "--json").json["items"]
    assert [item["query_id"] for item in items] == ["q01", "q01", "q00"]
    assert {item["wanted"] for item in items} == {2}


def judge(grades: dict[str, tuple[int, int]]) -> None:
    """Ada and Ben judge pairs."""
    with Store.open() as store:
        queue = ReviewQueue(store)
        for key, said in grades.items():
            for name, grade in zip(("ada", "ben"), said, strict=True):
                queue.judge(key, grade, reviewer=name, now=NOW)


def test_next_shows_question_document_and_guidelines_and_keeps_the_pair(ringtrue, queued) -> None:
    shown = ringtrue("review", "next", "--reviewer", "ada")
    assert shown.code == 0
    assert "3  answers it fully" in shown.out
    assert "question  old question" in shown.out
    assert "opens at nine" in shown.out
    pair = ringtrue("review", "next", "--reviewer", "ada", "--json").json["pair"]
    assert f"judge {pair['key']} GRADE" in shown.out
    assert ringtrue("review", "next", "--reviewer", "ben", "--json").json["pair"]["key"] != pair["key"]


def test_trap_40_stored_text_cannot_command_the_reviewers_terminal(ringtrue, place) -> None:
    with Store.open() as store:
        item = ReviewItem("k1", "q1", "what\x1b[2J now", "d", timestamp(NOW), text="line one\n\x1b]0;owned\x07line two\ud800")
        store.add_review_items([item])
    shown = ringtrue("review", "next", "--reviewer", "ada")
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert "\\x1b[2J" in shown.out
    assert "line two" in shown.out


def test_own_guidelines_take_the_place_of_ours(ringtrue, queued, tmp_path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("Be kind.\n")
    shown = ringtrue("review", "next", "--reviewer", "ada", "--guidelines", own, "--json").json
    assert shown["guidelines"] == "Be kind."


def test_judging_approves_and_no_listing_shows_a_grade(ringtrue, queued) -> None:
    key = queued[0]
    first = ringtrue("review", "judge", key, "3", "--reviewer", "ada", "--json").json
    assert (first["state"], first["grade"]) == ("pending_review", 3)
    listed = ringtrue("review", "list", "--json").out + ringtrue("review", "next", "--reviewer", "ben", "--json").out
    assert 'grade"' not in listed
    assert "ada" not in listed
    assert ringtrue("review", "judge", key, "2", "--reviewer", "ben").out.startswith(f"{key}: 2, approved")
    backlog = ringtrue("review", "list", "--json").json["backlog"]
    assert (backlog["pending_review"], backlog["approved"], backlog["total"]) == (3, 1, 4)


def test_reject_undo_and_stats(ringtrue, queued) -> None:
    assert ringtrue("review", "judge", queued[0], "reject", "--reviewer", "ada", "--json").json["state"] == "rejected"
    assert ringtrue("review", "undo", "--reviewer", "ada", "--json").json["pair"]["state"] == "pending_review"
    assert "nothing to take back" in ringtrue("review", "undo", "--reviewer", "ada").out
    judge(dict(zip(queued, [(3, 3), (0, 0), (3, 3), (0, 3)], strict=True)))
    stats = ringtrue("review", "stats", "--json").json
    assert set(stats) == {"backlog", "raters", "agreement", "disputes"}
    assert stats["agreement"]["coefficient"] == 0.5
    assert stats["raters"][0] == {"name": "ada", "ratings": 4, "grades": {"0": 2, "3": 2}}
    text = ringtrue("review", "stats").out
    assert "Cohen's kappa of 2 reviewers over 4 pairs: 0.500" in text
    assert f"{queued[3]}  old question 0 about matter0" in text
    (dispute,) = stats["disputes"]
    assert (dispute["key"], dispute["query"]) == (queued[3], "old question 0 about matter0")


def test_keys_judge_skip_reject_undo_and_quit(ringtrue, queued, monkeypatch) -> None:
    keys = iter("z3su30x")
    monkeypatch.setattr(show, "on_terminal", lambda: True)
    monkeypatch.setattr("typer.getchar", lambda: next(keys))
    shown = ringtrue("review", "next", "--reviewer", "ada")
    assert shown.code == 0
    done = [line.strip() for line in shown.out.splitlines() if line.strip().startswith("→")]
    assert [line.split(":")[0] for line in done] == ["→ 3", "→ skipped", "→ taken back", "→ 3", "→ 0", "→ rejected"]
    assert "2 judged" in shown.out
    assert shown.out.count("0–3 grade") == 2, "an unknown key shows them again"
    with Store.open() as store:
        assert sorted(row.grade for row in store.ratings()) == [0, 3]
        assert store.backlog()["rejected"] == 1
        assert not [item for item in store.review_items() if item.reserved_by], "nothing stays reserved"
    keys = iter("q")
    assert "0 judged" in ringtrue("review", "next", "--reviewer", "ben").out
    with Store.open() as store:
        assert not [item for item in store.review_items() if item.reserved_by], "neither after q"


def test_people_without_the_tool_judge_in_a_table(ringtrue, queued, tmp_path) -> None:
    ringtrue("review", "judge", queued[0], "1", "--reviewer", "ada")
    for name in ("ada", "ben"):
        assert ringtrue("review", "export", "--reviewer", name, "--out", f"{name}.csv").code == 0
    rows = list(csv.DictReader(Path("ben.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 4
    assert all(row["grade"] == "" for row in rows), "what ada said is not in ben's file"
    assert queued[0] not in {row["key"] for row in csv.DictReader(Path("ada.csv").read_text(encoding="utf-8").splitlines())}
    for row, grade in zip(rows, ["0", "1", "2", ""], strict=True):
        row["grade"] = grade
    with Path("ben.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert ringtrue("review", "import", "ben.csv", "--reviewer", "ben", "--json").json["judged"] == 3
    assert ringtrue("review", "import", "ben.csv", "--reviewer", "ben", "--json").json["judged"] == 3, "again changes nothing"
    with Store.open() as store:
        assert len(store.ratings()) == 4
    Path("bad.csv").write_text(f"key,grade\n{queued[1]},2\n{queued[2]},5\n")
    refused = ringtrue("review", "import", "bad.csv", "--reviewer", "cy")
    assert refused.code == 2
    assert "bad.csv:3: field 'grade': '5' is not a grade" in refused.err
    with Store.open() as store:
        assert not [row for row in store.ratings() if row.reviewer == "cy"], "all rows are checked before any is kept"


def test_publish_writes_the_next_version_once(ringtrue, queued, inn) -> None:
    judge(dict(zip(queued[:2], [(2, 2), (1, 1)], strict=True)))
    unversioned = ringtrue("review", "publish", inn, "--out", "next.csv")
    assert (unversioned.code, Path("next.csv").exists()) == (2, False)
    assert "cannot hold the version of a golden set; write a .json file (next.json)" in unversioned.err
    made = ringtrue("review", "publish", inn, "--out", "next.json", "--json").json
    assert (made["version"], made["judgments"], made["published"]) == ("inn-v1.3.0", 2, 2)
    golden = load("next.json")
    assert {j.metadata["annotator"] for j in golden.judgments if j.source == "manual"} == {"ada + ben"}
    assert made["backlog"]["published"] == 2
    assert ringtrue("review", "publish", inn, "--out", "again.json").code == 3
    assert not Path("again.json").exists()


def test_publish_needs_agreement_or_a_reason_that_stays(ringtrue, queued, inn, place) -> None:
    judge(dict(zip(queued[:3], [(3, 0), (0, 3), (1, 1)], strict=True)))
    refused = ringtrue("review", "publish", inn, "--out", "next.json")
    assert (refused.code, Path("next.json").exists()) == (3, False)
    assert "not above 0.6" in refused.err
    assert ringtrue("review", "publish", inn, "--out", "next.json", "--force").code == 2
    why = "the new guidelines are not out yet"
    made = ringtrue("review", "publish", inn, "--out", "next.json", "--force", "--reason", why, "--who", "dora", "--json")
    assert (made.code, made.json["published"], made.json["forced"]) == (0, 3, why)
    with Store.open(place) as store:
        (entry,) = store.audit(what="review.publish")
    assert (entry.who, entry.subject, entry.detail["forced"]) == ("dora", "inn-v1.3.0", why)
    assert "not above 0.6" in entry.detail["agreement"]


def test_stats_say_what_was_settled_on_the_page(ringtrue, queued, place) -> None:
    judge({queued[0]: (3, 0)})
    with Store.open(place) as store:
        facts = {"golden": "inn", "adjudicated_by": "dora", "adjudicated_at": timestamp(NOW)}
        store.update_review_item(queued[0], lambda item: replace(item, metadata=facts), project="default")
        store.add_rating(queued[0], "dora", 2, NOW)
    (found,) = ringtrue("review", "stats", "--json").json["disputes"]
    assert (found["grades"], found["settled_by"], found["settled"]) == ({"ada": 3, "ben": 0}, "dora", 2)
    assert "dora settled it: 2" in ringtrue("review", "stats").out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["judge", "{key}", "5", "--reviewer", "ada"], 2, "'5' is not a grade; write 0, 1, 2, 3 or reject"),
        (["judge", "nokey", "1", "--reviewer", "ada"], 2, "the review queue has no pair 'nokey'"),
        (["judge", "{key}", "1", "--reviewer", " "], 2, "name is empty"),
        (["next"], 2, "--reviewer"),
        (["list", "--state", "aproved"], 2, "did you mean 'approved'"),
        (["publish", "inn.json", "--out", "x.json", "--rule", "mean"], 3, "no pair of 'inn' is approved"),
    ],
)
def test_errors_name_value_and_cure(ringtrue, queued, arguments, code, says) -> None:
    outcome = ringtrue("review", *(argument.format(key=queued[0]) for argument in arguments))
    assert outcome.code == code
    assert says in outcome.err
    assert outcome.out == ""


class TestRefreshCommand:
    def judge_all(self, *, differ: int = 0) -> None:
        with Store.open() as store:
            items = sorted(store.review_items(), key=lambda item: item.item_key)
        right = {item.item_key: 3 if item.doc_id in ("d0", "d2", "d4") else 0 for item in items}
        judge({key: (grade, 1 if n < differ else grade) for n, (key, grade) in enumerate(right.items())})

    def test_propose_judge_and_write_the_next_version(self, ringtrue, inn, log) -> None:
        before = load(inn)
        proposed = ringtrue("golden", "refresh", inn, "--json").json
        assert (len(proposed["new"]), len(proposed["retire"]), proposed["proposed_now"]) == (20, 20, True)
        assert {row["intent"] for row in proposed["new"]} == {f"intent{n}" for n in range(4)}
        assert proposed["waiting"] == proposed["pairs"] == 40
        assert proposed["coverage"]["same"] == 0.0
        assert proposed["age_days"] > 90
        assert any("days old" in warning for warning in proposed["warnings"])
        waiting = ringtrue("golden", "refresh", inn, "--out", "next.json")
        assert waiting.code == 3
        assert "40 of 40 pairs wait" in waiting.err
        self.judge_all()
        made = ringtrue("golden", "refresh", inn, "--out", "next.json", "--json")
        assert made.code == 0
        assert (made.json["version"], len(made.json["added"]), len(made.json["retired"])) == ("inn-v2.0.0", 20, 20)
        after = load("next.json")
        assert {q.query_id for q in before.queries} - {q.query_id for q in after.queries} == set(proposed["retire"])
        chairs = {(j.query_id, j.doc_id, j.grade) for j in before.judgments if j.source == "chair"}
        assert chairs <= {(j.query_id, j.doc_id, j.grade) for j in after.judgments if j.source == "chair"}
        assert ringtrue("review", "list", "--json").json["backlog"]["published"] == 40
        content = Path("next.json").read_bytes()
        assert ringtrue("golden", "refresh", inn, "--out", "next.json").code == 0, "a re-run is not an error"
        assert Path("next.json").read_bytes() == content
        problems = ringtrue("golden", "validate", "next.json", "--minimum-documents", "1", "--json").json["problems"]
        assert not [problem for problem in problems if problem["severity"] == "error"]
        assert ringtrue("golden", "refresh", "next.json", "--json").json["golden"] == "inn-v2.0.0", "and so on from there"

    def test_too_little_agreement_refuses_lists_and_writes_nothing(self, ringtrue, inn, log) -> None:
        ringtrue("golden", "refresh", inn, "--count", "8")
        self.judge_all(differ=8)
        refused = ringtrue("golden", "refresh", inn, "--out", "next.json")
        assert refused.code == 1
        assert "8 pairs are judged differently" in refused.out
        assert refused.out.count("ada ") == 8
        assert refused.out.count("who may ") == 8, "with the question"
        key = next(line.split()[0] for line in refused.out.splitlines() if "who may " in line)
        assert ringtrue("review", "judge", key, "1", "--reviewer", "ada").code == 0, "and the key that judging takes"
        judge({key: (3, 1)})
        assert "refused: Cohen's kappa is" in refused.err
        assert not Path("next.json").exists()
        record = ringtrue("golden", "refresh", inn, "--out", "next.json", "--json")
        assert (record.code, record.json["written"], len(record.json["disputes"])) == (1, None, 8)
        assert key in {dispute["key"] for dispute in record.json["disputes"]}
        assert all(dispute["query"].startswith("who may ") for dispute in record.json["disputes"])

    def test_the_first_harvest_asks_again_and_makes_a_set_of_its_own(self, ringtrue, inn, log) -> None:
        found = ringtrue("golden", "refresh", inn, "--first", "--retriever", "bm25", "--count", "10", "--json")
        assert found.code == 0, found.err
        assert (len(found.json["new"]), found.json["retire"]) == (10, [])
        self.judge_all()
        made = ringtrue("golden", "refresh", inn, "--first", "--out", "regression.json", "--json").json
        assert made["version"] == "inn-regression-v1.0.0"

    @pytest.mark.parametrize("name", ["next.csv", "next.parquet"])
    def test_a_file_that_cannot_hold_the_version_is_refused_before_anything_changes(self, ringtrue, inn, log, name) -> None:
        ringtrue("golden", "refresh", inn)
        self.judge_all()
        refused = ringtrue("golden", "refresh", inn, "--out", name)
        assert refused.code == 2
        assert f"{name}: a {Path(name).suffix} file cannot hold the version of a golden set; write a .json file" in refused.err
        assert not Path(name).exists()
        assert ringtrue("review", "list", "--json").json["backlog"]["published"] == 0
        assert ringtrue("golden", "refresh", inn, "--out", "next.yaml").code == 0, "nothing was retired or published before"

    def test_nothing_proposed_or_logged_is_said(self, ringtrue, inn) -> None:
        assert "was proposed" in ringtrue("golden", "refresh", inn, "--out", "x.json").err
        empty = ringtrue("golden", "refresh", inn)
        assert empty.code == 3
        assert "holds no search" in empty.err


class TestBootstrapCommand:
    def test_g7b_from_citations_in_the_store_and_in_a_file(self, ringtrue, inn, log) -> None:
        with Store.open() as store:
            store.add_feedback([FeedbackEvent("e1", "cite", "case0", timestamp(NOW), query_id="eq_0", item_id="d0")])
        made = ringtrue("golden", "bootstrap", inn, "--from", "citations", "--out", "gold.json", "--json").json
        assert (made["queries"], made["judgments"], made["provisional"]) == (1, 1, True)
        (said,) = load("gold.json").judgments
        assert (said.doc_id, said.grade, said.source) == ("d0", 3, "citation")
        Path("cited.csv").write_text("doc_id,session_id\nd1,case1\nd2,case1\nunknown,case1\n")
        more = ringtrue("golden", "bootstrap", inn, "--from", "citations", "--citations", "cited.csv", "--out", "gold.json")
        assert more.code == 0
        assert "provisional until reviewed" in more.out
        assert "1 cited documents were shown by no search before: unknown" in more.err
        golden = load("gold.json")
        assert {judgment.doc_id for judgment in golden.judgments} == {"d1", "d2"}, "its own rows are rewritten"
        content = Path("gold.json").read_bytes()
        ringtrue("golden", "bootstrap", inn, "--from", "citations", "--citations", "cited.csv", "--out", "gold.json")
        assert Path("gold.json").read_bytes() == content

    def test_g7c_from_feedback(self, ringtrue, inn, log) -> None:
        with Store.open() as store:
            store.add_judgments(
                [
                    StoredJudgment("eq_0", "d0", 2, "implicit", timestamp(NOW), confidence=0.6),
                    StoredJudgment("eq_1", "elsewhere", 3, "validated", timestamp(NOW)),
                ]
            )
        made = ringtrue("golden", "bootstrap", inn, "--from", "feedback", "--out", "gold.json", "--json").json
        assert (made["queries"], made["signals"], made["unknown_documents"]) == (1, 2, 1)
        assert [(j.grade, j.source) for j in load("gold.json").judgments] == [(2, "implicit")]

    def test_g7d_offline_prints_the_overlap_and_leaves_confirmed_rows(self, ringtrue, place) -> None:
        made = ringtrue("golden", "bootstrap", "hotel", "--from", "generated", "--out", "made.json")
        assert made.code == 0
        assert "80 queries with 80 judgments (synthetic) written to made.json" in made.out
        assert "at most 0.40 (limit 0.4), made by offline" in made.out
        golden = load("made.json")
        assert golden.provisional
        first = golden.judgments[0]
        confirmed = replace(golden, judgments=(replace(first, grade=1, source="chair"), *golden.judgments[1:]))
        save(confirmed, Path("made.json"), overwrite=True)
        again = ringtrue("golden", "bootstrap", "hotel", "--from", "generated", "--out", "made.json", "--json").json
        assert len(again["confirmed"]) == 1
        assert (again["provisional"], again["queries"]) == (False, 79)
        kept = next(j for j in load("made.json").judgments if j.query_id == first.query_id)
        assert (kept.grade, kept.source) == (1, "chair")

    def test_g7d_by_a_language_model(self, ringtrue, inn) -> None:
        answer = {"choices": [{"message": {"content": json.dumps({"queries": ["when can we swim"]})}, "finish_reason": "stop"}]}
        with faults.answering([answer]) as server:
            Path("ringtrue.toml").write_text(f'[connections.writer]\nkind = "llm"\nmodel = "m"\nurl = "{server.url}"\n')
            made = ringtrue(
                "golden", "bootstrap", inn, "--from", "generated", "--llm", "writer", "--out", "made.json", "--json"
            )
        assert made.code == 0, made.err
        assert made.json["generator"] == "llm:m"
        assert (made.json["queries"], made.json["judgments"]) == (1, 5), "one question, made from five documents"

    @pytest.mark.parametrize(
        ("arguments", "code", "says"),
        [
            (["--from", "citation"], 2, "write 'citations'"),
            (["--llm", "writer"], 2, "--llm belongs to --from generated"),
            (["--from", "feedback"], 3, "nothing to make queries from was found"),
            (["--from", "generated", "--llm", "nobody"], 2, "[connections.nobody]"),
        ],
    )
    def test_errors_name_value_and_cure(self, ringtrue, inn, arguments, code, says) -> None:
        outcome = ringtrue("golden", "bootstrap", inn, "--out", "out.json", *arguments)
        assert outcome.code == code
        assert says in outcome.err
        assert not Path("out.json").exists()
