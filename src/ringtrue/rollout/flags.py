"""Flags: which feature reaches whom. A flag has a percentage; who is in is decided by the bucket of the identity.

Raising the percentage keeps everybody who was in, lowering it lets nobody new in. The environment wins over the store:
``RINGTRUE_FLAG_NEW_RANKING=on``, ``off`` or a percentage.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ringtrue.config import environment_without_tokens
from ringtrue.config import project as configured_project
from ringtrue.errors import CannotDecide, InputError, MissingInput, nearest
from ringtrue.rollout.candidate import said
from ringtrue.rollout.evidence import is_stopped
from ringtrue.store import DEFAULT_PROJECT, Flag, timestamp

if TYPE_CHECKING:
    from ringtrue.store import Store

STEPS = 2**53
"""As many places as a float can tell apart; 100 * place / STEPS is then exact enough never to reach 100."""
VARIABLE = "RINGTRUE_FLAG_"
PRESETS: Mapping[str, Flag] = {
    "multi-vector": Flag("multi-vector", shadow=True, description="Title and text have a vector each."),
    "graph-scoring": Flag(
        "graph-scoring", shadow=True, graduation_threshold=0.02, description="Links between documents raise their scores."
    ),
}
"""What these flags begin with when somebody sets them: nobody is in, the candidate runs in the shadow."""
TRIES = 20
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_STATES = ("running", "paused", "graduated", "rejected")


def bucket(identity: str, flag: str) -> float:
    """Return the place of an identity under a flag, from 0 up to but not including 100.

    It depends on these two texts alone, so it is the same in every process, on every machine and in every version; the flag's
    name salts it, so two flags divide the same people independently of each other.

    >>> bucket("user-1", "multi-vector") == bucket("user-1", "multi-vector")
    True
    >>> 0 <= bucket("user-1", "graph-scoring") < 100
    True
    """
    # The length in front keeps ("ab", "c") and ("a", "bc") apart.
    text = f"{len(flag)}:{flag}:{identity}".encode("utf-8", "surrogatepass")
    place = int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11
    return 100.0 * (place / STEPS)


def is_on(flag: Flag, identity: str, *, override: float | None = None) -> bool:
    """Return whether a flag is on for an identity; ``override`` is a percentage that wins over the flag's.

    >>> is_on(Flag("multi-vector", rollout=25), "user-1"), is_on(Flag("multi-vector", rollout=10), "user-1")
    (True, False)
    """
    return bucket(identity, flag.name) < (flag.rollout if override is None else override)


def overrides(environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """Return the percentages that the environment sets, by flag; raises InputError for a value that is none.

    >>> overrides({"RINGTRUE_FLAG_MULTI_VECTOR": "on", "RINGTRUE_FLAG_GRAPH_SCORING": "25"})
    {'multi-vector': 100.0, 'graph-scoring': 25.0}
    """
    found = {}
    for variable, value in (environment_without_tokens() if environment is None else environment).items():
        # RINGTRUE_FLAG_SET_ROLLOUT and its like are defaults of the options of `ringtrue flag`.
        if variable.startswith(VARIABLE) and not variable.startswith(_OPTIONS):
            found[variable.removeprefix(VARIABLE).lower().replace("_", "-")] = _percent(value, variable)
    return found


_OPTIONS = tuple(f"{VARIABLE}{command}_" for command in ("SET", "LIST", "GRADUATE", "ROLLBACK"))


def _percent(value: str, variable: str) -> float:
    word = value.strip().lower()
    try:
        percent = float({"on": "100", "off": "0"}.get(word, word.removesuffix("%")))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise InputError(f"{variable}={value!r} is neither on, off nor a percentage; write it like {variable}=25")
    return percent


class Flags:
    """The flags as a live system asks them: from memory, read anew in the background, never waiting for the store.

    While the store does not answer, the flags stay as they were; before the first answer all are off. ``problem`` says so.
    ``project`` is the configured one unless given.
    Raises InputError for an environment variable that cannot be read.
    """

    def __init__(
        self,
        store: Store,
        *,
        project: str | None = None,
        refresh: float = 5.0,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._project, self._refresh, self._clock = store, project or configured_project(), refresh, clock
        self._overrides = overrides(environment)
        self._known: dict[str, Flag] = {}
        self._reading = threading.Lock()
        self._process = os.getpid()
        self._read_at = self._clock()
        self.problem: str | None = None
        self._read()

    def is_on(self, name: str, identity: str) -> bool:
        """Return whether a flag is on for an identity."""
        if os.getpid() != self._process:
            # A fork copies the lock as it is; where somebody was reading at that moment nobody is left here to release it.
            self._process, self._reading = os.getpid(), threading.Lock()
        reading = self._reading
        if self._clock() - self._read_at >= self._refresh and reading.acquire(blocking=False):
            self._read_at = self._clock()
            threading.Thread(target=self._read, args=(reading,), name="ringtrue-flags", daemon=True).start()
        return is_on(self._known.get(name) or Flag(name), identity, override=self._overrides.get(name))

    def in_force(self, identity: str) -> dict[str, bool]:
        """Return every flag and whether it is on for an identity, as the query log keeps it."""
        return {name: self.is_on(name, identity) for name in sorted({*self._known, *self._overrides})}

    def _read(self, held: threading.Lock | None = None) -> None:
        try:
            self._known = {flag.name: flag for flag in self._store.flags(project=self._project)}
            self.problem = None
        except Exception as problem:
            self.problem = said(problem)
        finally:
            if held is not None:
                held.release()


def change_flag(
    store: Store, name: str, *, who: str, now: datetime, why: str = "", project: str = DEFAULT_PROJECT, **changes: Any
) -> Flag:
    """Change fields of a flag and return it; a new one begins as its preset, or with nobody in.

    Changes that others make at the same time are kept. A new percentage or state begins a new stage. A feature that runs in the
    shadow without a flag goes on. Raises InputError for a name or value that cannot be used.
    """
    for _ in range(TRIES):
        old = store.flag(name, project=project)
        begun = old or replace(PRESETS.get(name, Flag(name)), project=project)
        if old is None and name in store.shadow_features(project=project) and not is_stopped(store, name, project=project):
            begun = replace(begun, shadow=True)
        flag = checked(replace(begun, **changes))
        if old is None or (flag.rollout, flag.state) != (old.rollout, old.state):
            flag = replace(flag, stage_since=timestamp(now))
        if flag == old or store.set_flag(flag, who=who, at=now, why=why, expected=old):
            return flag
    raise CannotDecide(f"flag '{name}' keeps being changed by others; try again")


def only_forced(flags: Sequence[Flag], forced: Mapping[str, float], *, project: str = DEFAULT_PROJECT) -> list[Flag]:
    """Return the flags that the environment overrides and nobody has set yet, as their preset or with nobody in."""
    known = {flag.name for flag in flags}
    return [replace(PRESETS.get(name, Flag(name)), project=project) for name in sorted(forced) if name not in known]


def existing_flag(store: Store, name: str, *, project: str = DEFAULT_PROJECT) -> Flag:
    """Return a flag; raises MissingInput naming the nearest where there is none."""
    flag = store.flag(name, project=project)
    if flag is None:
        known = [one.name for one in store.flags(project=project)]
        meant = f"did you mean {nearest(name, known)}? " if known else ""
        raise MissingInput(f"no flag '{name}'; {meant}create it: ringtrue flag set {name}")
    return flag


def checked(flag: Flag) -> Flag:
    """Return a flag that can be used; raises InputError naming the field and its cure."""
    name, threshold = flag.name, flag.graduation_threshold
    like_option = f"{VARIABLE}{name.upper().replace('-', '_')}_".startswith(_OPTIONS)
    named = "is not a valid flag name; use lowercase letters, digits and single dashes, like new-ranking"
    for wrong, why in (
        (not _NAME.fullmatch(name) or len(name) > 64, f"{name!r} {named}"),
        (like_option, f"{name!r} begins like a command of `ringtrue flag`; choose another name"),
        (not 0 <= flag.rollout <= 100, f"rollout {flag.rollout!r} is not a percentage; write one from 0 to 100"),
        (flag.min_samples < 1, f"min_samples {flag.min_samples!r} decides on nothing; write 1 or more"),
        (not 0 < threshold <= 1, f"graduation threshold {threshold!r} is not an improvement; write one like 0.03"),
        (flag.state not in _STATES, f"there is no state {flag.state!r}; did you mean {nearest(flag.state, _STATES)}?"),
    ):
        if wrong:
            raise InputError(why)
    return flag
