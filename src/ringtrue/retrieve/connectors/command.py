"""Any program as a search: it reads one JSON line per question and writes one JSON line per answer.

::

    → {"text": "pool for children", "k": 10, "scope": {}}
    ← {"hits": [{"doc_id": "d1", "score": 2.5}, {"doc_id": "d7", "score": 1.0}]}      or      {"error": "why not"}

A second program, ``plant``, may write documents; it is spoken to in the same way::

    → {"write": {"id": "golden:hotel:d1", "title": "…", "text": "…", "metadata": {}, "source_hash": "…", "tenant": null}}
    → {"remove": "golden:hotel:d1", "tenant": null}
    ← {"ok": true}      or      {"error": "why not"}
    → {"held": ["golden:hotel:d1", "d2"]}
    ← {"held": {"golden:hotel:d1": "its source hash", "d2": null}}      only what is there; null for what it was not given

A document is replaced or removed only where the program tells the source hash that it was given; one that answers
``{"held": null}`` is not written through.

It is started without a shell, in a process group of its own that ends with it, and sees no more of the environment than it
needs.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from json import dumps, loads
from pathlib import Path
from typing import Any, ClassVar, Literal

from ringtrue import traffic
from ringtrue.errors import BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors.base import Program
from ringtrue.retrieve.connectors.deciding import words
from ringtrue.retrieve.connectors.web import one_line, redacted
from ringtrue.retrieve.connectors.writing import Mark, Planted, WritingConnector
from ringtrue.retrieve.protocol import Scope, plain

ALWAYS = ("PATH", "HOME", "LANG")
"""What every program needs to find its files and to write text."""
LARGEST = 64_000_000
"""Bytes of an answer that are read at most."""
GLANCE = 0.1
"""Seconds after which a silent program is looked at: its children may hold its output open when it is no more."""
TAIL = 4000
"""Bytes of standard error that are remembered, and of a line that is no JSON that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Command(Program, WritingConnector):
    """A program that answers JSON lines."""

    PATHS: ClassVar[tuple[str, ...]] = ("folder",)
    ASIDE: ClassVar[frozenset[str]] = WritingConnector.ASIDE | {"folder"}
    ONE_BY_ONE: ClassVar[bool] = True
    TELLING: ClassVar[str] = "let the program of plant answer {'held': [ids]} with {'held': {id: its source hash, or null}}"

    command: Sequence[str] = field(repr=False)
    """Program and arguments, ``["python", "search.py"]``; no shell reads them."""
    mode: Literal["resident", "once"] = "resident"
    """'resident' keeps one process for all questions, 'once' starts one for each."""
    plant: Sequence[str] = field(default=(), repr=False)
    """Program and arguments that write documents, with the same env and folder; without it nothing is written."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.command or not self.command[0].strip():
            raise InputError(f"{self.name}: command is empty; write program and arguments like ['python', 'search.py']")

    def deciding(self) -> dict[str, Any]:
        return super().deciding() | {"command": words(self.command, self.folder)}

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return the hits of one answer line; a blank question is asked like any other."""
        wanted = {name: plain(str(value)) for name, value in (scope or {}).items()}
        line = dumps({"text": text, "k": k, "scope": wanted}).encode() + b"\n"
        answer = self._resident(line) if self.mode == "resident" else self._once(line)
        hits = answer.get("hits")
        if not isinstance(hits, list):
            raise BadAnswer(
                f"{self.name} wrote {self._keys(answer)} but no list 'hits'; write {{'hits': […]}} or {{'error': …}}"
            )
        return hits

    def _keys(self, answer: Mapping[str, Any]) -> str:
        keys = self._safe(", ".join(map(repr, list(answer)[:8]))) or "nothing"
        return f"an object with {keys:.80}"

    def check_plant(self, documents: Sequence[Planted]) -> None:
        if not self.plant:
            raise InputError(
                f"{self.name} is only read; name the program that writes documents, plant = ['python', 'write.py']"
            )

    def looks_up(self) -> bool:
        """Whether the program can tell what is there."""
        if not self.plant:
            return False
        if "_can_tell" not in self.__dict__:
            self.__dict__["_can_tell"] = self.tried(lambda: self._told([""])) is not None
        return bool(self.__dict__["_can_tell"])

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        found = self._told(ids)
        if not isinstance(found, Mapping):
            raise BadAnswer(f"{self.name}: plant answered {found!r:.40} as 'held'; write {{id: hash or null}}, or null")
        return {doc_id: Mark(None if found[doc_id] is None else str(found[doc_id]), None) for doc_id in ids if doc_id in found}

    def _told(self, ids: Sequence[str]) -> Any:
        answer = self._order({"held": list(ids)})
        if "held" not in answer:
            raise BadAnswer(f"{self.name}: plant answered no 'held'; write {{'held': {{…}}}}, or {{'held': null}}")
        return answer["held"]

    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        for document in documents:
            self._done({"write": {**asdict(document), "metadata": dict(document.metadata)}})

    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        for doc_id in ids:
            self._done({"remove": doc_id, "tenant": tenant})

    def _done(self, order: Mapping[str, Any]) -> None:
        answer = self._order(order)
        if answer.get("ok") is not True:
            raise BadAnswer(f"{self.name}: plant wrote {self._keys(answer)}; write {{'ok': true}} or {{'error': …}}")

    def _order(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        writer: Command = self.__dict__.setdefault("_writer", replace(self, command=self.plant, plant=(), mode="resident"))
        return writer._resident(dumps(order, default=str).encode() + b"\n")

    def close(self) -> None:
        """End the resident programs, and that which writes; the next question starts another."""
        super().close()
        writer: Command | None = self.__dict__.pop("_writer", None)
        if writer is not None:
            writer.close()

    def _safe(self, text: str) -> str:
        """Return what the program wrote for a message; it must come here before it is cut, or half a secret may remain."""
        return one_line(redacted(text, self.secrets()))

    def _resident(self, line: bytes) -> Mapping[str, Any]:
        # What a program logs is marked by its environment, so each kind of traffic has a program of its own.
        held = self.kept(f"program_{traffic.current()}", _Process.kill)
        with held.lock:
            end = time.monotonic() + self.timeout  # waiting for other threads' questions is not its fault
            if held.value is not None and held.value.ended():
                held.end()
            process = held.get(self._start)
            try:
                self._check_quiet(process)
                answer = self._parsed(self._whole(process, process.ask(line, end)))
                self._check_quiet(process)
            except BaseException:  # what it writes next would be taken for the answer to another question
                held.end()
                raise
        return self._good(answer)

    def _once(self, line: bytes) -> Mapping[str, Any]:
        end = time.monotonic() + self.timeout
        process = self._start()
        try:
            answer = self._whole(process, process.ask(line, end, last=True))
            code = process.code(end)
            if code is None:
                raise TimedOut(
                    f"{self.name} answered but did not end within {self.timeout:g} s; raise timeout=, or mend its end"
                )
            if code != 0:
                raise BadAnswer(f"{self.name} ended with {_code(code)}{self._said(process)}; mend what it complains about")
            if b"\n" in answer.strip():
                raise self._second_line()
            return self._good(self._parsed(answer))
        finally:
            process.kill()

    def _good(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if "error" in answer:
            said = self._safe(str(answer["error"]))
            raise BadAnswer(f"{self.name} says: {said:.160}; mend what it complains about")
        return answer

    def _start(self) -> _Process:
        environment = self._environment()
        try:
            return _Process(list(self.command), environment, self.folder)
        except (OSError, ValueError) as problem:
            why = (
                os.strerror(problem.errno).lower() if isinstance(problem, OSError) and problem.errno else "not a usable command"
            )
            program = Path(self.command[0]).name
            raise Unreachable(
                f"{self.name}: '{program}' cannot be started ({why}); check command= and that it is installed"
            ) from None

    def _environment(self) -> dict[str, str]:
        found = self.environment()
        for name in ALWAYS:
            with contextlib.suppress(MissingInput):  # a service may run without HOME
                found[name] = self.secret(name) or ""
        return found if traffic.current() == "user" else {**found, traffic.VARIABLE: traffic.current()}

    def _check_quiet(self, process: _Process) -> None:
        if process.leftover():
            raise self._second_line()

    def _second_line(self) -> BadAnswer:
        return BadAnswer(f"{self.name} wrote more than one line for a question; write logs to standard error")

    def _whole(self, process: _Process, answer: bytes) -> bytes:
        """Return an answer that is whole; raises BadAnswer, Unreachable or TimedOut by what became of the program."""
        if len(answer) > LARGEST:
            raise BadAnswer(f"{self.name} wrote more than {LARGEST // 1_000_000} MB; return fewer hits, without their texts")
        if answer.endswith(b"\n") or (process.at_end and answer.strip()):
            return answer
        if process.at_end or process.ended():
            code = process.code(time.monotonic() + 0.2)
            how = "closed its output" if code is None else f"ended with {_code(code)}"
            raise Unreachable(f"{self.name} {how} before it answered{self._said(process)}; mend what it complains about")
        raise TimedOut(
            f"{self.name} did not answer within {self.timeout:g} s{self._said(process)}; raise timeout=, or see why it is slow"
        )

    def _said(self, process: _Process) -> str:
        """Return the end of standard error for a message."""
        text = self._safe(process.complaints())
        return f" ({text[-160:]})" if text else ""

    def _parsed(self, line: bytes) -> Mapping[str, Any]:
        try:
            answer = loads(line)
        except (ValueError, RecursionError):
            start = self._safe(line[:TAIL].decode("utf-8", "replace"))
            raise BadAnswer(
                f"{self.name} wrote no JSON but '{start:.60}'; write one JSON line, and logs to standard error"
            ) from None
        if not isinstance(answer, dict):
            raise BadAnswer(f"{self.name} wrote {self._safe(repr(answer)):.60}; write an object like {{'hits': […]}}")
        return answer


class _Process:
    """Standard input, output and error of one program; nothing here waits longer than it is told."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: str | Path | None) -> None:
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environment), cwd=folder, start_new_session=True, bufsize=0
        )
        self._pipes = [file for file in (self._child.stdin, self._child.stdout, self._child.stderr) if file is not None]
        self._in, self._out, self._err = (file.fileno() for file in self._pipes)
        for file in (self._in, self._out, self._err):
            os.set_blocking(file, False)
        self._written = bytearray()
        self._complaints = bytearray()
        self.at_end = False
        """True when its standard output was closed."""

    def ask(self, question: bytes, end: float, *, last: bool = False) -> bytes:
        """Write a question and return the next line, without a line end if the program ended or the time was over.

        After the ``last`` question standard input is closed, and all that is written until the end is returned.
        """
        self._exchange(question, end, last=last)
        count = len(self._written) if last else self._written.find(b"\n") + 1 or len(self._written)
        taken = bytes(self._written[:count])
        del self._written[:count]
        return taken

    def leftover(self) -> bool:
        """True when something was written that nobody asked for."""
        self._drain()
        return bool(self._written)

    def ended(self) -> bool:
        """True when the process is no more."""
        return self._child.poll() is not None

    def code(self, end: float) -> int | None:
        """Return its exit code, waiting until then; None while it runs."""
        try:
            return self._child.wait(max(end - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            return None

    def complaints(self) -> str:
        """Return the end of what it wrote to standard error."""
        self._drain()
        return self._complaints.decode("utf-8", "replace")

    def kill(self) -> None:
        """End the process and everything it started, and release what belongs to it."""
        # Its group outlives it while one of its children runs; those must go too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(5)
        for file in self._pipes:
            with contextlib.suppress(OSError):
                file.close()

    def _exchange(self, question: bytes, end: float, *, last: bool) -> None:
        left = memoryview(question)
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._in, selectors.EVENT_WRITE)
            waiting.register(self._out, selectors.EVENT_READ)
            waiting.register(self._err, selectors.EVENT_READ)
            while not self.at_end and (remaining := end - time.monotonic()) > 0:
                ready = waiting.select(min(remaining, GLANCE))
                if not ready and self.ended():
                    return
                for key, _ in ready:
                    if key.fd == self._in:
                        left = self._send(left)
                        if not left:
                            waiting.unregister(self._in)
                            if last:
                                self._pipes[0].close()
                    elif not self._take(key.fd):
                        waiting.unregister(key.fd)
                        self.at_end = self.at_end or key.fd == self._out
                if len(self._written) > LARGEST or (not last and b"\n" in self._written):
                    return

    def _send(self, left: memoryview) -> memoryview:
        try:
            return left[os.write(self._in, left) :]
        except BlockingIOError:
            return left
        except OSError:  # it reads no more; what it writes says why
            return left[len(left) :]

    def _take(self, file: int) -> bool:
        """Take what can be read at once; False at the end of the file, BlockingIOError where nothing is there yet."""
        part = os.read(file, 1 << 16)
        if file == self._out:
            self._written += part
        else:
            self._complaints += part
            del self._complaints[:-TAIL]
        return bool(part)

    def _drain(self) -> None:
        for file in (self._out, self._err):
            with contextlib.suppress(BlockingIOError):
                for _ in range(64):  # one that writes without end must not hold us
                    if not self._take(file):
                        break


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
