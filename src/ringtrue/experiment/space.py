"""What a sweep searches, and the ways through it: a retriever written with holes, and the values that each may take.

``rrf(bm25(title={title}), dense, k={k})`` with ``title=1,2,3`` and ``k=10:200:log`` is a space of two parameters. The chunker
may have holes, too: ``fixed(tokens={tokens}, overlap=50)``. A value is put into its hole as it is written, so a parameter may
as well be a text in quotes or a whole retriever.

A method yields points and is sent the value of each, the higher the better; None if a point cannot be built.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from ringtrue.errors import InputError, MissingInput, SpecError, nearest
from ringtrue.extras import install_command

Value = int | float | str
GRID_POINTS = 5
"""Values of a range without a step that a grid tries."""
MOST = 10_000
"""Points of a grid; more would not end."""
_HOLE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
_OPEN, _CLOSED = "([{", ")]}"


@dataclass(frozen=True)
class Choice:
    """A parameter with a list of values: ``title=1,2,3``."""

    name: str
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.name}={','.join(map(str, self.values))}"

    def grid(self) -> tuple[Value, ...]:
        return self.values

    def count(self) -> int | None:
        return len(self.values)

    def draw(self, rng: np.random.Generator) -> Value:
        return self.values[int(rng.integers(len(self.values)))]


@dataclass(frozen=True)
class Range:
    """A parameter between two numbers: ``w=0.1:0.9``, in steps ``w=0.1:0.9:0.2``, or evenly by ratio ``k=1:1000:log``.

    Whole ends mean whole values.
    """

    name: str
    low: int | float
    high: int | float
    step: int | float | None = None
    log: bool = False

    def __str__(self) -> str:
        return f"{self.name}={self.low}:{self.high}" + (f":{self.step}" if self.step else ":log" if self.log else "")

    @property
    def whole(self) -> bool:
        """True if only whole numbers are meant."""
        return all(isinstance(value, int) for value in (self.low, self.high, self.step or 0))

    def grid(self) -> tuple[Value, ...]:
        if self.step is not None:
            count = int((self.high - self.low) / self.step + 1e-9) + 1
            return tuple(self.settled(self.low + place * self.step) for place in range(count))
        spaced = np.geomspace if self.log else np.linspace
        return tuple(dict.fromkeys(self.settled(value) for value in spaced(self.low, self.high, GRID_POINTS).tolist()))

    def count(self) -> int | None:
        """Return how many values there are; None if they have no number that means something."""
        return len(self.grid()) if self.step is not None else int(self.high) - int(self.low) + 1 if self.whole else None

    def draw(self, rng: np.random.Generator) -> Value:
        if self.step is not None:
            steps = self.grid()
            return steps[int(rng.integers(len(steps)))]
        if self.log:
            return self.settled(math.exp(rng.uniform(math.log(self.low), math.log(self.high))))
        if self.whole:
            return int(rng.integers(int(self.low), int(self.high) + 1))
        return self.settled(rng.uniform(self.low, self.high))

    def settled(self, value: float) -> Value:
        """Return a number of the range as it is written: whole, or with four digits, which people can repeat."""
        if self.whole:
            return min(max(round(value), int(self.low)), int(self.high))
        digits = 4 if self.step is None else 10  # a step's values are given, all but the noise of adding up
        return min(max(float(f"{value:.{digits}g}"), float(self.low)), float(self.high))


Parameter = Choice | Range


def parameter(text: str) -> Parameter:
    """Return the parameter written in ``name=values``; raises InputError with the value and the cure.

    >>> parameter("title=1,2,3").values
    (1, 2, 3)
    >>> parameter("w=0.1:0.9:0.4").grid()
    (0.1, 0.5, 0.9)
    >>> parameter("norm='z','minmax'").values
    ("'z'", "'minmax'")
    """
    name, equals, rest = text.partition("=")
    name, rest = name.strip(), rest.strip()
    if not equals or not _NAME.fullmatch(name) or not rest:
        raise InputError(f"--param {text!r} is not a parameter; write it like k=10,30,60 or w=0.1:0.9")
    ends = rest.split(":")
    if len(ends) in (2, 3) and all(_NUMBER.fullmatch(end.strip()) for end in ends[:2]):
        return _range(name, [end.strip() for end in ends], text)
    values = tuple(_value(part) for part in _parts(rest, text))
    if len(set(values)) != len(values):
        raise InputError(f"--param {text!r} names a value twice; write each value once")
    return Choice(name, values)


def _range(name: str, ends: Sequence[str], text: str) -> Range:
    low, high = _value(ends[0]), _value(ends[1])
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    how = ends[2] if len(ends) == 3 else ""
    step = _value(how) if how and how != "log" else None
    if step is not None and (not isinstance(step, int | float) or not 0 < step <= high - low):
        raise InputError(f"--param {text!r} has the step '{how}'; write a number that fits between the two ends, or log")
    if not low < high:
        raise InputError(f"--param {text!r} begins at {low} and ends at {high}; write the smaller number first")
    if how == "log" and low <= 0:
        raise InputError(f"--param {text!r} begins at {low}; a range by ratio (log) begins above 0")
    return Range(name, low, high, step, how == "log")


def _parts(text: str, whole: str) -> list[str]:
    """Return what stands between commas, those within brackets and quotes left alone."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSED:
            depth -= 1
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    found = [part.strip() for part in parts]
    if depth or quote or not all(found):
        problem = "leaves a bracket or quote open" if depth or quote else "has an empty value"
        raise InputError(f"--param {whole!r} {problem}; write it like k=10,30,60 or w=[1,2],[1,3]")
    return found


