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
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from io import BufferedReader
from json import dumps, loads
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

from ringtrue import traffic
from ringtrue.errors import BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors.base import check_folder
from ringtrue.retrieve.connectors.deciding import words
from ringtrue.retrieve.connectors.redact import one_line, redacted
from ringtrue.retrieve.connectors.writing import Mark, Planted, WritingConnector
from ringtrue.retrieve.protocol import Scope, plain

ALWAYS = ("PATH", "HOME", "LANG")
"""What every program needs to find its files and to write text."""
LARGEST = 64_000_000
"""Bytes of an answer that are read at most."""
GLANCE, GRACE = 0.05, 0.5
"""Seconds after which a silent program is looked at, and in which the output of one that ended must come to its end."""
TAIL = 4000
"""Bytes of standard error that are remembered, and of a line that is no JSON that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Command(WritingConnector):
    """A program that answers JSON lines."""

    PATHS: ClassVar[tuple[str, ...]] = ("folder",)
    ASIDE: ClassVar[frozenset[str]] = WritingConnector.ASIDE | {"folder"}
    ASKS_BLANK: ClassVar[bool] = True
    ONE_BY_ONE: ClassVar[bool] = True
    TELLING: ClassVar[str] = "let the program of plant answer {'held': [ids]} with {'held': {id: its source hash, or null}}"

    command: Sequence[str] = field(repr=False)
    """Program and arguments, ``["python", "search.py"]``; no shell reads them."""
    mode: Literal["resident", "once"] = "resident"
    """'resident' keeps one process for all questions, 'once' starts one for each."""
    env: Sequence[str] = ()
    """Names of further environment variables that it may see; all must be set."""
    folder: str | Path | None = None
    """Where it runs; when not given, the folder of ringtrue.toml for a connection from there, else the current one."""
    plant: Sequence[str] = field(default=(), repr=False)
    """Program and arguments that write documents, with the same env and folder; without it nothing is written."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.command or not self.command[0].strip():
            raise InputError(f"{self.name}: command is empty; write program and arguments like ['python', 'search.py']")
        check_folder(self.name, self.folder)

    def deciding(self) -> dict[str, Any]:
        return super().deciding() | {"command": words(self.command, self.folder)}

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return the hits of one answer line; a blank question is asked like any other."""
        wanted = {name: plain(str(value)) for name, value in (scope or {}).items()}
        line = dumps({"text": text, "k": k, "scope": wanted}).encode() + b"\n"
        answer = self._good(self._resident(line) if self.mode == "resident" else self._once(line))
        hits = answer.get("hits")
        if not isinstance(hits, list):
            keys = self._safe(", ".join(map(repr, list(answer)[:8]))) or "nothing"
            raise BadAnswer(
                f"{self.name} wrote an object with {keys:.80} but no list 'hits'; write {{'hits': […]}} or {{'error': …}}"
            )
        return hits

    def _good(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if "error" in answer:
            said = self._safe(str(answer["error"]))
            raise BadAnswer(f"{self.name} says: {said:.160}; mend what it complains about")
        return answer

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
            keys = self._safe(", ".join(map(repr, list(answer)[:8]))) or "nothing"
            raise BadAnswer(f"{self.name}: plant wrote an object with {keys:.80}; write {{'ok': true}} or {{'error': …}}")

    def _order(self, order: Mapping[str, Any]) -> Mapping[str, Any]:
        writer: Command = self.__dict__.setdefault("_writer", replace(self, command=self.plant, plant=(), mode="resident"))
        return self._good(writer._resident(dumps(order, default=str).encode() + b"\n"))

    def close(self) -> None:
        """End the resident processes, and that which writes; the next question starts another."""
        super().close()
        if "_writer" in self.__dict__:
            self.__dict__.pop("_writer").close()

    def secrets(self) -> Iterator[str]:
        """Yield what no message may show: what the program was told by its environment."""
        yield from super().secrets()
        yield from self._values(self.env)

    def _safe(self, text: str) -> str:
        """Return what the program wrote for a message; it must come here before it is cut, or half a secret may remain."""
        return one_line(redacted(text, self.secrets()))

    def _resident(self, line: bytes) -> Mapping[str, Any]:
        # What a program logs is marked by its environment: each kind of traffic has one of its own.
        residents: dict[str, _Resident] = self.kept(dict, _end_all)
        resident = residents.setdefault(traffic.current(), _Resident())
        with resident.lock:
            end = time.monotonic() + self.timeout  # waiting for other threads' questions is not its fault
            if resident.process is not None and resident.process.ended():
                resident.end()
            process = resident.process = resident.process or self._start()
            try:
                self._check_quiet(process)
                answer = self._parsed(self._whole(process, process.exchange(line, end)))
                self._check_quiet(process)
            except BaseException:  # what it writes next would be taken for the answer to another question
                resident.end()
                raise
            return answer

    def _once(self, line: bytes) -> Mapping[str, Any]:
        end = time.monotonic() + self.timeout
        process = self._start()
        try:
            answer = self._whole(process, process.exchange(line, end, last=True))
            code = process.code(end)
            if code is None:
                raise TimedOut(
                    f"{self.name} answered but did not end within {self.timeout:g} s; raise timeout=, or mend its end"
                )
            if code != 0:
                raise BadAnswer(f"{self.name} ended with {_code(code)}{self._said(process)}; mend what it complains about")
            if b"\n" in answer.strip():
                raise BadAnswer(f"{self.name} wrote more than one line for a question; write logs to standard error")
            return self._parsed(answer)
        finally:
            process.kill()

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
        found = {name: value for name in self.env if (value := self.secret(name)) is not None}
        for name in ALWAYS:
            with contextlib.suppress(MissingInput):  # a service may run without HOME
                found[name] = self.secret(name) or ""
        return found if traffic.current() == "user" else {**found, traffic.VARIABLE: traffic.current()}

    def _check_quiet(self, process: _Process) -> None:
        if process.leftover():
            raise BadAnswer(f"{self.name} wrote more than one line for a question; write logs to standard error")

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


class _Resident:
    """The program that answers all questions of a connection, and who may speak to it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: _Process | None = None

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process = None


