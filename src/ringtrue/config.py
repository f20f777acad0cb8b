"""Settings: ``ringtrue.toml``, found upwards from the current folder, and the environment. The only reader of both, but for
the client, which knows nothing else of Ringtrue.

A flag wins over the environment (``RINGTRUE_SCORE_LEVEL``), which wins over the file (``level = 2`` under ``[score]``), which
wins over the default.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ringtrue.errors import InputError, MissingInput, nearest

NAME = "ringtrue.toml"
GATE_TABLES = ("floors", "latency", "slices")
"""The tables that ``[gate]`` may have: ``[gate.floors]`` and the like."""
PROJECT_VARIABLE = "RINGTRUE_PROJECT"
PORT_VARIABLE = "RINGTRUE_PORT"
"""Says what ``{port}`` in a connection stands for; ``ringtrue ci`` sets it for each side."""
STORE_SETTINGS = ("url", "project", "retention")
"""What ``[store]`` may have beside the options of its commands."""


@dataclass(frozen=True)
class Config:
    """What a user may set once for every command."""

    file: Path | None = None
    commands: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of options by command: ``{"score": {"level": 2}}``."""
    connections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Search systems by name: ``{"shop": {"kind": "opensearch", "url": …}}``."""
    gate: Mapping[str, Any] = field(default_factory=dict)
    """The whole section ``[gate]``: a policy with tables of its own, which no option could hold."""
    store: Mapping[str, Any] = field(default_factory=dict)
    """What ``[store]`` says beyond options: ``url``, ``project`` and ``[store.retention]``."""
    gauges: Mapping[str, str] = field(default_factory=dict)
    """``[serve.gauges]``: metrics that keep a name of their own, by the name they would have."""


def load_config(start: Path | None = None) -> Config:
    """Return the settings that hold in a folder; raises InputError naming file and line of broken TOML."""
    here = (start or Path.cwd()).resolve()
    file = next((folder / NAME for folder in (here, *here.parents) if (folder / NAME).is_file()), None)
    if file is None:
        return Config()
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{file}: not valid TOML: {problem}; fix it there") from problem
    except UnicodeDecodeError as problem:
        raise InputError(f"{file}: is not UTF-8; save it as UTF-8") from problem
    for section in settings.values():
        if isinstance(section, dict) and isinstance(section.get("retriever"), dict):
            section["retriever"] = json.dumps(section["retriever"], default=str)  # as an option would give it
    connections = settings.pop("connections", {})
    if not isinstance(connections, dict) or not all(isinstance(value, dict) for value in connections.values()):
        raise InputError(f"{file}: connections is not a table of tables; write [connections.NAME] with kind = 'http' under it")
    gate = settings.get("gate", {})
    if isinstance(gate, dict):
        for name in (name for name, value in gate.items() if isinstance(value, dict) and name not in GATE_TABLES):
            raise InputError(f"{file}: there is no table [gate.{name}]; did you mean {nearest(name, GATE_TABLES)}?")
        settings["gate"] = {name: value for name, value in gate.items() if not isinstance(value, dict)}
    store = settings.get("store", {})
    kept = {name: store.pop(name) for name in STORE_SETTINGS if name in store} if isinstance(store, dict) else {}
    serve = settings.get("serve", {})
    gauges = serve.pop("gauges", {}) if isinstance(serve, dict) else {}
    if not isinstance(gauges, dict) or not all(isinstance(name, str) for name in gauges.values()):
        raise InputError(f"{file}: [serve.gauges] is not a table of names; write ringtrue_retrieval_mrr = 'shop_mrr' under it")
    return Config(file, settings, connections, gate if isinstance(gate, dict) else {}, kept, gauges)


def with_port(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a connection's settings with ``{port}`` replaced: by RINGTRUE_PORT, else by the setting ``port`` beside it.

    Raises InputError if neither is there.
    """
    given = {name: value for name, value in settings.items() if name != "port"}
    if _with_port(given, "") == given:
        return dict(settings)
    port = os.environ.get(PORT_VARIABLE) or settings.get("port")
    if port is None:
        raise InputError(f"{where}: no port for {{port}}; add port = 8000 beside it, or set {PORT_VARIABLE}")
    if not str(port).isdecimal():
        raise InputError(f"{where}: {port!r:.40} is not a port for {{port}}; write a number like 8000")
    filled: dict[str, Any] = _with_port(given, str(port))
    return filled


