"""The journal: written by many at once, read whatever happened to it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ringtrue.memory.hook.journal import TAIL, events, latest, record

OCTOBER, NOVEMBER = 1_790_900_000.0, 1_794_000_000.0


def test_events_come_back_in_the_order_they_were_written(tmp_path: Path) -> None:
    for at, name in ((OCTOBER, "prompt"), (OCTOBER + 1, "read"), (NOVEMBER, "reference")):
        assert record(str(tmp_path), {"event": name, "at": at})
    assert [event["event"] for event in events(str(tmp_path))] == ["prompt", "read", "reference"]
    assert [event["event"] for event in events(str(tmp_path), since=OCTOBER + 1)] == ["read", "reference"]
    assert [event["event"] for event in latest(str(tmp_path))] == ["prompt", "read", "reference"]
    assert sorted(path.name for path in (tmp_path / ".ringtrue/journal").iterdir()) == ["2026-10.jsonl", "2026-11.jsonl"]


def test_the_journal_stays_out_of_git(tmp_path: Path) -> None:
    record(str(tmp_path), {"event": "prompt", "at": OCTOBER})
    assert (tmp_path / ".ringtrue/.gitignore").read_text() == "*\n"


def test_a_torn_line_costs_itself_and_nothing_after_it(tmp_path: Path) -> None:
    record(str(tmp_path), {"event": "prompt", "at": OCTOBER})
    (path,) = (tmp_path / ".ringtrue/journal").iterdir()
    with path.open("ab") as file:
        file.write(b'{"event":"prompt","at":17909')  # a machine that lost power
    assert len(list(events(str(tmp_path)))) == 1
    record(str(tmp_path), {"event": "read", "at": OCTOBER})
    assert [event["event"] for event in events(str(tmp_path))] == ["prompt", "read"]


def test_lines_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".ringtrue/journal"
    folder.mkdir(parents=True)
    (folder / "2026-10.jsonl").write_bytes(
        b'[]\n\n"x"\n{"event":1,"at":1}\n{"event":"read","at":"now"}\n\xff\xfe\n{"event":"read","at":2}\n'
    )
    assert [event["at"] for event in events(str(tmp_path))] == [event["at"] for event in latest(str(tmp_path))] == [2]


def test_writers_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    def write(place: int) -> bool:
        return record(str(tmp_path), {"event": "prompt", "at": OCTOBER, "place": place, "padding": "x" * 2000})

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(write, range(200)))
    assert sorted(event["place"] for event in events(str(tmp_path))) == list(range(200))


def test_the_last_events_are_read_from_the_end(tmp_path: Path) -> None:
    for place in range(300):
        record(str(tmp_path), {"event": "prompt", "at": OCTOBER, "place": place, "padding": "x" * 1000})
    found = [event["place"] for event in latest(str(tmp_path))]
    assert found == list(range(300 - len(found), 300))
    assert 200 < len(found) <= TAIL // 1000


def test_a_journal_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not record(str(tmp_path / "file"), {"event": "prompt", "at": OCTOBER})
    assert not record(str(tmp_path), {"event": "prompt"})
    assert not record(str(tmp_path), {"event": "prompt", "at": OCTOBER, "what": object()})
    assert list(events(str(tmp_path / "file"))) == latest(str(tmp_path / "nowhere")) == []


def test_lone_surrogates_are_written_as_escapes(tmp_path: Path) -> None:
    assert record(str(tmp_path), {"event": "prompt", "at": OCTOBER, "query": "half \ud83d"})
    assert [event["query"] for event in events(str(tmp_path))] == ["half \ud83d"]
