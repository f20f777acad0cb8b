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
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from json import dumps, loads
from pathlib import Path
from typing import IO, Any, ClassVar

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
"""Bytes of standard error that are remembered, and of a line that is not JSON that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Command(Program, WritingConnector):
    """A program that answers JSON lines."""

    PATHS: ClassVar[tuple[str, ...]] = ("folder",)
    ASIDE: ClassVar[frozenset[str]] = WritingConnector.ASIDE | {"folder"}
    ONE_BY_ONE: ClassVar[bool] = True
    ASKS_BLANK: ClassVar[bool] = True
    TELLING: ClassVar[str] = "let the program of plant answer {'held': [ids]} with {'held': {id: its source hash, or null}}"

    command: Sequence[str] = field(repr=False)
    """Program and arguments, ``["python", "search.py"]``; no shell reads them."""
    plant: Sequence[str] = field(default=(), repr=False)
    """Program and arguments that write documents, with the same env and folder; without it nothing is written."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.command or not self.command[0].strip():
            raise InputError(f"{self.name}: command is empty; write program and arguments like ['python', 'search.py']")

    def deciding(self) -> dict[str, Any]:
        return super().deciding() | {"command": words(self.command, self.folder)}

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return the hits of one answer line."""
        wanted = {name: plain(str(value)) for name, value in (scope or {}).items()}
        line = dumps({"text": text, "k": k, "scope": wanted}).encode() + b"\n"
        answer = self._answer(line)
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
                f"{self.name} is read-only; name the program that writes documents, like plant = ['python', 'write.py']"
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
        writer: Command = self.__dict__.setdefault("_writer", replace(self, command=self.plant, plant=()))
        return writer._answer(dumps(order, default=str).encode() + b"\n")

    def close(self) -> None:
        """End the resident programs, and that which writes; the next question starts another."""
        super().close()
        writer: Command | None = self.__dict__.pop("_writer", None)
        if writer is not None:
            writer.close()

    def _safe(self, text: str) -> str:
        """Return what the program wrote for a message; it must come here before it is cut, or half a secret may remain."""
        return one_line(redacted(text, self.secrets()))

    def _answer(self, line: bytes) -> Mapping[str, Any]:
        # What a program logs is marked by its environment, so each kind of traffic has a program of its own.
        held = self.kept(f"program_{traffic.current()}", _Process.kill)
        with held.lock:
            end = time.monotonic() + self.timeout  # waiting for other threads' questions is not its fault
            if held.value is not None and held.value.ended:
                held.end()
            process = held.get(self._start)
            try:
                self._check_quiet(process)
                answer = self._parsed(self._whole(process, process.ask(line, end)))
                self._check_quiet(process)
            except BaseException:  # what it writes next would be taken for the answer to another question
                held.end()
                raise
        if "error" in answer:
            raise BadAnswer(f"{self.name} says: {self._safe(str(answer['error'])):.160}; fix what it reports")
        return answer

    def _start(self) -> _Process:
        environment = self.environment()
        for name in ALWAYS:
            with contextlib.suppress(MissingInput):  # a service may run without HOME
                environment[name] = self.secret(name) or ""
        if traffic.current() != "user":
            environment[traffic.VARIABLE] = traffic.current()
        try:
            return _Process(self.command, environment, self.folder)
        except (OSError, ValueError) as problem:
            why = (
                os.strerror(problem.errno).lower() if isinstance(problem, OSError) and problem.errno else "not a usable command"
            )
            said = f"{self.name}: '{Path(self.command[0]).name}' cannot be started ({why})"
            raise Unreachable(f"{said}; check command= and that it is installed") from None

    def _check_quiet(self, process: _Process) -> None:
        if process.written:
            raise BadAnswer(f"{self.name} wrote more than one line for a question; write logs to standard error")

    def _whole(self, process: _Process, answer: bytes) -> bytes:
        """Return an answer that is whole; raises BadAnswer, Unreachable or TimedOut by what became of the program."""
        if len(answer) > LARGEST:
            raise BadAnswer(f"{self.name} wrote more than {LARGEST // 1_000_000} MB; return fewer hits, without their texts")
        if answer.endswith(b"\n") or (process.at_end and answer.strip()):
            return answer
        if process.at_end or process.ended:
            how, said = process.end(), self._said(process)
            raise Unreachable(f"{self.name} {how} before it answered{said}; fix what it reports")
        raise TimedOut(
            f"{self.name} did not answer within {self.timeout:g} s{self._said(process)}; raise timeout=, or see why it is slow"
        )

    def _said(self, process: _Process) -> str:
        """Return the end of standard error for a message."""
        text = self._safe(process.complaints.decode("utf-8", "replace"))
        return f" ({text[-160:]})" if text else ""

    def _parsed(self, line: bytes) -> Mapping[str, Any]:
        try:
            answer = loads(line)
        except (ValueError, RecursionError):
            start = self._safe(line[:TAIL].decode("utf-8", "replace"))
            raise BadAnswer(
                f"{self.name} wrote '{start:.60}', which is not JSON; write one JSON line, and logs to standard error"
            ) from None
        if not isinstance(answer, dict):
            raise BadAnswer(f"{self.name} wrote {self._safe(repr(answer)):.60}; write an object like {{'hits': […]}}")
        return answer


class _Process:
    """A program with what it has written so far, which two threads gather."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: str | Path | None) -> None:
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            list(command), stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environment), cwd=folder, start_new_session=True
        )
        self._changed = threading.Condition()
        self.written, self.complaints = bytearray(), bytearray()
        """What nobody has taken yet of standard output, and the end of standard error."""
        self.at_end = False
        """True when its standard output was closed."""
        threading.Thread(target=self._gather_answers, daemon=True).start()
        self._complaining = threading.Thread(target=self._gather_complaints, daemon=True)
        self._complaining.start()

    def _gather_answers(self) -> None:
        for part in _parts(self._child.stdout):
            with self._changed:
                self.written += part
                self._changed.notify_all()
                if len(self.written) > LARGEST:  # it waits from now on until it is killed
                    return
        with self._changed:
            self.at_end = True
            self._changed.notify_all()

    def _gather_complaints(self) -> None:
        for part in _parts(self._child.stderr):
            self.complaints += part
            del self.complaints[:-TAIL]

    @property
    def ended(self) -> bool:
        """True when the process is no more."""
        return self._child.poll() is not None

    def ask(self, question: bytes, end: float) -> bytes:
        """Write a question and return the next line, without a line end if the program ended or the time was over."""
        # A program that reads nothing must not hold us; the thread ends with it.
        threading.Thread(target=self._send, args=(question,), daemon=True).start()
        with self._changed:
            while (left := end - time.monotonic()) > 0 and not self.at_end:
                if b"\n" in self.written or len(self.written) > LARGEST:
                    break
                if not self._changed.wait(min(left, GLANCE)) and self.ended:
                    break
            count = self.written.find(b"\n") + 1 or len(self.written)
            taken = bytes(self.written[:count])
            del self.written[:count]
        return taken

    def _send(self, question: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # it reads no more; what it writes says why
            assert self._child.stdin is not None
            self._child.stdin.write(question)
            self._child.stdin.flush()

    def end(self) -> str:
        """Return how it ended, after a moment in which it may say why."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._child.wait(0.2)
            self._complaining.join(0.2)
            return f"ended with signal {-code}" if code < 0 else f"ended with exit code {code}"
        return "closed its output"

    def kill(self) -> None:
        """End the process and everything it started; its pipes are closed by the threads that read them."""
        # Its group outlives it while one of its children runs; those must go too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(5)
        with contextlib.suppress(OSError):
            assert self._child.stdin is not None
            self._child.stdin.close()


def _parts(stream: IO[bytes] | None) -> Iterator[bytes]:
    assert stream is not None
    with stream:
        while part := os.read(stream.fileno(), 1 << 16):
            yield part
