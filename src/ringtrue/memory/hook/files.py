"""The memory folder: which it is, what lies in it, and writing one file at a time so that no reader sees half of it."""

from __future__ import annotations

import json
import os

from .guard import find_secrets, inside, read_plain
from .memory import CATEGORIES, ID_LIMIT, TITLE_LIMIT, Memory, MemoryFault, as_record, from_record
from .settings import FILE as SETTINGS_FILE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Any

    from .settings import Settings

IN_PROJECT = os.path.join(".claude", "memory")
OWN = ".ringtrue"
"""The folder for what can be made again: caches, the lock, the journal."""
LARGEST = 1_000_000
"""Bytes of a file beyond which it is not a memory; reading more would cost every prompt."""
_PAGE = 16_384
"""Bytes that nearly every memory fits into; asking for more costs more, however little comes."""
DEEPEST = 40
"""Levels of objects and lists in a file beyond which it is not a memory: whoever walks it again would run out of stack."""
_MANY = 200
"""Brackets up to which nobody has to look how deep they go; a memory has a few dozen."""
WIDEST = 100_000
"""Entries under a further root beyond which it is not a folder of notes."""
_REGULAR, _LINK, _KIND = 0o100000, 0o120000, 0o170000


class Loaded:
    """What a folder holds: memories in the order of their ids, and (path, what is wrong) for every file that is none."""

    __slots__ = ("faults", "memories")

    def __init__(self, memories: list[Memory], faults: list[tuple[str, str]]) -> None:
        self.memories, self.faults = memories, faults


class Listing:
    """The files of a folder with the state of each, and what in it is refused.

    A line is a path, relative to the root where it lies there, and after a NUL its times of change, size and inode.

    Of the two times the second cannot be set back, as a restored backup does with the first.
    """

    __slots__ = ("faults", "lines")

    def __init__(self, lines: list[str], faults: list[tuple[str, str]]) -> None:
        self.lines, self.faults = lines, faults

    @property
    def stamps(self) -> dict[str, str]:
        """The state of each path."""
        return stamps_of("\0".join(self.lines))


def stamps_of(text: str) -> dict[str, str]:
    """Return the state of each path, from the lines of a listing joined by NUL."""
    fields = text.split("\0") if text else []
    return dict(zip(fields[::2], fields[1::2], strict=False))  # one that is damaged differs, and is read again


def find_root(cwd: str, environ: Mapping[str, str]) -> str | None:
    """Return the memory folder that belongs to a working directory, or None.

    ``RINGTRUE_MEMORY_ROOT`` names it; else it is ``.claude/memory`` in ``CLAUDE_PROJECT_DIR``, else in ``cwd`` or the nearest
    folder above it. A folder above that belongs to somebody else is not taken: in ``/tmp`` anyone could leave one.
    """
    named = environ.get("RINGTRUE_MEMORY_ROOT")
    if named:
        return os.path.abspath(os.path.join(cwd, os.path.expanduser(named)))
    project = environ.get("CLAUDE_PROJECT_DIR")
    if project and os.path.isdir(os.path.join(project, IN_PROJECT)):
        return os.path.join(os.path.abspath(project), IN_PROJECT)
    folder = os.path.abspath(cwd)
    here = folder
    while True:
        root = os.path.join(folder, IN_PROJECT)
        if os.path.isdir(root) and (folder == here or _ours(root)):
            return root
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def usual_root(cwd: str, environ: Mapping[str, str]) -> str:
    """Return the memory folder of a working directory as ``find_root`` does, else the one it would have.

    That lies in ``CLAUDE_PROJECT_DIR``, else in the checkout around the directory.
    """
    found = find_root(cwd, environ)
    if found is not None:
        return found
    here = folder = os.path.abspath(cwd)
    while not os.path.exists(os.path.join(folder, ".git")):
        folder = os.path.dirname(folder)
        if folder == os.path.dirname(folder):
            folder = here
            break
    return os.path.join(environ.get("CLAUDE_PROJECT_DIR") or folder, IN_PROJECT)


