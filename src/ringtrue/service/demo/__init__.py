"""The demonstration: a store filled with a month of a simulated hotel, so that every page has something to show.

Made up are the guests, the reviewers, the clock and the milliseconds of the log. Everything else is what Ringtrue does for a
live system: the searches are made over the documents of the shipped set ``hotel``, evaluations, comparisons, gates, agreement,
sequential tests, rollouts and the sweep are computed, and every decision is the library's.
"""

from ringtrue.service.demo.fill import demo_settings as demo_settings, fill as fill
from ringtrue.service.demo.golden_sets import HYBRID as HYBRID, SHIPPED as SHIPPED
