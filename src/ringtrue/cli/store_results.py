"""Results of ``eval`` and ``gate`` go to the store; ``eval`` creates it if there is none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Project
from ringtrue.errors import RingtrueError

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Verdict


@dataclass(frozen=True)
class Kept:
    """What became of a result."""

    run_id: str | None = None
    problem: RingtrueError | OSError | None = None
    fatal: bool = False

    def tell(self) -> None:
        """Say that a result is not in the store; raises if the store was named."""
        if self.problem is not None and self.fatal:
            raise self.problem
        if self.problem is not None:
            show.note(f"the result was not added to the store: {self.problem}")


@dataclass(frozen=True)
class ResultOptions:
    """The store that a result is added to."""

    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            show_default=False,
            help="Add the result and its run to this store: a file or postgresql://…; default: the configured store.",
        ),
    ] = None
    no_store: Annotated[bool, typer.Option("--no-store", help="Add the result to no store.")] = False
    project: Project = "default"
    feature: Annotated[str | None, typer.Option(help="The flag whose candidate was evaluated; default: production.")] = None

    def destination(self, *, create: bool = False) -> str | None:
        """Return where the result will go; a store that was named is opened, so that a wrong name fails at once.

        The store that nobody named, ``.ringtrue/store.sqlite``, is created only if ``create`` says so.
        """
        if self.no_store:
            return None
        from ringtrue.config import configured_store, store_url

        if self.store is not None:
            from ringtrue.store import Store

            Store.open(self.store).close()
            return self.store
        return configured_store() or (store_url() if create or Path(store_url()).is_file() else None)

    def add(self, destination: str | None, evaluation: Evaluation, verdict: Verdict | None = None) -> Kept:
        """Add a result; what goes wrong is told by ``Kept.tell``, after the result itself has been shown."""
        if destination is None:
            return Kept()
        from ringtrue.rollout import record_evaluation
        from ringtrue.store import Store

        now = datetime.now(UTC)
        try:
            with Store.open(destination) as store:
                row = record_evaluation(
                    store, evaluation, now=now, verdict=verdict, feature_id=self.feature, project=self.project
                )
        except (RingtrueError, OSError) as problem:  # the run is packed on the disk, which may be full
            # A store that is merely there must not fail an evaluation.
            return Kept(problem=problem, fatal=self.store is not None)
        return Kept(row.run_id)
