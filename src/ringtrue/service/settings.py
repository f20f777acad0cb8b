"""What a server is told when it starts: where it listens, what it serves, and how much it takes from strangers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ringtrue.errors import InputError
from ringtrue.store import DEFAULT_PROJECT

MIB = 1024 * 1024
METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Rates:
    """Requests that one caller may make in a second, by what they cost."""

    log: float = 10_000.0
    """Searches and feedback that are logged."""
    heavy: float = 5.0
    """Evaluations, comparisons, gates and uploads."""
    other: float = 500.0
    login: float = 0.2
    """Keys that do not exist, by address, those that somebody tries to sign in with included; ten may come at once."""


@dataclass(frozen=True)
class Settings:
    """How one server runs; raises InputError for settings that cannot be."""

    store: str | None = None
    """Address of the store; the configured one unless given."""
    host: str = "127.0.0.1"
    port: int = 8080
    project: str = DEFAULT_PROJECT
    """Whose data callers without a key see, on loopback."""
    keys: bool = False
    """Keys are needed on loopback, too."""
    hosts: tuple[str, ...] = ()
    """Names under which the service may be called, beside its own address."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that are believed when they say for whom they ask (``X-Forwarded-For``)."""
    https: bool = False
    """A proxy in front speaks TLS: cookies are for TLS only, and browsers are told to insist on it."""
    secret: str = field(default="", repr=False)
    """Signs the sessions of browsers; drawn at every start unless given, which signs everybody out."""
    retriever: str = "hybrid"
    """The search that is served, and evaluated unless a request names another."""
    folder: Path | None = None
    """Documents made by ``ringtrue ingest``; those of ``golden`` unless given."""
    golden: str | None = None
    """A shipped name or a path: whose documents are searched if there is no folder."""
    expressions: tuple[str, ...] = ()
    """Further retrievers that requests may name although they hold paths or models: the operator knows them."""
    prefix: str = "ringtrue"
    """Prefix of the metric names."""
    gauges: Mapping[str, str] = field(default_factory=dict)
    """Metrics that keep a name of their own: canonical name → name."""
    history_seconds: float = 60.0
    """How often the gauges are written down."""
    body_limit: int = 20 * MIB
    """Bytes of a request, after decompression."""
    time_limit: float = 60.0
    """Seconds that a request may take; evaluations that need longer are jobs."""
    at_once: int = 200
    """Queries that an evaluation may have to be answered in the same request."""
    jobs: int = 2
    """Jobs that run at the same time; the others wait."""
    rates: Rates = Rates()
    demo: bool = False
    """The data is invented, and every page says so."""

    def __post_init__(self) -> None:
        if not self.host.strip():
            raise InputError("host is empty; write 127.0.0.1, or 0.0.0.0 to listen everywhere")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"port {self.port} is invalid; use 1 to 65535, or 0 for any free port")
        _ = self.trusted  # raises for what is not an address
        for name in (self.prefix, *self.gauges, *self.gauges.values()):
            if not METRIC_NAME.fullmatch(name):
                raise InputError(f"'{name}' cannot be a metric's name; use letters, digits and _, not beginning with a digit")

    @cached_property
    def loopback(self) -> bool:
        """True if only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @cached_property
    def open(self) -> bool:
        """True if callers need no key: this machine alone reaches the server, and nothing says otherwise.

        A name that others call it by, or a proxy that is believed, means that one passes on what they ask.
        """
        return self.loopback and not self.keys and not self.hosts and not self.proxies

    @cached_property
    def trusted(self) -> list[str]:
        """The networks of ``proxies``; raises InputError for what is none."""
        try:
            return [str(ipaddress.ip_network(one, strict=False)) for one in self.proxies]
        except ValueError as problem:
            said = f"invalid proxy: {problem}; write an address such as 127.0.0.1, or a network such as 10.0.0.0/24"
            raise InputError(said) from None

    @property
    def own_retrievers(self) -> tuple[str, ...]:
        """Return the retrievers that the operator named, whatever they hold."""
        return (self.retriever, *self.expressions)

    @cached_property
    def own_hosts(self) -> frozenset[str]:
        """Return the host names that requests may carry; empty if any may: behind keys a name opens nothing."""
        if not self.open and not self.hosts:
            return frozenset()
        return frozenset({"localhost", "127.0.0.1", "[::1]", self.host.lower(), *(name.lower() for name in self.hosts)})
