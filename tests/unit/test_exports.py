"""Packages whose names are imported on first use list each name once."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = [
    "ringtrue",
    "ringtrue.log",
    "ringtrue.feedback",
    "ringtrue.review",
    "ringtrue.rollout",
    "ringtrue.service",
    "ringtrue.store",
    "ringtrue.testing",
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_listed_name_can_be_imported(package: str) -> None:
    module = importlib.import_module(package)
    assert dir(module)
    assert all(hasattr(module, name) for name in dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        importlib.import_module(package).nothing  # noqa: B018


def test_a_star_import_brings_the_listed_names() -> None:
    names: dict[str, object] = {}
    exec("from ringtrue import *", names)
    assert {"score", "Measure", "gate"} <= set(names)


def test_importing_the_package_imports_none_of_its_rooms() -> None:
    code = "import sys, ringtrue; print(sorted(m for m in sys.modules if m.startswith('ringtrue')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['ringtrue', 'ringtrue.exports']"