def _value(text: str) -> Value:
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


@dataclass(frozen=True)
class TrialPoint:
    """One setting of all parameters, and the texts it makes."""

    values: Mapping[str, Value]
    retriever: str
    chunks: str | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """What decides the answers."""
        return self.retriever, self.chunks


@dataclass(frozen=True)
class Space:
    """Everything that a sweep may try. Raises InputError for a hole without values, or values without a hole."""

    retriever: str
    parameters: tuple[Parameter, ...]
    chunks: str | None = None

    def __post_init__(self) -> None:
        names = [parameter.name for parameter in self.parameters]
        holes = _HOLE.findall(self.retriever) + _HOLE.findall(self.chunks or "")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"--param {twice} is given twice; list all its values in one: {twice}=1,2,3")
        for hole in holes:
            if hole not in names:
                known = f"did you mean {nearest(hole, names)}?" if names else f"add --param {hole}=1,2,3"
                raise SpecError(f"nothing says what to put into '{{{hole}}}'; {known}")
        for name in names:
            if name not in holes:
                raise SpecError(
                    f"--param {name} has no place; write '{{{name}}}' where its values belong, in --retriever or --chunk"
                )
        if not names:
            raise InputError(f"'{self.retriever}' leaves nothing to search; write it with a hole: 'rrf(bm25, dense, k={{k}})'")

    def point(self, values: Mapping[str, Value]) -> TrialPoint:
        """Return the point at these values."""

        def fill(template: str) -> str:
            return _HOLE.sub(lambda hole: str(values[hole[1]]), template)

        return TrialPoint(dict(values), fill(self.retriever), None if self.chunks is None else fill(self.chunks))

    def first(self) -> TrialPoint:
        """Return the point at the first value of every parameter."""
        return self.point({parameter.name: parameter.grid()[0] for parameter in self.parameters})

    def grid(self) -> Iterator[TrialPoint]:
        """Yield every combination; raises InputError if they are too many."""
        columns = [parameter.grid() for parameter in self.parameters]
        count = math.prod(len(column) for column in columns)
        if count > MOST:
            raise InputError(f"the grid has {count:,} points; name fewer values, or use --method random or model with --trials")
        for values in product(*columns):
            yield self.point(dict(zip((parameter.name for parameter in self.parameters), values, strict=True)))

    def count(self) -> int | None:
        """Return how many points there are; None if a parameter may take any number of a range."""
        counts = [parameter.count() for parameter in self.parameters]
        return math.prod(count for count in counts if count is not None) if None not in counts else None

    def draw(self, rng: np.random.Generator) -> TrialPoint:
        """Return one point at random, every value of a parameter as likely as the others."""
        return self.point({parameter.name: parameter.draw(rng) for parameter in self.parameters})

    def as_dict(self) -> dict[str, Any]:
        """Return the space as a report shows it."""
        return {"retriever": self.retriever, "chunks": self.chunks, "parameters": [str(one) for one in self.parameters]}


Method = Literal["grid", "random", "model"]
METHODS = ("grid", "random", "model")
TRIALS = 20
_PATIENCE = 200
"""Known points in a row after which a method has nothing new to say."""
Walk = Generator[TrialPoint, float | None, None]


def walk(space: Space, method: str, *, trials: int | None, seed: int) -> Walk:
    """Return the points of a method, each once; ``trials`` bounds how many (a grid has all of them unless told otherwise).

    Raises InputError for an unknown method or number, MissingInput if Optuna is not installed.
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
    in_vain, value = 0, None
    while (trials is None or len(known) < trials) and in_vain < _PATIENCE:
        point = next_point(points, value)
        if point is None:
            return
        in_vain = in_vain + 1 if point.key in known else 0
        if point.key not in known:
            known[point.key] = yield point
        value = known[point.key]


def next_point(points: Walk, value: float | None) -> TrialPoint | None:
    """Return the next point of a walk, which is told the value of the one before; None at its end."""
    try:
        return points.send(value)
    except StopIteration:
        return None


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


def _quiet() -> warnings.catch_warnings[None]:
    return warnings.catch_warnings(action="ignore")
