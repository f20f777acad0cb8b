"""What the first prompt after a change would wait for, done by the command that made the change (A-10)."""

from __future__ import annotations

from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.memory import MemoryFault
from ringtrue.memory.hook.null_level import null_level
from ringtrue.memory.hook.settings import read_settings


def make_ready(root: str) -> None:
    """Make the index of a folder and the level that chance reaches in it; what cannot be made is left to the hook."""
    settings, _ = read_settings(root)
    if settings.enabled:
        try:
            null_level(open_index(root, settings), settings, root=root)
        except (MemoryFault, OSError):  # the command itself is done, and doctor says what is wrong
            return
