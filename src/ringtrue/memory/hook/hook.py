"""The program a host starts for its events: ``python3 -I -S <folder>/hook.py``, a JSON object on stdin.

It ends with 0 and in time whatever happens, and is silent unless it has something to say: a host waits for it with every
prompt, and any other exit, or output it does not know, is shown to the user as an error.

A file that is run is compiled every time, so this one is short; the work is in ``respond``.
"""

from __future__ import annotations

import sys

if not __package__:  # run as a file: the folder becomes a package under a name that nothing else has
    __package__ = "ringtrue_memory_hook"
    sys.modules[__package__] = type(sys)(__package__)
    sys.modules[__package__].__path__ = [__file__.replace("\\", "/").rpartition("/")[0] or "."]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TextIO

    from .respond import Progress

BUDGET = 0.9
"""Seconds after which the hook gives up; with the start of the interpreter that is the one second a prompt may wait."""
LARGEST = 32_000_000
"""Bytes of an event that are read; taking a larger one apart would take longer than there is time."""
GRACE = 0.1
"""Seconds it then has to write down that it did."""


def main(argv: Sequence[str], stdin: TextIO, stdout: TextIO, environ: Mapping[str, str]) -> int:
    """Answer one event and return 0, the only exit code there is; ``argv`` may name the event where the host does not."""
    from .respond import Progress

    return _answer(argv, stdin, stdout, environ, Progress())


def _answer(argv: Sequence[str], stdin: TextIO, stdout: TextIO, environ: Mapping[str, str], progress: Progress) -> int:
    try:
        from .respond import respond

        data = getattr(stdin, "buffer", stdin).read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"the host sent more than {LARGEST:,} bytes")
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        for piece in respond(text, argv[0] if argv else "", environ, progress):
            stdout.write(piece)
            stdout.flush()
    except BaseException as error:  # a host shows anything else to the user as a failure of the hook
        progress.note_error(error)
    return 0


def run(budget: float = BUDGET) -> None:
    """Answer the event on stdin and end the process, at the latest after ``budget`` seconds and a moment."""
    import os
    from _thread import start_new_thread  # a timer of threading would cost its import

    from .respond import Progress

    progress = Progress()
    # Two of them: writing the note may hang on the same file system that kept the answer from coming.
    start_new_thread(_give_up, (budget, lambda: progress.note_timeout(budget)))
    start_new_thread(_give_up, (budget + GRACE, None))
    _interrupt(budget + 2 * GRACE)
    code = _answer(sys.argv[1:], sys.stdin, sys.stdout, os.environ, progress)
    os._exit(code)  # nothing is left to tidy up, and tidying takes milliseconds


def _interrupt(seconds: float) -> None:
    """End the process by a signal, too: a search for a pattern lets no thread run, but it does look for signals."""
    import os

    try:
        # ``signal`` would cost the import of ``enum``.
        from _signal import ITIMER_REAL, SIGALRM, setitimer, signal  # type: ignore[import-not-found]
    except ImportError:  # Windows
        return
    signal(SIGALRM, lambda *_: os._exit(0))
    setitimer(ITIMER_REAL, seconds)


def _give_up(seconds: float, last: Callable[[], Any] | None) -> None:
    import os
    from time import sleep

    sleep(seconds)
    try:
        if last is not None:
            last()
    finally:
        os._exit(0)


if __name__ == "__main__":
    run()
