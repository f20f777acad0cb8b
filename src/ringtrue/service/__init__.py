"""The service: REST under ``/v1``, what Prometheus reads, and the dashboard, in one process over one store.

Comes in: requests of programs and browsers. Goes out: what the rooms below answer, as JSON or as pages. May not: decide
anything itself, reach SQL other than through the store, or open a path that a request named.

The names are imported on first use: FastAPI and the server are loaded only where they are needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringtrue.service.app import create_app
    from ringtrue.service.server import run
    from ringtrue.service.settings import Settings

_HOME = {"app": ("create_app",), "server": ("run",), "settings": ("Settings",)}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = ["Settings", "create_app", "run"]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"ringtrue.service.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'ringtrue.service' has no attribute '{name}'")
