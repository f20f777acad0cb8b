"""The picture of quality against time: what is on its front can only be better by being slower."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from ringtrue.report.charts import Scale, plain
from ringtrue.service.pages import drawing
from ringtrue.service.work.sweeping import Tradeoff

FOOT = 20


def pareto(points: Sequence[Tradeoff], *, measure: str, time: str, label: str, height: int = 320) -> Markup:
    """Return a dot for each experiment, the fastest first: time to the right, quality upwards, and the front as steps."""
    body = height - 2 * FOOT
    scale = drawing.upright([point.quality for point in points], body)
    reach = drawing.reach(point.ms for point in points)
    if scale is None or reach is None:
        return drawing.none(label, height)
    across = Scale(*reach, margin=4.0)
    parts = [*drawing.levels(scale), *drawing.ticks(across, body, height - FOOT, unit=" ms")]
    steps: list[tuple[float, float]] = []
    for point in points:
        if point.front:
            x, y = across.at(point.ms), scale.at(point.quality)
            steps += [*([(x, steps[-1][1])] if steps else []), (x, y)]
    steps.append((100.0, steps[-1][1]))
    parts.append(drawing.stretched(drawing.thread(steps, "thread soft"), body))
    for point in sorted(points, key=lambda point: point.front):
        words = f"{point.one.id}: {measure} {plain(round(point.quality, 4))} at {plain(round(point.ms, 1))} ms"
        words += ", on the front" if point.front else ""
        dot = (
            f'<circle class="point {"good" if point.front else "even"}" cx="{across.at(point.ms):.2f}%" '
            f'cy="{scale.at(point.quality):.1f}" r="{6 if point.front else 4.5}"/>'
        )
        parts.append(drawing.linked(dot, words, f"/experiments/{point.one.id}"))
    parts.append(f'<text x="50%" y="{height - 4}" text-anchor="middle">{escape(time)} →</text>')
    parts.append(f'<text class="name" x="0" y="-2">↑ {escape(measure)}</text>')
    return drawing.boxed(drawing.picture(drawing.one_stop(parts), label, height, extra="plot", linked=True))
