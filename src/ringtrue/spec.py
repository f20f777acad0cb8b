"""One small grammar for everything Ringtrue names in text: measures and retrievers.

``nDCG(gain='exp')@10`` and ``rrf(bm25(title=2), dense('all-MiniLM-L6-v2'), k=60) >> mmr(0.7)`` are expressions. An
expression is a value: it compares, hashes and prints, and ``parse(str(e)) == e``. What a name *means* is decided by the
room that owns it (measures, retrieve); this module knows only how such texts are written.

::

    pipeline   = expression { ">>" expression }
    expression = name [ "(" [ argument { "," argument } ] ")" ] [ "@" number ]
    argument   = [ name "=" ] value
    value      = number | 'text' | True | False | None | "[" [ value { "," value } ] "]" | pipeline
"""

from __future__ import annotations

import ast
import contextlib
import math
import re
from dataclasses import dataclass

from ringtrue.errors import SpecError

Value = object
"""A text, number, truth value or None, a tuple of Values, an Expression or a Pipeline: Python cannot name that recursion."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<mark>>>|[()\[\],=@])
    )""",
    re.VERBOSE,
)
_CONSTANTS: dict[str, bool | None] = {"True": True, "true": True, "False": False, "false": False, "None": None}
_DEEPEST = 50
LIKE = "nDCG@10, P(rel=2)@10 or rrf(bm25, dense, k=60)"
"""How an expression is written, where nobody knows what it is to name."""


@dataclass(frozen=True)
class Expression:
    """A name with its arguments and, where it has one, its cut-off: ``P(rel=2)@5``."""

    name: str
    args: tuple[Value, ...] = ()
    options: tuple[tuple[str, Value], ...] = ()
    at: int | float | None = None

    def __post_init__(self) -> None:
        # Options have no order of their own; sorting them makes equal expressions equal and their text canonical.
        object.__setattr__(self, "options", tuple(sorted(self.options, key=lambda pair: pair[0])))

    def __str__(self) -> str:
        inside = [show_value(value) for value in self.args] + [f"{key}={show_value(value)}" for key, value in self.options]
        arguments = f"({', '.join(inside)})" if inside else ""
        return f"{self.name}{arguments}{'' if self.at is None else f'@{show_value(self.at)}'}"


@dataclass(frozen=True)
class Pipeline:
    """Expressions applied one after the other: ``bm25 >> rerank('cross-encoder')``."""

    stages: tuple[Expression, ...]

    def __str__(self) -> str:
        return " >> ".join(map(str, self.stages))


def show_value(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(show_value, value))}]"
    return str(value) if isinstance(value, Expression | Pipeline) else repr(value)


def parse(text: str, *, like: str = LIKE) -> Expression | Pipeline:
    """Return the expression written in ``text``; ``like`` are examples of what is wanted there, for who wrote it wrong.

    >>> str(parse("P( rel = 2 )@5"))
    'P(rel=2)@5'

    Raises SpecError, which shows the text, the place and what was expected there.
    """
    reader = _Reader(text, like)
    found = reader.pipeline()
    reader.expect_end()
    return found


class _Reader:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, like: str) -> None:
        self.text, self.like = text, like
        self.tokens: list[tuple[str, str, int]] = []
        self.at = 0
        self.depth = 0
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                raise self.error(f"unexpected {text[start]!r}", start)
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            position = match.end()

    def error(self, problem: str, position: int) -> SpecError:
        return SpecError(f"cannot read {self.text[:200]!r}: {problem} at character {position + 1}; write it like {self.like}")

    def peek(self, ahead: int = 0) -> tuple[str, str, int]:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ("end", "the end", len(self.text))

    def take(self, wanted: str) -> bool:
        if self.peek()[:2] == ("mark", wanted):
            self.at += 1
            return True
        return False

    def expect(self, wanted: str) -> None:
        if not self.take(wanted):
            _, found, position = self.peek()
            raise self.error(f"expected '{wanted}' but found {found!r}", position)

    def expect_end(self) -> None:
        if self.peek()[0] != "end":
            _, found, position = self.peek()
            raise self.error(f"unexpected {found!r}", position)

    def pipeline(self) -> Expression | Pipeline:
        stages = [self.expression()]
        while self.take(">>"):
            stages.append(self.expression())
        return stages[0] if len(stages) == 1 else Pipeline(tuple(stages))

    def expression(self) -> Expression:
        kind, name, position = self.peek()
        if kind != "name":
            raise self.error(f"expected a name but found {name!r}", position)
        self.at += 1
        args: list[Value] = []
        options: dict[str, Value] = {}
        if self.take("("):
            self.descend(position)
            while not self.take(")"):
                self.argument(args, options)
                if not self.take(","):
                    self.expect(")")
                    break
            self.depth -= 1
        return Expression(name, tuple(args), tuple(options.items()), self.cutoff())

    def descend(self, position: int) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"more than {_DEEPEST} levels of brackets", position)

    def argument(self, args: list[Value], options: dict[str, Value]) -> None:
        kind, name, position = self.peek()
        if kind == "name" and self.peek(1)[:2] == ("mark", "="):
            self.at += 2
            if name in options:
                raise self.error(f"'{name}' is given twice", position)
            options[name] = self.value()
        elif options:
            raise self.error("a plain argument after a named one", position)
        else:
            args.append(self.value())

    def cutoff(self) -> int | float | None:
        if not self.take("@"):
            return None
        kind, found, position = self.peek()
        if kind != "number":
            raise self.error(f"expected a number after '@' but found {found!r}", position)
        return self.number()

    def number(self) -> int | float:
        _, found, position = self.peek()
        self.at += 1
        with contextlib.suppress(ValueError):  # Python refuses whole numbers of several thousand digits
            value = int(found) if re.fullmatch(r"[-+]?\d+", found) else float(found)
            if not isinstance(value, float) or math.isfinite(value):
                return value
        raise self.error("a number too large to use", position)

    def value(self) -> Value:
        kind, found, position = self.peek()
        if kind == "number":
            return self.number()
        if kind == "text":
            self.at += 1
            try:
                return str(ast.literal_eval(found))
            except (SyntaxError, ValueError) as problem:
                raise self.error(f"{found} is not a text", position) from problem
        if kind == "name" and found in _CONSTANTS:
            self.at += 1
            return _CONSTANTS[found]
        if self.take("["):
            self.descend(position)
            items: list[Value] = []
            while not self.take("]"):
                items.append(self.value())
                if not self.take(","):
                    self.expect("]")
                    break
            self.depth -= 1
            return tuple(items)
        if kind == "name":
            return self.pipeline()
        raise self.error(f"expected a value but found {found!r}", position)
