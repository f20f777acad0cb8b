"""A measure is a value equal to its text. Declaring what a measure is lies here, computing it lies beside.

``CATALOGUE`` is the one table of measures: names, options, what other tools call them, where they were published. The
reference page, the parser, the alias table and the conformance suite are all made from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ringtrue.errors import SpecError, nearest
from ringtrue.measures import lists, ranked
from ringtrue.measures.align import Aligned
from ringtrue.spec import Expression, Value, parse, show_value

HOW = "write it like nDCG@10 or P(rel=2)@10"
Cutoff = Literal["none", "may", "must", "level"]
Average = Literal["mean", "sum", "geometric"]


@dataclass(frozen=True)
class Option:
    """A named option of a measure: its default and the test a value must pass."""

    default: Value
    legal: Callable[[Any], bool]
    means: str


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _grade(value: Any) -> bool:
    # A negative grade says "not judged"; a threshold below 0 would count such documents as found but not as findable.
    return _whole(value) and value >= 0


REL = Option(
    None, _grade, "the lowest grade that counts as relevant, 0 or more (default: the golden set's threshold; 1 for bare qrels)"
)
GRADED_REL = Option(None, _grade, "the lowest grade that gains anything, 0 or more (default: every grade counts)")
BINARY_REL = Option(None, _grade, "the lowest grade with gain 1, 0 or more; below it the gain is 0 (default: graded gain)")
GAIN = Option("lin", lambda value: value in ("lin", "exp"), "'lin' (the grade, as trec_eval) or 'exp' (2^grade − 1)")
PERSISTENCE = Option(
    0.9, lambda v: isinstance(v, float) and 0 < v < 1, "probability of going on to the next result, between 0 and 1"
)
TOP = Option(
    None,
    lambda value: _whole(value) and 0 < value < 64,
    "highest grade of the scale (default: the top of the golden set's scale; in bare qrels the highest grade of the file)",
)
JUDGED_ONLY = Option(False, lambda value: isinstance(value, bool), "True takes unjudged documents out of the list first")
TIER = Option("critical", lambda value: value in lists.TIER_WEIGHTS, f"one of {', '.join(lists.TIER_WEIGHTS)}")
TIERS = Option(
    (),
    lambda v: isinstance(v, tuple) and set(v) <= set(lists.TIER_WEIGHTS),
    "a list of the tiers that count, like ['critical', 'constitutional'] (default: all)",
)
BY = Option(
    "spec_folder", lambda value: isinstance(value, str) and bool(value), "the document field whose values are the groups"
)


@dataclass(frozen=True)
class Definition:
    """Everything about one measure but its cut-off and options."""

    name: str
    kernel: Callable[..., Any]
    means: str
    formula: str
    source: str
    snake: str
    cutoff: Cutoff = "may"
    options: Mapping[str, Option] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    average: Average = "mean"
    bounded: bool = True
    needs_relevant: bool = False
    lists: bool = False
    lower_is_better: bool = False
    threshold: bool = True
    """Whether an absent ``rel`` means the golden set's threshold (graded measures read it as "every grade counts")."""
    trec: tuple[str | None, str | None] = (None, None)
    """trec_eval's name without and with a cut-off."""


_TREC = "trec_eval, NIST"
_MANNING = "Manning, Raghavan, Schütze: Introduction to Information Retrieval (2008), ch. 8"
_BINARY = {"rel": REL, "judged_only": JUDGED_ONLY}
_GRADED = {"gain": GAIN, "rel": GRADED_REL, "judged_only": JUDGED_ONLY}
_MEMORY = "Ringtrue"

