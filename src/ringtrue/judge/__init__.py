"""What grades by a model are worth: estimates from many model-graded queries and a few that people judged.

Comes in: values per query under a model's grades and under people's, and the sample by which people's queries were drawn.
Goes out: frozen estimates with intervals that hold however wrong the model is.
May not: grade, read files or print.
"""

from __future__ import annotations

from ringtrue.judge.inference import (
    Estimate as Estimate,
    rectified as rectified,
    RectifiedEstimate as RectifiedEstimate,
)
from ringtrue.judge.sampling import draw_sample as draw_sample, QuerySample as QuerySample
