"""The REST routes, a module for each kind of thing; each has ``router``."""

ROUTERS: tuple[str, ...] = (
    "evaluate",
    "compare",
    "gate",
    "runs",
    "golden",
    "baselines",
    "jobs",
    "search",
    "queries",
    "feedback",
    "judgments",
    "reviews",
    "shadow",
    "abtests",
    "flags",
    "experiments",
    "health",
    "diagnostics",
    "keys",
    "audit",
    "alerts",
    "metrics",
)
"""The modules that the application includes, in the order of the OpenAPI document."""
