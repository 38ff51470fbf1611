"""Due times of jobs in the instance's time zone (spec 10.4).

A cron expression with a fixed hour that the change to summer time skips is due once, when the missing hour would have
begun; in the hour that the change to winter time repeats it is due once, in the first one. An expression with `*` or a
step as minute or hour follows elapsed time, as in Debian's cron: `0 * * * *` is due every hour.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from django.conf import settings

from foundation.messages import TranslatableMessage as Message

#: The night, in the instance's time zone.
NIGHT_BEGINS, NIGHT_ENDS = time(22), time(5)


def time_zone() -> ZoneInfo:
    """The instance's time zone."""
    return ZoneInfo(settings.TIME_ZONE)


def check_cron(expression: str) -> None:
    """Raise ValueError with a Message for an invalid expression, or one that is never due."""
    if len(expression.split()) != 5:
        raise ValueError(
            Message("a cron expression has five fields: minute, hour, day of the month, month, day of the week")
        )
    try:
        next(CronSim(expression, datetime.now(time_zone())))
    except CronSimError as exc:
        raise ValueError(Message("it cannot be read: {0}", str(exc))) from exc
    except (StopIteration, OverflowError) as exc:
        raise ValueError(Message("no date has that day and month")) from exc


def next_cron(expression: str, after: datetime) -> datetime:
    """The first due time after a moment."""
    return next(CronSim(expression, after.astimezone(time_zone()))).astimezone(UTC)


def latest_cron(expression: str, since: datetime, now: datetime) -> datetime | None:
    """The last due time after `since` and not after `now`; None if there is none."""
    # An hour ahead: in a repeated hour of a clock change, fixed times are those of the first one.
    moment = (now + timedelta(hours=1, seconds=1)).astimezone(time_zone())
    for found in CronSim(expression, moment, reverse=True):
        due = found.astimezone(UTC)
        if due <= now:
            return due if due > since else None
    return None


def night_of(now: datetime) -> datetime | None:
    """The beginning of the current night, which is its due time; None by day."""
    local = now.astimezone(time_zone())
    if NIGHT_ENDS <= local.time() < NIGHT_BEGINS:
        return None
    date = local.date() if local.time() >= NIGHT_BEGINS else local.date() - timedelta(days=1)
    return _moment(date, NIGHT_BEGINS)


def night_end(due: datetime) -> datetime:
    """The end of the night that began at `due`."""
    return _moment(due.astimezone(time_zone()).date() + timedelta(days=1), NIGHT_ENDS)


def next_night(now: datetime) -> datetime:
    """The beginning of the next night."""
    local = now.astimezone(time_zone())
    return _moment(local.date() + timedelta(days=local.time() >= NIGHT_BEGINS), NIGHT_BEGINS)


def _moment(date: object, at: time) -> datetime:
    return datetime.combine(date, at, tzinfo=time_zone()).astimezone(UTC)  # type: ignore[arg-type]
