from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringtrue.memory.hook.settings import AutoInject, OnDemand, Settings, TranscriptContext, from_section, read_settings


def written(tmp_path: Path, value: Any) -> tuple[Settings, list[str]]:
    (tmp_path / "memory-config.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return read_settings(str(tmp_path))


def test_the_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    settings, faults = read_settings(str(tmp_path))
    assert (settings, faults) == (Settings(), [])
    assert settings.enabled
    assert (settings.match_strategy, settings.threshold, settings.hint) == ("hybrid", "null", False)
    assert (settings.column_weights, settings.body_max_chars, settings.query_max_tokens) == ((5.0, 3.0, 1.0), 2000, 15)
    assert settings.auto_inject == AutoInject(min_score_abs=0.5, relative_cutoff=0.6, max_results=3)
    assert settings.search == OnDemand(min_score_abs=0.1, max_results=10, query_max_tokens=20)
    assert settings.transcript_context == TranscriptContext(enabled=True, max_turns=3, tail_bytes=8192)
    assert settings.retention_days == {"session_summary": 90}
    assert not settings.related_files_boost


def test_every_setting_can_be_set(tmp_path: Path) -> None:
    section = {
        "enabled": False,
        "match_strategy": "hybrid",
        "threshold": "fixed",
        "hint": True,
        "engine": {"column_weights": {"title": 7, "body": 2}, "body_max_chars": 500, "query_max_tokens": 9},
        "auto_inject": {"min_score_abs": 1, "relative_cutoff": 0.8, "max_results": 2},
        "search": {"min_score_abs": 0, "max_results": 20, "query_max_tokens": 30},
        "transcript_context": {"enabled": False, "max_turns": 2, "tail_bytes": 4096},
        "retention_days": {"runbook": 365},
        "related_files_boost": True,
        "roots": ["../notes", "/elsewhere"],
    }
    settings, faults = written(tmp_path, {"retrieval": section, "of another tool": 1})
    assert faults == []
    assert (settings.enabled, settings.match_strategy, settings.threshold, settings.hint) == (False, "hybrid", "fixed", True)
    assert (settings.column_weights, settings.body_max_chars, settings.query_max_tokens) == ((7.0, 3.0, 2.0), 500, 9)
    assert settings.auto_inject == AutoInject(min_score_abs=1.0, relative_cutoff=0.8, max_results=2)
    assert settings.search == OnDemand(min_score_abs=0.0, max_results=20, query_max_tokens=30)
    assert settings.transcript_context == TranscriptContext(enabled=False, max_turns=2, tail_bytes=4096)
    assert settings.retention_days == {"session_summary": 90, "runbook": 365}
    assert settings.related_files_boost
    assert settings.roots == (str(tmp_path / ".." / "notes"), "/elsewhere")


def test_max_inject_is_the_old_name_and_the_new_one_wins() -> None:
    assert from_section({"max_inject": 1})[0].auto_inject.max_results == 1
    both = {"max_inject": 1, "auto_inject": {"max_results": 2, "relative_cutoff": 0.9}}
    assert from_section(both)[0].auto_inject.max_results == 2
    kept = from_section({"max_inject": 1, "auto_inject": {"relative_cutoff": 0.9}})[0].auto_inject
    assert (kept.max_results, kept.relative_cutoff) == (1, 0.9)


@pytest.mark.parametrize(
    ("section", "place"),
    [
        ({"match_strategy": "vectors"}, "retrieval.match_strategy"),
        ({"enabled": "no"}, "retrieval.enabled"),
        ({"engine": {"column_weights": [0, 0, 0]}}, "retrieval.engine.column_weights"),
        ({"engine": {"body_max_chars": True}}, "retrieval.engine.body_max_chars"),
        ({"engine": 5}, "retrieval.engine"),
        ({"auto_inject": {"relative_cutoff": 1.5}}, "retrieval.auto_inject.relative_cutoff"),
        ({"max_inject": -1}, "retrieval.max_inject"),
        ({"retention_days": {"desicion": 3}}, "retrieval.retention_days"),
        ({"roots": "notes"}, "retrieval.roots"),
        ({"thresold": "null"}, "retrieval.thresold"),
    ],
)
def test_a_bad_value_leaves_the_default_and_says_where_it_is(section: dict[str, Any], place: str) -> None:
    settings, faults = from_section(section)
    assert settings == Settings()
    assert len(faults) == 1
    assert faults[0].startswith(place)


@pytest.mark.parametrize("text", ["{", "[]", '{"retrieval": []}', "\x00", "[" * 100_000])
def test_a_file_that_is_no_settings_leaves_the_defaults(tmp_path: Path, text: str) -> None:
    settings, faults = written(tmp_path, text)
    assert settings == Settings()
    assert len(faults) == 1


def test_an_unknown_name_in_code_is_an_error() -> None:
    with pytest.raises(TypeError, match="no setting 'hints'"):
        Settings(hints=True)
