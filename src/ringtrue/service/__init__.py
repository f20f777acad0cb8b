"""The service: REST under ``/v1``, what Prometheus reads, and the dashboard, in one process over one store.

Comes in: requests of programs and browsers. Goes out: what the rooms below answer, as JSON or as pages. May not: decide
anything itself, reach SQL other than through the store, or open a path that a request named.

The names are imported on first use: FastAPI and the server are loaded only where they are needed.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.service.app import create_app as create_app
    from ringtrue.service.server import run as run
    from ringtrue.service.settings import Settings as Settings
else:
    __getattr__, __dir__ = on_first_use(__name__)