CATALOGUE: tuple[Definition, ...] = (
    Definition(
        "R", ranked.recall, "Recall: share of all relevant documents found in the top k.",
        "found@k ÷ relevant", _MANNING, "recall",
        options=_BINARY, aliases=("set_recall",), needs_relevant=True, trec=("set_recall", "recall_{k}"),
    ),
    Definition(
        "P", ranked.precision, "Precision: share of k that is relevant, even when fewer than k came back.",
        "found@k ÷ k", _MANNING, "precision",
        cutoff="must", options=_BINARY, trec=(None, "P_{k}"),
    ),
    Definition(
        "SetP", ranked.set_precision, "Precision of what was returned; undefined when nothing was.",
        "found@k ÷ returned@k", _MANNING, "set_precision",
        options=_BINARY, aliases=("set_p",), trec=("set_P", None),
    ),
    Definition(
        "F1", ranked.f1, "Harmonic mean of P@k and R@k.",
        "2·P·R ÷ (P + R)", "van Rijsbergen: Information Retrieval (1979)", "f1",
        options=_BINARY, aliases=("f", "set_f"), needs_relevant=True, trec=("set_F", None),
    ),
    Definition(
        "RR", ranked.reciprocal_rank, "Reciprocal rank of the first relevant document; its mean is MRR.",
        "1 ÷ rank", "Voorhees: The TREC-8 Question Answering Track Report (1999)", "mrr",
        options=_BINARY, aliases=("recip_rank", "reciprocal_rank"), needs_relevant=True, trec=("recip_rank", None),
    ),
    Definition(
        "AP", ranked.average_precision, "Average precision over all relevant documents; its mean is MAP.",
        "Σ P@rank(d) over found relevant d ÷ relevant", "Buckley, Voorhees: Retrieval System Evaluation (2005)", "map",
        options=_BINARY, aliases=("map_cut", "average_precision"), needs_relevant=True, trec=("map", "map_cut_{k}"),
    ),
    Definition(
        "nDCG", ranked.ndcg, "Discounted cumulative gain against the ideal ranking of all judgments.",
        "DCG@k ÷ DCG@k of the ideal ranking", "Järvelin, Kekäläinen: Cumulated Gain-based Evaluation (TOIS 2002)", "ndcg",
        options=_GRADED, aliases=("ndcg_cut",), threshold=False, needs_relevant=True, trec=("ndcg", "ndcg_cut_{k}"),
    ),
    Definition(
        "DCG", ranked.dcg, "Discounted cumulative gain, not normalised.",
        "Σ gain ÷ log2(rank + 1)", "Järvelin, Kekäläinen: Cumulated Gain-based Evaluation (TOIS 2002)", "dcg",
        options=_GRADED, threshold=False, bounded=False,
    ),
    Definition(
        "Success", ranked.success, "1 when any relevant document is in the top k (hit rate).",
        "[found@k > 0]", _TREC, "success",
        cutoff="must", options=_BINARY, aliases=("hit", "hits", "hit_rate", "hitrate"), needs_relevant=True,
        trec=(None, "success_{k}"),
    ),
    Definition(
        "AllRelevant", ranked.all_relevant, "1 when every relevant document is in the top k.",
        "[found@k = relevant]", "LongMemEval's recall_all", "all_relevant",
        options=_BINARY, aliases=("recall_all",), needs_relevant=True,
    ),
    Definition(
        "RPrec", ranked.r_precision, "Precision at the number of relevant documents.",
        "found@R ÷ R, R = relevant", _TREC, "rprec",
        cutoff="none", options=_BINARY, aliases=("r_prec", "r_precision"), needs_relevant=True, trec=("Rprec", None),
    ),
    Definition(
        "Bpref", ranked.bpref, "Share of judged non-relevant documents ranked below each relevant one.",
        "Σ (1 − min(n above, R) ÷ min(N, R)) ÷ R", "Buckley, Voorhees: Retrieval Evaluation with Incomplete Information (2004)",
        "bpref",
        cutoff="none", options={"rel": REL}, needs_relevant=True, trec=("bpref", None),
    ),
    Definition(
        "infAP", ranked.inferred_ap, "AP inferred from a sample of the pool (grade below 0: pooled, not judged).",
        "expected precision at each relevant document ÷ R",
        "Yilmaz, Aslam: Estimating Average Precision with Incomplete and Imperfect Judgments (CIKM 2006)", "infap",
        cutoff="none", options={"rel": REL}, needs_relevant=True, trec=("infAP", None),
    ),
    Definition(
        "RBP", ranked.rank_biased_precision, "Rank-biased precision for a reader who goes on with probability p.",
        "(1 − p) Σ gain · p^(rank−1), gain = grade ÷ the query's highest grade",
        "Moffat, Zobel: Rank-Biased Precision (TOIS 2008)", "rbp",
        options={"p": PERSISTENCE, "rel": BINARY_REL, "judged_only": JUDGED_ONLY}, threshold=False, trec=("rbp", None),
    ),
    Definition(
        "RBPResidual", ranked.rbp_residual, "What RBP could still gain from unjudged documents and below the list's end.",
        "1 − (1 − p) Σ p^(rank−1) over judged", "Moffat, Zobel: Rank-Biased Precision (TOIS 2008)", "rbp_residual",
        options={"p": PERSISTENCE}, aliases=("rbp_resid",), trec=("rbp_resid", None),
    ),
    Definition(
        "ERR", ranked.expected_reciprocal_rank, "Expected reciprocal rank of a reader who stops when satisfied.",
        "Σ (1 ÷ rank) · s(rank) · Π (1 − s), s = (2^grade − 1) ÷ 2^max",
        "Chapelle, Metzler, Zhang, Grinspan: Expected Reciprocal Rank for Graded Relevance (CIKM 2009)", "err",
        options={"max": TOP, "judged_only": JUDGED_ONLY},
    ),
    Definition(
        "Judged", ranked.judged_share, "Share of the returned top k that somebody judged.",
        "judged@k ÷ returned@k", "ir_measures", "judged",
        cutoff="must",
    ),
    Definition(
        "IPrec", ranked.interpolated_precision, "Best precision once this share of the relevant documents is seen.",
        "max P where recall ≥ level", _MANNING, "iprec_at_recall",
        cutoff="level", options=_BINARY, needs_relevant=True, trec=(None, "iprec_at_recall_{k:.2f}"),
    ),
    Definition(
        "GMAP", ranked.geometric_average_precision, "Geometric mean of AP, which weighs the worst queries most.",
        "exp(mean(log(max(AP, 0.00001))))", "Robertson: On GMAP and other transformations (CIKM 2006)", "gmap",
        cutoff="none", options=_BINARY, aliases=("gm_map",), average="geometric", needs_relevant=True, trec=("gm_map", None),
    ),
    Definition(
        "NumRet", ranked.number_returned, "Documents returned.",
        "count", _TREC, "num_ret",
        average="sum", bounded=False, trec=("num_ret", None),
    ),
    Definition(
        "NumRel", Aligned.relevant, "Documents that are relevant.",
        "count", _TREC, "num_rel",
        cutoff="none", options={"rel": REL}, average="sum", bounded=False, trec=("num_rel", None),
    ),
    Definition(
        "NumRelRet", ranked.number_relevant_returned, "Relevant documents returned.",
        "count", _TREC, "num_rel_ret",
        options={"rel": REL}, average="sum", bounded=False, trec=("num_rel_ret", None),
    ),
    Definition(
        "NumQ", ranked.number_of_queries, "Queries that count.",
        "count", _TREC, "num_q",
        cutoff="none", average="sum", bounded=False, trec=("num_q", None),
    ),
    Definition(
        "Diversity", lists.diversity, "Share of the top k that repeats a group already shown (0: all different).",
        "1 − unique groups ÷ results", "Ringtrue", "diversity",
        cutoff="must", options={"by": BY}, lists=True, lower_is_better=True,
    ),
    Definition(
        "Top1Chunk", lists.top_1_chunk,
        "1 if the declared best chunk is ranked first; undefined if the search names no chunks.",
        "[first = top_1_chunk]", "Ringtrue", "top_1_chunk",
        cutoff="none", lists=True,
    ),
    Definition(
        "Constitutional", lists.constitutional, "1 when every constitutional item is in the top k.",
        "[constitutional ⊆ top k]", _MEMORY, "constitutional_surfacing",
        cutoff="must", lists=True,
    ),
    Definition(
        "ImportanceRecall", lists.importance_recall,
        "Recall in which constitutional items weigh 4, critical 3, important 2, normal 1, temporary 0.5.",
        "Σ weight found ÷ Σ weight relevant", _MEMORY, "importance_recall",
        cutoff="must", options={"rel": REL, "tiers": TIERS}, aliases=("importance_weighted_recall",), lists=True,
        needs_relevant=True,
    ),
    Definition(
        "TierP", lists.tier_precision, "Precision among the shown items of one importance tier.",
        "relevant of tier@k ÷ shown of tier@k", _MEMORY, "tier_precision",
        cutoff="must", options={"rel": REL, "tier": TIER}, lists=True,
    ),
    Definition(
        "ChainCompleteness", lists.chain_completeness, "Share of the query's causal chain in the top k.",
        "chain ∩ top k ÷ chain", _MEMORY, "chain_completeness",
        cutoff="must", aliases=("chain",), lists=True,
    ),
    Definition(
        "Forbidden", lists.forbidden, "1 when a document the query forbids is in the top k (lower is better).",
        "[forbidden ∩ top k ≠ ∅]", _MEMORY, "forbidden",
        cutoff="must", lists=True, lower_is_better=True,
    ),
    Definition(
        "Stale", lists.stale, "Share of the shown items that are retired or superseded (lower is better).",
        "out of use@k ÷ shown@k", _MEMORY, "stale",
        cutoff="must", lists=True, lower_is_better=True,
    ),
    Definition(
        "FalseInject", lists.false_inject, "1 when at least one shown item is not relevant (lower is better).",
        "[some shown item is not relevant]", _MEMORY, "false_inject",
        cutoff="must", options={"rel": REL}, aliases=("false_inject_rate",), lists=True, lower_is_better=True,
    ),
    Definition(
        "Silent", lists.silent, "1 when nothing was shown.",
        "[returned = 0]", _MEMORY, "silent",
        cutoff="none", aliases=("silent_rate",), lists=True,
    ),
)  # fmt: skip

