"""``ringtrue shadow``: a candidate beside production."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.flag import Flagged
from ringtrue.cli.options import StoreOptions, Who, command_group, moment, person, utc_now
from ringtrue.cli.search import DEFAULT_FOLDER
from ringtrue.cli.search import opened as documents
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.rollout import Feed

app = command_group("Run a candidate beside production, unseen by users.")


@app.command()
def start(
    *,
    name: Flagged,
    candidate: Annotated[str | None, typer.Option("--candidate", "-c", help="The candidate; default: the last one.")] = None,
    production: Annotated[
        str | None, typer.Option("--production", "-p", help="Production's retriever; default: the last one used, else hybrid.")
    ] = None,
    folder: Annotated[Path, typer.Option("--in", help="Folder made by ringtrue ingest.")] = DEFAULT_FOLDER,
    golden: Annotated[str | None, typer.Option(help="Run both now on every query of this set, for graduation.")] = None,
    log: Annotated[bool, typer.Option("--log", help="Run both now on a sample of the logged searches.")] = False,
    since: Annotated[str | None, typer.Option(help="With --log: only searches since this time, like 7d.")] = None,
    sample: Annotated[float, typer.Option(min=0, max=100, help="With --log: percent of the searches, chosen by id.")] = 10.0,
    timeout: Annotated[float, typer.Option(help="Timeout of the candidate, in seconds.")] = 5.0,
    memory: Annotated[
        int | None, typer.Option(min=1, help="Memory limit of the candidate in MB, with --isolate process.")
    ] = None,
    isolate: Annotated[str, typer.Option(help="thread, or process for hard limits.")] = "thread",
    keep: Annotated[str, typer.Option(help="lists, or difference: only ids that one side does not return.")] = "lists",
    k: Annotated[int, typer.Option("-k", min=1, help="With --log: hits per query.")] = 10,
    allow: Annotated[
        list[str] | None, typer.Option(help="With --golden: a precondition that is allowed to fail, as in eval.")
    ] = None,
    feed: Annotated[bool, typer.Option("--test", help="Feed the sequential test with queries judged by now.")] = False,
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Start shadow runs of a candidate: now on a golden set or the log, and from now on in live systems.

    A live system runs them with ringtrue.rollout.Shadow(production, candidate, store, NAME). The same expression on both sides
    is an A/A run, which measures the noise floor.

    Example: ringtrue shadow start new-ranking --candidate 'rrf(bm25, dense)' --production bm25 --golden hotel
    Example: ringtrue shadow start new-ranking --log --since 7d --isolate process --memory 1024
    Example: ringtrue shadow start noise-floor --candidate hybrid --production hybrid --golden hotel
    """
    with options.open() as opened:
        one = _ShadowStart(opened, name, options.project, utc_now(), person(who), folder)
        feeding = one.begin(candidate, production, asked=golden is not None or log, feed=feed)
        told, live = _CountingFeed(feeding), _CountingFeed(feeding)
        on_golden = None if golden is None else one.ask_golden(golden, told if feed else None, allow or ())
        counts = None
        if log:
            limit = {} if memory is None else {"memory": memory * 2**20}
            how = {"timeout": timeout, "isolate": isolate, "keep": keep, "feed": live if feed else None, "sample": sample / 100}
            counts = one.ask_log(since, k, **how, **limit)
        flag = lib.rollout.existing_flag(opened, name, project=options.project)
        fed = one.feed_judged(flag, live, k) if feed else None
    record = {"flag": flag, "golden": None if on_golden is None else _golden_facts(on_golden), "log": counts, "judged": fed}
    record["judged_counted"] = live.counted if feed else None
    record["golden_counted"] = told.counted if feed and golden is not None else None
    parts: list[str | show.Table] = [f"{name}: the candidate runs in the shadow"]
    notes = [text for text in (counts.paused, counts.problem) if text] if counts is not None else []
    if on_golden is not None:
        others = f"; others not: {told.why_not}" if told.why_not else ""
        counted = f"\n{show.counted(told.counted, 'question')} counted by the test{others}"
        parts += [*_on_golden(on_golden), counted if feed else ""]
    if counts is not None:
        parts.append(
            f"\nof the log: {counts.sampled} searches asked, {counts.answered} answered, {counts.failed + counts.gone} failed, "
            f"{counts.dropped} dropped, {counts.saved} stored"
        )
    if fed or (feed and golden is None):
        others = f" (others: {live.why_not})" if live.counted < (fed or 0) else ""
        parts.append(f"\n{live.counted} of {fed} judged questions of live searches counted by the test{others}")
    if golden is None and not log and not feed:
        notes.append("live systems that shadow under this name start within seconds; --golden and --log run both now")
    show.result(options.json, record, *parts, notes=notes)


