"""``ringtrue golden``: look at, check, compare, divide and grow golden sets."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.brief import shell_word
from ringtrue.cli import lib, show
from ringtrue.cli.golden_make import bootstrap_command, refresh_command, validate_command
from ringtrue.cli.options import Json, Overwrite, Source, check_new, columns_of, command_group
from ringtrue.cli.score import judgments_in
from ringtrue.cli.search import progress_bar
from ringtrue.errors import OK, REGRESSION, UNDECIDED, CannotDecide, InputError, check_choice

if TYPE_CHECKING:
    from ringtrue.retrieve.connectors.base import Connector

app = command_group(
    "Validate, show, split, convert and version golden sets. Name a set by path or shipped name (hotel, clinical …)."
)


@app.command("list")
def list_sets(json: Json = False) -> None:
    """List the golden sets that come with Ringtrue.

    Example: ringtrue golden list
    """
    sets = [lib.golden.load(name) for name in lib.golden.shipped()]
    rows = [(s.id, s.version, s.profile, len(s.documents), len(s.queries), len(s.judgments)) for s in sets]
    names = ("id", "version", "profile", "documents", "queries", "judgments")
    record = {"sets": [dict(zip(names, row, strict=True)) for row in rows]}
    show.result(json, record, show.Table(("set", *names[1:]), rows, 3))


app.command("validate")(validate_command)


@app.command("show")
def show_set(
    source: Source,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Show one query with its judged documents.")] = None,
    document: Annotated[str | None, typer.Option("--document", "-d", help="Show one document.")] = None,
    json: Json = False,
) -> None:
    """Show a summary of a golden set, one query with its judgments, or one document.

    Example: ringtrue golden show hotel --query q001
    """
    if query is not None and document is not None:
        raise InputError("--query and --document are both given; show one of them at a time")
    golden = lib.golden.load(source)
    by_id = {item.doc_id: item for item in golden.documents}
    if document is not None:
        check_choice(document, by_id, f"golden set '{golden.id}' has no document '{document}'")
        found = by_id[document]
        show.result(json, found, f"{found.doc_id}  {found.title}\n{dict(found.metadata)}\n\n{found.text}")
        return
    if query is not None:
        asked = golden.query(query)
        judged = sorted((j for j in golden.judgments if j.query_id == query), key=lambda j: (-j.grade, j.doc_id))
        titles = [[j.grade, j.doc_id, by_id[j.doc_id].title if j.doc_id in by_id else "(not in the corpus)"] for j in judged]
        head, table = (
            f"{asked.query_id}  {asked.text}\n{dict(asked.metadata)}",
            show.Table(("grade", "document", "title"), titles, 3),
        )
        show.result(json, {"query": asked, "judgments": judged}, head, table)
        return
    slices = {
        field: dict(sorted(Counter(lib.golden.slice_of(one, field) for one in golden.queries).items()))
        for field in lib.golden.slice_fields(golden)
    }
    facts: dict[str, Any] = {
        "id": golden.id,
        "version": lib.golden.version_name(golden),
        "content_hash": lib.golden.content_hash(golden),
        **show.pick(golden, "corpus_hash", "profile", "created_at", "description", "provenance"),
        "documents": len(golden.documents),
        "queries": len(golden.queries),
        "judgments": len(golden.judgments),
        "relevance_threshold": golden.relevance_threshold,
        "scale": list(golden.scale),
        "scope": golden.scope,
        "slices": slices,
        "provisional": golden.provisional,
        "reviewed": golden.reviewed,
    }
    lines = (f"{key.replace('_', ' '):<20} {_facts_line(value)}" for key, value in facts.items() if value not in (None, "", {}))
    show.result(json, facts, *lines)


def _facts_line(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(
            f"{field}: " + ", ".join(f"{name} {count}" for name, count in counts.items()) for field, counts in value.items()
        )
    return " – ".join(map(str, value)) if isinstance(value, list) else str(value)


@app.command()
def diff(
    old: Annotated[str, typer.Argument(help="The older version: a path or shipped name.")],
    new: Annotated[str, typer.Argument(help="The newer version.")],
    json: Json = False,
) -> None:
    """Show what changed between two versions of a golden set, and who changed it.

    Example: ringtrue golden diff golden-dataset-v1.0.0.json golden-dataset-v1.1.0.json
    """
    found = lib.golden.diff(lib.golden.load(old), lib.golden.load(new))
    kinds = ("added", "removed", "changed")
    sides = {"queries": found.queries, "documents": found.documents}
    ids = {f"{what} {kind}": getattr(changes, kind) for what, changes in sides.items() for kind in kinds}
    lines = [
        f"{what}: {len(some)}: {', '.join(some[:10])}{' …' if len(some) > 10 else ''}" for what, some in ids.items() if some
    ]
    for kind in kinds:
        judgments = getattr(found, f"judgments_{kind}")
        lines += [f"judgments {kind}: {len(judgments)}"] * bool(judgments)
        lines += ["  " + _judgment_change(one) for one in judgments[:20]]
        lines += [f"  … and {len(judgments) - 20} more (--json lists all)"] * (len(judgments) > 20)
    lines += [f"{name}: {before!r} → {after!r}" for name, (before, after) in found.fields.items()]
    show.result(json, found, *lines, f"suggested version step: {found.suggested} ({found.reason})")


def _judgment_change(one: Any) -> str:
    by = f" by {one.by}" if one.by else ""
    same = " (its source or notes changed)" if one.old == one.new else ""
    return f"{one.query_id} {one.doc_id}: {_grade(one.old)} → {_grade(one.new)}{by}{same}"


def _grade(value: int | None) -> str:
    return "—" if value is None else str(value)


@app.command()
def split(
    source: Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for tuning.json and held-out.json.")],
    held_out: Annotated[float, typer.Option(help="Share of the queries to hold out.")] = 0.2,
    by: Annotated[str | None, typer.Option(help="Query field to stratify by (default: the set's first slice).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Split a set into a tuning part and a held-out part, always in the same way.

    Example: ringtrue golden split hotel --out parts
    """

    tuning, held = lib.golden.split(lib.golden.load(source), held_out=held_out, by=by, seed=seed)
    leaks = lib.golden.leakage(tuning, held)
    files = {"tuning": out / "tuning.json", "held_out": out / "held-out.json"}
    parts = {"tuning": tuning, "held_out": held}
    lost = {name: lib.golden.save(part, files[name], overwrite=overwrite) for name, part in parts.items()}
    ledger = out / lib.golden.LEDGER
    looked = lib.golden.looks(ledger) if ledger.exists() else 0
    sizes = {name: len(part.queries) for name, part in parts.items()}
    notes = ["nothing was held out: the set is too small for that share"] * (not held.queries)
    notes += [
        f"query '{leak.held_out}' held out is nearly '{leak.tuning}' in tuning (similarity {leak.similarity:.2f})"
        for leak in leaks
    ]
    times = show.counted(looked, "time")
    show.result(
        json,
        {"files": files, "queries": sizes, "leaks": leaks, "lost": lost, "looks_at_held_out": looked},
        f"{show.counted(sizes['tuning'], 'query')} to tune on: {files['tuning']}",
        f"{show.counted(sizes['held_out'], 'query')} held out:   {files['held_out']} (looked at {times})",
        notes=[*notes, *(f"the files cannot hold: {loss}" for loss in lost["tuning"])],
    )


