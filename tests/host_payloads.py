"""What real hosts gave a hook on stdin, from ``fixtures/hosts``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HOSTS = Path(__file__).parent / "fixtures" / "hosts"
RECORDED = sorted(path.stem for path in HOSTS.glob("*.json") if path.stem not in ("legacy-user-prompt", "model-messages"))
REDIS_PROMPT = "the broker redis is full and refuses new messages, what now?"


def host_payload(name: str, **more: Any) -> dict[str, Any]:
    """Return a payload, of one session and one prompt whichever it was recorded in, and about Redis if it is a prompt."""
    record = json.loads((HOSTS / f"{name}.json").read_text(encoding="utf-8"))
    payload: dict[str, Any] = {**record.get("stdin", record), "session_id": "6f0c1c9e-2f55-4b0e-9d0c-6b2f6f1d7a10"}
    payload.pop("_provenance", None)
    for key in ("prompt_id", "turn_id"):
        if key in payload:
            payload[key] = "0b9c7f5a-8b1e-4d53-9a3e-3c1f3a7d2e44"
    if payload["hook_event_name"] == "UserPromptSubmit":
        payload["user_prompt" if "user_prompt" in payload else "prompt"] = REDIS_PROMPT
    return {**payload, **more}
