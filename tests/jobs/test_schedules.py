"""Due times: cron expressions and the night in the instance's time zone, over changes of the clock (spec 10.4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from jobs.schedules import latest_cron, next_cron, night_end, night_of, time_zone

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
#: In Berlin the hour from 2 to 3 is missing on 29 March 2026 and comes twice on 25 October.
SPRING, AUTUMN = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def berlin(settings: pytest.FixtureRequest) -> None:
    settings.TIME_ZONE = "Europe/Berlin"  # type: ignore[attr-defined]


def dues(expression: str, since: datetime, days: int = 2) -> list[str]:
    """Due times as workers find them minute by minute, in local time."""
    found: list[datetime] = []
    last = since
    for minute in range(days * 24 * 60):
        due = latest_cron(expression, last, since + timedelta(minutes=minute))
        if due is not None:
            found.append(due)
            last = due
    return [f"{due.astimezone(time_zone()):%d %H:%M}" for due in found]


@pytest.mark.parametrize(
    "expression, since, expected",
    [
        ("30 2 * * *", SPRING, ["29 03:00", "30 02:30"]),
        ("30 2 * * *", AUTUMN, ["25 02:30", "26 02:30"]),
        ("15,45 2 * * *", AUTUMN, ["25 02:15", "25 02:45", "26 02:15", "26 02:45"]),
        ("0 3 * * *", SPRING, ["29 03:00", "30 03:00"]),
        ("0 12 1 * *", datetime(2026, 1, 30, tzinfo=UTC), ["01 12:00"]),
        ("0 9 * * MON", datetime(2026, 11, 21, tzinfo=UTC), ["23 09:00"]),
    ],
)
def test_a_missing_hour_and_a_doubled_one_are_due_once(expression: str, since: datetime, expected: list[str]) -> None:
    assert dues(expression, since, days=3)[: len(expected)] == expected


def test_each_hour_that_passes_is_due() -> None:
    assert len(dues("0 * * * *", AUTUMN, days=1)) == 23
    assert len(dues("0 * * * *", SPRING, days=1)) == 23


@given(
    minute=st.integers(0, 59),
    hour=st.sets(st.integers(0, 23), min_size=1, max_size=3),
    start=st.sampled_from([SPRING, AUTUMN]),
    later=st.integers(0, 48 * 60),
)
def test_the_latest_due_time_is_the_last_that_the_future_had(
    minute: int, hour: set[int], start: datetime, later: int
) -> None:
    expression = f"{minute} {','.join(map(str, sorted(hour)))} * * *"
    now = start + timedelta(minutes=later)
    expected = None
    for due in CronSim(expression, start.astimezone(time_zone())):
        if due.astimezone(UTC) > now:
            break
        expected = due.astimezone(UTC)
    assert latest_cron(expression, start, now) == expected


def test_the_next_due_time_is_shown() -> None:
    assert next_cron("0 22 * * *", AUTUMN) == datetime(2026, 10, 24, 20, tzinfo=UTC)
    assert latest_cron("0 0 29 2 *", LONG_AGO, AUTUMN) == datetime(2024, 2, 28, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "now, begun",
    [
        (datetime(2026, 7, 1, 19, 59, tzinfo=UTC), None),
        (datetime(2026, 7, 1, 20, 0, tzinfo=UTC), datetime(2026, 7, 1, 20, tzinfo=UTC)),
        (datetime(2026, 7, 2, 2, 59, tzinfo=UTC), datetime(2026, 7, 1, 20, tzinfo=UTC)),
        (datetime(2026, 7, 2, 3, 0, tzinfo=UTC), None),
        (datetime(2026, 10, 25, 3, 59, tzinfo=UTC), datetime(2026, 10, 24, 20, tzinfo=UTC)),
    ],
    ids=["before", "begins", "late", "over", "longer in autumn"],
)
def test_the_night_is_from_ten_to_five(now: datetime, begun: datetime | None) -> None:
    assert night_of(now) == begun
    if begun is not None:
        assert begun <= now < night_end(begun)
