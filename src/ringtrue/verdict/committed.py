"""Is a run that was made earlier still a run of this search, these documents and this golden set?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ringtrue.golden import content_hash, split
from ringtrue.records import GoldenSet
from ringtrue.run import Evaluation, Routed
from ringtrue.verdict.records import Check

UNNAMED = "cannot check that this run is of the current {what}: none is configured; set `{key}` under [eval] in ringtrue.toml"


def committed_checks(
    evaluation: Evaluation, *, search: Routed | None, golden: GoldenSet | None, place: str = ""
) -> tuple[list[Check], list[str]]:
    """Return an undecided check for everything that changed since the run was made, and what could not be checked.

    ``search`` and ``golden`` are those that are configured now, None if none is; ``place`` is where the golden set lies.
    """
    checks: list[Check] = []
    notes: list[str] = []
    if search is None:
        notes.append(UNNAMED.format(what="search", key="retriever"))
    else:
        checks += _search(evaluation, search)
    if golden is None:
        notes.append(UNNAMED.format(what="golden set", key="golden"))
    else:
        checks += _golden(evaluation, golden, place)
    return checks, notes


def _search(evaluation: Evaluation, now: Routed) -> Iterator[Check]:
    setup = evaluation.setup
    if now.fingerprint != setup.fingerprint:
        if now.text != setup.retriever:
            why = f"it is a run of {setup.retriever}, not of {now.text}"
        else:
            why = f"the search, its settings or a watched file changed since {setup.recorded_at}"
        prints = f"fingerprint {setup.fingerprint or 'unknown'}, now {now.fingerprint}"
        yield _stale(evaluation, "fingerprint", f"the run is not of this retriever ({prints}): {why}")
    elif setup.corpus is not None and now.corpus is not None and now.corpus != setup.corpus:
        yield _stale(evaluation, "documents", f"the searched documents changed since {setup.recorded_at}")


def _golden(evaluation: Evaluation, golden: GoldenSet, place: str) -> Iterator[Check]:
    origin = evaluation.setup.golden
    if origin.split in ("tuning", "held_out") and golden.metadata.get("split", "all") == "all":
        golden = split(golden)[0 if origin.split == "tuning" else 1]
    if evaluation.setup.sample < 1:  # the run chose its sample; the queries in it must be as they were
        asked = {query.query_id for query in evaluation.queries}
        golden = replace(
            golden,
            queries=tuple(query for query in golden.queries if query.query_id in asked),
            judgments=tuple(judgment for judgment in golden.judgments if judgment.query_id in asked),
        )
    if content_hash(golden) != origin.content_hash:
        message = f"the run was made on {origin.version}, but {place} is another set or has changed since"
        yield _stale(evaluation, "golden set", message)


def _stale(evaluation: Evaluation, what: str, message: str) -> Check:
    cure = f"evaluate again with `ringtrue eval --out {evaluation.run_dir}` and commit the run"
    return Check("completeness", what, "undecided", f"{message}; {cure}", math.nan)