DEFINITIONS: Mapping[str, Definition] = {definition.name: definition for definition in CATALOGUE}
ALIASES: Mapping[str, str] = {
    alias.lower(): definition.name
    for definition in CATALOGUE
    for alias in (definition.name, definition.snake, *definition.aliases)
}
_HABIT = re.compile(r"(?P<name>.+?)(?:_at)?[_.](?P<number>\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Measure:
    """A measure with its cut-off and options; equal measures print equally and ``Measure.parse(str(m)) == m``.

    >>> Measure.parse("ndcg_cut_10") == Measure("nDCG", at=10)
    True
    >>> str(Measure("P", at=5, options=(("rel", 2),)))
    'P(rel=2)@5'

    Raises SpecError for a name, cut-off or option that does not exist, with the nearest that does.
    """

    name: str
    at: int | float | None = None
    options: tuple[tuple[str, Value], ...] = ()

    def __post_init__(self) -> None:
        definition = DEFINITIONS.get(self.name)
        if definition is None:
            raise SpecError(f"there is no measure '{self.name}'; did you mean {nearest(self.name, DEFINITIONS)}?")
        _check_cutoff(definition, self.at)
        for key, value in self.options:
            _check_option(definition, key, value)
        given = {key: value for key, value in self.options if value != definition.options[key].default}
        object.__setattr__(self, "options", tuple(sorted(given.items())))
        if definition.cutoff == "level" and self.at is not None:
            object.__setattr__(self, "at", float(self.at) + 0.0)  # -0.0 equals 0.0 but prints otherwise

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Return the measure a text names, in Ringtrue's own form or in another tool's (``ndcg_cut_10``, ``mrr@10``)."""
        if not isinstance(text, str):
            raise SpecError(f"cannot read measure {text!r}; {HOW}")
        try:
            expression = parse(text)
        except SpecError:
            raise SpecError(f"cannot read measure {text!r:.80}; {HOW}") from None
        if not isinstance(expression, Expression) or expression.args:
            raise SpecError(f"cannot read measure {text!r:.80}: options have names; {HOW}")
        name, at = _resolve(expression, text)
        return cls(name, at, expression.options)

    def __str__(self) -> str:
        return str(Expression(self.name, (), self.options, self.at))

    @property
    def definition(self) -> Definition:
        """What this measure is, apart from its cut-off and options."""
        return DEFINITIONS[self.name]

    def option(self, key: str) -> Any:
        """Return an option's value, its default when it was not given."""
        return dict(self.options).get(key, self.definition.options[key].default)

    @property
    def snake(self) -> str:
        """The spelling of REST fields and database columns: ``recall_at_10``, ``mrr``, ``precision_rel_2_at_5``."""
        words = [self.definition.snake] + [re.sub(r"[\W_]+", "_", f"{key}_{value}").strip("_") for key, value in self.options]
        return "_".join(words) + ("" if self.at is None else f"_at_{self.at}".replace(".", "_"))

    @property
    def prometheus(self) -> tuple[str, dict[str, str]]:
        """The spelling of a Prometheus series: its name and labels, ``('recall_at_k', {'k': '10'})``."""
        labels = {key: str(value) for key, value in self.options}
        if self.at is None:
            return self.definition.snake, labels
        return f"{self.definition.snake}_at_k", {"k": str(self.at), **labels}

    @property
    def trec(self) -> str | None:
        """trec_eval's name for exactly this measure, or None if it has none."""
        bare, cut = self.definition.trec
        template = bare if self.at is None else cut
        return None if template is None or self.options else template.format(k=self.at)


def _resolve(expression: Expression, text: str) -> tuple[str, int | float | None]:
    name = ALIASES.get(expression.name.lower())
    if name is not None:
        return name, expression.at
    habit = _HABIT.fullmatch(expression.name)
    if habit and expression.at is None:
        name = ALIASES.get(habit["name"].lower())
        if name is not None:
            return name, float(habit["number"]) if "." in habit["number"] else int(habit["number"])
    raise SpecError(
        f"there is no measure '{expression.name}' (in {text!r:.80}); did you mean {nearest(expression.name, DEFINITIONS)}?"
    )


def _check_cutoff(definition: Definition, at: int | float | None) -> None:
    name = definition.name
    if definition.cutoff == "level":
        if not isinstance(at, int | float) or isinstance(at, bool) or not 0 <= at <= 1:
            raise SpecError(f"{name} needs a recall level between 0 and 1, not {at!r}; write it like {name}@0.1")
    elif at is None:
        if definition.cutoff == "must":
            raise SpecError(f"{name} needs a cut-off; write it like {name}@10")
    elif definition.cutoff == "none":
        raise SpecError(f"{name} has no cut-off, but {at!r} is given; write it as {name}")
    elif not isinstance(at, int) or isinstance(at, bool) or at < 1 or at >= 2**53:
        raise SpecError(f"the cut-off {at!r} of {name} is not a whole number above 0; write it like {name}@10")


def _check_option(definition: Definition, key: str, value: Value) -> None:
    option = definition.options.get(key)
    if option is None:
        legal = f"did you mean {nearest(key, definition.options)}?" if definition.options else "it has no options"
        raise SpecError(f"{definition.name} has no option '{key}'; {legal}")
    if value != option.default and not option.legal(value):
        raise SpecError(f"{definition.name} cannot have {key}={show_value(value)}: {key} is {option.means}")
