"""The demonstration: a store filled with a month of a simulated hotel, so that every page has something to show.

Simulated are the guests, the reviewers, the clock and the milliseconds of the log. Everything else is what Ringtrue does for a
live system: the searches run over the documents of the shipped set ``hotel``; evaluations, comparisons, gates, agreement,
sequential tests, rollouts and the sweep are computed, and the library makes every decision.
"""

from ringtrue.service.demo.filling import demo_settings as demo_settings, fill as fill
from ringtrue.service.demo.hotel import HYBRID as HYBRID, SHIPPED as SHIPPED
