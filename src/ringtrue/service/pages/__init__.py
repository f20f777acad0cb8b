"""The dashboard: pages that are drawn here and need no build, a module for each kind of thing; each has ``router``."""

PAGES: tuple[str, ...] = (
    "rollouts", "queries", "settings", "overview", "evaluate", "runs", "golden", "review", "experiments",
)  # fmt: skip
"""The modules that the application includes."""
