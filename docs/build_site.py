"""Gathers the pages of the documentation site, and checks the built site: `make site` does both.

`gather` copies the Markdown files of the root and of docs, with the files that they link to, into build/pages. It adds a page
for the public Python names of each module. `check` fails if a link of build/site leads nowhere, or if the navigation in
zensical.toml and the pages differ.
"""

from __future__ import annotations

import re
import shutil
import sys
import tomllib
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import ringtrue

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
TITLES = {
    "run": "Evaluate a search",
    "verdict": "Compare and gate",
    "measures": "Measures",
    "stats": "Statistics",
    "golden": "Golden sets",
    "records": "Records",
    "formats": "Files",
    "retrieve": "Retrieval and connections",
    "client": "Client of the service",
    "errors": "Errors",
}


def gather() -> None:
    """Write build/pages anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for page in sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")):
        _copy(page)
        for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            if (linked := (page.parent / target).resolve()).is_file() and linked.suffix != ".md":
                _copy(linked)
    for module, text in python_pages().items():
        page = PAGES / "docs" / "reference" / "python" / f"{module}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")


def _copy(file: Path) -> None:
    target = PAGES / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def python_pages() -> dict[str, str]:
    """The public names of each module of the package as Markdown; mkdocstrings fills in signatures and docstrings."""
    pages: dict[str, list[str]] = {}
    for name in sorted(ringtrue.__all__, key=str.lower):
        found = getattr(ringtrue, name)
        module = found.__module__.split(".")[1]
        text = f"::: {found.__module__}.{found.__qualname__}\n    options:\n      heading: ringtrue.{name}\n"
        pages.setdefault(module, [f"# {TITLES[module]}\n"]).append(text)
    return {module: "\n".join(parts) for module, parts in pages.items()}


def problems(site: Path, pages: Path, listed: set[str]) -> list[str]:
    """What is wrong with a built site: links that lead nowhere, pages that the navigation lacks."""
    names = {page.relative_to(pages).as_posix() for page in pages.rglob("*.md")}
    found = [f"{name}: not in the navigation of zensical.toml" for name in sorted(names - listed)]
    found += [f"{name}: in the navigation of zensical.toml, but no such page exists" for name in sorted(listed - names)]
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":
            continue  # its links begin at the root of a server
        for link in sorted(set(re.findall(r"(?:href|src)=\"?([^\"\s>]+)", page.read_text(encoding="utf-8")))):
            target = unquote(unescape(link)).split("#")[0].split("?")[0]
            if target and not re.match(r"\w+:|//", target) and not (page.parent / target).exists():
                found.append(f"{page.relative_to(site)}: the link to {target} leads nowhere")
    return found


def navigation() -> set[str]:
    """Every page that zensical.toml names in its navigation."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    return set(re.findall(r"[\w/-]+\.md", str(nav)))


if __name__ == "__main__":
    if sys.argv[1:] == ["gather"]:
        gather()
    elif sys.argv[1:] == ["check"]:
        wrong = problems(SITE, PAGES, navigation())
        print("\n".join(wrong) or f"{len(list(SITE.rglob('*.html')))} pages, no dead links: {SITE / 'index.html'}")
        sys.exit(bool(wrong))
    else:
        sys.exit("usage: python docs/build_site.py gather | check")
