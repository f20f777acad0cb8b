"""Suites that others can run too: files and judgments with known values come in, comparisons go out.

``conformance`` holds the measures against trec_eval (M-5): on reference data shipped in ``reference/`` with the recipe that
made it, and on trec_eval's own test files where they are present. Connectors and plug-ins get their suites here, too, and
``pytest_plugin`` gates a search in a project's own tests (B-4).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringtrue.testing.conformance import Comparison, against_reference, against_trec_eval_files, worked_examples

__all__ = ["Comparison", "against_reference", "against_trec_eval_files", "worked_examples"]


def __getattr__(name: str) -> Any:
    # The pytest plugin lives here and is loaded by every pytest run of everybody who has Ringtrue: it must cost nothing.
    if name in __all__:
        return getattr(import_module("ringtrue.testing.conformance"), name)
    raise AttributeError(f"module 'ringtrue.testing' has no attribute '{name}'")
