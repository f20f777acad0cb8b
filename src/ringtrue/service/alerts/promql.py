"""The part of PromQL that the shipped rules use, read into a tree.

::

    expression = comparison { "and" comparison }
    comparison = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
    sum        = product { ("+" | "-") product }
    product    = value { ("*" | "/") value }
    value      = number | "(" expression ")" | "time()" | series | increase | quantile | aggregate
    increase   = "increase" "(" range ")"
    quantile   = "quantile_over_time" "(" number "," range ")"
    aggregate  = ("max" | "min" | "sum") "by" "(" labels ")" "(" expression ")"
    range      = series "[" duration "]" [ "offset" duration ]
    series     = name [ "{" label ("=" | "!=") "text" { "," … } "}" ]

Anything else is refused by name.
"""

from __future__ import annotations

import re

from ringtrue.errors import InputError
from ringtrue.service.alerts.expression import (
    AGGREGATES,
    COMPARISONS,
    Aggregate,
    Binary,
    Increase,
    Node,
    Number,
    Quantile,
    Range,
    Series,
    Time,
    is_number,
)

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<duration>\d+(?:ms|[smhdwy])(?:\d+(?:ms|[smhdwy]))*)
      | (?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?)
      | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<mark>[<>=!]=|=~|!~|[-+*/<>=(){}\[\],])
    )""",
    re.VERBOSE,
)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_536_000}


def seconds(text: str) -> float:
    """Return a duration like ``15m`` or ``1h30m`` in seconds; raises InputError."""
    parts = re.findall(r"(\d+)(ms|[smhdwy])", text)
    if not parts or "".join(map("".join, parts)) != text:
        raise InputError(f"cannot read the duration '{text}'; write it like 15m or 7d")
    return float(sum(int(number) * _SECONDS[unit] for number, unit in parts))


def parse(text: str) -> Node:
    """Return an expression; raises InputError for what is none, and for PromQL that is not evaluated here.

    >>> parse("up == 0")
    Binary(sign='==', left=Series(metric='up', equal=(), unequal=()), right=Number(value=0.0))
    """
    return _Reader(text).whole()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.kind, self.token = "", ""
        self.step()

    def step(self) -> str:
        """Go on to the next token; return the one left behind."""
        before = self.token
        rest = self.text[self.place :]
        found = _TOKEN.match(rest)
        if found is None:
            if rest.strip():
                raise self.refused(rest.strip()[:20])
            self.kind, self.token = "end", ""
        else:
            self.kind, self.token = str(found.lastgroup), found[str(found.lastgroup)]
            self.place += found.end()
        return before

    def refused(self, what: str) -> InputError:
        line = " ".join(self.text.split())
        known = "comparisons, + - * /, and, time(), increase, quantile_over_time, max/min/sum by (…), = and != on labels"
        return InputError(f"cannot evaluate '{what}' in the expression '{line}'; rules over stored history know {known}")

    def expect(self, token: str) -> None:
        if self.token != token:
            raise self.refused(self.token or "its end")
        self.step()

    def whole(self) -> Node:
        node = self.not_number(self.expression())
        if self.kind != "end":
            raise self.refused(self.token)
        return node

    def expression(self) -> Node:
        node = self.comparison()
        while self.token == "and":
            self.step()
            node = Binary("and", self.not_number(node), self.not_number(self.comparison()))
        return node

    def not_number(self, node: Node) -> Node:
        if is_number(node):
            raise self.refused("a number where series are needed")
        return node

    def comparison(self) -> Node:
        node = self.sum()
        if self.token in COMPARISONS:
            sign = self.step()
            node = self.not_number(Binary(sign, node, self.sum()))
        return node

    def sum(self) -> Node:
        node = self.product()
        while self.token in ("+", "-"):
            sign = self.step()
            node = Binary(sign, node, self.product())
        return node

    def product(self) -> Node:
        node = self.value()
        while self.token in ("*", "/"):
            sign = self.step()
            node = Binary(sign, node, self.value())
        return node

    def value(self) -> Node:
        if self.kind == "number":
            return Number(float(self.step()))
        if self.token == "(":
            self.step()
            node = self.expression()
            self.expect(")")
            return node
        if self.kind != "name":
            raise self.refused(self.token or "its end")
        name = self.step()
        if name in AGGREGATES:
            return self.aggregate(name)
        if self.token == "(":
            return self.call(name)
        return self.series(name)

    def aggregate(self, name: str) -> Node:
        self.expect("by")
        self.expect("(")
        labels = []
        while self.kind == "name":
            labels.append(self.step())
            if self.token == ",":
                self.step()
        self.expect(")")
        self.expect("(")
        inner = self.not_number(self.expression())
        self.expect(")")
        return Aggregate(name, tuple(labels), inner)

    def call(self, name: str) -> Node:
        self.expect("(")
        node: Node
        if name == "time":
            node = Time()
        elif name == "increase":
            node = Increase(self.range())
        elif name == "quantile_over_time":
            if self.kind != "number":
                raise self.refused(self.token)
            share = float(self.step())
            self.expect(",")
            node = Quantile(share, self.range())
        else:
            raise self.refused(f"{name}(")
        self.expect(")")
        return node

    def range(self) -> Range:
        if self.kind != "name":
            raise self.refused(self.token)
        series = self.series(self.step())
        self.expect("[")
        length, offset = self.duration(), 0.0
        self.expect("]")
        if self.token == "offset":
            self.step()
            offset = self.duration()
        return Range(series, length, offset)

    def duration(self) -> float:
        if self.kind != "duration":
            raise self.refused(self.token)
        return seconds(self.step())

    def series(self, metric: str) -> Series:
        equal: list[tuple[str, str]] = []
        unequal: list[tuple[str, str]] = []
        if self.token == "{":
            self.step()
            while self.kind == "name":
                label = self.step()
                if self.token not in ("=", "!="):
                    raise self.refused(self.token)
                matches = equal if self.step() == "=" else unequal
                if self.kind != "text":
                    raise self.refused(self.token)
                matches.append((label, re.sub(r"\\(.)", r"\1", self.step()[1:-1])))
                if self.token == ",":
                    self.step()
            self.expect("}")
        return Series(metric, tuple(equal), tuple(unequal))
