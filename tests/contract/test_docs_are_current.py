"""Generated pages say what the code says."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys


def test_generated_pages_are_current(root) -> None:
    """Cure: run ``make docs`` and commit what it writes."""
    found = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=root, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_test_of_a_requirement_exists(root) -> None:
    """Cure: write where the test went in tests/requirements.toml, then run ``make docs``."""
    import tomllib

    sections = tomllib.loads((root / "tests" / "requirements.toml").read_text(encoding="utf-8"))
    rows = {name: row for rows in sections.values() for name, row in rows.items()}
    assert len(rows) == sum(map(len, sections.values())), "an id is used twice"
    assert {name: test for name, (_, *tests) in rows.items() for test in tests if not (root / "tests" / test).is_file()} == {}
    assert [name for name, (says, *tests) in rows.items() if not tests and "ringtrue bench" not in says] == []


def test_every_function_of_the_two_journeys_exists(root) -> None:
    """Cure: write in docs/architecture.md which function does that step now."""
    text = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    journeys = text.partition("## Two journeys")[2].partition("\n## ")[0]
    first_columns = re.findall(r"^\| (`.*?) \|", journeys, flags=re.MULTILINE)
    steps = [step for column in first_columns for step in re.findall(r"`([^`]+)`", column)]
    assert len(steps) > 15
    for step in steps:
        assert callable(pkgutil.resolve_name(f"ringtrue.{step}")), step


def test_changelog_names_the_version(root) -> None:
    import tomllib

    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (root / "CHANGELOG.md").read_text()


def test_lock_holds_hashes_and_no_addresses(root) -> None:
    text = (root / "requirements.lock").read_text()
    assert "--hash=sha256:" in text
    assert "://" not in text
