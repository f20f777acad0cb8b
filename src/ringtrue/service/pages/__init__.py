"""The dashboard: pages that are drawn here and need no build, a module for each; each has ``router``."""

PAGES: tuple[str, ...] = (
    "session",
    "abtests",
    "flags",
    "queries",
    "settings",
    "overview",
    "evaluate",
    "runs",
    "compare",
    "golden",
    "review",
    "backlog",
    "experiments",
)
"""The modules that the application includes."""
