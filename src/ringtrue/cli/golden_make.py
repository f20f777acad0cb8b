"""``ringtrue golden bootstrap`` and ``refresh``: golden sets without hand labels, and the next version from what people ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json, Overwrite, StoreOptions, columns_of, utc_now
from ringtrue.cli.search import documents_in
from ringtrue.config import cache_folder
from ringtrue.errors import BAD_INPUT, OK, REGRESSION, CannotDecide, InputError, MissingInput, nearest
from ringtrue.traffic import marked

Method = Annotated[
    str,
    typer.Option(
        "--from",
        help="names (a document's name is a query for it), citations (a cited document answers the searches that showed it), "
        "feedback (clicks and other signals), generated (queries made from the documents), or queries (a list of queries "
        "without judgments).",
    ),
]
Queries = Annotated[Path | None, typer.Option("--queries", help="For --from queries: text, CSV, or JSON lines.")]
Citations = Annotated[Path | None, typer.Option("--citations", help="CSV or JSON lines: doc_id and, if known, cited_at …")]
Form = Annotated[str | None, typer.Option("--format", "-f", help="The format to write; default: by the file's ending.")]
METHODS = {
    "names": ("bootstrap", "known"),
    "citations": ("citation", "cited"),
    "feedback": ("implicit", "live"),
    "generated": ("synthetic", "made"),
    "queries": ("", "asked"),
}
"""Ways to make a set without hand labels: the source that their judgments carry, and how the ids of their queries begin."""


def bootstrap_command(
    *,
    source: Annotated[str, typer.Argument(metavar="CORPUS", help="A golden set, a BEIR folder, or files for ringtrue ingest.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The set to write; its rows that a person confirmed are kept.")],
    method: Method = "names",
    queries: Queries = None,
    columns: Annotated[str, typer.Option(help="Map columns of the query list: query=term,count=hits.")] = "",
    citations: Citations = None,
    llm: Annotated[str | None, typer.Option(help="Connection of kind 'llm' that writes the queries.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Queries to generate per document.")] = 1,
    to: Form = None,
    options: StoreOptions,
) -> None:
    """Make a golden set without hand labels, from names, citations, feedback, generated queries or a list of queries.

    Running it again replaces only the rows it made; rows of other methods, and queries that a person confirmed (source chair
    or manual), are kept. Until a person confirms a judgment, the set is provisional, and every report says so. Generated
    queries that share more than 40 % of their content words with their document are rejected.

    Example: ringtrue golden bootstrap corpus.jsonl --out known-item.json
    Example: ringtrue golden bootstrap docs/ --from feedback --project shop --out live.json
    Example: ringtrue golden bootstrap cases.json --from citations --citations cited.csv --out gold.json
    Example: ringtrue golden bootstrap hotel --from generated --out made.json
    Example: ringtrue golden bootstrap docs/ --from queries --queries searches.csv --out candidates.json
    """

    if method not in METHODS:
        raise InputError(f"--from {method!r} is not a known method; write {nearest(method, METHODS)}")
    for option, value, needed in (
        ("--citations", citations, "citations"), ("--llm", llm, "generated"), ("--queries", queries, "queries"),
        ("--columns", columns or None, "queries"),
    ):  # fmt: skip
        if value is not None and method != needed:
            raise InputError(f"{option} belongs to --from {needed}; write that, or leave {option} out")
    documents = tuple(documents_in(source))
    if not documents:
        raise InputError(f"{source}: has no documents to make queries from; name a corpus, such as corpus.jsonl or a folder")
    there = lib.golden.load(out) if out.exists() else None
    today = utc_now().date().isoformat()
    if method == "names":
        _bootstrap_names(lib.golden.known_item(documents, existing=there, created_at=today), out, to, json=options.json)
        return
    base = there or lib.records.GoldenSet(
        out.stem, "0.1.0", (), (), documents, description=lib.golden.CONFIRM, created_at=today, profile="test-set"
    )
    if method == "generated":
        rows = _generated(documents, base, llm=llm, count=count)
    elif method == "queries":
        rows = _listed(queries, out, columns_of(columns))
    else:
        rows = _from_store(method, citations, options)
    _bootstrap_rows(documents, base, rows, method, out, to, json=options.json)


@dataclass(frozen=True)
class _QueryRows:
    """Queries for a set, what ``--json`` tells of them, and what a person should know."""

    rows: Sequence[lib.golden.Row]
    facts: dict[str, Any]
    notes: list[str]


def _keep(golden: lib.records.GoldenSet, out: Path, form: str | None) -> list[str]:
    """Write the set and return what is to be said of it: what its format cannot hold, and how to confirm judgments.

    Unless a format is given, JSON lines keep theirs or get the seed's; other files go by their ending.
    """
    if form is None and out.suffix == ".jsonl":
        form = lib.golden.detect(out)[0] if out.exists() else "gold-jsonl"
    lost = lib.golden.save(golden, out, format=form, overwrite=True)
    notes = [f"{out} cannot hold {'; '.join(lost)}; to keep it, write a .json file or, with --format, a folder"] * bool(lost)
    return notes + [lib.golden.CONFIRM] * bool(golden.judgments and golden.provisional)


def _listed(queries: Path | None, out: Path, columns: dict[str, str]) -> _QueryRows:
    """Return the queries of a list as rows without judgments, and what to do about that."""
    if queries is None:
        raise InputError("--from queries needs a list of queries; add --queries FILE")
    found, unused = lib.formats.read_query_list(queries, columns=columns or None)
    counts: Counter[str] = Counter()
    for one in found:
        counts[one.text] += one.count
    rows = [lib.golden.Row(text, {}, {"count": count} if count > 1 else {}) for text, count in counts.items()]
    notes = [f"ignored columns: {', '.join(unused)}"] * bool(unused)
    notes.append(
        f"these queries have no judgments yet; have people judge what your search finds: ringtrue search --queries {out} "
        f"--run found.run, then ringtrue review add {out} --run found.run"
    )
    return _QueryRows(rows, {"listed": counts.total()}, notes)


def _bootstrap_names(made: Any, out: Path, form: str | None, *, json: bool) -> None:
    notes = [f"{len(made.unnamed)} documents have no name and got no query: {', '.join(made.unnamed[:5])}"] * bool(made.unnamed)
    notes += [
        f"{len(together)} documents share a name and are all relevant to it: {', '.join(together[:5])}"
        for together in made.shared[:10]
    ]
    notes += _keep(made.golden, out, form)
    record = {"written": out, "queries": made.written, **show.pick(made, "kept", "unnamed", "shared")}
    said = f"{made.written} known-item queries written to {out}, {made.kept} other queries kept{_provisional(made.golden)}"
    show.result(json, record, said, notes=notes)


def _provisional(golden: lib.records.GoldenSet) -> str:
    return "; provisional until reviewed" if golden.provisional else ""


def _generated(
    documents: Sequence[lib.records.Document], base: lib.records.GoldenSet, *, llm: str | None, count: int
) -> _QueryRows:
    """Return the rows of generated queries, what is to be known of them, and what went wrong."""
    generator = lib.golden.OfflineGenerator(documents) if llm is None else lib.review.LlmGenerator(llm)
    made = lib.golden.generate(documents, generator, count=count)
    overlap = {"mean": made.mean_overlap, "largest": made.largest_overlap, "limit": made.limit}
    notes = [
        f"{len(made.refused)} queries were refused, like '{one.text:.60}' for '{one.doc_id}' "
        f"({'no content word' if one.overlap is None else f'{one.overlap:.0%} of its words'} shared)"
        for one in made.refused[:1]
    ]
    notes += [f"{show.counted(len(made.without), 'document')} got no query: {', '.join(made.without[:5])}"] * bool(made.without)
    facts = {"overlap": overlap, **show.pick(made, "generator", "refused", "without")}
    return _QueryRows(made.rows(base.scale[1]), facts, notes)


def _from_store(method: str, citations: Path | None, options: StoreOptions) -> _QueryRows:
    """Return the rows that logged searches make with citations or feedback, what is known of them, and what is missing."""
    from ringtrue.review import from_log as harvest

    with options.existing_with_data() as opened:
        if method == "feedback":
            implied = harvest.implied(opened, project=options.project, allowed=harvest.screen())
            left = {"judged_by_people": implied.human, "unknown_searches": implied.unknown, "screened": implied.screened}
            notes = [f"{value} signals left out: {name.replace('_', ' ')}" for name, value in left.items() if value]
            return _QueryRows(implied.rows, {"signals": implied.judgments, **left}, notes)
        given = None if citations is None else lib.golden.read_citations(citations)
        told = harvest.citations(opened, project=options.project) if given is None else given
        found = lib.golden.cited(harvest.searches(opened, project=options.project), told, screen=harvest.screen())
    notes = [
        f"{len(found.unseen)} cited documents were shown by no search before: {', '.join(found.unseen[:5])}"
        * bool(found.unseen),
        f"{found.screened} searches hold personal data and were left out" * bool(found.screened),
    ]
    return _QueryRows(found.rows, {"citations": len(told), **show.pick(found, "searches", "unseen", "screened")}, notes)


def _bootstrap_rows(
    documents: Sequence[lib.records.Document], base: lib.records.GoldenSet, given: _QueryRows, method: str,
    out: Path, form: str | None, *, json: bool,
) -> None:  # fmt: skip
    facts, notes = given.facts, given.notes
    source, prefix = METHODS[method]
    known = {document.doc_id for document in (*base.documents, *documents)}
    # A judgment of a document that the set does not have would break its own rules.
    here = [replace(row, grades={doc: grade for doc, grade in row.grades.items() if doc in known}) for row in given.rows]
    strange = sum(len(row.grades) for row in given.rows) - sum(len(row.grades) for row in here)
    kept = [row for row in here if row.grades or method == "queries"]
    made = lib.golden.rewrite(base, kept, source=source, prefix=prefix, documents=documents)
    if not made.golden.queries:
        raise CannotDecide(f"nothing to make queries from was found ({method}); {out} is not written")
    notes += _keep(made.golden, out, form)
    notes += [
        f"{len(made.confirmed)} queries are confirmed by a person and were left alone: '{one:.60}'"
        for one in made.confirmed[:1]
    ]
    notes += [f"{strange} judgments are of documents that are not in the corpus and were left out"] * bool(strange)
    judged = f"with {made.judgments} judgments ({source})" if source else "without judgments"
    shares = facts.get("overlap")
    overlap = shares and (
        f"content words shared with their documents: {show.number(shares['mean'], 2)} on average, at most "
        f"{show.number(shares['largest'], 2)} (limit {shares['limit']:g}), made by {facts['generator']}"
    )
    record = {"written": out, "source": source, "queries": made.written, **show.pick(made, "judgments", "kept", "confirmed")}
    show.result(
        json,
        {**record, "unknown_documents": strange, "provisional": made.golden.provisional, **facts},
        f"{show.counted(made.written, 'query')} {judged} written to {out}, {made.kept} kept{_provisional(made.golden)}",
        overlap,
        notes=notes,
    )


def refresh_command(
    *,
    source: Annotated[str, typer.Argument(metavar="SET", help="A file, a folder, or a shipped name such as hotel.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Finish a judged refresh and write the next version to this file.")
    ] = None,
    first: Annotated[bool, typer.Option("--first", help="Make a new regression set of the 50 most varied questions.")] = False,
    weeks: Annotated[int, typer.Option(min=1, help="Weeks of logged searches to use.")] = 4,
    count: Annotated[int | None, typer.Option(min=1, help="Number of new queries; default: 20, with --first 50.")] = None,
    reviewers: Annotated[int, typer.Option(min=2, help="How many people judge each pair, blind.")] = 2,
    retriever: Annotated[
        str | None, typer.Option(help="Search again with this retriever; default: use the logged results.")
    ] = None,
    depth: Annotated[int, typer.Option("--depth", "-k", min=1, help="Documents to judge per query.")] = 20,
    rule: Annotated[str, typer.Option(help="How several grades become one: majority, max, newest, adjudicated.")] = "majority",
    adjudicator: Annotated[
        str | None, typer.Option(help="Who decides disputes with --rule adjudicated; not one of the raters.")
    ] = None,
    minimum: Annotated[float, typer.Option(min=-1, max=1, help="Minimum agreement.")] = 0.6,
    who: Annotated[str, typer.Option(help="Your name, for the audit trail.")] = "ringtrue",
    overwrite: Overwrite = False,
    options: StoreOptions,
) -> None:
    """Refresh a golden set from logged searches: propose 20 new queries, have them judged blind, and replace 20 old ones.

    The first run adds the pairs to the review queue (ringtrue review next); later runs show the progress of the reviewers.
    --out writes the next version if they agree: Cohen's kappa (Krippendorff's alpha for more than two) must exceed 0.6,
    otherwise the refresh is refused and the disagreements are listed (exit code 1). Queries that a person confirmed are never
    replaced. --first makes a separate regression set from 2 to 4 weeks of searches.

    Example: ringtrue golden refresh hotel
    Example: ringtrue golden refresh hotel --out golden-dataset-v2.0.0.json
    Example: ringtrue golden refresh hotel --first --retriever hybrid
    """
    from ringtrue.review import refresh as steps

    try:
        golden = lib.golden.load(source)
    except MissingInput as problem:
        if not first:
            raise
        said = "--first needs an existing set, to whose documents it adds a set of new questions"
        raise MissingInput(f"{problem}; {said}") from problem
    if out is not None:
        lib.golden.require_version(out)
    now = utc_now()
    with options.existing() as opened:
        if out is None:
            searched = _searched(golden, retriever) if retriever else None
            again = (lambda text, k: [hit.doc_id for hit in searched.search(text, k=k)]) if searched else None
            using = steps.Harvest(weeks=weeks, count=count, again=again, depth=depth, wanted=reviewers)
            proposing: dict[str, Any] = {"now": now, "who": who, "first": first, "using": using, "project": options.project}
            with marked("evaluation", whole_process=True):
                situation = steps.propose_from_log(opened, golden, **proposing)
            silent = _give_texts(opened, situation, searched, options.project)
            _show_situation(situation, golden.id, weeks=weeks, silent=silent, json=options.json)
            return
        base = steps.regression_base(golden) if first else golden
        proposal = steps.open_proposal(opened, base, project=options.project)
        if proposal is None:
            raise CannotDecide(f"no refresh of '{base.id}' {base.version} was proposed; run the command without --out first")
        how: dict[str, Any] = {"rule": rule, "adjudicator": adjudicator, "project": options.project}
        made = steps.finish(opened, proposal, base, minimum=minimum, **how)
        lost: Sequence[str] = ()
        if made.golden is not None:
            lost = _save(made.golden, out, overwrite=overwrite)
            # Marked only now: after a crash the same pairs make the same version again.
            steps.released(opened, proposal, base, made.golden, now=now, who=who, **how)
    _show_finished(made, proposal, out, lost, minimum=minimum, json=options.json)


def _save(golden: lib.records.GoldenSet, out: Path, *, overwrite: bool) -> Sequence[str]:
    """Write a version; a file that holds this very version already may be written again, so that a re-run is not an error."""
    if out.exists() and not overwrite:
        same = {(lib.golden.version_name(one), lib.golden.content_hash(one)) for one in (lib.golden.load(out), golden)}
        overwrite = len(same) == 1
    return lib.golden.save(golden, out, overwrite=overwrite)


def _give_texts(
    store: lib.store.Store, found: lib.review.Situation, retriever: lib.retrieve.Retriever | None, project: str
) -> int:
    """Give queued pairs the texts that the search answered; return how many pairs of the proposal still have none."""

    queue = lib.review.ReviewQueue(store, project=project)
    if retriever is not None:
        queue.fill(lib.run.answered_passages(retriever))
    new = {query.query_id for query in found.proposal.new}
    return sum(not item.text for item in queue.items() if item.query_id in new)


def _show_situation(found: lib.review.Situation, name: str, *, weeks: int, silent: int, json: bool) -> None:
    proposal, progress, asked, share = found.proposal, found.progress, found.asked, found.coverage
    new = list(zip(proposal.new, proposal.questions, strict=True))
    record = {"proposal": proposal.id, **show.pick(proposal, "golden", "retire"), "without_text": silent}
    record |= show.pick(found, "proposed_now", "age_days", "coverage", "warnings")
    record |= show.pick(progress, "pairs", "judged", "rejected", "waiting")
    record["new"] = [show.pick(query, "query_id", "text") | {"intent": q.intent, "asked": q.count} for query, q in new]
    record["log"] = show.pick(asked, "searches", "screened", "empty") | {"questions": len(asked.questions)}
    rows = [[query.query_id, question.intent, query.text, question.count] for query, question in new]
    pairs = show.counted(progress.pairs, "pair")
    lacking = f"{show.counted(silent, 'pair has', 'pairs have')} no text to judge by; add it: ringtrue review texts FILE"
    show.result(
        json,
        record,
        f"{asked.searches} searches in {weeks} weeks: {len(asked.questions)} questions; {asked.screened} searches screened out",
        f"'{name}' asks {share.same:.0%} of the other {share.searches:,} searches in the same words"
        if share.same is not None
        else "",
        f"'{name}' is {show.counted(found.age_days, 'day')} old" if found.age_days is not None else "",
        f"{'proposed now' if found.proposed_now else 'proposed before'}: {proposal.id}",
        show.Table(("query", "intent", "text", "asked"), rows, 3),
        f"queries that may be replaced: {', '.join(proposal.retire)}" if proposal.retire else "",
        f"{pairs}: {progress.judged} judged, {progress.rejected} rejected, {progress.waiting} waiting",
        notes=[*found.warnings, lacking if silent else ""],
    )  # fmt: skip


def _searched(golden: lib.records.GoldenSet, retriever: str) -> lib.retrieve.Retriever:
    """Return what asks a question again, over the documents of the set or a connected system."""
    return lib.retrieve.build(
        retriever, lib.run.corpus_of(golden, cache_folder() / "corpora") if lib.retrieve.names_documents(retriever) else None
    )


def _show_finished(
    made: lib.golden.Refreshed, proposal: lib.golden.Proposal, out: Path, lost: Sequence[str], *, minimum: float, json: bool
) -> None:
    """Show what became of a refresh; exits 1 if it was refused."""
    from ringtrue.cli.review import agreement_line, disputes

    differing = lib.review.disputed(made.disputes, {query.query_id: query.text for query in proposal.new})
    version = None if made.golden is None else lib.golden.version_name(made.golden)
    record = {"written": None if made.golden is None else out, "version": version, "refused": made.refused or None}
    record |= show.pick(made, "agreement", "added", "retired", "left_out")
    counts = f"{show.counted(len(made.added), 'query')} new, {len(made.retired)} gone"
    left = (
        f"{len(made.left_out)} new queries had no relevant document and were left out: {made.left_out[0]}"
        if made.left_out
        else ""
    )
    refused = (
        f"refused: {made.refused}; talk the disputes over, judge them again (ringtrue review judge KEY GRADE --reviewer "
        "NAME), and run this again"
    )
    show.result(
        json,
        {**record, "minimum": minimum, "disputes": differing, "lost": lost},
        agreement_line(made.agreement),
        *disputes(differing, most=None if made.refused else 10),
        f"{version} written to {out}: {counts}" if version else "",
        notes=[refused] if made.refused else [left, *(f"the file cannot hold: {loss}" for loss in lost)],
        code=REGRESSION if made.refused else OK,
    )


def validate_command(
    sources: Annotated[list[str], typer.Argument(metavar="SET...", help="Files, folders or shipped names.")],
    minimum_documents: Annotated[int, typer.Option(min=0, help="Fewest documents a set should have.")] = 50,
    minimum_queries: Annotated[int, typer.Option(min=1, help="Fewest queries a set should have.")] = 20,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    json: Json = False,
) -> None:
    """Check golden sets against all rules of their profiles and list every problem. Exit code 2 if there is an error.

    Example: ringtrue golden validate hotel my-set.yaml
    """
    reports = {
        source: lib.golden.validate_file(
            lib.golden.locate(source), minimum_documents=minimum_documents, minimum_queries=minimum_queries
        )
        for source in sources
    }
    problems = [{"set": name, **show.plain(problem)} for name, report in reports.items() for problem in report.problems]
    record: dict[str, Any] = {"problems": problems, "figures": {name: report.figures for name, report in reports.items()}}
    record["profiles"] = {name: report.profile for name, report in reports.items()}
    record["notes"] = {name: report.notes for name, report in reports.items()}
    bad = any(not report.ok or (strict and report.problems) for report in reports.values())
    lines = [line for name, report in reports.items() for line in report_lines(name, report, strict=strict)]
    show.result(json, record, *lines, code=BAD_INPUT if bad else OK)


def report_lines(name: str, report: lib.golden.ValidationReport, *, strict: bool = False) -> Iterator[str]:
    """Yield what validation found."""
    figures = report.figures
    verdict = "passes with warnings" if report.warnings else "passes"
    if not report.ok or (strict and report.problems):
        verdict = "fails" if not report.ok else "fails (--strict: warnings count)"
    yield f"{name}: {verdict} (profile {report.profile}, {len(report.rules)} rules)"
    if figures:
        negative = f", {figures['negative_queries']} of them negative" if figures["negative_queries"] else ""
        yield f"  {figures['documents']} documents, {figures['queries']} queries{negative}, {figures['judgments']} judgments"
        yield (
            f"  relevant per query {show.number(figures['relevant_per_query'], 2)} (grade ≥ {figures['relevance_threshold']}), "
            f"best P@5 reachable {show.number(figures['p5_reachable'], 2)}"
        )
        mean = f"{show.number(figures['overlap_mean'], 2)} on average" if figures["documents"] else "not known (no documents)"
        named = " (a document's name may be its query here)" if report.profile == "known-item" else ""
        overlap = f"lexical overlap of queries with their answers {mean}"
        yield f"  {overlap}, {figures['copied_queries']} copied queries{named}"
        yield f"  {figures['reviewed']}"
        if figures["judgments"] and set(figures["sources"]) == {"(none)"} and name not in lib.golden.shipped():
            yield f"  if people made them, say so: {report.how_to_confirm}"
    yield from (f"  {line}" for line in (*report.notes, *report.problems))
