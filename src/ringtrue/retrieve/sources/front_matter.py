"""Front matter → named values. In: a Markdown text; out: what the YAML at its top says, as JSON would hold it, and its end."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import Any, cast

from ringtrue.formats import Place

_RULE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_LONGEST_FRONT, _DEEPEST = 1 << 16, 100


def front_matter(text: str, place: Place) -> tuple[dict[str, Any], int]:
    """Return the YAML between two lines of ``---`` at the top, and where the text goes on."""
    opening = _RULE.match(text)
    closing = _RULE.search(text, opening.end(), opening.end() + _LONGEST_FRONT) if opening else None
    if opening is None or closing is None:
        return {}, 0
    import yaml  # costs 20 ms that no other format needs

    content = text[opening.end() : closing.start()]
    try:
        depth = 0
        for event in yaml.parse(content, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            # Aliases allow a few lines to stand for gigabytes; the parser's time grows with the square of the depth.
            if isinstance(event, yaml.AliasEvent) or depth > _DEEPEST:
                found = f"the alias '*{event.anchor}'" if isinstance(event, yaml.AliasEvent) else "YAML nested too deeply"
                raise place.on(event.start_mark.line + 2).error(found, "write plain values in the front matter")
        node = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        reason = getattr(problem, "problem", None) or str(problem).split("\n")[0]
        cure = "mend the YAML between the lines of ---, or begin the file with a blank line"
        raise place.on(2 if mark is None else mark.line + 2).error(f"not valid YAML: {reason}", cure) from problem
    if node is None or isinstance(node, yaml.MappingNode):
        return ({} if node is None else cast("dict[str, Any]", _yaml_value(node, place))), closing.end()
    return {}, 0  # text between two rules


def _yaml_value(node: Any, place: Place) -> Any:
    """Return a YAML node as JSON would hold it; what reads otherwise than it looks (010, 12:30, no) and dates stay text."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_yaml_value(item, place) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        record: dict[str, Any] = {}
        for key, item in node.value:
            here = place.on(key.start_mark.line + 2)
            if not isinstance(key, yaml.ScalarNode):
                raise here.error("a list or mapping stands as a key", "write a text before the colon")
            if key.value in record:
                raise here.error(f"the key '{key.value}' is given twice", "keep one of the two")
            record[key.value] = _yaml_value(item, place)
        return record
    kind, written = node.tag.rpartition(":")[2], node.value
    if kind == "null":
        return None
    if kind == "bool" and written.lower() in ("true", "false"):
        return written.lower() == "true"
    with suppress(ValueError):
        number = int(written) if kind == "int" else float(written) if kind == "float" else None
        if number is not None and str(number) == written:
            return number if math.isfinite(number) else written
    return written
