"""Suites that others can run too: files and judgments with known values come in, comparisons go out.

``conformance`` holds the measures against trec_eval: on reference data shipped in ``reference/`` with the recipe that
made it, and on trec_eval's own test files where they are present. Connectors and plug-ins get their suites here, too, and
``pytest_plugin`` gates a search in a project's own tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.testing.conformance import (
        MeasureComparison as MeasureComparison,
        against_reference as against_reference,
        against_trec_eval_files as against_trec_eval_files,
        worked_examples as worked_examples,
    )
else:
    __getattr__, __dir__ = on_first_use(__name__)
