"""The MCP server on a port (A-7): for this machine only, unless whoever asks holds a token.

A page in a browser can reach a port of its own machine under any name it likes. So the Host and the Origin of every request
are checked, and a port that others can reach answers nobody without the token (trap 39).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from ringtrue.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from ringtrue.memory.tool_checks import StrictServer

PATH = "/mcp"
LOCAL = "127.0.0.1"
SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def local(self) -> bool:
        """True where only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        return f"http://{_in_url(self.host)}:{self.port}{PATH}"


def address_of(text: str) -> Address:
    """Return the address in ``HOST:PORT`` or ``PORT``, which is one of this machine; raises InputError for anything else.

    >>> address_of("8765"), address_of("[::1]:80").host
    (Address(host='127.0.0.1', port=8765), '::1')
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or LOCAL
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536) or "/" in host or " " in host:
        raise InputError(f"cannot listen at {text!r}; write HOST:PORT such as {LOCAL}:8765")
    return Address(host, int(port))


def check_token(address: Address, token: str) -> None:
    """Raise InputError where others could reach the port without a token, or with one that can be guessed."""
    if not address.local and not token:
        raise InputError(
            f"{address.host} can be reached from other machines; set a token with --token or RINGTRUE_MEMORY_MCP_TOKEN, "
            f"or listen at {LOCAL}:{address.port}"
        )
    if token and len(token) < SHORTEST_TOKEN:
        raise InputError(f"the token has {len(token)} characters; use {SHORTEST_TOKEN} or more")


def http_app(server: StrictServer, address: Address, *, token: str = "", names: Sequence[str] = ()) -> ASGIApp:
    """Return the application: streamable HTTP at ``/mcp``.

    ``names`` are further hosts under which it may be asked, such as that of a proxy before it. Raises InputError as
    ``check_token`` does.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    check_token(address, token)
    hosts = list(dict.fromkeys((*_in_urls((address.host, LOCAL, "localhost", "::1")), *_in_urls(names))))
    allowed = [f"{host}:{address.port}" for host in hosts] + list(_in_urls(names))
    security = TransportSecuritySettings(
        allowed_hosts=allowed, allowed_origins=[f"{scheme}://{host}" for host in allowed for scheme in ("http", "https")]
    )
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=address.host)
    return _Guarded(app, token) if token else app


class _Guarded:
    """Lets in requests that carry the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain; charset=utf-8")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"the token is missing or wrong; send Authorization: Bearer"})
                return
        await self._app(scope, receive, send)


def serve_http(server: StrictServer, address: Address, *, token: str = "", names: Sequence[str] = ()) -> None:
    """Listen until the process is told to stop. Raises InputError as ``http_app`` does; OSError where the port is taken."""
    import socket

    import uvicorn

    app = http_app(server, address, token=token, names=names)
    kind = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((address.host, address.port))
        except OSError as problem:
            raise InputError(
                f"cannot listen at {address.host}:{address.port}: {problem.strerror}; choose another port"
            ) from problem
        uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).run(sockets=[listening])


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _in_urls(hosts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_in_url, hosts))
