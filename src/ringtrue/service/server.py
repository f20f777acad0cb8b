"""The server process: Uvicorn around the application, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ringtrue.errors import InputError
from ringtrue.extras import install_command
from ringtrue.service.settings import Settings

GRACE_S = 20
"""Seconds that requests under way have to end when the server is told to stop."""
DRAIN_S = 0.5
"""Seconds that idle connections stay open after that: a request may be on its way over them."""
KEPT_FREE = 224
"""Files that the server may have open beside its connections: the store, indexes."""
BACKLOG = 2_048
"""Connections that the system may hold until they are taken."""
TURN_S = 0.001
"""How long a thread that draws a page or evaluates may compute while answers wait; Python's own 5 ms are too long for that."""


@contextmanager
def _ending_well() -> Iterator[None]:
    """Let a signal that was obeyed be over: the server raises it again when it has stopped, which would look like a crash."""
    main = threading.current_thread() is threading.main_thread()
    before = {name: signal.signal(name, lambda *_: None) for name in (signal.SIGINT, signal.SIGTERM) if main}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _settle() -> None:
    """Prepare for many requests, once everything is imported."""
    from ringtrue.service.pages.shell import prepare

    sys.setswitchinterval(TURN_S)
    threading.Thread(target=prepare, name="ringtrue-templates", daemon=True).start()


def _connections(most: int) -> int:
    """Return how many connections the system lets this process have, up to ``most``, after asking it for as many.

    Without a file for one more, nobody could be answered, not even to be told so.
    """
    try:
        import resource
    except ImportError:  # a system without such limits
        return most
    given, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + KEPT_FREE
    if given != resource.RLIM_INFINITY and given < wanted:
        given = wanted if highest == resource.RLIM_INFINITY else min(wanted, highest)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (given, highest))
        given = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if given == resource.RLIM_INFINITY else max(1, min(most, given - KEPT_FREE))


def run(settings: Settings, *, ready: Callable[[str], None] = lambda url: None) -> None:
    """Serve until a signal ends it; ``ready`` is told the address once it listens.

    Then it stops accepting connections, answers the requests under way within ``GRACE_S``, and ends. Raises InputError if the
    server's packages are missing, the address cannot be used or a setting names something that does not exist, and whatever
    opening the store raises.
    """
    try:
        import uvicorn

        from ringtrue.service.app import create_app
        from ringtrue.service.connections import MOST_CONNECTIONS, for_server
        from ringtrue.service.context import Service
        from ringtrue.service.searches import check_settings
    except ImportError as problem:
        raise InputError(f"the service needs {problem.name}; {install_command('service')}") from problem

    class Announced(uvicorn.Server):
        async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
            await super().startup(sockets)  # type: ignore[arg-type]
            if self.started:
                _settle()
                port = listener.getsockname()[1]
                name = f"[{settings.host}]" if ":" in settings.host else settings.host
                ready(f"http://{name}:{port}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for server in self.servers:
                server.close()
            protocol.draining = True
            app.state.service.drain()
            for connection in list(self.server_state.connections):
                if not connection.between:  # type: ignore[union-attr]
                    connection.shutdown()  # closes it with its answer
            await asyncio.sleep(DRAIN_S)
            await super().shutdown(sockets)

    # All that may fail is done before Uvicorn runs, which would tell where in the program it failed instead of why.
    check_settings(settings)
    with _listening(settings.host, settings.port) as listener:
        app = create_app(settings, Service(settings))
        most = _connections(MOST_CONNECTIONS)
        protocol = for_server(https=settings.https, most=most)
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            date_header=True,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=30,
            limit_concurrency=most + 1,  # if no connection can be closed for a new one
        )
        with _ending_well():
            Announced(config).run([listener])


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket at an address; raises InputError if it cannot be had."""
    try:
        found = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG)
    except OSError as problem:
        why = str(problem.strerror).partition(" (while ")[0]  # Python adds the address, which is named already
        said = f"cannot listen on {host} port {port}: {why}"
        raise InputError(f"{said}; choose another with --port, or another --host") from None
    with found:
        yield found