@app.command()
def status(
    *,
    name: Annotated[str | None, typer.Argument(help="The feature; default: all.")] = None,
    options: StoreOptions,
) -> None:
    """Show the results of shadow runs of the current candidates, including live systems without a flag.

    Example: ringtrue shadow status
    Example: ringtrue shadow status new-ranking --json
    """
    from ringtrue.rollout.evidence import shadowed

    with options.existing() as opened:
        known = [(flag, set_) for flag, set_ in shadowed(opened, project=options.project) if name in (None, flag.name)]
        if name and not known:
            _no_shadow(opened, name, options.project)
        flags, unset = [flag for flag, _ in known], {flag.name for flag, set_ in known if not set_}
        found = {flag.name: lib.rollout.judged_shadow_of(opened, flag) for flag in flags}
    told = {flag.name: {"flag": flag.name not in unset, **_status(flag, found[flag.name])} for flag in flags}
    rows = [_row(flag, found[flag.name], known=flag.name not in unset) for flag in flags]
    headers = [
        "feature", "shadow", "candidate", "queries", "missing", "failed", "changed", "first changed", "overlap", "judged",
        "RR Δ", "p95 Δ", "timed",
    ]  # fmt: skip
    notes = [
        f"{one}: {result.missing_share:.0%} of the live sample is missing; under load these are not random queries"
        for one, result in found.items()
        if result.missing_share
    ]
    if not flags:
        notes = ["no feature has a shadow run; start one: ringtrue shadow start NAME --candidate EXPRESSION --golden SET"]
    show.result(options.json, {"shadow": told}, show.Table(headers, rows, 3), notes=notes)


@app.command()
def stop(*, name: Flagged, who: Who = None, options: StoreOptions) -> None:
    """Stop the shadow runs of a feature, in live systems within seconds. Stored results are kept.

    Example: ringtrue shadow stop new-ranking
    """
    from ringtrue.rollout.evidence import STOPPED, shadowed, subject_of

    with options.existing() as opened:
        if name not in (one.name for one, _ in shadowed(opened, project=options.project)):
            _no_shadow(opened, name, options.project)
        now, flag = utc_now(), opened.flag(name, project=options.project)
        if flag is None:  # a flag that nobody asked for would be in everybody's list
            at = lib.store.timestamp(now)
            opened.add_audit(lib.store.AuditEntry(at, person(who), STOPPED, subject_of(name), {}, options.project))
        else:
            flag = lib.rollout.change_flag(
                opened, name, who=person(who), now=now, why="shadow stop", project=options.project, shadow=False
            )
    show.result(options.json, {"flag": flag}, f"{name}: shadow runs stopped")


def _no_shadow(store: lib.store.Store, name: str, project: str) -> NoReturn:
    from ringtrue.rollout.evidence import shadowed

    known = [one.name for one, _ in shadowed(store, project=project)]
    cure = f"did you mean {nearest(name, known)}?" if known else f"start one: ringtrue shadow start {name}"
    raise MissingInput(f"no flag '{name}' and no shadow run of that name; {cure}")


