"""`ringtrue ci` starts the service of each side from its own checkout; one address for both sides is refused."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ringtrue.ci.service import listens
from service_repository import CONNECTION, GATE, IMPROVED, REVERSED, SERVE, SERVICE, SETTINGS, TEXTS, ServiceRepository

IN_PYTHON = """
import json, os, urllib.parse, urllib.request


def find(text, k):
    question = urllib.parse.urlencode({"q": text, "k": k})
    with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['RINGTRUE_PORT']}/search?{question}") as answer:
        return [hit["id"] for hit in json.load(answer)["results"]]
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started_by_hand(repository: ServiceRepository, port: int = 0) -> Iterator[int]:
    """Run the service of the checkout, as somebody does who works on it; yields its port."""
    command = [sys.executable, "service.py", str(port)]
    with subprocess.Popen(command, cwd=repository.folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().split()[-1])
        finally:
            process.kill()


def ports_used(repository: ServiceRepository) -> list[int]:
    """The ports on which the services of head and base listened."""
    return [int(repository.log(side).split("listening on ")[1].split()[0]) for side in ("head", "base")]


def test_a_reversed_ranking_does_not_pass_against_the_server_of_the_change_itself(tmp_path) -> None:
    """Trap 45: base and head were the same running server, so every difference was 0."""
    repository = ServiceRepository.create(tmp_path / "repository")
    repository.write("service.py", REVERSED)
    with started_by_hand(repository) as port:
        repository.write("ringtrue.toml", SETTINGS + GATE + CONNECTION.replace("{port}", str(port)))
        repository.commit("a server that runs already")
        done = repository.ci("--base-ref", "HEAD")
        assert done.returncode == 3, done.stdout
        assert f"connection 'search' asks localhost:{port} on both sides" in done.stdout
        assert "serve under [ci]" in done.stdout
        allowed = repository.ci("--base-ref", "HEAD", "--shared")
    assert allowed.returncode == 0, allowed.stdout
    assert "both sides asked the same running system" in allowed.stderr


@pytest.mark.parametrize(
    ("base", "head", "code"),
    [(SERVICE, REVERSED, 1), (SERVICE, IMPROVED, 0), (IMPROVED, SERVICE, 1), (SERVICE, SERVICE, 0)],
    ids=["reversed", "improved", "worse", "unchanged"],
)
def test_the_service_of_each_side_is_started_from_its_own_checkout(tmp_path, base, head, code) -> None:
    repository = ServiceRepository.create(tmp_path / "repository", base)
    repository.write("service.py", head)
    done = repository.ci("--base-ref", "main")
    assert done.returncode == code, done.stdout + done.stderr
    assert not any(map(listens, ports_used(repository)))
    commands = [line for line in done.stderr.splitlines() if line.startswith("$ ringtrue eval")]
    assert [line.count("--no-cache") for line in commands] == [1, 1]
    for advice in ("ringtrue gate --run", "ringtrue baseline update", "Recommendations:"):
        assert advice not in done.stderr, "the gate of this job judges both sides"
    if code:
        assert "R@5 fell by" in done.stdout
    assert ("both sides gave the same answers" in done.stderr) is (base == head)


def test_answers_of_the_base_never_come_from_the_cache_of_the_change(tmp_path) -> None:
    """A user may vouch for a version, which is the same on both sides."""
    settings = SETTINGS + 'version = "index-1"\n' + GATE + SERVE + CONNECTION
    repository = ServiceRepository.create(tmp_path / "repository", settings=settings)
    repository.write("service.py", REVERSED)
    assert repository.ci("--base-ref", "main").returncode == 1


def test_a_change_that_introduces_serve_is_compared_by_its_own_settings(tmp_path) -> None:
    settings = SETTINGS + GATE + CONNECTION.replace("{port}", "8000")
    repository = ServiceRepository.create(tmp_path / "repository", settings=settings)
    repository.write("ringtrue.toml", SETTINGS + GATE + SERVE + CONNECTION)
    unchanged = repository.ci("--base-ref", "main")
    assert unchanged.returncode == 0, unchanged.stdout
    assert "the base has no [ci] serve" in unchanged.stderr
    repository.write("service.py", REVERSED)
    assert repository.ci("--base-ref", "main").returncode == 1


