"""A retriever with holes, what may fill them, and the ways through."""

from __future__ import annotations

import builtins
import re

import numpy as np
import pytest

from ringtrue.errors import InputError, MissingInput, SpecError
from ringtrue.experiment import Space, parameter
from ringtrue.experiment.space import size, walk
from ringtrue.extras import install_command


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        ("k=10,30,60", (10, 30, 60)),
        ("w=0.1:0.5:0.1", (0.1, 0.2, 0.3, 0.4, 0.5)),
        ("tokens=128:512:128", (128, 256, 384, 512)),
        ("k=1:16:log", (1, 2, 4, 8, 16)),
        ("w=0:1.0", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("k=1:3", (1, 2, 3)),
        ("w=[0.3, 0.7],[1,1]", ("[0.3, 0.7]", "[1,1]")),
        ("base=rrf(bm25, dense),bm25", ("rrf(bm25, dense)", "bm25")),
        ("norm='a,b','z'", ("'a,b'", "'z'")),
        ("b=-1.5,2e1", (-1.5, 20.0)),
    ],
)
def test_a_parameter_is_a_list_or_a_range(text, grid) -> None:
    assert parameter(text).grid() == grid


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("k", "is not a parameter"),
        ("2k=1,2", "is not a parameter"),
        ("k=", "is not a parameter"),
        ("k=1,,2", "empty value"),
        ("k=1,1", "twice"),
        ("k=(1,2", "open"),
        ("k=9:1", "smaller number first"),
        ("k=0:9:log", "begins above 0"),
        ("k=1:9:20", "step '20'"),
        ("k=1:9:fast", "step 'fast'"),
    ],
)
def test_a_wrong_parameter_names_value_and_cure(text, says) -> None:
    with pytest.raises(InputError, match=says):
        parameter(text)


def test_holes_and_parameters_belong_together() -> None:
    k = parameter("k=1,2")
    point = Space("rrf(bm25, fts5, k={k})", (k, parameter("t=128,256")), "fixed(tokens={t}, overlap=25)").first()
    assert (point.retriever, point.chunks) == ("rrf(bm25, fts5, k=1)", "fixed(tokens=128, overlap=25)")
    with pytest.raises(SpecError, match=r"put into '\{kk\}'; did you mean 'k'"):
        Space("rrf(bm25, fts5, k={kk})", (k,))
    with pytest.raises(SpecError, match="--param k has no place"):
        Space("bm25", (k,))
    with pytest.raises(InputError, match="leaves nothing to search"):
        Space("bm25", ())
    with pytest.raises(InputError, match="given twice"):
        Space("rrf(bm25, fts5, k={k})", (k, k))
    with pytest.raises(InputError, match="1,000,000 points"):
        list(Space("weighted({a}{b}{c})", tuple(parameter(f"{n}=1:100:1") for n in "abc")).grid())


def test_random_draws_stay_inside_and_can_be_read() -> None:
    rng = np.random.default_rng(3)
    for text in ("w=0.1:0.9", "w=0.01:100.0:log", "k=3:7", "k=1:1000:log", "w=0.0:1.0:0.1", "c=1,'x'"):
        one = parameter(text)
        drawn = [one.draw(rng) for _ in range(200)]
        assert all(len(str(value)) <= 8 for value in drawn)
        if text[0] != "c":
            assert all(one.low <= value <= one.high for value in drawn)
            assert len(set(drawn)) > 4
        else:
            assert set(drawn) == {1, "'x'"}


def _all(space: Space, method: str, value=lambda point: 0.0, **options) -> list:
    walking = walk(space, method, **{"trials": None, "seed": 0, **options})
    points, point = [], next(walking)
    while True:
        points.append(point)
        try:
            point = walking.send(value(point))
        except StopIteration:
            return points


SPACE = Space("rrf(bm25, fts5, k={k}, w=[{w}, 1])", (parameter("k=1,10,100"), parameter("w=0.5,1")))


def test_a_grid_is_every_combination_once() -> None:
    points = _all(SPACE, "grid")
    assert len(points) == len({point.key for point in points}) == 6 == size(SPACE, "grid", None)
    assert points[0] == SPACE.first()
    assert len(_all(SPACE, "grid", trials=4)) == 4 == size(SPACE, "grid", 4)


@pytest.mark.parametrize("method", ["random", "model"])
def test_random_and_model_try_no_point_twice_and_follow_their_seed(method) -> None:
    wide = Space("rrf(bm25, fts5, k={k})", (parameter("k=1:10000"),))
    first = _all(wide, method, trials=8)
    assert len(first) == len({point.key for point in first}) == 8
    assert _all(wide, method, trials=8) == first
    assert _all(wide, method, trials=8, seed=1) != first
    assert len(_all(SPACE, method, trials=50)) == 6  # there are no more


def test_the_model_goes_where_values_are_high() -> None:
    space = Space("rrf(bm25, fts5, k={k})", (parameter("k=1:1000"),))

    def near(method: str) -> float:
        """Share of the later half of the trials that lie within 100 of the best place."""
        late = [
            point
            for seed in range(4)
            for point in _all(space, method, lambda point: -abs(point.values["k"] - 700), trials=30, seed=seed)[15:]
        ]
        return sum(abs(point.values["k"] - 700) <= 100 for point in late) / len(late)

    assert near("model") > 0.4 > 0.3 > near("random")


def test_optuna_neither_talks_nor_warns(capfd, recwarn) -> None:
    import optuna  # sets the level itself

    before = optuna.logging.get_verbosity()
    _all(Space("fts5(title={t})", (parameter("t=0.5:20.3:0.7"),)), "model", trials=5)
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
    assert not recwarn.list
    assert optuna.logging.get_verbosity() == before


def test_without_optuna_the_cure_is_named(monkeypatch) -> None:
    real = builtins.__import__

    def missing(name, *rest, **options):
        if name == "optuna":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingInput, match=re.escape(install_command("tune"))):
        _all(SPACE, "model")


def test_a_wrong_method_or_number_of_trials_is_refused() -> None:
    with pytest.raises(InputError, match="use 'grid', 'random' or 'model'"):
        walk(SPACE, "guess", trials=None, seed=0)
    with pytest.raises(InputError, match="trials=0"):
        walk(SPACE, "random", trials=0, seed=0)
