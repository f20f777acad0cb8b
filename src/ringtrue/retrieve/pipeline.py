"""What comes after ``>>``: steps that order, cut or boost the hits of the retriever before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringtrue.errors import SpecError
from ringtrue.records import Hit
from ringtrue.retrieve.kept import Followed
from ringtrue.retrieve.names import Name, Use
from ringtrue.retrieve.observe import ask, notes
from ringtrue.retrieve.protocol import Retriever, Scope, check_k
from ringtrue.retrieve.stages import Mmr, Recency, Step, Threshold, Tier, Top


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


def _mmr(use: Use) -> Step:
    from ringtrue.retrieve.channels.dense import Dense

    options = dict(use.options)
    dense = Dense(use.documents, model=options.pop("model"))
    return Mmr(dense.document_vectors, **options, made_with=dense.encoder.key)


def _rerank(use: Use) -> Step:
    from ringtrue.retrieve.rerank import CrossEncoder, open_reranker

    model, connection, depth = (use.options[name] for name in ("model", "connection", "depth"))
    if bool(model) == bool(connection):
        raise SpecError(
            f"'{use.text}' names no one reranker; write rerank('folder of a cross-encoder') or rerank(connection='name')"
        )
    if connection:
        return open_reranker(connection, texts=use.documents.texts, depth=depth)
    return CrossEncoder(model, texts=use.documents.texts, depth=depth)


def _recency(use: Use) -> Step:
    options = dict(use.options)
    return Recency(Followed(use.documents, use.documents.metadata), **{**options, "now": options["now"] or None})


def _tier(use: Use) -> Step:
    boosts = dict(use.options)
    return Tier(Followed(use.documents, use.documents.metadata), field=boosts.pop("field"), boosts=boosts)


def _threshold(use: Use) -> Step:
    return Threshold(**use.options)


def _top(use: Use) -> Step:
    return Top(use.options["n"])


_DEPTH = {"depth": 50}
STAGES: Mapping[str, Name] = {
    "rerank": Name(
        "stage",
        "a cross-encoder from a folder, or an endpoint described in ringtrue.toml, orders the first hits anew",
        _rerank,
        {"model": "", "connection": "", **_DEPTH},
        first="model",
        documents=True,
    ),
    "mmr": Name(
        "stage",
        "maximal marginal relevance: less of the same",
        _mmr,
        {"weight": 0.7, "model": "all-MiniLM-L6-v2", **_DEPTH},
        first="weight",
        documents=True,
    ),
    "recency": Name(
        "stage",
        "newer documents first",
        _recency,
        {"field": "date", "half_life": 30.0, "weight": 0.5, "now": "", **_DEPTH},
        documents=True,
    ),
    "tier": Name("stage", "boosts by a metadata value: tier(core=1.5)", _tier, {"field": "tier"}, free=1.0, documents=True),
    "threshold": Name("stage", "only hits that score enough", _threshold, dict.fromkeys(("min", "relative", "gap"))),
    "top": Name("stage", "the first n hits", _top, {"n": 10}, first="n"),
}