def test_each_side_is_started_as_its_own_settings_say(tmp_path) -> None:
    repository = ServiceRepository.create(tmp_path / "repository")
    repository.git("mv", "service.py", "moved.py")
    repository.write("moved.py", REVERSED)
    repository.write("ringtrue.toml", SETTINGS + GATE + SERVE.replace("service.py", "moved.py") + CONNECTION)
    done = repository.ci("--base-ref", "main")
    assert done.returncode == 1, done.stdout + done.stderr


def test_a_fixed_port_serves_one_side_after_the_other_but_nothing_else_may_listen_there(tmp_path) -> None:
    port = free_port()
    settings = SETTINGS + GATE + SERVE + f"port = {port}\n" + CONNECTION.replace("{port}", str(port))
    repository = ServiceRepository.create(tmp_path / "repository", settings=settings)
    repository.write("service.py", REVERSED)
    done = repository.ci("--base-ref", "main")
    assert done.returncode == 1, done.stdout + done.stderr
    assert ports_used(repository) == [port, port]
    with started_by_hand(repository, port):
        refused = repository.ci("--base-ref", "main")
    assert refused.returncode == 3
    assert f"a server already listens on port {port}" in refused.stdout


def test_without_a_base_the_service_is_started_for_the_committed_baseline(tmp_path) -> None:
    repository = ServiceRepository.create(tmp_path / "repository")
    assert repository.ci().returncode == 3, "there is no baseline yet"
    recorded = repository.ringtrue("baseline", "update", "--run", "ringtrue-out/head")
    assert recorded.returncode == 0, recorded.stderr
    assert repository.ci().returncode == 0
    repository.write("service.py", REVERSED)
    assert repository.ci().returncode == 1


def test_a_python_function_finds_the_service_of_its_side_by_the_environment(tmp_path) -> None:
    settings = SETTINGS.replace("retriever = \"connect('search')\"", 'python = "find.py:find"') + GATE + SERVE
    repository = ServiceRepository.create(tmp_path / "repository", settings=settings)
    repository.write("find.py", IN_PYTHON)
    repository.commit("a function")
    assert repository.ci("--base-ref", "main").returncode == 0
    repository.write("service.py", REVERSED)
    assert repository.ci("--base-ref", "main").returncode == 1


def test_a_connection_that_does_not_ask_the_started_service_is_refused(tmp_path) -> None:
    settings = SETTINGS + GATE + SERVE + CONNECTION.replace("{port}", "8000")
    repository = ServiceRepository.create(tmp_path / "repository", settings=settings)
    for arguments in ([], ["--base-ref", "main"]):
        done = repository.ci(*arguments)
        assert done.returncode == 3
        assert "asks localhost:8000, not the service that [ci] serve starts; write {port} in its url" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["--base-ref", "main"]], ids=["baseline", "base"])
def test_a_service_that_breaks_is_undecided_and_shows_its_log(tmp_path, arguments) -> None:
    repository = ServiceRepository.create(tmp_path / "repository")
    repository.write("service.py", "raise SystemExit('no index at /data')\n")
    done = repository.ci(*arguments)
    assert done.returncode == 3
    assert "the service ended with 1: no index at /data" in done.stdout
    assert "head-service.log | no index at /data" in done.stderr
    assert json.loads(repository.ci(*arguments, "--json").stdout)["verdict"] == "undecided"


def test_a_service_that_goes_away_while_it_is_asked_is_undecided(tmp_path) -> None:
    repository = ServiceRepository.create(tmp_path / "repository")
    repository.write(
        "service.py", SERVICE.replace("found = search(", "'camel' in asked['q'] and os._exit(7)\n        found = search(")
    )
    done = repository.ci("--base-ref", "main")
    assert done.returncode == 3
    assert "the service ended with 7: listening on" in done.stdout


