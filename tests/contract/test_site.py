"""The documentation site: every page is in its navigation, and its check finds dead links. `make site` builds it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import ringtrue


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    file = Path(__file__).parents[2] / "docs" / "build_site.py"
    spec = importlib.util.spec_from_file_location("build_site", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_navigation_lists_every_page(builder: ModuleType, root: Path) -> None:
    """Cure: add the page to `nav` in zensical.toml."""
    pages = {page.relative_to(root).as_posix() for page in (*root.glob("*.md"), *(root / "docs").rglob("*.md"))}
    pages |= {f"docs/reference/python/{module}.md" for module in builder.python_pages()}
    assert builder.navigation() == pages


def test_python_reference_names_every_public_name(builder: ModuleType) -> None:
    text = "".join(builder.python_pages().values())
    assert text.count("heading: ") == len(ringtrue.__all__)
    assert "::: ringtrue.run.evaluator.evaluate\n    options:\n      heading: ringtrue.evaluate\n" in text


def test_dead_links_and_pages_outside_the_navigation_are_found(builder: ModuleType, tmp_path: Path) -> None:
    site, pages = tmp_path / "site", tmp_path / "pages"
    (pages / "docs").mkdir(parents=True)
    (pages / "docs" / "new.md").touch()
    site.mkdir()
    (site / "other.html").touch()
    (site / "index.html").write_text(
        '<a href=other.html#top>1</a> <a href="#here">2</a> <a href="https://example.org/x">3</a> <a href="gone.html?x=1">4</a>'
        '<img src="images/gone.png"> <a href="mailto:me@example.org">5</a>'
    )
    assert builder.problems(site, pages, {"README.md"}) == [
        "docs/new.md: not in the navigation of zensical.toml",
        "README.md: in the navigation of zensical.toml, but no such page exists",
        "index.html: the link to gone.html leads nowhere",
        "index.html: the link to images/gone.png leads nowhere",
    ]