def _end_all(residents: Mapping[str, _Resident]) -> None:
    for resident in list(residents.values()):
        resident.end()


class _Process:
    """Standard input, output and error of one program; nothing here waits longer than it is told."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: str | Path | None) -> None:
        pipe = subprocess.PIPE
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process; a pipe could fill up and block it
        options: dict[str, Any] = {"env": dict(environment), "cwd": folder, "start_new_session": True, "bufsize": 0}
        try:
            self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, **options)
        except BaseException:
            self._errors.close()
            raise
        self._in: Any = self._child.stdin
        self._out = BufferedReader(cast("Any", self._child.stdout))
        self._exchange: threading.Thread | None = None
        self.at_end = False
        """True when its standard output was closed."""

    def exchange(self, question: bytes, end: float, *, last: bool = False) -> bytes:
        """Write a question and return the next line, or after the ``last`` question all that comes; b"" if nothing does.

        A thread waits for it: it is woken when the program is killed.
        """
        answers: list[bytes] = []
        self._errors.truncate(0)

        def ask() -> None:
            with contextlib.suppress(OSError):  # it reads no more; what it writes says why
                self._in.write(question)
                if last:
                    self._in.close()
            answers.append(self._out.read(LARGEST + 1) if last else self._out.readline(LARGEST + 1))

        self._exchange = thread = threading.Thread(target=ask, daemon=True, name="ringtrue-command")
        thread.start()
        while thread.is_alive() and not self.ended() and (left := end - time.monotonic()) > 0:
            thread.join(min(left, GLANCE))
        if self.ended():
            thread.join(GRACE)  # its children may hold its output open when it is no more
        answer = answers[0] if answers else b""
        self.at_end = bool(answers) and (last or not answer.endswith(b"\n"))
        return answer

    def leftover(self) -> bool:
        """True when something was written that nobody asked for."""
        os.set_blocking(self._out.fileno(), False)
        try:
            return bool(self._out.peek(1))
        finally:
            os.set_blocking(self._out.fileno(), True)

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
        file = self._errors.fileno()
        return os.pread(file, TAIL, max(0, os.fstat(file).st_size - TAIL)).decode("utf-8", "replace")

    def kill(self) -> None:
        """End the process and everything it started, and release what belongs to it."""
        # Its group outlives it while one of its children runs; those must go too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(5)
        if self._exchange is not None:
            self._exchange.join(GRACE)
            if self._exchange.is_alive():  # a process that left the group still holds the output
                return
        for file in (self._in, self._out, self._errors):
            with contextlib.suppress(OSError):
                file.close()


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
