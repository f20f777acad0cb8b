"""One form for every moment, so that times sort as texts on both databases."""

from __future__ import annotations

from datetime import UTC, datetime

from ringtrue.errors import InputError


def timestamp(moment: datetime | str) -> str:
    """Return a moment as the store keeps it: UTC, six digits of the second, ``Z``. One without a zone is UTC.

    Raises InputError for a text that is no ISO 8601 time, and for one that UTC has no year for.

    >>> timestamp("2026-03-01T12:00:00+02:00")
    '2026-03-01T10:00:00.000000Z'
    """
    if not isinstance(moment, datetime):
        try:
            parsed = datetime.fromisoformat(moment)
        except (ValueError, TypeError) as problem:
            raise InputError(f"cannot read the time {moment!r}; write it like 2026-03-01T12:00:00Z") from problem
        if (
            len(moment) == 27
            and moment[26] == "Z"
            and moment[4] == moment[7] == "-"
            and moment[10] == "T"
            and moment[19] == "."
        ):
            return moment  # is so already, as most are
        moment = parsed
    try:
        # Naive first: astimezone() would take it for local time.
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as problem:
        raise InputError(f"the time {moment.isoformat()} lies outside the years 1 to 9999 in UTC; correct it") from problem
    return moment.isoformat(timespec="microseconds")[:26] + "Z"
