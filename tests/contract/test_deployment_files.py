"""The files of deploy/ and docs/deploy.md use commands, options, variables and paths that there are."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from postgres_server import PostgresServer, binaries
from running_service import served as served

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONTAINER = DEPLOY / "Containerfile"
COMPOSE = DEPLOY / "compose.yaml"
UNIT = DEPLOY / "systemd" / "ringtrue.service"
VARIABLES = DEPLOY / "systemd" / "ringtrue.env.example"
PAGE = ROOT / "docs" / "deploy.md"
FILES = (CONTAINER, COMPOSE, UNIT, VARIABLES, PAGE)


def commands_in(file: Path) -> Iterator[list[str]]:
    """Yield the words of every call of ``ringtrue`` in a file, without its name."""
    text = file.read_text(encoding="utf-8")
    for array in re.findall(r"\[\"ringtrue\", [^\]]*\]", text):
        yield json.loads(array)[1:]
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if file.suffix == ".md" else [text]:
        for line in block.replace("\\\n", " ").splitlines():
            if found := re.search(r"(?:^|[\s=`/])(?<!-u )ringtrue ((?!ringtrue)[a-z][^`|;()#]*)", line):
                yield shlex.split(found[1])


def parameters_of(words: list[str]) -> tuple[str, dict[str, Any], list[str]]:
    """Return the name of the command that words call, its options, and the options used; raises KeyError for no command."""
    from ringtrue.cli import app

    command: Any = typer.main.get_command(app)
    name: list[str] = []
    while hasattr(command, "commands") and words:
        command = command.commands[words[0]]
        name.append(words[0])
        words = words[1:]
    options = {text: one for one in command.params for text in (*one.opts, *one.secondary_opts)}
    return " ".join(name), options, [word.partition("=")[0] for word in words if word.startswith("-")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_command_and_option_exists(file: Path) -> None:
    calls = list(commands_in(file))
    assert calls
    for words in calls:
        name, options, used = parameters_of(words)
        assert not set(used) - set(options), f"{file.name}: ringtrue {name} has no {set(used) - set(options)}"


def test_a_command_or_an_option_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\nsudo -u me /opt/x/bin/ringtrue serve --wrong  # why\nringtrue served\n```\n")
    first, second = commands_in(page)
    assert (first, second) == (["serve", "--wrong"], ["served"])
    assert "--wrong" not in parameters_of(first)[1]
    with pytest.raises(KeyError):
        parameters_of(second)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_variable_is_read_somewhere(file: Path) -> None:
    from ringtrue.cli.serve import serve_command

    config = (ROOT / "src/ringtrue/config.py").read_text(encoding="utf-8")
    known = {f"RINGTRUE_SERVE_{name.upper()}" for name in serve_command.__annotations__}
    known |= {"RINGTRUE_DB_PASSWORD", "RINGTRUE_SECRET"}  # of compose.yaml itself
    used = set(re.findall(r"\bRINGTRUE_[A-Z_]+\b", file.read_text(encoding="utf-8")))
    assert {name for name in used - known if f'"{name}"' not in config} == set()


def test_the_server_starts_as_its_variables_say(ringtrue, monkeypatch, tmp_path) -> None:
    """What the example of the variables has commented out is what ``ringtrue serve`` takes."""
    from ringtrue import service

    seen: list[service.Settings] = []
    monkeypatch.setattr("ringtrue.service.run", lambda settings, ready: seen.append(settings), raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").mkdir()
    for name, value in re.findall(r"^#?([A-Z_]+)=(.*)$", VARIABLES.read_text(encoding="utf-8"), re.MULTILINE):
        if name.startswith("RINGTRUE_SERVE_"):
            monkeypatch.setenv(name, value.replace("/var/lib/ringtrue", str(tmp_path)) or "given")
    monkeypatch.setenv("RINGTRUE_SERVE_ALLOW_HOST", "search.example.org quality.example.org")
    words = shlex.split(re.search(r"^ExecStart=\S+ (.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1])
    outcome = ringtrue(*words)
    assert outcome.code == 0, outcome.err
    (settings,) = seen
    assert (settings.host, settings.port, settings.keys, settings.open) == ("127.0.0.1", 8080, True, False)
    assert settings.hosts == ("search.example.org", "quality.example.org")
    assert settings.proxies == ("127.0.0.1",)
    assert (settings.https, settings.secret, settings.retriever) == (True, "given", "hybrid")
    assert settings.folder == tmp_path / "documents"


def test_time_to_stop_is_longer_than_the_grace_of_the_server() -> None:
    from ringtrue.service.server import GRACE_S

    stop = int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)[1])
    period = compose()["services"]["ringtrue"]["stop_grace_period"]
    assert stop >= 2 * GRACE_S
    assert int(period.removesuffix("s")) >= 2 * GRACE_S


def test_container_copies_what_is_there_and_runs_as_nobody_special() -> None:
    text = CONTAINER.read_text(encoding="utf-8")
    for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists(), source
    user = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    assert user == ["10001:10001"]
    assert text.index("USER 10001") < text.index("\nCMD ")
    assert re.search(r"^EXPOSE (\d+)$", text, re.MULTILINE)[1] == "8080"
    (words,) = [words for words in commands_in(CONTAINER) if words[0] == "serve"]
    assert words == ["serve", "--host", "0.0.0.0", "--port", "8080"]
    assert all(
        "--require-hashes" in line for line in text.splitlines() if "pip install" in line and "--no-deps --no-build" not in line
    )


def test_health_check_of_the_container_asks_an_address_there_is(served) -> None:
    (probe,) = re.findall(r"CMD (\[\"python\".*\])", CONTAINER.read_text(encoding="utf-8"))
    words = [word.replace("http://127.0.0.1:8080", served.url) for word in json.loads(probe)]
    assert served.url in words[-1]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    assert subprocess.run(words, capture_output=True, env=environment).returncode == 0
    words[-1] = words[-1].replace("/healthz", "/unhealthz")
    assert subprocess.run(words, capture_output=True, env=environment).returncode != 0


def test_driver_of_postgresql_is_locked_as_it_is_tested() -> None:
    def entries(file: Path) -> dict[str, set[str]]:
        found = re.findall(r"^([a-z0-9-]+==\S+)[^\n]*\n((?: +--hash\S.*\n?)+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        return {name: set(re.findall(r"sha256:[0-9a-f]{64}", hashes)) for name, hashes in found}

    driver, tested = entries(DEPLOY / "requirements-postgres.lock"), entries(ROOT / "requirements-test.lock")
    assert {name.partition("==")[0] for name in driver} == {"psycopg", "psycopg-binary"}
    for name, hashes in driver.items():
        assert hashes
        assert tested.get(name) == hashes


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return found


def test_no_password_has_a_default() -> None:
    services = compose()["services"]
    secret = {
        name: value
        for one in services.values()
        for name, value in one["environment"].items()
        if "PASSWORD" in name or "SECRET" in name
    }
    assert set(secret) == {"POSTGRES_PASSWORD", "RINGTRUE_DB_PASSWORD", "PGPASSWORD", "RINGTRUE_SERVE_SECRET"}
    for value in secret.values():
        assert re.fullmatch(r"\$\{[A-Z_]+:\?[^}]+\}", value), value
    for line in VARIABLES.read_text(encoding="utf-8").splitlines():
        if "PASSWORD" in line or "SECRET" in line:
            assert line.startswith("#"), line
            assert line.endswith(("=", ".")), line


def test_compose_publishes_the_service_on_this_machine_alone() -> None:
    services = compose()["services"]
    assert services["ringtrue"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in services["db"]
    assert services["ringtrue"]["depends_on"]["db"]["condition"] == "service_healthy"
    assert (DEPLOY / services["ringtrue"]["build"]["context"] / services["ringtrue"]["build"]["dockerfile"]).samefile(CONTAINER)
    for volume in services["db"]["volumes"]:
        if volume.startswith("./"):
            assert (DEPLOY / volume.split(":")[0]).is_file(), volume


def test_role_that_the_script_makes_is_held_by_row_level_security(postgres: PostgresServer) -> None:
    """The script of compose.yaml, run by the real psql: the role owns its database and is not a superuser."""
    import psycopg

    from ringtrue.store import Store

    password = "it's a \"password\" :'x' $HOME"
    environment = {
        "PATH": f"{binaries()}{os.pathsep}{os.environ['PATH']}",
        "PGHOST": "127.0.0.1",
        "PGPORT": str(postgres.port),
        "PGPASSWORD": postgres.password,
        "RINGTRUE_DB_PASSWORD": password,
    }
    made = subprocess.run(["sh", DEPLOY / "postgres" / "10-ringtrue.sh"], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    server = {"host": "127.0.0.1", "port": postgres.port, "dbname": "ringtrue"}
    try:
        with psycopg.connect(**server, user="ringtrue", password=password) as connection:
            found = connection.execute(
                "SELECT rolsuper, rolbypassrls, rolcreaterole FROM pg_roles WHERE rolname = current_user"
            )
            assert found.fetchone() == (False, False, False)
        address = f"postgresql://ringtrue@127.0.0.1:{postgres.port}/ringtrue"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGPASSWORD", password)  # as compose.yaml hands it over
            with Store.open(address) as store:
                assert store.schema_version()
        with psycopg.connect(**server, user="ringtrue", password=password) as connection:
            # Nobody said which project: the owner of the tables sees no row and may write none.
            forced = connection.execute("SELECT relforcerowsecurity FROM pg_class WHERE relname = 'eval_queries'").fetchone()
            assert forced == (True,)
    finally:
        with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS ringtrue WITH (FORCE)")
            connection.execute("DROP ROLE IF EXISTS ringtrue")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "ringtrue.service"
    # Only what is not on this machine is replaced: the program, and the account.
    text = UNIT.read_text(encoding="utf-8").replace("/opt/ringtrue/bin/ringtrue", "/bin/true")
    unit.write_text(text, encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    unit.write_text(text.replace("ProtectSystem=strict", "ProtectSystem=sometimes"), encoding="utf-8")
    wrong = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert "protect system" in wrong.stderr


def test_unit_is_hardened() -> None:
    text = UNIT.read_text(encoding="utf-8")
    for line in (
        "User=ringtrue", "NoNewPrivileges=yes", "ProtectSystem=strict", "StateDirectory=ringtrue", "KillSignal=SIGTERM",
        "Restart=on-failure", "CapabilityBoundingSet=",
    ):  # fmt: skip
        assert f"\n{line}\n" in text, line
