"""When a failed delivery is tried again (spec 06, 6.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings

from domain.entities.systems_config import WebHook
from webhooks.reschedule import parse_retry_after, retries_of, retry_delay


def exactly(low: float, high: float) -> float:
    return 1.0


def seconds(delay: timedelta | None) -> float | None:
    return None if delay is None else delay.total_seconds()


def test_the_schedule_is_5_s_30_s_2_min_10_min_and_then_it_is_over() -> None:
    delays = [seconds(retry_delay(made, max_retries=4, spread=exactly)) for made in range(1, 6)]
    assert delays == [5, 30, 120, 600, None]


def test_jitter_spreads_by_a_fifth() -> None:
    waits = [retry_delay(1) for _ in range(200)]
    found = [wait.total_seconds() for wait in waits if wait is not None]
    assert 4 <= min(found) < 4.5
    assert 5.5 < max(found) <= 6


def test_no_retry_makes_one_attempt() -> None:
    assert retry_delay(1, max_retries=0) is None


@pytest.mark.parametrize(
    "retry_after, expected", [(timedelta(seconds=1), 5), (timedelta(seconds=77), 77), (timedelta(days=9), 86400)]
)
def test_retry_after_wins_when_it_is_longer_up_to_a_day(retry_after: timedelta, expected: float) -> None:
    assert seconds(retry_delay(1, retry_after, spread=exactly)) == expected


def test_retry_after_does_not_add_retries() -> None:
    assert retry_delay(4, timedelta(seconds=1), max_retries=3) is None


def test_the_schedule_comes_from_settings_and_its_last_wait_repeats(settings: Settings) -> None:
    settings.WEBHOOKS = {"retry_seconds": [1, 2]}
    assert [seconds(retry_delay(made, spread=exactly)) for made in (1, 2, 3)] == [1, 2, 2]


@pytest.mark.parametrize(
    "values, expected",
    [
        ({"retry_logic": "NoRetry"}, 0),
        ({"retry_logic": "Retry"}, 3),
        ({"retry_logic": "Retry", "max_retries": 7}, 7),
        ({"retry_logic": "NoRetry", "max_retries": 2}, 2),
        ({"retry_logic": "Retry", "max_retries": 0}, 0),
        ({"retry_logic": "Retry", "max_retries": 99}, 10),
    ],
)
def test_a_template_says_how_often(values: dict[str, object], expected: int) -> None:
    assert retries_of(WebHook(**values)) == expected


@pytest.mark.parametrize(
    "header, expected",
    [
        ("120", 120),
        ("9" * 5_000, 10**9),
        (" 7 ", 7),
        ("Sat, 01 Jan 2022 00:01:00 GMT", 60),
        ("Fri, 31 Dec 2021 00:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("", None),
        (None, None),
        ("٣", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, expected: float | None) -> None:
    assert seconds(parse_retry_after(header, now=datetime(2022, 1, 1, tzinfo=UTC))) == expected
