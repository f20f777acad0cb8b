"""The shape of the package in figures: `python tests/shape.py` prints them; test_shape.py holds their limits.

Everything is read from the syntax trees of the source; nothing is imported or run. docs/architecture.md shows the table.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = "ringtrue"
Function = ast.FunctionDef | ast.AsyncFunctionDef
Modules = dict[str, tuple[Path, ast.Module]]
TABLE: dict[str, tuple[int, int, int]] = {
    "lines": (96_942, 83_300, 75_000),
    "statements": (59_251, 51_450, 46_000),
    "lines of the largest room": (18_838, 12_150, 10_000),
    "files over 500 lines": (9, 0, 0),
    "lines of the longest file": (695, 500, 500),
    "functions over 60 lines": (31, 6, 0),
    "lines of the longest function": (405, 106, 60),
    "functions with over 8 parameters, commands aside": (65, 40, 5),
    "class names defined more than once": (134, 4, 10),
    "import rings": (8, 0, 0),
    "modules in the largest import ring": (17, 0, 0),
    "imports past a room's front": (387, 100, 0),
}
"""Each figure: in the first version (commit c39fb9f), its limit now, and the goal. Limits only go down."""


def modules() -> Modules:
    """Every module of the package by its dotted name, with its file and syntax tree."""
    found = {}
    for file in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = (file, ast.parse(file.read_text("utf-8")))
    return found


def room(module: str) -> str:
    """The room of a module: the first part of its name after the package."""
    return [*module.split("."), ""][1]


def lines(file: Path) -> int:
    """How many lines a file has, blank ones included."""
    return len(file.read_text("utf-8").splitlines())


def functions(trees: Modules) -> Iterator[tuple[str, Function]]:
    """Every function and method with a name such as `ringtrue.spec.parse`."""
    for name, (_, tree) in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{name}.{node.name}", node


def parameters(function: Function) -> int:
    """How many parameters a function has, without self and cls."""
    arguments = function.args
    named = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in named if name not in ("self", "cls")]) + bool(arguments.vararg) + bool(arguments.kwarg)


def is_command(function: Function) -> bool:
    """Whether a function is a command of the CLI, whose parameters are its options."""
    return any("command" in ast.unparse(decorator) for decorator in function.decorator_list)


def imports(trees: Modules) -> dict[str, set[str]]:
    """Which modules of the package each module imports, inside functions too, but not for type checkers alone."""
    return {name: set(_imported(name, file, tree, trees)) - {name} for name, (file, tree) in trees.items()}


def _imported(name: str, file: Path, tree: ast.Module, trees: Modules) -> Iterator[str]:
    for_types = {
        id(inner) for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body for inner in ast.walk(part)
    }  # fmt: skip
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in trees)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".")[: len(name.split(".")) - node.level + (file.name == "__init__.py")]
                base = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                if inner in trees or base in trees:
                    yield inner if inner in trees else base


def rings(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other in a circle, largest first (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(graph.get(name, ())):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            start = stack.index(name)
            ring, stack[start:] = sorted(stack[start:]), []
            if len(ring) > 1:
                found.append(ring)

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return sorted(found, key=len, reverse=True)


def side_doors(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Imports from one room into a module inside another, past its front (`ringtrue.room`)."""
    return [
        (name, other)
        for name, others in sorted(graph.items())
        for other in sorted(others)
        if room(name) != room(other) and other.count(".") > 1
    ]


def figures() -> dict[str, int]:
    """Every figure that has a limit, by its name."""
    trees = modules()
    graph = imports(trees)
    length = {name: node.end_lineno - node.lineno + 1 for name, node in functions(trees) if node.end_lineno}
    classes = Counter(node.name for _, tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    rooms: Counter[str] = Counter()
    for name, (file, _) in trees.items():
        rooms[room(name)] += lines(file)
    circles = rings(graph)
    return {
        "lines": sum(rooms.values()),
        "statements": sum(isinstance(node, ast.stmt) for _, tree in trees.values() for node in ast.walk(tree)),
        "lines of the largest room": max(rooms.values()),
        "files over 500 lines": sum(lines(file) > 500 for file, _ in trees.values()),
        "lines of the longest file": max(lines(file) for file, _ in trees.values()),
        "functions over 60 lines": sum(size > 60 for size in length.values()),
        "lines of the longest function": max(length.values()),
        "functions with over 8 parameters, commands aside": sum(
            parameters(node) > 8 and not is_command(node) for _, node in functions(trees)
        ),
        "class names defined more than once": sum(count > 1 for count in classes.values()),
        "import rings": len(circles),
        "modules in the largest import ring": max(map(len, circles), default=0),
        "imports past a room's front": len(side_doors(graph)),
    }


def markdown() -> str:
    """Return the table of docs/architecture.md: every figure in the first version, its limit now, and the goal."""
    rows = [f"| {name} | {first:,} | {limit:,} | {goal:,} |" for name, (first, limit, goal) in TABLE.items()]
    return "\n".join(["| figure | first version | at most now | goal |", "| --- | ---: | ---: | ---: |", *rows])


if __name__ == "__main__":
    print("     now    limit     goal")
    for figure, value in figures().items():
        _, limit, goal = TABLE[figure]
        print(f"{value:>8,} {limit:>8,} {goal:>8,}  {figure}")
