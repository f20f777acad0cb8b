"""Suites that others can run too: files and judgments with known values come in, comparisons go out.

``conformance`` holds the measures against trec_eval (M-5): on reference data shipped in ``reference/`` with the recipe that
made it, and on trec_eval's own test files where they are present. Connectors and plug-ins get their suites here, too.
"""

from ringtrue.testing.conformance import Comparison, against_reference, against_trec_eval_files, worked_examples

__all__ = ["Comparison", "against_reference", "against_trec_eval_files", "worked_examples"]