def _ours(path: str) -> bool:
    user = getattr(os, "getuid", None)
    return user is None or user() == 0 or os.stat(path).st_uid in (user(), 0)


def scan(root: str, settings: Settings) -> Listing:
    """Return every file that may be a memory: JSON under the root, JSON and Markdown under the further roots of the settings.

    Names that begin with a dot are not looked at; a link is never followed, and one that leads out is a fault.
    """
    lines: list[str] = []
    faults: list[tuple[str, str]] = []
    _walk(root, "", (".json",), lines, faults)
    for further in settings.roots:
        _walk(further, os.path.join(further, ""), (".json", ".md"), lines, faults)
    return Listing(lines, faults)


def _walk(top: str, start: str, endings: tuple[str, ...], lines: list[str], faults: list[tuple[str, str]]) -> None:
    """Add the files under ``top``, their names beginning with ``start``."""
    waiting = [(top, start)]
    left = WIDEST if start else -1
    while waiting and left:
        folder, prefix = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not left:
                        faults.append((top, f"more than {WIDEST:,} files and folders lie in it; name one that holds notes"))
                        break
                    left -= 1
                    name = entry.name
                    if name[0] == "." or (name == SETTINGS_FILE and folder == top):
                        continue
                    if name.endswith(endings):
                        # One question to the file system a file: at 10,000 files it is most of what a prompt costs.
                        try:
                            state = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # it went a moment ago; the others are still there
                            continue
                        kind = state.st_mode & _KIND
                        if kind == _REGULAR:
                            lines.append(
                                f"{prefix}{name}\0{state.st_mtime_ns} {state.st_ctime_ns} {state.st_size} {state.st_ino}"
                            )
                        elif kind != _LINK:
                            if not entry.is_dir(follow_symlinks=False):
                                faults.append((entry.path, "this is not a plain file; a memory is one JSON file"))
                            continue
                        elif not inside(top, entry.path):
                            faults.append((entry.path, "this link leads out of the memory folder; it is not followed"))
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{prefix}{name}/"))
                    elif entry.is_symlink() and os.path.isdir(entry.path) and not inside(top, entry.path):
                        faults.append((entry.path, "this link leads out of the memory folder; it is not followed"))
        except FileNotFoundError:
            if folder == top and start:
                faults.append((top, "there is no such folder; correct retrieval.roots in memory-config.json"))
        except OSError as error:
            faults.append((folder, f"the folder cannot be read: {error.strerror}"))


def load(root: str, settings: Settings) -> Loaded:
    """Return every memory of a folder, retired ones too, and a fault for every file that is none; nothing is raised.

    Of two memories with one id the first path holds, a file of the root before one of a further root.
    """
    listing = scan(root, settings)
    faults = listing.faults
    memories = list(read(root, sorted(listing.stamps), faults))
    memories.sort(key=lambda memory: memory.id)
    return Loaded(memories, faults)


def read(root: str, names: Iterable[str], faults: list[tuple[str, str]]) -> Iterable[Memory]:
    """Yield the memories in these files, named as in a listing, of each id the first; faults are added to the list."""
    taken: dict[str, str] = {}
    for name in sorted(names, key=os.path.isabs):
        path = os.path.join(root, name)
        try:
            memory = read_one(path)
        except MemoryFault as fault:
            faults.append((path, str(fault)))
            continue
        if memory.id in taken:
            faults.append((path, f"the id '{memory.id}' is that of {taken[memory.id]} too; this one is not read; change one"))
            continue
        taken[memory.id] = path
        yield memory


