"""``ringtrue review``: pairs that people judge, one at a time and blind."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Overwrite, StoreOptions, check_new, command_group, utc_now
from ringtrue.cli.search import documents_in
from ringtrue.cli.show import counted
from ringtrue.errors import InputError, check_choice

app = command_group("Have people judge query-document pairs, independently.")
Reviewer = Annotated[str, typer.Option("--reviewer", "-r", help="Who judges.")]
RuleName = Annotated[str, typer.Option("--rule", help="How several grades become one: majority, max, newest or adjudicated.")]
Adjudicator = Annotated[str | None, typer.Option("--adjudicator", help="Who decides disputes with --rule adjudicated.")]
KEYS = "0–3 grade   s skip   x reject   u undo   q quit"
SHOWN = 1500
"""Characters of a document that are shown; --whole shows all."""
COLUMNS = ("key", "query", "doc_id", "title", "text", "grade", "note")
GRADES = ("0", "1", "2", "3")


@contextmanager
def opened_queue(options: StoreOptions, *, create: bool = False) -> Iterator[tuple[lib.store.Store, lib.review.ReviewQueue]]:
    """Give the store and the review queue of the project in it; raises MissingInput without a store, unless ``create``."""
    with options.open() if create else options.existing() as opened:
        yield opened, lib.review.ReviewQueue(opened, project=options.project)


@app.command()
def add(
    *,
    source: Annotated[str, typer.Argument(metavar="SET", help="A golden set: a path or a shipped name.")],
    runs: Annotated[list[str], typer.Option("--run", help="A run of another system.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Documents of each run to check for judgments.")] = 10,
    wanted: Annotated[int, typer.Option("--reviewers", min=1, help="How many people judge each pair, blind.")] = 2,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of pairs; the most informative first.")] = 100,
    corpus: Annotated[str | None, typer.Option(help="Documents for reviewers to read, if set and runs have no text.")] = None,
    options: StoreOptions,
) -> None:
    """Add unjudged documents to the queue, starting with those that could change a comparison of the runs most.

    Reviewers read the documents of the set, of a run folder (if its connection sets text = '…') or of --corpus.

    Example: ringtrue review add hotel --run before.run --run after.run --reviewers 2
    Example: ringtrue review add questions.csv --run runs/today --corpus documents.jsonl
    """
    golden = lib.golden.load(source)
    found = lib.golden.worth_judging(golden, lib.formats.read_named_runs(runs), k=k)
    passages = lib.review.passages_of(_evaluations(runs)) | ({} if corpus is None else _passages(corpus))
    items = lib.review.pairs_of(golden, found[:limit], now=utc_now(), wanted=wanted, project=options.project, passages=passages)
    with opened_queue(options, create=True) as (_, queue):
        new = queue.add(items)
        readable = {item.item_key for item in queue.items() if item.text or item.title}
    silent = sum(item.item_key not in readable for item in items)
    lacking = f"{counted(silent, 'pair has', 'pairs have')} no text for reviewers; add it: ringtrue review texts DOCUMENTS"
    show.result(
        options.json,
        {"unjudged": len(found), "queued": len(items), "new": new},
        f"{counted(len(found), 'unjudged document')} in the top {k}; {len(items)} in the queue, {new} of them new",
        notes=[lacking] * bool(silent),
    )


@app.command()
def texts(
    *,
    source: Annotated[str, typer.Argument(help="Documents: files or a folder, a golden set that has them, or a run folder.")],
    options: StoreOptions,
) -> None:
    """Add the texts of documents to queued pairs that have none.

    Example: ringtrue review texts documents.jsonl
    """
    passages = _passages(source)
    with opened_queue(options) as (_, queue):
        given, left = queue.fill(passages), sum(not item.text for item in queue.items())
    show.result(
        options.json, {"given": given, "without": left}, f"text added to {counted(given, 'pair')}; {left} still have none"
    )


def _passages(source: str) -> dict[str, tuple[str, str]]:
    """Return title and text of documents by id, from a run folder or documents."""
    runs = _evaluations([source])
    return lib.review.passages_of(runs) if runs else {one.doc_id: (one.title, one.text) for one in documents_in(source)}


def _evaluations(sources: Sequence[str]) -> list[lib.run.Evaluation]:
    """Return the evaluations among these: the run folders; a plain run is none."""
    return [lib.run.open_run(place) for place in map(Path, sources) if place.is_dir() and (place / "run.json").is_file()]


@app.command("list")
def list_items(
    *,
    state: Annotated[str | None, typer.Option(help="Only pending_review, approved, rejected or published ones.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number.")] = 50,
    options: StoreOptions,
) -> None:
    """List the pairs in the queue, pending ones first, by priority. Grades are hidden (blind review).

    Example: ringtrue review list --state pending_review
    """
    check_choice(state, lib.review.STATES, f"'{state}' is not a state of a pair")
    with opened_queue(options) as (opened, queue):
        states = [state] if state else sorted(lib.review.STATES, key=lambda one: one != "pending_review")
        found = (opened.review_items(project=options.project, state=one, limit=limit) for one in states)  # type: ignore[arg-type]
        items = [item for some in found for item in some][:limit]
        counts = queue.counts()
        backlog = opened.backlog(project=options.project)
    rows = [
        [item.item_key, item.state, show.short(item.query), item.doc_id, f"{counts.get(item.item_key, 0)}/{item.wanted}",
         show.number(item.priority, 3)]
        for item in items
    ]  # fmt: skip
    show.result(
        options.json,
        {"backlog": backlog, "items": [{**_facts(item), "ratings": counts.get(item.item_key, 0)} for item in items]},
        show.Table(("key", "state", "query", "document", "judged", "priority"), rows, 4),
        _backlog(backlog),
        notes=[] if items else ["the queue holds no such pair"],
    )


@app.command("next")
def next_pair(
    *,
    reviewer: Reviewer,
    guidelines: Annotated[Path | None, typer.Option(help="A text file with your own guidelines, instead of ours.")] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="Minutes to reserve the pair for you.")] = 15,
    seed: Annotated[int, typer.Option(help="Seed of the order of the pairs.")] = 0,
    whole: Annotated[bool, typer.Option("--whole", help="Show long documents in full.")] = False,
    options: StoreOptions,
) -> None:
    """Show the next pair to judge and reserve it for you; on a terminal, judge pair after pair with single keys.

    Keys: 0 to 3 grade the pair, s skips it, x rejects it (nobody should judge it), u undoes your last action, q quits.

    Example: ringtrue review next --reviewer ada
    """

    text = guidelines.read_text(encoding="utf-8").rstrip() if guidelines else lib.review.GUIDELINES
    with opened_queue(options) as (opened, queue):
        if not options.json and show.on_terminal():
            print(f"{text}\n\n{KEYS}")
            _judge_by_keys(queue, reviewer, minutes=minutes, seed=seed, whole=whole)
            return
        item = queue.next(reviewer, now=utc_now(), minutes=minutes, seed=seed)
        backlog = opened.backlog(project=options.project)
    pair = None if item is None else {**_facts(item), "text": item.text, "reserved_until": item.reserved_until}
    said = [f"nothing is left for '{reviewer}' to judge"]
    if item is not None:
        judging = f"\njudge it: ringtrue review judge {item.item_key} GRADE --reviewer {reviewer}"
        said = [f"{text}\n", _shown(item, whole=whole), judging]
    show.result(options.json, {"pair": pair, "guidelines": text, "backlog": backlog}, *said)


def _judge_by_keys(queue: lib.review.ReviewQueue, reviewer: str, *, minutes: float, seed: int, whole: bool) -> None:
    """Show pair after pair and do what the keys say, until nothing is left or the reviewer ends."""
    passing: set[str] = set()
    done = 0
    while (item := queue.next(reviewer, now=utc_now(), minutes=minutes, seed=seed, passing=passing)) is not None:
        show.page("\n" + _shown(item, whole=whole))
        while (key := typer.getchar().lower()) not in {*"0123sxuq", "\x03", "\x04"}:
            print(f"  {KEYS}")
        if key in "0123":
            queue.judge(item.item_key, int(key), reviewer=reviewer, now=utc_now())
            done += 1
            print(f"  → {key}")
        elif key == "x":
            queue.reject(item.item_key, reviewer=reviewer, now=utc_now())
            print("  → rejected")
        elif key == "s":
            queue.release(item.item_key, reviewer)
            passing.add(item.item_key)
            print("  → skipped")
        elif key == "u":
            queue.release(item.item_key, reviewer)
            back = queue.undo(reviewer)
            done -= back is not None
            passing.discard(back.item_key if back else "")
            show.page(
                f"  → taken back: {show.short(back.query)} / {back.doc_id}" if back else "  → there is nothing to take back"
            )
        else:
            queue.release(item.item_key, reviewer)
            break
    print(f"\n{done} judged" + ("" if item is not None else "; nothing is left for you to judge"))


@app.command()
def judge(
    *,
    key: Annotated[str, typer.Argument(help="The pair's key, as shown by review next.")],
    grade: Annotated[str, typer.Argument(help="0, 1, 2 or 3; or reject, to take the pair out of the queue.")],
    reviewer: Reviewer,
    note: Annotated[str, typer.Option(help="Why.")] = "",
    options: StoreOptions,
) -> None:
    """Judge one pair. If you judge it again, the latest grade counts, until the pair is published.

    Example: ringtrue review judge 3f9a1c77b2 3 --reviewer ada
    Example: ringtrue review judge 3f9a1c77b2 reject --reviewer ada --note "holds a guest's name"
    """
    if grade not in (*GRADES, "reject"):
        raise InputError(f"'{grade}' is not a grade; write 0, 1, 2, 3 or reject")
    given = None if grade == "reject" else int(grade)
    with opened_queue(options) as (opened, queue):
        if given is None:
            item = queue.reject(key, reviewer=reviewer, now=utc_now(), why=note)
        else:
            item = queue.judge(key, given, reviewer=reviewer, now=utc_now(), note=note)
        backlog = opened.backlog(project=options.project)
    record = {**_facts(item), "grade": given, "backlog": backlog}
    show.result(options.json, record, f"{item.item_key}: {grade}, {item.state}", _backlog(backlog))


@app.command()
def undo(*, reviewer: Reviewer, options: StoreOptions) -> None:
    """Undo a reviewer's last grade or rejection, unless it is published.

    Example: ringtrue review undo --reviewer ada
    """
    with opened_queue(options) as (_, queue):
        item = queue.undo(reviewer)
    said = "there is nothing to take back" if item is None else f"taken back: {item.item_key} is {item.state} again"
    show.result(options.json, {"pair": None if item is None else _facts(item)}, said)


@app.command()
def stats(*, adjudicator: Adjudicator = None, options: StoreOptions) -> None:
    """Show the backlog, the reviewers' counts and their agreement: Cohen's kappa for two, Krippendorff's alpha for more.

    Agreement and disputes cover only pairs that all their reviewers have judged, so that no grade is shown too early.

    Example: ringtrue review stats
    """
    with opened_queue(options) as (_, queue):
        standing = queue.standing(adjudicator=adjudicator)
    rows = [[one.name, one.ratings, *(str(one.grades.get(grade, 0)) for grade in "0123")] for one in standing.raters]
    found = standing.agreement
    show.result(
        options.json,
        standing,
        _backlog(standing.backlog),
        show.Table(("reviewer", "judged", "0", "1", "2", "3"), rows),
        agreement_line(found) if found else "",
        *disputes(standing.disputes if found else (), most=20),
        notes=[] if found or not rows else ["agreement needs pairs that two people have judged"],
    )


def agreement_line(found: lib.stats.Agreement) -> str:
    """Return how far raters agree."""
    return f"{found.name} of {found.raters} reviewers over {counted(found.items, 'pair')}: {show.number(found.coefficient, 3)}"


def disputes(found: Sequence[lib.answers.Dispute], *, most: int | None) -> tuple[str, show.Table]:
    """Return the pairs on which raters differ, the first ``most`` of them, with the key that ``review judge`` takes."""
    rows = [[one.key, show.short(one.query or one.query_id), one.doc_id, _said(one)] for one in found]
    line = f"\n{counted(len(found), 'pair is', 'pairs are')} judged differently, the widest gaps first:" if found else ""
    return line, show.Table(("key", "question", "document", "grades"), rows, 4, most=most)


@app.command()
def export(
    *,
    reviewer: Reviewer,
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV file to write.")],
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of pairs.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the order of the pairs.")] = 0,
    overwrite: Overwrite = False,
    options: StoreOptions,
) -> None:
    """Write a reviewer's pending pairs as CSV with an empty grade column, for people who do not use this tool.

    No pair is reserved, and the file does not contain the grades of others.

    Example: ringtrue review export --reviewer ben --out for-ben.csv
    """

    check_new(out, overwrite=overwrite)
    with opened_queue(options) as (_, queue):
        waiting = queue.waiting(reviewer, seed=seed)[:limit]
    rows = [(item.item_key, item.query, item.doc_id, item.title, item.text, "", "") for item in waiting]
    lib.formats.write_rows(COLUMNS, rows, out, "csv")
    said = f"{counted(len(rows), 'pair')} for '{reviewer}' written to {out}; read the grades back with ringtrue review import"
    show.result(options.json, {"written": out, "pairs": len(rows)}, said)


@app.command("import")
def import_grades(
    *,
    file: Annotated[Path, typer.Argument(help="A CSV file from ringtrue review export, with grades filled in.")],
    reviewer: Reviewer,
    options: StoreOptions,
) -> None:
    """Import a reviewer's grades from CSV; rows without a grade are skipped. If a row is invalid, nothing is imported.

    Example: ringtrue review import for-ben.csv --reviewer ben
    """

    grades: list[tuple[str, int, str]] = []
    empty = 0
    with opened_queue(options) as (opened, queue):
        states = {item.item_key: item.state for item in queue.items()}
        for place, row in lib.formats.csv_rows(file):
            if "key" not in row or "grade" not in row:
                raise place.error("the columns 'key' and 'grade' are needed", "use the file that review export wrote")
            key, grade = str(row["key"]).strip(), str(row["grade"]).strip()
            if not grade:
                empty += 1
                continue
            if grade not in GRADES:
                raise place.at("grade").error(f"'{grade}' is not a grade", "write 0, 1, 2 or 3, or leave it empty")
            if states.get(key) not in ("pending_review", "approved"):
                known = f"is {states[key]}" if key in states else "is not in the queue"
                raise place.at("key").error(f"pair '{key}' {known}", "remove the row")
            grades.append((key, int(grade), str(row.get("note") or "")))
        now = utc_now()
        for key, value, note in grades:
            queue.judge(key, value, reviewer=reviewer, now=now, note=note)
        backlog = opened.backlog(project=options.project)
    without = f", {counted(empty, 'row')} without a grade skipped" if empty else ""
    record = {"judged": len(grades), "empty": empty, "backlog": backlog}
    show.result(options.json, record, f"{counted(len(grades), 'grade')} of '{reviewer}' read{without}", _backlog(backlog))


@app.command()
def publish(
    *,
    source: Annotated[str, typer.Argument(metavar="SET", help="The golden set whose pairs were judged.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to write the next version.")],
    rule: RuleName = "majority",
    adjudicator: Adjudicator = None,
    force: Annotated[bool, typer.Option("--force", help="Publish despite low agreement; needs --reason.")] = False,
    reason: Annotated[str, typer.Option(help="Why low agreement is accepted; kept in the audit trail.")] = "",
    who: Annotated[str, typer.Option(help="Your name, for the audit trail.")] = "ringtrue",
    overwrite: Overwrite = False,
    options: StoreOptions,
) -> None:
    """Write the next version of a golden set with the judgments of its approved pairs, and mark them as published.

    If two or more reviewers judged the same pairs, their agreement (Cohen's kappa; Krippendorff's alpha for more than two)
    must exceed 0.6; otherwise nothing is written (exit code 3), unless --force and --reason are given.

    Example: ringtrue review publish hotel --out golden-dataset-v1.1.0.json --rule majority
    """

    lib.golden.require_version(out)
    with opened_queue(options) as (opened, queue):
        by, now = cast("lib.golden.Rule", rule), utc_now()
        made = queue.publication(lib.golden.load(source), rule=by, adjudicator=adjudicator)
        forced = lib.review.require(made.gate, force=force, reason=reason)
        lost = lib.golden.save(made.golden, out, overwrite=overwrite)
        version = lib.golden.version_name(made.golden)
        # Marked only now: after a crash the same pairs are published again, into the same version.
        published = queue.publish(made, who=who, now=now, forced=forced)
        backlog = opened.backlog(project=options.project)
    record = {"written": out, "version": version, "published": published, **show.pick(made, "judgments", "kept")}
    record |= {"agreement": made.gate, "forced": forced or None, "lost": lost, "backlog": backlog}
    notes = [f"{made.gate.says}; forced: {forced}" if forced else made.gate.says]
    if made.kept:
        notes.append(f"{counted(len(made.kept), 'pair was', 'pairs were')} judged by a person before; that judgment stays")
    said = f"{version} written to {out}: {counted(made.judgments, 'judgment')} of {counted(published, 'pair')}"
    notes += [f"the file cannot hold: {loss}" for loss in lost]
    show.result(options.json, record, said, _backlog(backlog), notes=notes)


def _facts(item: lib.store.ReviewItem) -> dict[str, Any]:
    """Return what may be shown of a pair, under the names that REST uses: not who has it, and nobody's grade."""
    names = ("query_id", "query", "doc_id", "title", "state", "priority", "wanted", "created_at")
    return {"key": item.item_key, **show.pick(item, *names)}


def _shown(item: lib.store.ReviewItem, *, whole: bool) -> str:
    text = item.text if whole or len(item.text) <= SHOWN else item.text[:SHOWN].rstrip() + " … (--whole shows all)"
    lines = [f"pair      {item.item_key}", f"question  {item.query}", f"document  {item.doc_id}  {item.title}".rstrip()]
    return "\n".join([*lines, textwrap.indent(text.strip() or "(no text)", "  ")])


def _backlog(backlog: Any) -> str:
    states = ("pending_review", "approved", "rejected", "published")
    oldest = f", the oldest pending since {backlog['oldest_pending_at']}" if backlog["oldest_pending_at"] else ""
    counts = ", ".join(f"{backlog[state]} {state.split('_')[0]}" for state in states)
    return f"{counted(backlog['total'], 'pair')}: {counts}{oldest}"


def _said(one: lib.answers.Dispute) -> str:
    said = ", ".join(f"{rater} {grade}" for rater, grade in one.grades.items())
    return said if one.settled_by is None else f"{said}; {one.settled_by} settled it: {one.settled}"
