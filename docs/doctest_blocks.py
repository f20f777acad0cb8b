"""A Griffe extension for the site: shows the examples in docstrings as code instead of as quotations.

>>> fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nThat is all.").split("\\n")
['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'That is all.']
"""

from __future__ import annotations

import re
from typing import Any

import griffe


def fenced(docstring: str) -> str:
    """Put each paragraph that begins with a prompt into a code block."""
    return re.sub(r"(?m)^>>> (?:.+\n?)+", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring).rstrip("\n")


class DoctestBlocks(griffe.Extension):
    """Changes every docstring once it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
