"""The REST routes, a module for each group of things."""

ROUTERS: tuple[tuple[str, str], ...] = (
    ("log", "queries_routes"),
    ("log", "feedback_routes"),
    ("evaluate", "router"),
    ("verdicts", "comparing_routes"),
    ("verdicts", "gating_routes"),
    ("runs", "router"),
    ("library", "golden_routes"),
    ("library", "baselines_routes"),
    ("server", "jobs_routes"),
    ("search", "router"),
    ("reviews", "judgments_routes"),
    ("reviews", "reviews_routes"),
    ("rollouts", "shadow_routes"),
    ("rollouts", "abtests_routes"),
    ("rollouts", "flags_routes"),
    ("library", "experiments_routes"),
    ("server", "server_routes"),
    ("server", "keys_routes"),
    ("server", "monitoring_routes"),
)
"""Modules with the routers in them that the application includes, in the order of the OpenAPI document.

The log comes first: a request looks through them in this order, which takes longer than all else that is done for a search.
"""
