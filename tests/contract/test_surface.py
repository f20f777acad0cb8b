"""Nothing that users rely on changes by accident: commands, options, routes, fields, tables, names and formats."""

from __future__ import annotations

from surface import FILE, surface


def test_what_users_rely_on_is_as_recorded() -> None:
    now, recorded = surface(), FILE.read_text(encoding="utf-8").splitlines()
    gone, new = sorted(set(recorded) - set(now)), sorted(set(now) - set(recorded))
    assert (gone, new) == ([], []), "say why in CHANGELOG, then run `python tests/surface.py`"
