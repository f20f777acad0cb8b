"""``ringtrue golden refresh``: the next version of a set from what people really ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Overwrite, StoreOptions
from ringtrue.errors import REGRESSION, CannotDecide
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.golden import Proposal, Refreshed, Rule
    from ringtrue.records import GoldenSet
    from ringtrue.retrieve import Retriever
    from ringtrue.review.refresh import Situation
    from ringtrue.store import Store


def refresh_command(
    *,
    source: Annotated[str, typer.Argument(metavar="SET", help="A file, a folder, or a shipped name such as hotel.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Finish a judged refresh: write the next version.")] = None,
    first: Annotated[bool, typer.Option("--first", help="Make a new regression set of the 50 most varied questions.")] = False,
    weeks: Annotated[int, typer.Option(min=1, help="Weeks of logged searches to look at.")] = 4,
    count: Annotated[int | None, typer.Option(min=1, help="New queries (20; 50 with --first).")] = None,
    reviewers: Annotated[int, typer.Option(min=2, help="How many people judge each pair, blind.")] = 2,
    retriever: Annotated[str | None, typer.Option(help="Ask questions again with this; default: use the log.")] = None,
    depth: Annotated[int, typer.Option("--depth", "-k", min=1, help="Documents to judge per question.")] = 20,
    rule: Annotated[str, typer.Option(help="How several grades become one: majority, max, newest, adjudicated.")] = "majority",
    adjudicator: Annotated[str | None, typer.Option(help="Who decides disputes with --rule adjudicated; no rater.")] = None,
    minimum: Annotated[float, typer.Option(min=-1, max=1, help="Agreement that must be exceeded.")] = 0.6,
    who: Annotated[str, typer.Option(help="Who proposes, for the audit trail.")] = "ringtrue",
    overwrite: Overwrite = False,
    options: StoreOptions,
) -> None:
    """Renew a golden set from logged searches: propose 20 questions, have them judged blind, replace as many old queries.

    The first call puts the pairs into the review queue (ringtrue review next). Called again it shows how far the reviewers
    are, and with --out it writes the next version, if they agree: Cohen's kappa (Krippendorff's alpha for more than two) must
    exceed 0.6, or the refresh is refused with the disagreements listed (exit code 1). Queries that a person confirmed are
    never replaced. With --first, 2 to 4 weeks of searches make a regression set of their own.

    \b
    Example: ringtrue golden refresh hotel
    Example: ringtrue golden refresh hotel --out golden-dataset-v2.0.0.json
    Example: ringtrue golden refresh hotel --first --retriever hybrid
    """
    from datetime import UTC, datetime

    from ringtrue.golden import load, require_version
    from ringtrue.review import refresh as steps

    golden = load(source)
    if out is not None:
        require_version(out)
    now = datetime.now(UTC)
    with options.existing() as opened:
        if out is None:
            searched = _searched(golden, retriever) if retriever else None
            with marked("evaluation", whole_process=True):
                situation = steps.propose_from_log(
                    opened,
                    golden,
                    now=now,
                    who=who,
                    first=first,
                    weeks=weeks,
                    count=count,
                    again=(lambda text, k: [hit.doc_id for hit in searched.search(text, k=k)]) if searched else None,
                    depth=depth,
                    wanted=reviewers,
                    project=options.project,
                )
            silent = _give_texts(opened, situation, searched, options.project)
            _show_situation(situation, golden.id, weeks=weeks, silent=silent, json=options.json)
            return
        base = steps.regression_base(golden) if first else golden
        proposal = steps.open_proposal(opened, base, project=options.project)
        if proposal is None:
            raise CannotDecide(f"no refresh of '{base.id}' {base.version} was proposed; run the command without --out first")
        made = steps.finish(
            opened, proposal, base, minimum=minimum, rule=cast("Rule", rule), adjudicator=adjudicator, project=options.project
        )
        lost: Sequence[str] = ()
        if made.golden is not None:
            lost = _save(made.golden, out, overwrite=overwrite)
            # Marked only now: after a crash the same pairs make the same version again.
            steps.released(
                opened, proposal, base, made.golden, now=now, who=who, rule=cast("Rule", rule), adjudicator=adjudicator,
                project=options.project,
            )  # fmt: skip
    _show_finished(made, proposal, out, lost, minimum=minimum, json=options.json)


def _save(golden: GoldenSet, out: Path, *, overwrite: bool) -> Sequence[str]:
    """Write a version; a file that holds this very version already may be written again, so that a re-run is no error."""
    from ringtrue.golden import content_hash, load, save, version_name

    if out.exists() and not overwrite:
        there = load(out)
        overwrite = (version_name(there), content_hash(there)) == (version_name(golden), content_hash(golden))
    return save(golden, out, overwrite=overwrite)


def _give_texts(store: Store, found: Situation, retriever: Retriever | None, project: str) -> int:
    """Give queued pairs the texts that the search answered; return how many pairs of the proposal still have none."""
    from ringtrue.review.queue import ReviewQueue
    from ringtrue.run.subject import answered_passages

    queue = ReviewQueue(store, project=project)
    if retriever is not None:
        queue.fill(answered_passages(retriever))
    new = {query.query_id for query in found.proposal.new}
    return sum(not item.text for item in queue.items() if item.query_id in new)


def _show_situation(found: Situation, name: str, *, weeks: int, silent: int, json: bool) -> None:
    proposal, progress, asked, share = found.proposal, found.progress, found.asked, found.coverage
    if json:
        show.end_with_json(
            {
                "proposal": proposal.id,
                **show.pick(proposal, "golden", "retire"),
                **show.pick(found, "proposed_now", "age_days", "coverage", "warnings"),
                **show.pick(progress, "pairs", "judged", "rejected", "waiting"),
                "new": [
                    {"query_id": query.query_id, "text": query.text, "intent": question.intent, "asked": question.count}
                    for query, question in zip(proposal.new, proposal.questions, strict=True)
                ],
                "without_text": silent,
                "log": {**show.pick(asked, "searches", "screened", "empty"), "questions": len(asked.questions)},
            }
        )
    print(
        f"{asked.searches} searches in {weeks} weeks: {len(asked.questions)} questions; {asked.screened} searches screened out"
    )
    if share.same is not None and share.close is not None:
        print(f"'{name}' asks {share.same:.0%} of them in the same words, {share.close:.0%} in about the same")
    if found.age_days is not None:
        print(f"'{name}' is {found.age_days} days old")
    print(f"{'proposed now' if found.proposed_now else 'proposed before'}: {proposal.id}")
    rows = [
        [query.query_id, question.intent, query.text, str(question.count)]
        for query, question in zip(proposal.new, proposal.questions, strict=True)
    ]
    show.table(["query", "intent", "text", "asked"], rows, text_columns=3)
    if proposal.retire:
        print(f"may go for them: {', '.join(proposal.retire)}")
    print(f"{progress.pairs} pairs: {progress.judged} judged, {progress.rejected} rejected, {progress.waiting} waiting")
    for text in found.warnings:
        show.note(text)
    if silent:
        show.note(f"{silent} pairs have no text to judge by; give it: ringtrue review texts FILE")


def _searched(golden: GoldenSet, retriever: str) -> Retriever:
    """Return what asks a question again, over the documents of the set or a connected system."""
    from ringtrue.config import cache_folder
    from ringtrue.retrieve import build, names_documents
    from ringtrue.run import corpus_of

    return build(retriever, corpus_of(golden, cache_folder() / "corpora") if names_documents(retriever) else None)


def _show_finished(made: Refreshed, proposal: Proposal, out: Path, lost: Sequence[str], *, minimum: float, json: bool) -> None:
    """Show what became of a refresh; exits 1 if it was refused."""
    from ringtrue.cli.review import print_disputes
    from ringtrue.golden import version_name
    from ringtrue.review.queue import disputed

    differing = disputed(made.disputes, {query.query_id: query.text for query in proposal.new})
    version = None if made.golden is None else version_name(made.golden)
    if json:
        show.as_json(
            {
                "written": None if made.golden is None else out,
                "version": version,
                "refused": made.refused or None,
                **show.pick(made, "agreement", "added", "retired", "left_out"),
                "minimum": minimum,
                "disputes": differing,
                "lost": lost,
            }
        )
    else:
        found = made.agreement
        print(f"{found.name} of {found.raters} reviewers over {found.items} pairs: {show.number(found.coefficient, 3)}")
        if differing:
            print_disputes(differing, most=None if made.refused else 10)
        if made.golden is not None:
            print(f"{version} written to {out}: {len(made.added)} queries new, {len(made.retired)} gone")
            if made.left_out:
                show.note(f"{len(made.left_out)} new queries had no relevant document and were left out: {made.left_out[0]}")
            for loss in lost:
                show.note(f"the file cannot hold: {loss}")
    if made.refused:
        show.note(
            f"refused: {made.refused}; talk the disputes over, judge them again (ringtrue review judge KEY GRADE --reviewer "
            "NAME), and run this again"
        )
        raise typer.Exit(REGRESSION)