class _CountingFeed:
    """Feeds a test, and counts how many queries it counted of those it was told of, and why not the others."""

    def __init__(self, feed: Feed | None) -> None:
        self.counted, self.why_not, self._feed = 0, "", feed

    def __call__(self, query_id: str, control: lib.rollout.Scored, treatment: lib.rollout.Scored) -> None:
        found: Any = self._feed(query_id, control, treatment) if self._feed else None
        self.counted += found.counted
        self.why_not = found.why_not or self.why_not


@dataclass
class _ShadowStart:
    """A feature whose candidate starts to run beside production, and what both sides are asked now."""

    store: lib.store.Store
    name: str
    project: str
    now: datetime
    who: str
    folder: Path
    pair: dict[str, Any] = field(default_factory=dict)
    """What production and the candidate are."""

    def begin(self, candidate: str | None, production: str | None, *, asked: bool, feed: bool) -> Feed | None:
        """Set the flag, and return what feeds its test if one is to be fed; raises InputError if that cannot be."""
        from ringtrue.rollout.evidence import SINCE

        old, moment_now = self.store.flag(self.name, project=self.project), lib.store.timestamp(self.now)
        known: dict[str, Any] = dict(old.metadata) if old is not None else {}
        self.pair["candidate"] = candidate or known.get("candidate")
        self.pair["production"] = production or known.get("production") or "hybrid"
        if asked and self.pair["candidate"] is None:
            raise InputError(f"the candidate of '{self.name}' is unknown; add --candidate EXPRESSION")
        feeding = lib.rollout.feed_for_test(self.store, self.name, project=self.project) if feed else None
        new = {part: text for part, text in self.pair.items() if text is not None}
        if any(known.get(part, text) != text for part, text in new.items()):
            known[SINCE] = moment_now  # what the old pair showed says nothing about the new one
        test = self.store.test(self.name, project=self.project)
        if test is not None and SINCE in known and lib.store.timestamp(test.started_at) < lib.store.timestamp(known[SINCE]):
            # A test that has counted nothing can be about the new pair; one that has is about the old one.
            fresh = lib.rollout.begin_now(self.store, self.name, now=moment_now, project=self.project)
            if feed and not fresh:
                raise InputError(
                    f"the test of '{self.name}' has counted {show.counted(test.sample_count, 'query')} of the candidate as it "
                    f"was before; begin anew: ringtrue test create {self.name} --again"
                )
        self._change("shadow start", shadow=True, metadata={**known, **new})
        return feeding

    def _change(self, why: str, **changes: Any) -> None:
        lib.rollout.change_flag(self.store, self.name, who=self.who, now=self.now, why=why, project=self.project, **changes)

    def ask_golden(self, golden: str, feed: Feed | None, allow: Sequence[str]) -> lib.rollout.OnGolden:
        """Evaluate both sides on a golden set; its own documents are searched if it has some, else those in the folder."""
        from ringtrue.rollout.graduate import MEASURE

        questions = lib.golden.load(golden)
        outside = any(lib.retrieve.names_documents(text) for text in self.pair.values()) and not questions.documents
        facts = lib.rollout.existing_flag(self.store, self.name, project=self.project).metadata
        options: dict[str, Any] = {
            "measures": tuple(dict.fromkeys((*lib.rollout.measures_for(questions), str(facts.get("measure", MEASURE))))),
            "collection": documents(self.folder) if outside else None,
            "allow": tuple(allow),
        }
        # Fresh answers on both sides, one after the other: latencies from a cache would be those of another day.
        control, treatment = (
            lib.run.evaluate(self.pair[side], questions, failed="zero", cache=False, **options)
            for side in ("production", "candidate")
        )
        found = lib.rollout.record_on_golden(
            self.store, self.name, control, treatment, now=self.now, feed=feed, project=self.project
        )
        constitutional = {lib.rollout.NO_CONSTITUTIONAL: lib.rollout.without_constitutional(questions)}
        self._change(f"shadow on {found.treatment.golden}", metadata={**facts, **constitutional})
        return found

    def ask_log(self, since: str | None, k: int, **options: Any) -> lib.rollout.ShadowCounts:
        """Ask both sides a sample of the logged searches, each once."""
        from ringtrue.rollout.evidence import SINCE

        changed = lib.rollout.existing_flag(self.store, self.name, project=self.project).metadata.get(SINCE)
        rows = self.store.shadow_runs(feature_id=self.name, project=self.project, since=changed)
        seen = {row.query_id for row in rows}
        logged = self.store.queries(project=self.project, since=moment(since, self.now))
        left = [row for row in logged if row.query_id not in seen]
        if not left:
            raise MissingInput("no logged searches are left to send" + (f" since {since}" if since else ""))
        judged = lib.rollout.grades_by_words(left, self.store.judgments(project=self.project))
        production, candidate = (lib.rollout.Described(self.pair[side], self.folder) for side in ("production", "candidate"))
        production.opened  # noqa: B018  # what is missing is said before anything is asked
        options |= {"waiting": max(64, len(left)), "scorer": lib.rollout.scorer(judged), "source": "log"}
        shadow = lib.rollout.Shadow(production, candidate, self.store, self.name, project=self.project, **options)
        with marked("shadow", whole_process=True):
            for row in left:
                if shadow.in_sample(row.query_id):
                    shadow.search(row.query, k=k, query_id=row.query_id)
        return shadow.close(timeout=options["timeout"] * (shadow.counts.waiting + 1) + 60)

    def feed_judged(self, flag: lib.store.Flag, feed: Feed, k: int) -> int:
        """Feed the test with stored answers of the candidate as it is now, and none that an earlier test of it counted."""
        from ringtrue.rollout.abtest import BEGUN_ANEW
        from ringtrue.rollout.evidence import SINCE

        since = flag.metadata.get(SINCE)
        anew = self.store.audit(project=self.project, subject=self.name, what=BEGUN_ANEW, limit=1)
        if anew and (since is None or lib.store.timestamp(anew[0].detail["started_at"]) >= lib.store.timestamp(since)):
            since = lib.rollout.found_test(self.store, self.name, project=self.project).started_at
        return lib.rollout.feed_judged(self.store, self.name, feed, since=since, k=k, project=self.project)


