"""Results and runs of ``eval`` and ``gate`` go to the store where there is one; none is ever made unasked (O-1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.errors import RingtrueError

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Verdict

NoStore = Annotated[bool, typer.Option("--no-store", help="Add the result to no store.")]
Feature = Annotated[
    str | None, typer.Option("--feature", help="In the store: the flag whose candidate was evaluated; else it is production.")
]


@dataclass(frozen=True)
class Keeper:
    """Where a result will go; nowhere where ``place`` is None."""

    place: str | None
    asked: bool
    """Named on the line; a store that is merely there must not fail an evaluation."""
    project: str
    feature: str | None

    def add(self, evaluation: Evaluation, verdict: Verdict | None = None) -> Kept:
        """Add a result; what goes wrong is told by ``Kept.tell``, when the result itself has been shown."""
        if self.place is None:
            return Kept()
        from ringtrue.online import record_evaluation
        from ringtrue.store import Store

        try:
            with Store.open(self.place) as store:
                row = record_evaluation(
                    store,
                    evaluation,
                    now=datetime.now(UTC),
                    verdict=verdict,
                    feature_id=self.feature,
                    project=self.project,
                )
        except (RingtrueError, OSError) as problem:  # the run is packed on the disk, which may be full
            return Kept(problem=problem, fatal=self.asked)
        return Kept(row.run_id)


@dataclass(frozen=True)
class Kept:
    """What became of a result."""

    run_id: str | None = None
    problem: RingtrueError | OSError | None = None
    fatal: bool = False

    def tell(self) -> None:
        """Say that a result is not in the store; raises where it was asked for by name."""
        from ringtrue.cli import show

        if self.problem is not None and self.fatal:
            raise self.problem
        if self.problem is not None:
            show.note(f"the result was not added to the store: {self.problem}")


def keeper(store: str | None, *, no_store: bool, project: str, feature: str | None, make: bool = False) -> Keeper:
    """Return where results go; a store that was named is opened, so that a wrong name is told before anything is evaluated."""
    if no_store:
        return Keeper(None, False, project, feature)
    if store is not None:
        from ringtrue.store import Store

        Store.open(store).close()
        return Keeper(store, True, project, feature)
    from ringtrue.config import configured_store, store_url

    place = configured_store()
    if place is None and (make or Path(store_url()).is_file()):
        place = store_url()
    return Keeper(place, False, project, feature)
