"""The one grammar: what it reads, what it prints, and what it says about a text that it cannot read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringtrue.errors import SpecError
from ringtrue.spec import Expression, Pipeline, parse


def option(*pairs: tuple[str, object]) -> tuple[tuple[str, object], ...]:
    return pairs


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("AP", Expression("AP")),
        ("AP()", Expression("AP")),
        ("nDCG@10", Expression("nDCG", at=10)),
        ("IPrec@0.1", Expression("IPrec", at=0.1)),
        ("IPrec@.1", Expression("IPrec", at=0.1)),
        ("P(rel=2)@5", Expression("P", options=option(("rel", 2)), at=5)),
        ("  P ( rel = 2 ) @ 5  ", Expression("P", options=option(("rel", 2)), at=5)),
        ("P(rel=-1)", Expression("P", options=option(("rel", -1)))),
        ("P(rel=+2,)", Expression("P", options=option(("rel", 2)))),
        ("nDCG(gain='exp')", Expression("nDCG", options=option(("gain", "exp")))),
        ('nDCG(gain="exp")', Expression("nDCG", options=option(("gain", "exp")))),
        ("f(1, 2.5, 'x', True, None)", Expression("f", (1, 2.5, "x", True, None))),
        ("f(true, false)", Expression("f", (True, False))),
        ("f(1e-3)", Expression("f", (0.001,))),
        ("f([1, 'a', []])", Expression("f", ((1, "a", ()),))),
        ("f(tiers=['critical'])", Expression("f", options=option(("tiers", ("critical",))))),
        ("ndcg_cut.10", Expression("ndcg_cut.10")),
        ("all-MiniLM-L6-v2", Expression("all-MiniLM-L6-v2")),
        (r"f('it\'s')", Expression("f", ("it's",))),
        ("f(g(h@3))", Expression("f", (Expression("g", (Expression("h", at=3),)),))),
    ],
)
def test_the_grammar_reads_names_options_cutoffs_and_values(text: str, expression: Expression) -> None:
    assert parse(text) == expression


def test_a_pipeline_is_its_stages_in_order() -> None:
    found = parse("rrf(bm25(title=2), dense('all-MiniLM-L6-v2'), k=60) >> mmr(0.7)")
    fused = Expression(
        "rrf",
        (Expression("bm25", options=option(("title", 2))), Expression("dense", ("all-MiniLM-L6-v2",))),
        option(("k", 60)),
    )
    assert found == Pipeline((fused, Expression("mmr", (0.7,))))
    assert str(found) == "rrf(bm25(title=2), dense('all-MiniLM-L6-v2'), k=60) >> mmr(0.7)"


def test_a_pipeline_may_stand_where_a_value_stands() -> None:
    found = parse("rrf(bm25 >> rerank, dense)")
    assert found == Expression("rrf", (Pipeline((Expression("bm25"), Expression("rerank"))), Expression("dense")))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("P( rel = 2 )@5", "P(rel=2)@5"),
        ("P()@5", "P@5"),
        ('nDCG(gain="exp")@10', "nDCG(gain='exp')@10"),
        ("f(b=1, a=2)", "f(a=2, b=1)"),
        ("f(x=.50)", "f(x=0.5)"),
        ("f(x=true)", "f(x=True)"),
        ("a>>b", "a >> b"),
        ("f([1,2])", "f([1, 2])"),
    ],
)
def test_every_way_of_writing_prints_one_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


def test_options_have_no_order_so_equal_expressions_hash_equally() -> None:
    one, other = parse("f(a=1, b=2)"), parse("f(b=2, a=1)")
    assert one == other
    assert len({one, other}) == 1


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"True", "true", "False", "false", "None"}
)
scalars = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=12), st.booleans(), st.none()
)
cutoffs = st.one_of(st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))


def expressions(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    built = st.builds(
        Expression,
        names,
        st.lists(values, max_size=3).map(tuple),
        st.dictionaries(names, values, max_size=3).map(lambda options: tuple(options.items())),
        cutoffs,
    )
    pipelines = st.lists(built, min_size=2, max_size=3).map(lambda stages: Pipeline(tuple(stages)))
    return st.one_of(built, pipelines, st.lists(values, max_size=3).map(tuple))


trees = st.recursive(scalars, expressions, max_leaves=12).filter(lambda tree: isinstance(tree, Expression | Pipeline))


@settings(max_examples=60)
@given(trees)
def test_parsing_the_text_of_any_expression_gives_it_back(tree: Expression | Pipeline) -> None:
    assert parse(str(tree)) == tree
    assert str(parse(str(tree))) == str(tree)


@given(st.one_of(st.text(max_size=30), st.text(alphabet="aP@()[],=>'\"\\0123456789.-+ ", max_size=30)))
def test_any_text_is_read_or_refused_with_a_spec_error(text: str) -> None:
    try:
        found = parse(text)
    except SpecError:
        with pytest.raises(SpecError, match="write it like nDCG@10"):
            parse(text)
    else:
        assert parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        ("", "expected a name but found 'the end'", 1),
        ("   ", "expected a name but found 'the end'", 4),
        ("nDCG@", "expected a number after '@' but found 'the end'", 6),
        ("nDCG@x", "expected a number after '@' but found 'x'", 6),
        ("nDCG@10@5", "unexpected '@'", 8),
        ("P(rel=2@5", "expected ')' but found '@'", 8),
        ("P(rel=)", "expected a value but found ')'", 7),
        ("P(rel=1, rel=2)", "'rel' is given twice", 10),
        ("f(a=1, 2)", "a plain argument after a named one", 8),
        ("f(,)", "expected a value but found ','", 3),
        ("10", "expected a name but found '10'", 1),
        ("a >>", "expected a name but found 'the end'", 5),
        ("a b", "unexpected 'b'", 3),
        ("f(1 2)", "expected ')' but found '2'", 5),
        ("f([1 2])", "expected ']' but found '2'", 6),
        ("P  ?", "unexpected '?'", 4),
        ("f('open)", 'unexpected "\'"', 3),
    ],
)
def test_an_unreadable_text_is_shown_with_problem_place_and_cure(text: str, problem: str, place: int) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text)
    message = str(caught.value)
    assert f"cannot read {text!r}" in message
    assert f"{problem} at character {place};" in message
    assert message.endswith("write it like nDCG@10, P(rel=2)@10 or rrf(bm25, dense, k=60)")


@pytest.mark.parametrize(
    "text",
    ["f(" * 60 + ")" * 60, "f(" + "[" * 60 + "]" * 60 + ")", "f(" + "[g(" * 30 + ")]" * 30 + ")"],
    ids=["expressions", "lists", "both"],
)
def test_brackets_that_are_too_deep_are_refused_whatever_their_shape(text: str) -> None:
    with pytest.raises(SpecError, match="more than 50 levels of brackets"):
        parse(text)


@pytest.mark.parametrize("text", ["f(" * 100_000, "f(" + "[" * 100_000], ids=["expressions", "lists"])
def test_a_hostile_depth_ends_in_a_spec_error_not_in_a_crash(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse(text)
    assert len(str(caught.value)) < 500, "a long text is cut in the message"


def test_brackets_side_by_side_are_not_deep() -> None:
    found = parse("f(" + ", ".join(["[1]", "g(2)"] * 60) + ")")
    assert isinstance(found, Expression)
    assert len(found.args) == 120


@pytest.mark.parametrize("number", ["1e400", "-1e999", "1" * 5000], ids=["1e400", "-1e999", "5000 digits"])
def test_a_number_that_no_value_can_hold_is_refused_because_it_could_not_be_printed_back(number: str) -> None:
    for text in (f"f({number})", f"f@{number}"):
        with pytest.raises(SpecError, match="a number too large to use at character 3"):
            parse(text)
