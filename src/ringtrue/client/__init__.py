"""The client of a service: Python's way to ``/v1``.

Comes in: the address of a service, a key, and what is asked. Goes out: the records of ``ringtrue.answers``, and Ringtrue's own
errors for what the service refuses. May not: know anything of the rooms above, so that a program that only calls a service
loads none of them.
"""

from ringtrue.answers import *  # noqa: F403
from ringtrue.client.background import BackgroundLog as BackgroundLog
from ringtrue.client.client import Client as Client