def test_init_finds_how_a_running_service_is_asked_and_ci_starts_it_by_that(tmp_path) -> None:
    repository = ServiceRepository.create(tmp_path / "repository", IMPROVED)
    with started_by_hand(repository) as port:
        command = ["init", "--yes", "--overwrite", "--search", "http", "--where", f"http://127.0.0.1:{port}/search"]
        done = repository.ringtrue(
            *command, "--serve", f"exec {sys.executable} service.py {{port}}", "--question", "iron ships"
        )
        assert done.returncode == 0, done.stderr
        assert "a search with these settings works (20 documents for 'iron ships')" in done.stderr
        assert repository.ringtrue("search", "steam", "--retriever", "connect('search')", "-k", "1").stdout.count("engine") > 0
    text = (repository.folder / "ringtrue.toml").read_text()
    settings = tomllib.loads(text)
    assert settings["connections"]["search"] == {
        "kind": "http", "url": "http://127.0.0.1:{port}/search", "port": port, "params": {"q": "{text}", "k": "{k}"},
        "hits": "results", "id": "id", "score": "", "text": "text",
    }  # fmt: skip
    repository.write("ringtrue.toml", text.replace("p95 = 500", "").replace("[gate]", "[gate]\nlatency_increase = inf"))
    repository.write("golden/start.yaml", (repository.folder / "golden.yaml").read_text())
    repository.commit("measure the search")
    unchanged = repository.ci("--base-ref", "main")
    assert unchanged.returncode == 0, unchanged.stdout + unchanged.stderr
    repository.write("service.py", IMPROVED.replace("return found[:k]", "return found[::-1][:k]"))
    assert repository.ci("--base-ref", "main").returncode == 1


def test_a_cancelled_job_leaves_no_service_behind(tmp_path) -> None:
    slow = SERVICE.replace("found = search(", "__import__('time').sleep(600)\n        found = search(")
    repository = ServiceRepository.create(tmp_path / "repository", slow)
    command = [sys.executable, "-P", "-m", "ringtrue", "ci", "--no-comment"]
    with subprocess.Popen(
        command, cwd=repository.folder, env=repository.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as job:
        assert job.stderr is not None
        asked = next(line for line in job.stderr if line.startswith("$ ringtrue eval"))
        assert asked
        port = int(repository.log("head").split("listening on ")[1].split()[0])
        assert listens(port)
        job.send_signal(signal.SIGTERM)
        job.stderr.read()
        assert job.wait() == 128 + signal.SIGTERM
    assert not listens(port)


def test_the_unchanged_case_can_be_repeated() -> None:
    """``RINGTRUE_UNCHANGED=20`` repeats it, beside four busy loops."""
    times = os.environ.get("RINGTRUE_UNCHANGED", "1")
    program = Path(__file__).parents[1] / "service_repository.py"
    busy = "4" if times != "1" else "0"
    done = subprocess.run(
        [sys.executable, program, "--times", times, "--busy", busy], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert f"passed {times} of {times} times" in done.stdout


IN_PROCESS = f"""
TEXTS = {TEXTS!r}


def find(text, k):
    return sorted(TEXTS, key=lambda name: (-sum(word in TEXTS[name] for word in text.split()), name))[:k]
"""


def test_two_sides_that_ask_one_server_from_python_are_not_compared(tmp_path) -> None:
    """No setting names the address that a function asks."""
    settings = SETTINGS.replace("retriever = \"connect('search')\"", 'python = "asking.py:find"') + GATE
    repository = ServiceRepository.create(tmp_path / "repository", settings=settings)
    with started_by_hand(repository) as port:
        repository.write("asking.py", IN_PYTHON.replace("{os.environ['RINGTRUE_PORT']}", str(port)))
        repository.commit("ask a server that runs already")
        repository.write("service.py", REVERSED)
        done = repository.ci("--base-ref", "HEAD")
        assert done.returncode == 3, done.stdout
        assert f"both sides asked localhost:{port} and got the same answers" in done.stdout
        assert repository.ci("--base-ref", "HEAD", "--shared").returncode == 0


def test_a_base_that_imports_the_code_of_the_change_is_not_compared(tmp_path) -> None:
    """As after `pip install -e .` without a set-up of each side's own: the folder of the change is on the path."""
    settings = SETTINGS.replace("retriever = \"connect('search')\"", 'python = "shop.search:find"') + GATE
    repository = ServiceRepository.create(tmp_path / "repository", settings=settings)
    (repository.folder / "src" / "shop").mkdir(parents=True)
    repository.write("src/shop/__init__.py", "")
    repository.write("src/shop/search.py", IN_PROCESS)
    repository.commit("a search in Python")
    repository.write("src/shop/search.py", IN_PROCESS.replace("[:k]", "[::-1][:k]"))
    installed = replace(repository, environment={**repository.environment, "PYTHONPATH": str(repository.folder / "src")})
    done = installed.ci("--base-ref", "HEAD")
    assert done.returncode == 3, done.stdout
    assert f"imported code of this change, {repository.folder}/src/shop/" in done.stdout
    own = replace(repository, environment={**repository.environment, "PYTHONPATH": "src"})
    compared = own.ci("--base-ref", "HEAD")
    assert compared.returncode == 1, compared.stdout + compared.stderr
