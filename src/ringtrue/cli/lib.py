"""The library as commands see it: each room is imported when a command first uses it, because most commands need few of them.

``lib.golden.load(…)`` is ``ringtrue.golden.load(…)``; ``ringtrue --help`` imports none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ringtrue.review.queue
    import ringtrue.memory.hook.files
    from ringtrue import (
        golden as golden,
        memory as memory,
        review as review,
    )