def _with_port(value: Any, port: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_port(part, port) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_port(part, port) for part in value]
    return value.replace("{port}", port) if isinstance(value, str) else value


def store_url() -> str:
    """Return where the store is: ``RINGTRUE_STORE``, else ``url`` under ``[store]``, else ``.ringtrue/store.sqlite``.

    A path in ``ringtrue.toml``, and the default beside it, are relative to its folder.
    """
    return configured_store() or _beside(load_config(), ".ringtrue/store.sqlite")


def configured_store() -> str | None:
    """Return where somebody said that the store is, ``RINGTRUE_STORE`` or ``url`` under ``[store]``; None if nobody did."""
    chosen = os.environ.get("RINGTRUE_STORE")
    if chosen:
        return chosen
    config = load_config()
    if "url" not in config.store:
        return None
    url = config.store["url"]
    if not isinstance(url, str) or not url:
        raise InputError(f"{config.file}: store.url is not an address; write url = 'postgresql://…' or the path of a file")
    return _beside(config, url)


def project() -> str:
    """Return whose data is meant: ``RINGTRUE_PROJECT``, else ``project`` under ``[store]``, else ``default``."""
    chosen = os.environ.get(PROJECT_VARIABLE)
    if chosen:
        return chosen
    config = load_config()
    name = config.store.get("project", "default")
    if not isinstance(name, str) or not name:
        raise InputError(f"{config.file}: store.project is not a name; write project = 'shop'")
    return name


def _beside(config: Config, url: str) -> str:
    return url if "://" in url or config.file is None else str(config.file.parent / url)


def cache_folder() -> Path:
    """Return where built models are kept: ``RINGTRUE_CACHE``, else the user's cache folder."""
    chosen = os.environ.get("RINGTRUE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringtrue"


def no_telemetry() -> None:
    """Keep libraries from collecting figures about their use; they read this when they are imported."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def secret(variable: str) -> str:
    """Return a secret from the environment; raises MissingInput naming the variable, never a value."""
    value = os.environ.get(variable)
    if not value:
        raise MissingInput(f"the environment has no {variable}; set it: export {variable}=…")
    return value


@dataclass(frozen=True)
class CiPipeline:
    """Where a job runs, as GitHub or GitLab tells it; empty elsewhere."""

    forge: Literal["github", "gitlab"]
    place: str
    """owner/name on GitHub, the id of the project on GitLab."""
    api: str
    token: str = field(repr=False)
    number: int | None = None
    """The merge request, on GitLab."""
    event: Path | None = None
    """The files of a step on GitHub: the event behind it, its summary, its outputs."""
    summary: Path | None = None
    output: Path | None = None


def pipeline(forge: str | None = None) -> CiPipeline:
    """Return what the environment says about a job on a forge; the one it runs on unless given.

    The token on GitLab is ``GITLAB_TOKEN``, which the project's owner sets.
    """
    get = os.environ.get
    if forge == "gitlab" or (forge is None and get("CI_PROJECT_ID") and not get("GITHUB_REPOSITORY")):
        api, number = get("CI_API_V4_URL") or "https://gitlab.com/api/v4", get("CI_MERGE_REQUEST_IID", "")
        token = get("GITLAB_TOKEN", "").strip()
        return CiPipeline("gitlab", get("CI_PROJECT_ID", ""), api, token, int(number) if number.isdigit() else None)
    api, token = get("GITHUB_API_URL") or "https://api.github.com", get("GITHUB_TOKEN", "").strip()
    places = (get(f"GITHUB_{name}") for name in ("EVENT_PATH", "STEP_SUMMARY", "OUTPUT"))
    files = (Path(place) if place else None for place in places)
    return CiPipeline("github", get("GITHUB_REPOSITORY", ""), api, token, None, *files)


def environment_without_tokens() -> dict[str, str]:
    """Return the environment for code under test: all of it but the tokens that may write on GitHub or GitLab."""
    return {name: value for name, value in os.environ.items() if name not in ("GITHUB_TOKEN", "GITLAB_TOKEN")}
