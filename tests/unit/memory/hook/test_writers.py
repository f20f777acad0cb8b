"""Two hundred processes on one store. They are forked from one process that has nothing else loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ringtrue.memory.hook

DRIVER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
root = sys.argv[2]
import sqlite3
from hook import cache
from hook.files import find, load, locked, write
from hook.cache import open_index
from hook.memory import Memory, MemoryFault, changed
from hook.settings import Settings
cache.PAYS_FROM = 20
TEXT = "cache " * 400

def made(name, version):
    content = {"decision": TEXT + str(version), "context": str(version)}
    return Memory(id=name, category="decision", title="cache " + name, body="", content=content)

def update(root, name, change):
    with locked(root):
        write(root, change(find(root, name)))

def writer(number):
    write(root, made(f"own-{number}", 0), new=True)
    write(root, made("shared", number))  # all replace one and the same
    update(root, "counter", lambda one: changed(one, content={"decision": one.content["decision"] + 1}))
    try:
        write(root, made("contested", number), new=True)
        return 10
    except MemoryFault:
        return 0

def reader(number):
    for _ in range(2):
        loaded = load(root, Settings())
        assert not loaded.faults, loaded.faults
        for one in loaded.memories:
            if one.id != "counter":
                assert one.content["decision"] == TEXT + one.content["context"], "torn"
        found = open_index(root, Settings()).search("cache", k=10, now=0.0)
        assert found and all(hit.memory.title.startswith("cache") for hit in found)
    return 0

write(root, made("shared", 0))
for number in range(20):
    write(root, made(f"before-{number}", 0))
write(root, Memory(id="counter", category="decision", title="counter", body="", content={"decision": 0}))
children = []
for number in range(200):
    child = os.fork()
    if not child:
        try:
            code = (reader if number % 2 else writer)(number)
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            code = 1
        os._exit(code)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print(codes.count(0), codes.count(10))
"""


def test_trap_36_two_hundred_writers_and_readers_lose_and_tear_nothing(tmp_path: Path) -> None:
    folder = Path(ringtrue.memory.hook.__file__).parent.parent
    command = [sys.executable, "-I", "-S", "-c", DRIVER, str(folder), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout == "199 1\n", "everyone ended well, and one alone made the contested memory"
    records = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "decision").iterdir()}
    assert records.keys() == {f"own-{n}" for n in range(0, 200, 2)} | {f"before-{n}" for n in range(20)} | {
        "shared",
        "contested",
        "counter",
    }, "no memory lost, nothing left lying about"
    assert records["counter"]["content"]["decision"] == 100, "no change lost"
    assert not list((tmp_path / ".ringtrue").glob("*.tmp"))
