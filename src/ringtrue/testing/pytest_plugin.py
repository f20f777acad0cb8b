"""pytest: ``@pytest.mark.ringtrue`` and the fixture ``ringtrue_eval`` gate a search among a project's other tests.

::

    @pytest.mark.ringtrue(golden="golden/shop.yaml", floors={"R@5": 0.8}, baseline="ringtrue-baseline.json")
    def test_search(ringtrue_eval):
        ringtrue_eval(my_search)

A marked test passes only when the last gate it asked has said so: a failing gate fails it, even where the test catches the
error and goes on, a gate that could not decide fails it with the reason, and so does a test that never evaluated anything.
A look at a held-out part is counted in the ledger beside the set.

Everybody who has Ringtrue loads this file in every pytest run, so it imports pytest and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Verdict

MARK = (
    "ringtrue(golden, *, measures, floors, baseline, mode, ...): the test evaluates a search with the fixture ringtrue_eval; "
    "it fails when the gate fails, cannot decide, or was never asked."
)
PROPERTY = "ringtrue"
_GATED = pytest.StashKey[list[str]]()
"""What each gate of a test had against it, in the order they were asked; empty if it passed."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


@pytest.fixture
def ringtrue_eval(request: pytest.FixtureRequest) -> Callable[..., Evaluation]:
    """Evaluate a search with the settings of ``@pytest.mark.ringtrue`` and gate it.

    ``ringtrue_eval(retriever, **settings)`` returns the Evaluation; settings win over those of the mark.
    """
    node = request.node
    gated = node.stash.setdefault(_GATED, [])

    def evaluate_and_gate(retriever: Any, **settings: Any) -> Evaluation:
        __tracebackhide__ = True
        from ringtrue.errors import RingtrueError

        reason = ""
        gated.append("the evaluation did not end")
        try:
            evaluation, verdict = _judged(node, retriever, _settings(node) | settings)
        except RingtrueError as problem:
            reason = str(problem)
        if reason:  # outside of the handler: one reason, not two tracebacks
            gated[-1] = f"ringtrue could not decide: {reason}"
            pytest.fail(gated[-1], pytrace=False)
        look = _counted(node, evaluation, (_settings(node) | settings)["golden"])
        metrics = ", ".join(f"{name} {value:.3f}" for name, value in evaluation.metrics.items())
        node.user_properties.append((PROPERTY, f"{verdict.word}: {evaluation.name}: {metrics}{look}"))
        try:
            _check(verdict)
        except BaseException as problem:
            gated[-1] = str(problem)
            raise
        gated[-1] = ""
        return evaluation

    return evaluate_and_gate


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a marked test that ended well although no gate was asked, or the last one did not pass."""
    result = yield
    if item.get_closest_marker("ringtrue") is not None:
        gated = item.stash.get(_GATED, [])
        if not gated:
            pytest.fail(
                "marked with ringtrue, but nothing was evaluated: take the fixture ringtrue_eval and call it with your search",
                pytrace=False,
            )
        if gated[-1]:
            pytest.fail(f"the test went on, but its last gate did not pass: {gated[-1]}", pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.getreports(kind) if report.when == "call"]
    said = [f"{report.nodeid}: {text}" for report in reports for name, text in report.user_properties if name == PROPERTY]
    if said:
        terminalreporter.section("ringtrue")
    for line in said:
        terminalreporter.write_line(line)


def _settings(node: Any) -> dict[str, Any]:
    """Return what the marks of a test, its class and its module say, the nearest winning."""
    from ringtrue.errors import InputError

    settings: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers("ringtrue"))):
        if len(mark.args) > 1:
            raise InputError(
                f"the mark ringtrue takes the golden set and then names, and was given {mark.args[1]!r:.60} besides; "
                "write it like floors={'R@5': 0.8}"
            )
        settings |= dict(zip(("golden",), mark.args, strict=False)) | mark.kwargs
    return settings


def _counted(node: Any, evaluation: Evaluation, golden: Any) -> str:
    """Write a look at a held-out part into the ledger beside the set, and return which one it was, in words."""
    origin = evaluation.setup.golden
    if origin.split != "held_out":
        return ""
    from datetime import UTC, datetime

    from ringtrue.golden import ledger_beside, record_look

    root: Path = node.config.rootpath
    count = record_look(
        ledger_beside(root / golden if isinstance(golden, str | Path) else root),
        who="pytest",
        what=f"{node.nodeid}: {evaluation.name}",
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        version=origin.version,
    )
    return f" (look {count} at the held-out part)"


def _judged(node: Any, retriever: Any, settings: dict[str, Any]) -> tuple[Evaluation, Verdict]:
    """Return an evaluation and what the gate says; raises RingtrueError."""
    import inspect
    from dataclasses import fields

    from ringtrue.config import load_config
    from ringtrue.errors import InputError, nearest
    from ringtrue.run import evaluate
    from ringtrue.traffic import marked
    from ringtrue.verdict import Policy, gate, read_baseline

    root = node.config.rootpath
    rules = {field.name for field in fields(Policy)}
    asked = {
        name for name, parameter in inspect.signature(evaluate).parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
    }
    for name in settings:
        if name not in {"golden", "baseline"} | rules | asked:
            known = ["golden", "baseline", *sorted(rules | asked)]
            raise InputError(f"ringtrue has no setting '{name}'; did you mean {nearest(name, known)}?")
    golden = settings.get("golden")
    if golden is None:
        raise InputError("no golden set is named; write @pytest.mark.ringtrue(golden='golden/my-set.yaml')")
    if isinstance(golden, str | Path) and (root / golden).exists():
        golden = root / golden  # whatever folder pytest was started in
    baseline = settings.get("baseline")
    if isinstance(baseline, str | Path):
        baseline = read_baseline(root / baseline)
    config = load_config(root)
    policy = Policy.of(
        {**config.gate, **{name: value for name, value in settings.items() if name in rules}},
        place=node.nodeid,
    )
    with marked("gate", whole_process=True):
        evaluation = evaluate(retriever, golden, **{name: value for name, value in settings.items() if name in asked})
    return evaluation, gate(evaluation, policy, baseline=baseline)


def _check(verdict: Verdict) -> None:
    """Fail unless the gate passed, with every failure in its own line."""
    __tracebackhide__ = True
    if verdict.word == "fail":
        lines = [f"ringtrue: {verdict.name} fails {len(verdict.failures)} checks"]
        for check in verdict.failures:
            behind = (
                f" (queries {', '.join(check.queries[:5])}{' …' if len(check.queries) > 5 else ''})" if check.queries else ""
            )
            lines.append(f"{check.message}{behind}")
        raise AssertionError("\n".join(lines))
    if verdict.word == "undecided":
        reasons = [check.message for check in verdict.checks if check.status == "undecided"] or list(verdict.notes)
        pytest.fail("\n".join([f"ringtrue could not decide about {verdict.name}", *reasons]), pytrace=False)
    if not any(check.status in ("pass", "degraded") for check in verdict.checks):
        pytest.fail("ringtrue checked nothing: name floors or a baseline in the mark or in ringtrue.toml", pytrace=False)
