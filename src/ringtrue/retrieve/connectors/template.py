"""Templates of requests and records. In: texts, lists and tables with names in braces; out: those names, or all filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

QUESTION = re.compile(r"\{(text|k|scope\.[^{}]+)\}")
"""What stands for a part of a question."""
_ANY = re.compile(r"\{(text|k|vector|scope\.[^{}]+)\}")
_NOTHING = object()
"""What becomes of a part of a template that asks for what is not there."""


def places(template: Any, *, place: re.Pattern[str] = _ANY) -> set[str]:
    """Return the placeholders of a template, at any depth; the keys of a table are not looked at.

    >>> sorted(places({"q": "{text}", "top": ["{k}"], "filter": {"city": "{scope.city}"}}))
    ['k', 'scope.city', 'text']
    """
    return {name for text in texts(template) for name in place.findall(text)}


def texts(template: Any, *, numbers: bool = False) -> Iterable[str]:
    """Yield every text in a template that can hold a placeholder, and its numbers where they are wanted too."""
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping | list | tuple):
        for part in template.values() if isinstance(template, Mapping) else template:
            yield from texts(part, numbers=numbers)
    elif numbers and isinstance(template, int | float) and not isinstance(template, bool):
        yield str(template)


def filled(template: Any, values: Mapping[str, Any], *, place: re.Pattern[str] = QUESTION) -> Any:
    """Return a template with its placeholders replaced: one that stands alone by the value, inside a text as text.

    >>> filled({"q": "{text}", "size": "{k}", "label": "top {k}"}, {"text": "{k} rooms", "k": 5})
    {'q': '{k} rooms', 'size': 5, 'label': 'top 5'}

    An entry of a table that asks for a value which is not there is left out, an item of a list as a whole, and so is what
    becomes empty by that.

    >>> filled({"q": "{text}", "filters": [{"field": "city", "is": "{scope.city}"}]}, {"text": "pool", "k": 5})
    {'q': 'pool'}
    """
    found = _filled(template, values, place, whole=False)
    return None if found is _NOTHING else found


def _filled(template: Any, values: Mapping[str, Any], place: re.Pattern[str], *, whole: bool) -> Any:
    if isinstance(template, str):
        names = place.findall(template)
        if any(name not in values for name in names):
            return _NOTHING
        if place.fullmatch(template):
            return values[names[0]]
        return place.sub(lambda found: str(values[found[1]]), template)
    if isinstance(template, Mapping):
        pairs = {key: _filled(value, values, place, whole=whole) for key, value in template.items()}
        kept: Any = {key: value for key, value in pairs.items() if value is not _NOTHING}
        if whole and len(kept) < len(template):  # half a condition would be another condition
            return _NOTHING
    elif isinstance(template, list | tuple):
        kept = [value for value in (_filled(item, values, place, whole=True) for item in template) if value is not _NOTHING]
    else:
        return template
    return _NOTHING if template and not kept else kept
