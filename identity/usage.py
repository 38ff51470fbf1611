"""Licence usage, current and recent, computed from the sessions' times (spec 01, 1.8)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from foundation.charts import Chart, Series
from identity.licences import licence_read
from identity.models import Session
from identity.sessions import open_count, sessions_list

#: Share of the slots from which a warning is shown.
NEARLY_FULL = 0.8
#: An application with more than this share of the slots is named in a warning.
LARGE_SHARE = 0.5
HOURS = 24
DAYS = 30
_HOUR = datetime.timedelta(hours=1)
_DAY = datetime.timedelta(days=1)

Spans = Sequence[tuple[datetime.datetime, datetime.datetime]]


@dataclass(frozen=True, slots=True)
class Usage:
    """The maximum number of concurrent sessions in an interval."""

    begin: datetime.datetime
    most: int


def usage_now() -> tuple[int, int]:
    """(slots taken, slots)."""
    return open_count(), licence_read().sessions


@dataclass(frozen=True, slots=True)
class Holder:
    """An application and the number of slots it holds; `max_sessions` None without a limit of its own."""

    application_id: str
    name: str
    sessions: int
    max_sessions: int | None


def usage_by_application() -> list[Holder]:
    """Slots by application, the largest first."""
    named = ("application_id", "application__name", "application__application_uri", "application__max_sessions")
    rows = sessions_list().order_by().values_list(*named).annotate(held=Count("pk")).order_by("-held", "application_id")
    return [Holder(str(pk), name or uri, held, limit) for pk, name, uri, limit, held in rows]


def usage_warnings() -> list[str]:
    """Warnings for administrators about a shortage of slots; a sentence each."""
    taken, slots = usage_now()
    result: list[str] = []
    if taken >= slots * NEARLY_FULL:
        result.append(
            _("%(taken)s of %(slots)s slots are taken; when all are, further callers are answered 503.")
            % {"taken": taken, "slots": slots}
        )
    for holder in usage_by_application()[:1]:
        if holder.sessions > max(1, slots * LARGE_SHARE):
            text = ngettext(
                "%(name)s holds %(held)s of %(slots)s slot.", "%(name)s holds %(held)s of %(slots)s slots.", slots
            ) % {"name": holder.name, "held": holder.sessions, "slots": slots}
            cure = _("Its MaxSessions bounds that; a client that takes a new token for each request holds many.")
            result.append(f"{text} {cure}")
    return result


def usage_by_hour(now: datetime.datetime, hours: int = HOURS) -> list[Usage]:
    """By hour, oldest first, the running hour last."""
    return _usage(now.replace(minute=0, second=0, microsecond=0), _HOUR, hours, now)


def usage_by_day(now: datetime.datetime) -> list[Usage]:
    """By day (UTC), oldest first, today last."""
    return _usage(now.replace(hour=0, minute=0, second=0, microsecond=0), _DAY, DAYS, now)


def _usage(last: datetime.datetime, step: datetime.timedelta, count: int, now: datetime.datetime) -> list[Usage]:
    start = last - step * (count - 1)
    spans = [
        (opened, closed or min(expires, now))
        for opened, closed, expires in Session.objects.filter(opened__lte=now)
        .filter(Q(closed=None) | Q(closed__gt=start))
        .values_list("opened", "closed", "expires")
    ]
    begins = [start + step * index for index in range(count)]
    return [Usage(begin, _max_concurrent(spans, begin, begin + step)) for begin in begins]


def usage_chart(usages: Sequence[Usage], slots: int, time_format: str) -> Chart:
    """The maximum concurrent sessions in each interval, and the number of slots as a line."""
    return Chart(
        _("Sessions at once; the line is the number of slots"),
        _("Time"),
        [date_format(usage.begin, time_format) for usage in usages],
        (
            Series(_("Sessions"), [usage.most for usage in usages]),
            Series(_("Slots"), [slots] * len(usages), "bad", is_line=True),
        ),
    )


def _max_concurrent(spans: Spans, begin: datetime.datetime, end: datetime.datetime) -> int:
    changes: list[tuple[datetime.datetime, int]] = []
    for opened, closed in spans:
        if opened < end and closed > begin:
            changes += [(max(opened, begin), 1), (min(closed, end), -1)]
    taken = most = 0
    # At equal times the close counts first: a freed slot can be reused at once.
    for _moment, change in sorted(changes):
        taken += change
        most = max(most, taken)
    return most
