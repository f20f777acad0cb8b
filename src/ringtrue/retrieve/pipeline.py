"""What comes after ``>>``: steps that order, cut or boost the hits of the retriever before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringtrue.records import Hit
from ringtrue.retrieve.observe import ask, notes
from ringtrue.retrieve.protocol import Retriever, Scope, check_k
from ringtrue.retrieve.stages import Step


class Staged:
    """A retriever with steps after it."""

    def __init__(self, base: Retriever, steps: Sequence[Step]) -> None:
        self.base, self.steps = base, list(steps)

    @property
    def parts(self) -> list[Any]:
        """The retriever and its steps."""
        return [self.base, *self.steps]

    @property
    def weights(self) -> Mapping[str, float]:
        """What each channel of a fusion at its beginning weighs."""
        return getattr(self.base, "weights", {})

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(self, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[list[Hit]]:
        """Return the answers to several questions; the steps see one at a time."""
        # Every step gets as many hits as it and those after it want.
        depths = [check_k(k)]
        for step in reversed(self.steps):
            depths.insert(0, max(depths[0], step.depth(depths[0])))
        noted = notes()
        name = getattr(self.base, "name", type(self.base).__name__)
        answers = []
        for text, hits in zip(texts, ask(noted, name, self.base, texts, k=depths[0], scope=scope), strict=True):
            found = list(hits)
            if noted is not None:
                noted.question()
            for step, depth in zip(self.steps, depths[1:], strict=True):
                found = step.apply(text, found, k=depth) if found else found
                if noted is not None:
                    noted.step(step.name, found, asked=depth)
            answers.append(found[:k])
        if noted is not None:
            noted.stepped(self, answers)
        return answers
