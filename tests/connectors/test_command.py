"""Command with real programs: answers line by line, ends them in time, and leaves no process behind."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ringtrue.errors import BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.command import Command
from ringtrue.testing.retrievers import ConnectorSuite, NotPossible
from ringtrue.traffic import marked

SECRET = "key-77aa31"
SEARCH = """
import json, os, sys
DOCUMENTS = {"d1": "pool pool roof", "d2": "pool children", "d3": "indoor pool", "d4": "wifi"}
for line in sys.stdin:
    asked = json.loads(line)
    scores = {doc: words.split().count(asked["text"]) for doc, words in DOCUMENTS.items()}
    best = sorted((doc for doc in scores if scores[doc]), key=lambda doc: -scores[doc])
    hits = [{"doc_id": doc, "score": scores[doc]} for doc in best[: asked["k"]]]
    print(json.dumps({"hits": hits, "process": os.getpid(), "scope": asked["scope"]}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Any]:
    """Makes commands out of Python code, and sees to it at the end that nothing of them runs."""
    made: list[Command] = []

    def make(code: str, **settings: Any) -> Command:
        path = tmp_path / f"program{len(made)}.py"
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        made.append(Command(**{"command": [sys.executable, str(path)], "retries": 0, "timeout": 20.0, **settings}))
        return made[-1]

    yield make
    for command in made:
        command.close()
    assert not running(tmp_path), "a program outlived its connector"


def running(folder: Path) -> list[str]:
    """Return the command lines of processes that were started from a folder."""
    found = subprocess.run(["ps", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in found if f"{folder}/" in line and not line.startswith("Z")]


def wait_until_gone(process: int) -> bool:
    """True once a process has ended, False if it still runs after 30 s; a zombie counts as ended."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        stat = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
        if not stat or stat.startswith("Z"):
            return True
        time.sleep(0.02)
    return False


class TestCommandKeepsTheProtocol(ConnectorSuite):
    SECRETS: ClassVar[tuple[str, ...]] = (SECRET,)

    @pytest.fixture(autouse=True)
    def _programs(self, program: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("SHOP_KEY", SECRET)
        self.folder = tmp_path
        self.program = lambda code, **settings: program(code, env=["SHOP_KEY"], **settings)

    def make(self) -> Command:
        return self.program(SEARCH)

    def wrong_credentials(self) -> Command:
        raise NotPossible("the program has credentials of its own or none; it reports what is wrong as an error")

    def nobody_there(self) -> Command:
        return self.program("", command=[str(self.folder / "no-such-program")])

    def gone_mid_query(self) -> Command:
        return self.program(GONE)

    def too_slow(self) -> Command:
        return self.program("import time; time.sleep(60)", timeout=0.3)

    def malformed(self) -> Command:
        return self.program("import sys; sys.stdin.readline(); print('I found 3 documents!', flush=True)")

    def twice(self) -> Command:
        return self.program("""import sys; sys.stdin.readline(); print('{"hits": ["d1", "d2", "d1"]}', flush=True)""")

    def few(self) -> tuple[Command, str, int]:
        return self.make(), "pool", 3

    def fails_once(self) -> Command:
        mark = self.folder / "was-here"
        code = f"""
            import pathlib, sys
            sys.stdin.readline()
            if not pathlib.Path({str(mark)!r}).exists():
                pathlib.Path({str(mark)!r}).touch()
                sys.exit(3)
            print('{{"hits": ["d1"]}}', flush=True)
        """
        return self.program(code, retries=1)


GONE = """
import os, sys
sys.stdin.readline()
sys.stderr.write("cannot log in with " + os.environ["SHOP_KEY"])
sys.exit(7)
"""


def test_a_connection_is_made_from_a_table_of_settings(tmp_path: Path) -> None:
    (tmp_path / "search.py").write_text(SEARCH, encoding="utf-8")
    settings = {"kind": "command", "command": [sys.executable, "search.py"], "folder": str(tmp_path)}
    mine = connect(settings, name="mine")
    assert isinstance(mine, Command)
    found = mine.search("pool", k=2)
    assert [(hit.doc_id, hit.score) for hit in found] == [("d1", 2.0), ("d2", 1.0)]
    assert found[0].channels == {"mine": 1}
    mine.close()


WHO = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"hits": [str(os.getpid()), json.loads(line)["text"]]}), flush=True)
"""


def test_one_process_answers_many_questions(program: Any) -> None:
    resident = program(WHO)
    assert len({resident.search(f"t{n}")[0].doc_id for n in range(5)}) == 1


def test_a_program_that_ends_with_its_answer_is_started_for_the_next_question(program: Any) -> None:
    once = program(WHO.replace("for line in sys.stdin", "for line in [sys.stdin.readline()]"), retries=2)
    assert len({once.search(f"t{n}")[0].doc_id for n in range(3)}) == 3


def test_many_threads_share_one_resident_program_and_get_their_own_answers(program: Any) -> None:
    shared = program(WHO)
    got: dict[str, str] = {}

    def ask(text: str) -> None:
        got[text] = shared.search(text)[1].doc_id

    threads = [threading.Thread(target=ask, args=(f"t{number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {text: text for text in got}
    assert len(got) == 12


def test_the_request_is_one_json_line_with_text_k_and_scope(program: Any, tmp_path: Path) -> None:
    code = f"""
        import sys
        open({str(tmp_path / "got")!r}, "w").write(sys.stdin.readline())
        print('{{"hits": []}}', flush=True)
    """
    assert program(code).search('two\nlines "and" a ü', k=4, scope={"city": "Rome"}) == []
    written = (tmp_path / "got").read_text()
    assert written.endswith("\n")
    assert json.loads(written) == {"text": 'two\nlines "and" a ü', "k": 4, "scope": {"city": "Rome"}}


def test_the_program_sees_only_what_it_needs_of_the_environment(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    monkeypatch.setenv("OTHER_SECRET", "do-not-show")
    monkeypatch.setenv("HOME", "/somewhere")
    code = "import os, sys, json; sys.stdin.readline(); print(json.dumps({'hits': sorted(os.environ)}), flush=True)"
    seen = {hit.doc_id for hit in program(code, env=["SHOP_KEY"]).search("pool", k=100)}
    assert {"PATH", "HOME", "SHOP_KEY"} <= seen
    assert seen <= {"PATH", "HOME", "LANG", "SHOP_KEY", "LC_CTYPE"}  # Python sets LC_CTYPE for itself


def test_the_program_learns_that_an_evaluation_asks(program: Any) -> None:
    code = "import os, sys, json; sys.stdin.readline(); print(json.dumps({'hits': [os.environ[NAME]]}), flush=True)"
    code = code.replace("NAME", "'RINGTRUE_TRAFFIC'")
    with marked("evaluation"):
        assert [hit.doc_id for hit in program(code).search("pool", k=1)] == ["evaluation"]


def test_a_resident_program_of_an_evaluation_does_not_answer_users(program: Any) -> None:
    mine = program("""
        import json, os, sys
        for line in sys.stdin:
            print(json.dumps({"hits": [os.environ.get("RINGTRUE_TRAFFIC", "user")]}), flush=True)
    """)
    with marked("evaluation"):
        assert mine.search("pool", k=1)[0].doc_id == "evaluation"
    assert mine.search("pool", k=1)[0].doc_id == "user"
    with marked("evaluation"):
        assert mine.search("pool", k=1)[0].doc_id == "evaluation"


def test_a_variable_that_is_not_set_is_named(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    with pytest.raises(MissingInput, match="no SHOP_KEY"):
        program(SEARCH, env=["SHOP_KEY"]).search("pool")


def test_no_shell_reads_the_command(program: Any, tmp_path: Path) -> None:
    code = "import sys, json; sys.stdin.readline(); print(json.dumps({'hits': [sys.argv[1]]}), flush=True)"
    mine = program(code)
    hostile = Command(command=[*mine.command, f"$(touch {tmp_path}/x); *"])
    assert hostile.search("pool")[0].doc_id == f"$(touch {tmp_path}/x); *"
    assert not (tmp_path / "x").exists()


def test_an_error_of_the_program_is_a_bad_answer_with_its_words(program: Any) -> None:
    code = """import sys; [print('{"error": "index is\\\\n being built"}', flush=True) for line in sys.stdin]"""
    with pytest.raises(BadAnswer, match="command says: index is being built; "):
        program(code).search("pool")


@pytest.mark.parametrize(
    "line",
    [
        """json.dumps({"error": "token " + key + " expired"})""",
        """'token ' + key + ' expired'""",
        """'x' * 52 + key""",
        """json.dumps("token " + key)""",
        """json.dumps({key: 1, "x": 2})""",
        """json.dumps({"hits": [{"token": key}]})""",
        """json.dumps({"hits": key})""",
        """json.dumps({"hits": [["d1", key]]})""",
        """'{"error": ' + json.dumps(key)""",
    ],
    ids=["error", "no-json", "cut", "no-object", "keys", "hit", "no-list", "score", "half-json"],
)
def test_nothing_the_program_writes_shows_what_it_was_told_in_secret_r7(
    program: Any, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "sup3rs3cret")
    code = f"import json, os, sys; sys.stdin.readline(); key = os.environ['SHOP_KEY']; print({line}, flush=True)"
    with pytest.raises(BadAnswer) as caught:
        program(code, env=["SHOP_KEY"], name="leak").search("pool")
    assert "sup3rs" not in str(caught.value)
    assert str(caught.value).startswith("leak")


@pytest.mark.parametrize("key", ['pä"ss\\w/ord', "two words", "line\nend"], ids=range(3))
def test_a_secret_is_taken_out_however_json_spells_it(program: Any, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", key)
    for line in ("""{"error": "no " + key + "!"}""", """["no " + key + "!"]"""):
        code = (
            f"import json, os, sys; sys.stdin.readline(); key = os.environ['SHOP_KEY']; print(json.dumps({line}), flush=True)"
        )
        with pytest.raises(BadAnswer, match="no …!"):
            program(code, env=["SHOP_KEY"]).search("pool")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1, 2]", r"wrote \[1, 2\]; write an object"),
        ('{"results": []}', "an object with 'results' but no list 'hits'"),
        ('{"hits": null}', "no list 'hits'"),
        ("[" * 100_000, "is not JSON"),
        ('{"hits": [{"name": "d1"}]}', "hit 1 is"),
        ("", "is not JSON|before it answered"),
    ],
    ids=range(6),
)
def test_a_line_of_another_shape_is_a_bad_answer(program: Any, line: str, said: str) -> None:
    code = f"import sys; sys.stdin.readline(); print({line!r}, flush=True)"
    with pytest.raises((BadAnswer, Unreachable), match=said):
        program(code).search("pool")


def test_a_program_that_dies_tells_how_and_the_end_of_its_complaints(program: Any) -> None:
    code = "import sys; sys.stdin.readline(); print('x' * 9000 + 'no index at /data', file=sys.stderr); sys.exit(4)"
    with pytest.raises(Unreachable, match=r"ended with exit code 4 before it answered \(x+no index at /data\); "):
        program(code).search("pool")
    with pytest.raises(Unreachable, match="ended with signal 9"):
        program("import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 9)").search("pool")


def test_a_second_line_is_never_taken_for_the_next_answer(program: Any) -> None:
    code = """
        import json, sys
        for line in sys.stdin:
            print(json.dumps({"hits": [json.loads(line)["text"]]}) + "\\n" + json.dumps({"hits": ["stale"]}), flush=True)
    """
    mine = program(code)
    for text in ("one", "two"):
        with pytest.raises(BadAnswer, match="more than one line"):
            mine.search(text)


def test_a_line_that_comes_late_is_seen_before_the_next_question(program: Any, tmp_path: Path) -> None:
    late = tmp_path / "late"
    code = f"""
        import json, sys, time
        for line in sys.stdin:
            print(json.dumps({{"hits": [json.loads(line)["text"]]}}), flush=True)
            time.sleep(0.1)
            print(json.dumps({{"hits": ["stale"]}}), flush=True)
            open({str(late)!r}, "w").close()
    """
    mine = program(code)
    assert mine.search("one")[0].doc_id == "one"
    end = time.monotonic() + 60
    while not late.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    with pytest.raises(BadAnswer, match="more than one line"):
        mine.search("two")


def test_a_resident_program_that_died_between_two_questions_is_started_again(program: Any) -> None:
    mine = program(WHO)
    first = int(mine.search("a")[0].doc_id)
    os.kill(first, 9)
    assert wait_until_gone(first)
    assert mine.search("b")[1].doc_id == "b"


CHILD = """
import json, os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)", {mark!r}])
open({note!r}, "w").write(str(child.pid))
for line in sys.stdin:
    {what}
"""


@pytest.mark.parametrize(
    "what", ["time.sleep(300)", "sys.exit(3)", "print('{\"hits\": []}', flush=True)"], ids=["slow", "dies", "fine"]
)
def test_what_the_program_started_ends_with_it(program: Any, tmp_path: Path, what: str) -> None:
    note = tmp_path / "child"
    limit = 5.0 if "sleep" in what else 30.0
    mine = program(CHILD.format(mark=f"{tmp_path}/mark", note=str(note), what=what), timeout=limit)
    start = time.monotonic()
    with contextlib.suppress(TimedOut, Unreachable):
        mine.search("pool")
    assert time.monotonic() - start < 25, "a child that holds the output open was waited for"
    mine.close()
    assert wait_until_gone(int(note.read_text()))


def test_a_program_that_does_not_read_its_question_times_out(program: Any) -> None:
    start = time.monotonic()
    with pytest.raises(TimedOut, match=r"0\.3 s"):
        program("import time; time.sleep(60)", timeout=0.3).search("pool " * 100_000)
    assert time.monotonic() - start < 15


def test_a_flood_of_complaints_blocks_nobody(program: Any) -> None:
    code = """
        import sys
        for line in sys.stdin:
            sys.stderr.write("w" * 1_000_000)
            sys.stderr.flush()
            print('{"hits": ["d1"]}', flush=True)
    """
    assert program(code).search("pool")[0].doc_id == "d1"


def test_an_answer_without_end_is_cut(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringtrue.retrieve.connectors.command.LARGEST", 1_000_000)
    with pytest.raises(BadAnswer, match="more than 1 MB"):
        program("import sys\nsys.stdin.readline()\nwhile True: sys.stdout.write('x' * 10_000)").search("pool")


def test_a_forgotten_connector_ends_its_program(tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text(WHO, encoding="utf-8")
    forgotten = Command(command=[sys.executable, str(tmp_path / "who.py")])
    process = int(forgotten.search("a")[0].doc_id)
    del forgotten
    gc.collect()
    assert wait_until_gone(process)


@pytest.mark.parametrize("end", ["", "os._exit(1)", "os.kill(os.getpid(), 9)"], ids=["exit", "hard-exit", "killed"])
def test_no_program_outlives_the_python_that_asked(tmp_path: Path, end: str) -> None:
    (tmp_path / "who.py").write_text(WHO, encoding="utf-8")
    code = f"""
import os
from ringtrue.retrieve.connectors.command import Command
kept = Command(command=[{sys.executable!r}, {str(tmp_path / "who.py")!r}])
print(kept.search("a")[0].doc_id, flush=True)
{end}
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert wait_until_gone(int(ran.stdout))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_asks_a_program_of_its_own_and_leaves_its_parents_alone(tmp_path: Path) -> None:
    (tmp_path / "who.py").write_text(WHO, encoding="utf-8")
    code = f"""
import os, sys
from ringtrue.retrieve.connectors.command import Command
kept = Command(command=[{sys.executable!r}, {str(tmp_path / "who.py")!r}])
first = kept.search("a")[0].doc_id
child = os.fork()
if child == 0:
    sys.exit(0 if kept.search("b")[0].doc_id != first else 9)
status = os.waitpid(child, 0)[1]
print(status, kept.search("c")[0].doc_id == first, kept.search("c")[1].doc_id)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["0", "True", "c"], ran.stderr
    assert not running(tmp_path)


def test_settings_travel_to_another_process(program: Any) -> None:
    mine = program(WHO)
    mine.search("a")
    copy = pickle.loads(pickle.dumps(mine))
    assert copy == mine
    assert copy.search("b")[0].doc_id != mine.search("b")[0].doc_id
    copy.close()


def test_repr_shows_no_argument() -> None:
    assert "hidden-arg" not in repr(Command(command=["search", "--key", "hidden-arg"]))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"command": "python search.py"}, "invalid command; write a list of texts"),
        ({"command": []}, "command is empty"),
        ({"command": [" "]}, "command is empty"),
        ({"command": ["python", 3]}, "invalid command; write a list of texts"),
        ({"env": "SHOP_KEY"}, "invalid env='SHOP_KEY'; write a list of texts"),
        ({"folder": "/no/such/folder"}, "no folder /no/such/folder"),
    ],
    ids=range(6),
)
def test_wrong_settings_are_named_with_their_cure(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Command(**{"command": ["python", "search.py"], **settings})


def test_what_cannot_be_started_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "no-program").write_text("hello", encoding="utf-8")
    for first, why in (
        (f"{tmp_path}/missing", "no such file"),
        (f"{tmp_path}/no-program", "permission denied"),
        ("a\0b", "usable"),
    ):
        with pytest.raises(Unreachable, match=f"cannot be started .*{why}"):
            Command(command=[first], retries=0).search("pool")


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples/connect/with_command.py"
    ran = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "sea-view" in ran.stdout
