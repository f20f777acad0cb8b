"""Three ways through a space: all of it, at random, or guided by what was found so far.

A method yields points and is sent the value of each, the higher the better; None where a point cannot be.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.experiment.space import MOST, Choice, Point, Range, Space
from ringtrue.extras import install_command

Method = Literal["grid", "random", "model"]
METHODS = ("grid", "random", "model")
TRIALS = 20
_PATIENCE = 200
"""Known points in a row after which a method has nothing new to say."""
Walk = Generator[Point, float | None, None]


def walk(space: Space, method: str, *, trials: int | None, seed: int) -> Walk:
    """Return the points of a method, each once; ``trials`` bounds how many (a grid has all of them unless told otherwise).

    Raises InputError for an unknown method or number, MissingInput where Optuna is not installed.
    """
    if method not in METHODS:
        raise InputError(f"there is no method '{method}'; use {nearest(method, METHODS)}")
    if trials is not None and trials < 1:
        raise InputError(f"trials={trials} leaves nothing to try; ask for 1 or more")
    if method == "grid":
        return _once(_grid(space), trials)
    most = size(space, method, trials)
    return _once(_random(space, seed) if method == "random" else _model(space, seed, most), most)


def size(space: Space, method: str, trials: int | None) -> int:
    """Return how many trials a walk will make at most."""
    if method == "grid":
        count = sum(1 for _ in space.grid())
        return count if trials is None else min(count, trials)
    return min(trials or TRIALS, space.count() or MOST)


def _once(points: Walk, trials: int | None) -> Walk:
    """Yield points that were not there before; for others the method is told their value again."""
    known: dict[tuple[str, str | None], float | None] = {}
    in_vain = 0
    point = next(points, None)
    while point is not None and (trials is None or len(known) < trials) and in_vain < _PATIENCE:
        in_vain += 1
        if point.key not in known:
            known[point.key] = yield point
            in_vain = 0
        try:
            point = points.send(known[point.key])
        except StopIteration:
            return


def _grid(space: Space) -> Walk:
    for point in space.grid():  # noqa: UP028  # what is sent has to arrive here
        yield point


def _random(space: Space, seed: int) -> Walk:
    rng = np.random.default_rng(seed)
    while True:
        yield space.draw(rng)


def _model(space: Space, seed: int, trials: int) -> Walk:
    """Optuna's tree-structured Parzen estimator (Bergstra and others 2011): where did the good ones lie, where the others?"""
    with _quiet():
        try:
            import optuna
        except ImportError:
            raise MissingInput(f"optuna is not installed; {install_command('tune')}, or use --method random") from None
        logged = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            # A short search is better off with fewer trials at random before the model has a say.
            start = min(10, max(4, trials // 3))
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=start)
            study = optuna.create_study(direction="maximize", sampler=sampler)
            wanted = {one.name: _distribution(optuna, one) for one in space.parameters}
        finally:
            optuna.logging.set_verbosity(logged)
    while True:
        with _quiet():
            trial = study.ask(wanted)
        settle = {one.name: one.settled if isinstance(one, Range) else (lambda value: value) for one in space.parameters}
        value = yield space.point({name: settle[name](value) for name, value in trial.params.items()})
        with _quiet():
            if value is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, value)


def _distribution(optuna: Any, one: Choice | Range) -> Any:
    kinds = optuna.distributions
    if isinstance(one, Choice):
        return kinds.CategoricalDistribution(one.values)
    if one.whole:
        return kinds.IntDistribution(int(one.low), int(one.high), log=one.log, step=int(one.step or 1))
    return kinds.FloatDistribution(float(one.low), float(one.high), log=one.log, step=one.step)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
