"""The REST routes, a module for each kind of thing; each has ``router``."""

ROUTERS: tuple[str, ...] = (
    "queries",
    "feedback",
    "evaluate",
    "compare",
    "gate",
    "runs",
    "golden",
    "baselines",
    "jobs",
    "search",
    "judgments",
    "reviews",
    "shadow",
    "abtests",
    "flags",
    "experiments",
    "server",
    "keys",
    "monitoring",
)
"""The modules that the application includes, in the order of the OpenAPI document.

The log comes first: a request looks through them in this order, which takes longer than all else that is done for a search.
"""
