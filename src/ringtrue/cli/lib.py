"""The library as commands see it: a room is imported when a command first asks for it, so that ``ringtrue --help`` needs none.

``lib.golden.load(…)`` is ``ringtrue.golden.load(…)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringtrue import (
        answers as answers,
    )
    from ringtrue import (
        ci as ci,
    )
    from ringtrue import (
        experiment as experiment,
    )
    from ringtrue import (
        feedback as feedback,
    )
    from ringtrue import (
        formats as formats,
    )
    from ringtrue import (
        golden as golden,
    )
    from ringtrue import (
        log as log,
    )
    from ringtrue import (
        measures as measures,
    )
    from ringtrue import (
        records as records,
    )
    from ringtrue import (
        report as report,
    )
    from ringtrue import (
        retrieve as retrieve,
    )
    from ringtrue import (
        review as review,
    )
    from ringtrue import (
        rollout as rollout,
    )
    from ringtrue import (
        run as run,
    )
    from ringtrue import (
        service as service,
    )
    from ringtrue import (
        spec as spec,
    )
    from ringtrue import (
        stats as stats,
    )
    from ringtrue import (
        store as store,
    )
    from ringtrue import (
        testing as testing,
    )
    from ringtrue import (
        verdict as verdict,
    )
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
