"""A hook is a new process for every prompt: what it imports is its budget, and all that it may need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ringtrue.memory.hook

FOLDER = Path(ringtrue.memory.hook.__file__).parent
TELL = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
for name in sys.argv[2:]:
    __import__("hook." + name)
print(*sorted(set(sys.modules) - before), sep="\\n")
"""


def loaded() -> set[str]:
    names = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "__main__"))
    command = [sys.executable, "-I", "-S", "-c", TELL, str(FOLDER.parent), *names]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_every_module_of_the_hook_needs_nothing_but_the_standard_library_and_none_of_its_slow_parts() -> None:
    modules = loaded()
    others = {name for name in modules if name.partition(".")[0] not in {*sys.stdlib_module_names, "hook"}}
    assert not others, "the plugin runs without any package"
    assert not modules & {"typing", "dataclasses", "pathlib", "inspect"}, "each costs a hook 5 to 15 ms"
    assert {"hook.index", "hook.files", "hook.guard"} <= modules


def test_a_copied_folder_searches_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "decision").mkdir()
    record = {"id": "jwt", "category": "decision", "title": "Sessions are JWT", "content": {"decision": "no server state"}}
    (tmp_path / "decision" / "jwt.json").write_text(json.dumps(record))
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from hook.cache import open_index
from hook.settings import Settings
print([found.memory.id for found in open_index(sys.argv[2], Settings()).search("session state", k=3, now=0.0)])
"""
    command = [sys.executable, "-I", "-S", "-c", code, str(FOLDER.parent), str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "['jwt']"
