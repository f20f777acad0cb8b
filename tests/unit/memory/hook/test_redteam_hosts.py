"""Sixty hostile memories in the messages that hosts make of them: text with the authority of a system stays data, and short."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from host_payloads import HOSTS, host_payload
from redteam.plant import Planted, check_block
from ringtrue.memory.hook.hook import main
from ringtrue.memory.hook.respond import NOTE

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "redteam" / "host_messages.json").read_text(encoding="utf-8")
)
MESSAGES = json.loads((HOSTS / "model-messages.json").read_text(encoding="utf-8"))
TITLE = "The quokka tunnel under the vineyard"
PROMPT = "how does the quokka tunnel under the vineyard get its air?"
LONGEST_POINTER = 1_200
"""Characters of one pointer: a title of 120, tags of 200, each sign of them escaped by up to six, and a path."""


def plant(case: dict[str, Any], project: Path) -> Planted:
    text, where = case["text"], case["planted"]
    memory: dict[str, Any] = {
        "schema_version": "1.0", "id": "hostile", "category": "decision", "title": TITLE, "tags": ["quokka"],
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "record_status": "active",
        "content": {"decision": "the quokka tunnel under the vineyard gets its air by a shaft"},
    }  # fmt: skip
    name = "hostile.json"
    if where == "title":
        memory["title"] = f"Quokka tunnel vineyard {text}"
    elif where == "tags":
        memory["tags"] = ["quokka", text]
    elif where == "category":
        memory["category"] = text
    elif where == "path":
        name = text.replace("/", "\u2215")  # a name of a file has no slash; this sign looks like one
    else:
        memory |= {"title": f"{TITLE} {text * 20}"[:120], "tags": ["quokka", *[text * 50] * 200]}
    here = Planted(case, project, project / "outside")
    path = here.root / "decision" / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(memory), encoding="utf-8")
    return here


def test_the_set_holds_sixty_cases_of_every_place() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) == 60
    assert {case["planted"] for case in CASES} == {"title", "tags", "path", "body", "category"}


@pytest.mark.parametrize("host", ["claude-code", "codex"])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_stored_text_stays_marked_escaped_and_short(
    case: dict[str, Any], host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    here = plant(case, tmp_path)
    payload = host_payload(f"{host}-user-prompt-submit", cwd=str(tmp_path), transcript_path="", prompt=PROMPT)
    out = io.StringIO()
    assert main([], io.StringIO(json.dumps(payload)), out, {}) == 0
    if case["planted"] == "category":  # it is not one, so the file is not a memory
        assert out.getvalue() == ""
        return
    block = json.loads(out.getvalue())["hookSpecificOutput"]["additionalContext"]
    (pointer,) = check_block(block, here, attributes={"category", "path", "tags", "confidence"})
    assert len(pointer.text or "") <= 120
    assert len(block.splitlines()) == 4
    assert len(block.splitlines()[2]) <= LONGEST_POINTER + 6 * len(str(here.root))
    # What the model is shown: the host's own words, with the block as one piece in them that nothing inside could end.
    message = json.loads(json.dumps(MESSAGES[host]).replace("CONTEXT", json.dumps(block)[1:-1]))
    shown = message["content"][0]["text"]
    around = MESSAGES[host]["content"][0]["text"].split("CONTEXT")
    assert shown == block.join(around)
    assert message.keys() == MESSAGES[host].keys()
    assert message["role"] in ("system", "developer")
    plain = unicodedata.normalize("NFKC", shown)
    assert re.findall(r"</?[\w|/ -]+", plain) == ["<memory-context source", "<memory category", "</memory", "</memory-context"]
    assert shown.count(NOTE) == 1


def test_a_forged_line_of_the_host_is_not_a_line(tmp_path: Path) -> None:
    """Every line of the block begins as ours do, whatever breaks a title holds."""
    for case in CASES:
        if case["planted"] == "title":
            here = plant(case, tmp_path / case["id"])
            payload = host_payload("claude-code-user-prompt-submit", cwd=str(here.project), transcript_path="", prompt=PROMPT)
            out = io.StringIO()
            assert main([], io.StringIO(json.dumps(payload)), out, {}) == 0
            block = json.loads(out.getvalue())["hookSpecificOutput"]["additionalContext"]
            starts = [re.match(r"</?[a-z-]+|Notes", line) for line in re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", block)]
            assert [start[0] if start else None for start in starts] == [
                "<memory-context", "Notes", "<memory", "</memory-context"
            ], case["id"]  # fmt: skip
