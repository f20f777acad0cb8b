"""What a template of a request asks for. In: texts, lists and tables with names in braces; out: those names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"\{(text|k|vector|scope\.[^{}]+)\}")


def places(template: Any) -> set[str]:
    """Return the placeholders of a template, at any depth; the keys of a table are not looked at.

    >>> sorted(places({"q": "{text}", "top": ["{k}"], "filter": {"city": "{scope.city}"}}))
    ['k', 'scope.city', 'text']
    """
    if isinstance(template, str):
        return set(_PLACE.findall(template))
    inside = template.values() if isinstance(template, Mapping) else template if isinstance(template, list | tuple) else ()
    return {name for part in inside for name in places(part)}
