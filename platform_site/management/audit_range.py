"""The options --from and --to of the commands for the audit chain: positions or times."""

from __future__ import annotations

import datetime

from django.core.management.base import CommandParser

from audit.models import AuditEntry
from identity.management.support import moment

_DAY = datetime.timedelta(days=1)
_ALLOWED = "a position, a time such as 2026-11-01T12:00Z, or a day"


def add_range(parser: CommandParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--from", dest="first", default="", help="position, time (2026-11-01T12:00Z) or day, to begin at"
    )
    parser.add_argument("--to", dest="last", default="", help="position, time or day of the last entry")


def range_read(first: str, last: str) -> tuple[int, int | None]:
    """The positions; None for the end. Raises CommandError for an option that is neither a position nor a time."""
    begin = 1 if not first else int(first) if _is_position(first) else _first_at(first)
    if not last:
        return begin, None
    return begin, int(last) if _is_position(last) else _last_at(last)


def _is_position(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _first_at(text: str) -> int:
    """The lowest position from this time on; beyond the end if there is none."""
    chained = AuditEntry.objects.filter(position__isnull=False)
    found = (
        chained.filter(at__gte=moment(text, allowed=_ALLOWED))
        .order_by("position")
        .values_list("position", flat=True)
        .first()
    )
    last = chained.order_by("-position").values_list("position", flat=True).first()
    return found or (last or 0) + 1


def _last_at(text: str) -> int:
    """The highest position until this time or the end of this day; 0 if there is none."""
    at = moment(text, allowed=_ALLOWED)
    until = {"at__lt": at + _DAY} if _is_day(text) else {"at__lte": at}
    chained = AuditEntry.objects.filter(position__isnull=False, **until)
    return chained.order_by("-position").values_list("position", flat=True).first() or 0


def _is_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True
