"""The public interface: names are added and removed on purpose, here and in the changelog."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ringtrue

NAMES = [
    "AccessDenied",
    "BadAnswer",
    "Baseline",
    "CannotDecide",
    "Client",
    "Collection",
    "Comparison",
    "Document",
    "Evaluation",
    "Facts",
    "GoldenSet",
    "Hit",
    "InputError",
    "Judgment",
    "Measure",
    "MissingInput",
    "Policy",
    "Qrels",
    "Query",
    "Ranking",
    "Retriever",
    "RingtrueError",
    "Run",
    "Scores",
    "SearchFailed",
    "SpecError",
    "Stage",
    "TimedOut",
    "Unreachable",
    "ValidationFailed",
    "Verdict",
    "as_retriever",
    "compare",
    "connect",
    "evaluate",
    "gate",
    "load",
    "load_test_set",
    "open_run",
    "ranking_difference",
    "read_qrels",
    "read_run",
    "score",
    "validate",
    "write_qrels",
    "write_run",
]


def test_public_names_are_exactly_these() -> None:
    assert sorted(ringtrue.__all__) == sorted(NAMES)
    assert dir(ringtrue) == sorted(NAMES)


def test_every_public_name_can_be_used_and_says_what_it_is() -> None:
    for name in NAMES:
        assert getattr(ringtrue, name).__doc__, name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="scores"):
        ringtrue.scores  # noqa: B018


def test_help_imports_nothing_heavy() -> None:
    """``ringtrue --help`` answers at once because nothing that costs time is imported for it."""
    heavy = {"numpy", "duckdb", "scipy", "rich.table", "yaml", "pydantic", "tantivy", "onnxruntime", "tokenizers", "httpx2"}
    code = (
        "import sys; from ringtrue.cli import main\n"
        "try: main()\n"
        f"except SystemExit: print(*sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert (found.stderr.strip(), "Measure:" in found.stdout) == ("", True)


def test_a_command_loads_no_other() -> None:
    code = (
        "import sys; from ringtrue.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*sorted(m for m in sys.modules if m.startswith('ringtrue.cli.')), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code, "log", "--help"], capture_output=True, text=True, check=True)
    shared = ["ringtrue.cli.lazy", "ringtrue.cli.lib", "ringtrue.cli.log", "ringtrue.cli.options", "ringtrue.cli.show"]
    assert found.stderr.split() == shared


def test_every_command_of_the_table_is_there_and_says_what_it_is_for() -> None:
    import typer

    from ringtrue.cli import GROUPS, app

    commands = typer.main.get_command(app).commands
    assert list(commands) == [name for names in GROUPS.values() for name in names]
    for name in commands:
        outline = commands.outline(name).get_short_help_str(60)
        assert outline
        assert commands[name].get_short_help_str(60) == outline
    assert "nothing" not in commands


def test_help_lists_every_command_in_a_group_with_its_whole_text_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    from ringtrue.cli import app

    monkeypatch.setenv("COLUMNS", "80")
    group = typer.main.get_command(app)
    shown = group.get_help(typer.Context(group, info_name="ringtrue"))
    sections = {part.split(":\n")[0]: part.split(":\n")[1] for part in shown.split("\n\n") if ":\n" in part}
    assert list(sections) == ["Options", "Measure", "Judge", "Live", "Operate", "Memory"]
    listed = [line.split()[0] for name, part in sections.items() if name != "Options" for line in part.splitlines()]
    assert listed == list(group.commands)
    assert max(map(len, shown.splitlines())) <= 80
    assert not any(part.endswith(("...", "…")) for lines in sections.values() for part in lines.splitlines())


def test_scoring_a_small_file_imports_neither_duckdb_nor_scipy(root) -> None:
    reference = root / "src/ringtrue/testing/reference"
    heavy = {"duckdb", "scipy", "yaml", "pydantic", "rich.table", "ringtrue.golden"}
    code = (
        "import sys; from ringtrue.cli import main\n"
        "try: main()\n"
        f"except SystemExit: print(*sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    arguments = ["score", str(reference / "binary.qrels"), str(reference / "binary.run"), "AP", "--json"]
    found = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("{")
    assert found.stderr.strip() == ""


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert ringtrue.__version__ == version("ringtrue")
