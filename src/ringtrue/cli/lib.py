"""The library as commands see it: a room is imported when a command first asks for it, so that ``ringtrue --help`` needs none.

``lib.golden.load(…)`` is ``ringtrue.golden.load(…)``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringtrue import (
        answers,
        ci,
        experiment,
        feedback,
        formats,
        golden,
        log,
        measures,
        records,
        report,
        retrieve,
        review,
        rollout,
        run,
        service,
        spec,
        stats,
        store,
        testing,
        verdict,
    )

    __all__ = ["answers", "ci", "experiment", "feedback", "formats", "golden", "log", "measures", "records"]
    __all__ += ["report", "retrieve", "review", "rollout", "run", "service", "spec", "stats", "store", "testing", "verdict"]
else:
    from importlib import import_module

    def __getattr__(name):
        room = f"ringtrue.{name}"
        try:
            return import_module(room)
        except ModuleNotFoundError as problem:
            if problem.name != room:
                raise
            raise AttributeError(f"ringtrue has no room '{name}'") from None
