"""Charts as SVG for reports and pages: they need no script, and the style sheet knows light and dark.

In: numbers and their names. Out: SVG that says in words what it shows. Colours are classes, never values.
"""

from ringtrue.charts.plots import (
    MOST_POINTS as MOST_POINTS,
    MOST_STRANDS as MOST_STRANDS,
    Curve as Curve,
    Decision as Decision,
    Point as Point,
    Strand as Strand,
    course as course,
    parallel as parallel,
    per_query as per_query,
    scatter as scatter,
    sequential as sequential,
    trend as trend,
)
from ringtrue.charts.svg import (
    axis as axis,
    bar as bar,
    interval as interval,
    sparkline as sparkline,
    step as step,
)
from ringtrue.charts.svg import Scale as Scale, plain as plain
