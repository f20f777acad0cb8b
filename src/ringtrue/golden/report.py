"""What validation found: problems with their cures, the figures behind them, and the rules that were applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ringtrue.answers import GoldenProblem
from ringtrue.brief import brief
from ringtrue.errors import ValidationFailed

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Report:
    """All problems of a set at once."""

    problems: tuple[GoldenProblem, ...]
    figures: Mapping[str, Any]
    profile: str
    rules: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What the reader decided by a rule because the file leaves it open."""
    how_to_confirm: str = ""
    """How a set in this format says that people made its judgments."""

    def __repr__(self) -> str:
        return brief(self, profile=self.profile, errors=len(self.errors), warnings=len(self.warnings))

    @property
    def errors(self) -> tuple[GoldenProblem, ...]:
        """The problems that make the set unfit for use."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[GoldenProblem, ...]:
        """The problems that its users should know of."""
        return tuple(problem for problem in self.problems if problem.severity == "warning")

    @property
    def ok(self) -> bool:
        """True when there is no error."""
        return not self.errors

    def require(self) -> None:
        """Raise ValidationFailed when there is an error, naming the first and counting the rest."""
        if not self.ok:
            more = f" (and {len(self.errors) - 1} more errors)" if len(self.errors) > 1 else ""
            raise ValidationFailed(f"{self.errors[0]}{more}")
