"""The OpenAPI document and a running server say the same (schemathesis, every check), whatever is sent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from service_process import serving_alone

EXAMPLES = os.environ.get("RINGTRUE_SCHEMA_EXAMPLES", "3")
"""Random requests of each operation, besides the examples of the document and the edges of every field."""
SEED = "7"
STREAMS = "/events$"
"""Left out: a stream of events has no end to wait for; tests/unit/service/test_jobs_route.py reads it."""
REPLACED = "positive_data_acceptance"
"""In its place runs ``schema_valid_data_acceptance`` of rest_schema_checks.py, which knows the rules no schema can state."""


def test_every_answer_is_as_the_document_says(tmp_path: Path) -> None:
    with serving_alone(tmp_path, keys=True, at_once=20) as server:
        # The server makes its document when it is first asked for; schemathesis waits ten seconds for it and no longer.
        with urlopen(f"{server.url}/v1/openapi.json", timeout=120) as answer:
            answer.read()
        command = [
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{server.url}/v1/openapi.json",
            "--header", f"Authorization: Bearer {server.key('admin')}",
            "--phases", "examples,coverage,fuzzing,stateful", "--checks", "all", "--exclude-checks", REPLACED,
            "--exclude-path-regex", STREAMS, "--max-examples", EXAMPLES, "--seed", SEED,
            "--generation-database", "none", "--request-timeout", "60", "--warnings", "off", "--no-color",
        ]  # fmt: skip
        hooks = {"SCHEMATHESIS_HOOKS": "rest_schema_checks", "PYTHONPATH": str(Path(__file__).parents[1]), "COLUMNS": "200"}
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **hooks}, capture_output=True, text=True, timeout=900)
        told = server.errors.read_text(encoding="utf-8")
    print("\n".join(done.stdout.splitlines()[-25:]))
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:] + told[-3_000:]
    assert "Traceback" not in told
    operations = re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", done.stdout)
    assert operations is not None, done.stdout
    selected, known, tested = map(int, operations.groups())
    assert selected == tested == known - 1, "every operation but the stream"
    made = re.search(r"(\d+) generated", done.stdout)
    assert made is not None
    assert int(made[1]) > 2_000