def _status(flag: lib.store.Flag, found: lib.answers.ShadowSummary) -> dict[str, Any]:
    facts = {part: flag.metadata.get(part) for part in ("candidate", "production", "candidate_since")}
    return {"on": flag.shadow, **facts, **asdict(found)}


def _row(flag: lib.store.Flag, found: lib.answers.ShadowSummary, *, known: bool) -> list[str]:
    def percent(share: float | None, sign: str = "") -> str:
        return "—" if share is None else f"{share:{sign}.1%}"

    return [
        flag.name, "no flag" if not known else "on" if flag.shadow else "off", flag.metadata.get("candidate", "—"),
        found.queries, found.missing, found.failures, percent(found.changed), percent(found.top_changed),
        show.number(found.overlap, 2), found.judged, show.signed(found.mrr_delta), percent(found.p95_increase, "+"),
        f"{found.timed} {found.timed_source or ''}".strip() if found.timed else "—",
    ]  # fmt: skip


def _golden_facts(found: lib.rollout.OnGolden) -> dict[str, Any]:
    return {
        "golden": found.treatment.golden, "queries": found.treatment.query_count, "production": dict(found.control.metrics),
        "candidate": dict(found.treatment.metrics), "deltas": dict(found.treatment.deltas), "p": found.treatment.p_value,
        "run_id": found.treatment.run_id, "control_run_id": found.control.run_id,
    }  # fmt: skip


def _on_golden(found: lib.rollout.OnGolden) -> tuple[str, show.Table]:
    control, treatment = found.control.metrics, found.treatment.metrics
    rows = [
        [name, control.get(name), treatment.get(name), show.signed(delta)] for name, delta in found.treatment.deltas.items()
    ]
    head = f"\non {found.treatment.golden}, {show.counted(found.treatment.query_count, 'query')}:"
    return head, show.Table(("measure", "production", "candidate", "Δ"), rows)
