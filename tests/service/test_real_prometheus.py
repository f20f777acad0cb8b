"""A real Prometheus scrapes a real service, and its alerts fire when a key expires and when the service stops."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import yaml

from ringtrue.store import Store
from service_process import serving_alone
from tools import tool

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0
KEY_S = 20
"""Seconds after which one of the keys expires."""


class Prometheus:
    """A running Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url

    def alerts(self) -> set[tuple[str, str]]:
        """Return the alerts that fire: their names and jobs."""
        with urlopen(f"{self.url}/api/v1/alerts", timeout=WAIT_S) as answer:
            found = json.load(answer)["data"]["alerts"]
        return {(one["labels"]["alertname"], one["labels"].get("job", "")) for one in found if one["state"] == "firing"}

    def healthy(self) -> set[str]:
        """Return the jobs whose last scrape succeeded."""
        with urlopen(f"{self.url}/api/v1/targets", timeout=WAIT_S) as answer:
            targets = json.load(answer)["data"]["activeTargets"]
        return {one["labels"]["job"] for one in targets if one["health"] == "up"}

    def wait_for(self, *wanted: tuple[str, str]) -> None:
        end = time.monotonic() + WAIT_S
        while not set(wanted) <= self.alerts():
            assert time.monotonic() < end, (wanted, self.alerts())
            time.sleep(0.2)


@contextmanager
def prometheus(folder: Path, port: int, keys: dict[str, str]) -> Iterator[Prometheus]:
    """Run Prometheus with the shipped rules, which hold after a second instead of minutes; ``keys`` are the tokens by job."""
    program = tool("prometheus")
    rules = (ROOT / "deploy" / "prometheus" / "ringtrue-alerts.yml").read_text(encoding="utf-8")
    (folder / "rules.yml").write_text(re.sub(r"\b(for|interval): \w+", r"\1: 1s", rules), encoding="utf-8")
    jobs = [
        {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}], "authorization": {"credentials": key}}
        for job, key in keys.items()
    ]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    arguments = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "prometheus.log").open("w", encoding="utf-8") as told:
        process = subprocess.Popen([program, *arguments, "--web.listen-address=127.0.0.1:0"], stderr=told, stdout=told)
    try:
        yield Prometheus(_ready(process, folder / "prometheus.log"))
    finally:
        process.kill()
        process.wait()


def _ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until Prometheus is ready; return its address."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        said = re.search(r'msg="Listening on" address=(\S+)', log.read_text())
        with contextlib.suppress(HTTPError):
            if said and urlopen(f"http://{said[1]}/-/ready", timeout=WAIT_S).status == 200:
                return f"http://{said[1]}"
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_alerts_fire_when_a_key_expires_and_when_the_service_stops(tmp_path: Path) -> None:
    with contextlib.ExitStack() as running:
        with serving_alone(tmp_path, keys=True) as server:
            now = datetime.now(UTC)
            with Store.open(server.store) as store:
                lasting = store.create_key("prometheus", ["read"], now=now, expires_at=now + timedelta(days=90))[1]
                expiring = store.create_key("old", ["read"], now=now, expires_at=now + timedelta(seconds=KEY_S))[1]
            keys = {"ringtrue": lasting, "ringtrue-old": expiring}
            watching = running.enter_context(prometheus(tmp_path, server.port, keys))
            watching.wait_for(("RingtrueScrapeKeyExpiring", "ringtrue-old"))
            watching.wait_for(("RingtrueScrapeKeyExpired", "ringtrue-old"), ("RingtrueDown", "ringtrue-old"))
            assert watching.healthy() == {"ringtrue"}
            assert ("RingtrueDown", "ringtrue") not in watching.alerts()
        watching.wait_for(("RingtrueDown", "ringtrue"), ("RingtrueAbsent", ""))
