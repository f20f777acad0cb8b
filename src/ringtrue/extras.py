"""Where this Ringtrue was installed from, and how to install it with extras from there.

Reads what the installer wrote down (``direct_url.json``, PEP 610): a Git address, an archive or a folder. Without it, Ringtrue
came from a package index.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class InstallSource:
    """Where an installation came from."""

    where: str
    """``==0.1.0`` from a package index, ``git+https://…@commit``, the address of a wheel, or the path of a folder or wheel."""
    editable: bool = False

    @property
    def local(self) -> bool:
        """Whether only this machine can install it from there."""
        return not self.where.startswith("==") and (":" not in self.where or ":///" in self.where)

    def requirement(self, extras: Iterable[str]) -> str:
        """Return what pip installs.

        >>> InstallSource("git+https://git.example.com/search/ringtrue@4f2a").requirement(["http"])
        'ringtrue[http] @ git+https://git.example.com/search/ringtrue@4f2a'
        """
        names = ",".join(extras)
        named = f"[{names}]" if names else ""
        if self.where.startswith("=="):
            return f"ringtrue{named}{self.where}"
        return f"ringtrue{named} @ {self.where}" if "://" in self.where else f"{self.where}{named}"


def read_source(direct_url: str | None, version: str) -> InstallSource:
    """Return the source that a ``direct_url.json`` names; a package index without one, or if it cannot be read."""
    try:
        said: dict[str, Any] = json.loads(direct_url or "")
        url = re.sub(r"^(https?://)[^/@]*@", r"\1", str(said["url"]))  # a pipeline must not contain credentials
    except (ValueError, KeyError, TypeError):
        return InstallSource(f"=={version}")
    inside = f"#subdirectory={said['subdirectory']}" if said.get("subdirectory") else ""
    if "vcs_info" in said:
        system, commit = said["vcs_info"].get("vcs", "git"), said["vcs_info"].get("commit_id", "")
        return InstallSource(f"{system}+{url}" + (f"@{commit}" if commit else "") + inside)
    if url.startswith("file:"):
        return InstallSource(unquote(urlsplit(url).path), editable=bool(said.get("dir_info", {}).get("editable")))
    return InstallSource(url + inside)


def installed_source() -> InstallSource:
    """Return where the running Ringtrue was installed from."""
    from importlib.metadata import distribution

    found = distribution("ringtrue")
    return read_source(found.read_text("direct_url.json"), found.version)


def install_command(*extras: str) -> str:
    """Return the command that adds extras to the running Ringtrue, from where it was installed: ``pip install '…[http]'``."""
    source = installed_source()
    if source.local and "://" not in source.where and not Path(source.where).exists():
        return f"pip install 'WHERE[{','.join(extras)}]', where WHERE is your folder or wheel of Ringtrue"
    quoted = shlex.quote(source.requirement(extras))
    return f"pip install {'-e ' if source.editable else ''}{quoted}"
