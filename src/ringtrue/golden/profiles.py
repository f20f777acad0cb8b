"""The kinds of golden set there are. A set names its profile; the profile fixes which rules apply to it (G-2)."""

from __future__ import annotations

PROFILES: dict[str, str] = {
    "general": "a graded collection that stands for everything users ask, with every rule applied",
    "known-item": "each query looks for one particular document, often by its name",
    "memory": "the memory of an agent, with queries that should be answered by silence",
    "test-set": "a graded collection for one purpose, without the coverage rules",
}
