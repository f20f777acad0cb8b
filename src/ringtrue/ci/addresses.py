"""Which server each side asks: one address on both sides would compare a running search with itself."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from ringtrue.ci.service import ServiceCommands
from ringtrue.config import with_port
from ringtrue.errors import CannotDecide, InputError
from ringtrue.retrieve.connectors import RERANKERS, kind

LOCAL = ("127.0.0.1", "::1", "0.0.0.0", "localhost")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class AskedServers:
    """The connections that one side's search asks, and the service that is started for it."""

    connections: Mapping[str, Mapping[str, Any]]
    service: ServiceCommands | None = None

    def elsewhere(self) -> dict[str, str]:
        """Return the address of each connection that does not ask the service of its own side."""
        found = {}
        for name, settings in self.connections.items():
            address = address_of(name, settings, self.service)
            if address:
                found[name] = address
        return found


def address_of(name: str, settings: Mapping[str, Any], service: ServiceCommands | None) -> str:
    """Return ``host:port`` of a connection; empty if it asks ``service`` or a program or file of the checkout."""
    used = str(settings.get("kind"))
    text = next((str(settings[key]) for key in ("url", "uri", "dsn_env", "host") if settings.get(key)), "")
    if not text and used not in RERANKERS:
        text = getattr(kind(used), "url", None) or ""  # Chroma has a usual address
    if service and "{port}" in text:
        return ""
    if "{port}" in text:
        text = str(with_port({**settings, "url": text}, f"connection '{name}'")["url"])
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        raise InputError(f"connection '{name}': its url cannot be read; write it like http://localhost:8000/search") from None
    host = "localhost" if is_local(parts.hostname or "") else parts.hostname or ""
    ours = service is not None and service.port == port and host == "localhost"
    return "" if ours else f"{host}:{port or ''}"


def is_local(host: str) -> bool:
    """Return whether a name or address is a loopback address of this machine, under whatever name."""
    if host in LOCAL:
        return True
    with suppress(OSError, ValueError):
        return ip_address(socket.gethostbyname(host)).is_loopback
    return False


def check_addresses(head: AskedServers, base: AskedServers | None, *, shared: bool) -> None:
    """Raise CannotDecide if nobody asks a started service, or if both sides ask one server and that is not ``shared``."""
    for side in (head, base):
        if side is None or side.service is None or not side.connections:
            continue
        others = side.elsewhere()
        if len(others) == len(side.connections):
            name, address = next(iter(others.items()))
            raise CannotDecide(
                f"connection '{name}' asks {address}, not the service that [ci] serve starts; "
                f"write {{port}} in its url: http://localhost:{{port}}/…"
            )
    if base is None or shared:
        return
    theirs = base.elsewhere()
    for name, address in head.elsewhere().items():
        if address in theirs.values():
            raise CannotDecide(
                f"connection '{name}' asks {address} on both sides, so both measure one running search; "
                "let each side start its own, with serve under [ci] and {port} in the url "
                "(or set shared = true there if only these settings can change the search)"
            )