def read_one(path: str) -> Memory:
    """Return the memory in a file, a Markdown note included; raises MemoryFault if it holds none."""
    try:
        # Not open(): its layers cost as much as the reading.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            data = os.read(handle, _PAGE)
            while len(data) % _PAGE == 0 and data and len(data) <= LARGEST and (more := os.read(handle, LARGEST)):
                data += more
        finally:
            os.close(handle)
    except OSError as error:
        raise MemoryFault(f"the file cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise MemoryFault(f"the file is larger than {LARGEST:,} bytes; a memory is a page, move the rest into a file it names")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MemoryFault(f"the file is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    if text[:1] == "\ufeff":
        text = text[1:]
    if path.endswith(".md"):
        from .notes import from_note

        return from_note(text, path)
    try:
        record = json.loads(text)
        if text.count("[") + text.count("{") > _MANY and _deeper(record, DEEPEST):
            raise RecursionError
        return from_record(record, path)
    except MemoryFault:
        raise
    except ValueError as error:
        raise MemoryFault(f"the file is not JSON: {error}") from None
    except RecursionError:
        raise MemoryFault("the file is nested too deeply; a memory is an object of texts and lists") from None


def _deeper(value: object, most: int) -> bool:
    """True where objects and lists go deeper than ``most`` levels; told without going down by calls."""
    level = [value]
    while level and most >= 0:
        level = [
            inner
            for one in level
            if isinstance(one, list | dict)
            for inner in (one if isinstance(one, list) else one.values())
            if isinstance(inner, list | dict)
        ]
        most -= 1
    return bool(level)


def own_folder(root: str) -> str:
    """Return ``<root>/.ringtrue``, made where it is missing and kept out of git; raises OSError if that is not possible."""
    folder = os.path.join(root, OWN)
    ignore = os.path.join(folder, ".gitignore")
    if os.path.islink(folder):
        raise OSError(f"{folder} is a link; what is made there must stay in the memory folder")
    if not os.path.exists(ignore):
        os.makedirs(folder, exist_ok=True)
        _put(ignore, b"*\n")
    return folder


class locked:
    """Hold the lock of a memory folder for a change that reads before it writes: ``with locked(root): …``.

    Others wait; a process that dies lets go of it. Raises OSError if the folder cannot be written.
    """

    __slots__ = ("_handle", "_root")

    def __init__(self, root: str) -> None:
        self._root, self._handle = root, -1

    def __enter__(self) -> None:
        path, also = os.path.join(own_folder(self._root), "lock"), getattr(os, "O_NOFOLLOW", 0)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | also, 0o666)
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            msvcrt.locking(self._handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(self._handle, fcntl.LOCK_EX)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.close(self._handle)


def category_of_folder(name: str) -> str:
    """Return the category that a folder is named after; empty if it is none.

    >>> category_of_folder("decisions"), category_of_folder("tech-debt"), category_of_folder("auth")
    ('decision', 'tech_debt', '')
    """
    plain = name.lower().replace("-", "_")
    singular = "session_summary" if plain in ("sessions", "session_summaries") else plain.removesuffix("s")
    return next((one for one in (plain, singular) if one in CATEGORIES), "")


def path_of(root: str, memory: Memory) -> str:
    """Return where a memory is written: its own file if it has one in this root, else ``<category>/<id>.json``.

    A folder of the category that is there already under another name, such as ``decisions``, is used.
    """
    if memory.path and memory.path.endswith(".json") and inside(root, memory.path):
        return memory.path
    folder = os.path.join(root, memory.category)
    if not os.path.isdir(folder) and os.path.isdir(root):
        same = (name for name in sorted(os.listdir(root)) if category_of_folder(name) == memory.category)
        folder = next((path for name in same if os.path.isdir(path := os.path.join(root, name))), folder)
    return os.path.join(folder, f"{memory.id}.json")


def write(root: str, memory: Memory, *, new: bool = False) -> str:
    """Write a memory as one whole file and return its path; whoever reads sees the old file or the new one, never a mixture.

    With ``new``, a file that is there already stays and MemoryFault is raised, however many write at the same moment. It is
    also raised for an id beyond the limits, for a title beyond them and for a secret unless the file has it already, for a
    place outside the root, and for a memory of another source. OSError passes through where the folder cannot be written.
    """
    if memory.source != "memory":
        raise MemoryFault(f"'{memory.id}' is a note of another source and is only read; import it to change it")
    path = path_of(root, memory)
    if not memory.path:
        _check_id(memory)
    _check_title(memory, path)
    if memory.category not in CATEGORIES:
        raise MemoryFault(f"category is {memory.category!r}; write one of {', '.join(CATEGORIES)}")
    folder = os.path.dirname(path)
    if not inside(root, folder):
        raise MemoryFault(f"{folder} leads out of the memory folder {root}; nothing was written")
    record = as_record(memory)
    text = json.dumps(record, ensure_ascii=False, indent=2)
    _refuse_secrets(record, text, path)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8, but it has an escape
        data = json.dumps(record, indent=2).encode("ascii")
    os.makedirs(folder, exist_ok=True)
    if not _put(path, data + b"\n", new=new):
        raise MemoryFault(f"there is a memory '{memory.id}' already, in {path}; choose another id or edit that one")
    return path


def find(root: str, memory_id: str) -> Memory | None:
    """Return the memory of the root with this id, or None."""
    from .settings import Settings

    names = sorted(scan(root, Settings()).stamps)
    likely = f"/{memory_id}.json"
    # The file is nearly always called like its memory; only where none is, all are read.
    for group in ([name for name in names if f"/{name}".endswith(likely)], names):
        for memory in read(root, group, []):
            if memory.id == memory_id:
                return memory
    return None


def remove(root: str, memory: Memory) -> None:
    """Delete the file of a memory; only for what somebody asked to be deleted. Raises MemoryFault outside the root."""
    if memory.source != "memory" or not memory.path or not inside(root, memory.path):
        raise MemoryFault(f"'{memory.id}' has no file in {root}; nothing was deleted")
    os.unlink(memory.path)
    _settle(os.path.dirname(memory.path))


def _check_id(memory: Memory) -> None:
    parts = memory.id.split("-")
    if len(memory.id) > ID_LIMIT or not all(part.isascii() and part.isalnum() and part == part.lower() for part in parts):
        raise MemoryFault(f"id is {memory.id!r:.100}; write small letters, digits and '-', at most {ID_LIMIT}")


def _check_title(memory: Memory, path: str) -> None:
    if memory.title.strip() and len(memory.title) <= TITLE_LIMIT:
        return
    try:
        # Retiring a memory must not fail on the title that somebody gave it by hand; doctor reports that.
        same = bool(memory.path) and read_one(path).title == memory.title
    except MemoryFault:
        same = False
    if not same:
        raise MemoryFault(f"title has {len(memory.title)} characters; write 1 to {TITLE_LIMIT}")


def _refuse_secrets(record: Mapping[str, Any], text: str, path: str) -> None:
    secrets = find_secrets(text)
    if not secrets:
        return
    try:
        before = read_plain(path, LARGEST).decode("utf-8")
    except (OSError, ValueError):
        before = ""
    # Retiring a memory must not fail on what it holds already; doctor reports that.
    fresh = [(kind, text[start:end]) for kind, start, end in secrets if text[start:end] not in before]
    if fresh:
        kind, value = fresh[0]
        place = _place_of(value, record, "") or "the memory"
        raise MemoryFault(f"{place} holds a {kind}; take it out and name the place where it is kept instead")


def _place_of(written: str, value: Any, field: str) -> str:
    """Return the field whose text, as it is written into the file, holds something; empty if none alone does."""
    if isinstance(value, dict):
        inner = [(f"{field}.{name}" if field else str(name), item) for name, item in value.items()]
    elif isinstance(value, list | tuple):
        inner = [(f"{field}[{place}]", item) for place, item in enumerate(value)]
    else:
        return field if isinstance(value, str) and written in json.dumps(value, ensure_ascii=False) else ""
    return next((found for name, item in inner if (found := _place_of(written, item, name))), "")


def _put(path: str, data: bytes, *, new: bool = False) -> bool:
    """Write a whole file beside its place and move it there; False where ``new`` and the place is taken."""
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name[:40]}.{os.getpid()}.{os.urandom(6).hex()}.tmp")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        if new:
            try:
                os.link(aside, path)  # unlike a rename it does not replace
            except FileExistsError:
                return False
        else:
            os.replace(aside, path)
            aside = ""
    finally:
        if aside:
            os.unlink(aside)
    _settle(folder)
    return True


def _settle(folder: str) -> None:
    """Make the names of a folder last through a power cut, where the system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