@app.command()
def plan(
    source: Source,
    sd: Annotated[float, typer.Option(help="Standard deviation of the paired differences.")] = 0.15,
    difference: Annotated[float, typer.Option(help="Smallest difference that matters to you.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="Significance level: the chance of a false alarm.")] = 0.05,
    power: Annotated[float, typer.Option(help="Power: the chance of detecting a true difference.")] = 0.80,
    runs: Annotated[list[str] | None, typer.Option("--run", help="A run of another system.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Documents of each run to check for judgments.")] = 10,
    json: Json = False,
) -> None:
    """Show which difference a set can detect, how many more queries each slice needs, and which documents to judge next.

    Example: ringtrue golden plan hotel --difference 0.05 --run a.run --run b.run
    """
    golden = lib.golden.load(source)
    asked = {query.query_id for query in golden.queries}
    rivals = lib.formats.read_named_runs(runs or [])
    for rival in rivals:
        if asked.isdisjoint(rival.query_ids):
            raise CannotDecide(f"run '{rival.name}' answers no query of '{golden.id}'; check that both use the same query ids")
    found = lib.golden.plan(golden, sd=sd, difference=difference, alpha=alpha, power=power, runs=rivals, k=k)
    needed = show.counted(found.overall.needed, "query is", "queries are")
    test = f"sd {sd:g}, alpha {alpha:g}, power {power:g}, paired t test"
    sizes = {"all queries": found.overall} | {f"{part.field} = {part.value}": part.size for part in found.slices}
    rows = [[name, size.queries, size.detectable, size.more] for name, size in sizes.items()]
    candidates = [
        [c.query_id, c.doc_id, ", ".join(f"{n} {r}" for n, r in c.ranks.items()), show.number(c.weight, 3)]
        for c in found.unjudged
    ]
    show.result(
        json,
        found,
        f"For a difference of {difference:g} ({test}) {needed} needed.",
        show.Table(("part", "queries", "detects from", "more needed"), rows),
        "\nUnjudged documents that could change the comparison most:" if candidates else "",
        show.Table(("query", "document", "ranks", "weight"), candidates, 3, most=20),
    )


@app.command()
def convert(
    source: Source,
    target: Annotated[Path, typer.Argument(help="Where to write; the file ending sets the format, unless --format does.")],
    to: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="golden-dataset, test-set, gold-jsonl, memory-bench, agent-memory, beir, trec, dict, ragas, openinference, "
            "csv or parquet.",
        ),
    ] = None,
    columns: Annotated[str, typer.Option(help="Map the columns of a table: query=question,doc_id=sku,grade=stars.")] = "",
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Convert a golden set to another format, and list what that format cannot store.

    Example: ringtrue golden convert hotel hotel-beir --format beir
    Example: ringtrue golden convert stars.csv gold.json --columns query=question,doc_id=sku,grade=stars
    """
    lost = lib.golden.save(lib.golden.load(source, columns=columns_of(columns)), target, format=to, overwrite=overwrite)
    told = (f"the format cannot hold: {loss}" for loss in lost)
    show.result(json, {"written": target, "lost": lost}, f"written: {target}", notes=told)


app.command("bootstrap")(bootstrap_command)
app.command("refresh")(refresh_command)


@app.command()
def ingest(
    source: Source,
    into: Annotated[str, typer.Option(help="The system to write into, like \"connect('shop')\".")],
    tenant: Annotated[str | None, typer.Option(help="Tenant that owns the documents in the target system.")] = None,
    prefix: Annotated[str, typer.Option(help="Prefix of the document ids in the target system.")] = "golden",
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until all are searchable.")] = 60.0,
    remove: Annotated[bool, typer.Option("--remove/--keep", help="Remove what was ingested, instead of writing it.")] = False,
    json: Json = False,
) -> None:
    """Write a set's documents to a connected system and wait until they are searchable; --remove deletes them.

    They get ids of their own (golden:hotel:…), with a source hash and the tenant if the connection's plant setting stores them.
    Unchanged documents are not written again, and other documents are not touched.

    Example: ringtrue golden ingest hotel --into "connect('shop')" --tenant test
    Example: ringtrue golden ingest hotel --into "connect('shop')" --tenant test --remove
    """
    golden = lib.golden.load(source)
    system = _connected(into)
    if remove:
        with progress_bar("removing", len(golden.documents)) as step:
            count = lib.run.remove_planted(system, golden, tenant=tenant, prefix=prefix, progress=step)
        record = {"system": system.name, "documents": len(golden.documents), "removed": count, "tenant": tenant}
        show.result(json, record, f"{show.counted(count, 'document')} of {golden.id} removed from {system.name}")
        return
    with progress_bar("writing", len(golden.documents)) as step:
        done = lib.run.plant(system, golden, tenant=tenant, prefix=prefix, timeout=wait, progress=step)
    counts = f"{show.counted(done.written, 'document')} written, {done.unchanged} unchanged, {done.searchable} searchable"
    named = f"--golden {shell_word(source)} --retriever {shell_word(into)} --id-pattern {shlex.quote(done.id_pattern)}"
    show.result(
        json,
        {**show.plain(done), "removed": 0},
        f"{done.system}: {counts}\ntheir ids there begin with {done.namespace}, so evaluate with\n  ringtrue eval {named}",
        "and remove them with this command and --remove",
    )


def _connected(text: str) -> Connector:
    """Return the one system that an expression names; raises InputError for what is none, or more."""
    from ringtrue.retrieve.connectors.base import Connector

    if getattr(lib.retrieve.as_expression(text), "name", "") != "connect":
        raise InputError(f"--into {text!r:.60} is not a connected system; write it like \"connect('shop')\"")
    found = lib.retrieve.build(text)
    assert isinstance(found, Connector)
    return found


@app.command()
def pool(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run files of the systems to pool.")],
    qrels: Annotated[str | None, typer.Option(help="The judgments so far, to report the unjudged share.")] = None,
    depth: Annotated[int, typer.Option("--depth", "-k", min=1, help="Take the first k documents of each run.")] = 100,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the pairs to judge (query, document) as CSV.")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Pool the top documents of several systems for judging, and show what each contributed.

    Example: ringtrue golden pool a.run b.run --qrels qrels.txt --depth 20 --out to-judge.csv
    """

    if out is not None:
        check_new(out, overwrite=overwrite)
    judged = None if qrels is None else lib.measures.as_qrels(judgments_in(qrels))
    pooled = lib.formats.read_named_runs(runs)
    if len(pooled) > 1 and not set.intersection(*(set(run.query_ids) for run in pooled)):
        raise CannotDecide("the runs share no query; check that all of them use the same query ids")
    found = lib.golden.pool(pooled, judged, depth=depth)
    known = {(query_id, doc_id) for query_id, doc_id, _ in judged or ()}
    pooled_pairs = ((query_id, doc_id) for query_id, documents in found.pairs.items() for doc_id in documents)
    pairs = [pair for pair in pooled_pairs if pair not in known]
    if out is not None:
        lib.formats.write_rows(("query_id", "doc_id"), pairs, out, "csv")
    record = {"depth": depth, "pairs": len(found), "to_judge": len(pairs), "written": out}
    place = f": {out}" if out else ""
    rows = [[c.run, c.total, c.unique, show.number(c.unjudged_share, 3)] for c in found.contributions]
    show.result(
        json,
        record | show.pick(found, "contributions", "warnings"),
        f"{show.counted(len(found), 'pair')} in the pool of depth {depth}, {len(pairs)} of them to judge{place}",
        show.Table(("run", "documents", "only here", "unjudged share"), rows),
        notes=found.warnings,
    )


@app.command()
def agreement(
    raters: Annotated[list[str], typer.Argument(metavar="JUDGMENTS...", help="One judgments file per rater, two or more.")],
    minimum: Annotated[float, typer.Option(min=-1, max=1, help="Minimum agreement for --check.")] = 0.6,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 unless the agreement exceeds the minimum.")] = False,
    json: Json = False,
) -> None:
    """Measure how well raters agree and list their disagreements: Cohen's kappa for two, Krippendorff's alpha for more.

    Example: ringtrue golden agreement rater-a.qrels rater-b.qrels --check
    """
    if len(raters) < 2:
        raise InputError(f"agreement needs two raters, but only '{raters[0]}' is given; name one judgments file per rater")
    grades = [{(q, d): grade for q, d, grade in lib.measures.as_qrels(judgments_in(path))} for path in raters]
    pairs = list(dict.fromkeys(pair for rater in grades for pair in rater))
    table = [[rater.get(pair) for pair in pairs] for rater in grades]
    found = [lib.stats.cohen_kappa(*table), lib.stats.cohen_kappa(*table, weights="quadratic")] if len(raters) == 2 else []
    found += [lib.stats.krippendorff_alpha(table), lib.stats.krippendorff_alpha(table, level="ordinal")]
    by_pair = zip(pairs, zip(*table, strict=True), strict=True)
    disputed = [(query_id, doc_id, said) for (query_id, doc_id), said in by_pair if len(set(said) - {None}) > 1]
    rows = [[a.name, a.raters, a.items, show.number(a.observed, 3), show.number(a.coefficient, 3)] for a in found]
    shown = [[query_id, doc_id, *map(_grade, said)] for query_id, doc_id, said in disputed]
    differing = [{"query_id": query_id, "doc_id": doc_id, "grades": said} for query_id, doc_id, said in disputed]
    first = found[0]
    why = "all of them gave one and the same grade" if first.items else "no pair was judged by both"
    undefined = (
        f"{first.name} over {first.items} shared pairs is not defined: {why}; judge pairs of different relevance by all raters"
    )
    low = check and first.defined and not first.coefficient > minimum
    too_low = f"{first.name} is {show.number(first.coefficient, 3)}, not above {minimum:g}: settle the disagreements first"
    show.result(
        json,
        {"agreement": found, "disagreements": differing, "minimum": minimum},
        show.Table(("coefficient", "raters", "items", "observed", "value"), rows),
        f"\n{len(disputed)} of {len(pairs)} pairs are judged differently:" if disputed else "",
        show.Table(("query", "document", *(Path(path).name for path in raters)), shown, 2, most=20),
        notes=["" if first.defined else undefined, too_low if low else ""],
        code=REGRESSION if low else OK if first.defined or not check else UNDECIDED,
    )
