"""Three workers that are killed at random do each due time once, and each commit of a run once (spec 10.4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.db import connections
from django.db.models import QuerySet
from django.test import Client

from domain.dataset.dataset import Dataset
from domain.entities.systems_config import ConfigEntry
from foundation.fields import utc_now
from identity.context import system_context
from jobs.models import JobRun, JobState
from jobs.planning import MAX_WAITING
from jobs.types.base import job_types
from tests.jobs import counting
from tests.webhooks.workers import FAST, ROOT, wait_until

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]

JOBS = 6


@pytest.fixture(autouse=True)
def count_type() -> Iterator[None]:
    counting.register()
    yield
    job_types.remove("Count")


@contextmanager
def nursery(**options: object) -> Iterator[Callable[[], int]]:
    """Three workers on the database of the test; calling the value ends them and returns the number of kills."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.nursery"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.webhooks.worker_settings",
            "TEST_DATABASES": json.dumps(
                {alias: str(connections[alias].settings_dict["NAME"]) for alias in connections}
            ),
            "TEST_WEBHOOKS": json.dumps(dict(FAST)),
            "TEST_QUEUE": settings.Q_CLUSTER["name"],
            "DATA_DIR": str(settings.DATA_DIR),
            "NURSERY": json.dumps({"workers": 3, "every": 0.1, "seed": 1, **options}),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def end() -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        return int(process.stdout.readline())

    try:
        assert process.stdout.readline() == "ready\n"
        yield end
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def make_jobs(since: datetime) -> list[str]:
    dataset = Dataset(system_context())
    jobs = [
        dataset.create(
            "Systems.Config.Jobs",
            {"Name": f"Job {number}", "JobType": "Count", "Schedule": "Cron", "CronExpression": "* * * * *"},
        )
        for number in range(JOBS)
    ]
    dataset.commit()
    JobState.objects.update(scheduled_from=since)
    return [job.id for job in jobs]


def set_clock(moment: datetime) -> None:
    ConfigEntry._default_manager.update_or_create(key_path="clock", defaults={"key_value": moment.isoformat()})


def open_runs() -> QuerySet[JobRun]:
    """Runs that are to be done yet."""
    return JobRun.objects.filter(state__in=("Waiting", "Running"))


def check_effects() -> int:
    """Each run succeeded and did each of its commits once; returns the number of runs."""
    runs = list(JobRun.objects.all())
    assert not [(run.job_name, run.due, run.message) for run in runs if run.state != "Succeeded"]
    paths = ConfigEntry._default_manager.filter(key_path__startswith="count/").values_list("key_path", flat=True)
    assert Counter(paths) == {f"count/{run.pk}/{step}": 1 for run in runs for step in range(counting.COMMITS)}
    return len(runs)


@pytest.mark.parametrize("minutes", [6, pytest.param(120, marks=pytest.mark.fuzz)])
def test_each_due_time_of_a_clock_in_the_database_has_one_run(client: Client, minutes: int) -> None:
    begin = datetime(2026, 7, 1, 12, tzinfo=UTC)
    set_clock(begin)
    jobs = make_jobs(begin)
    seconds = 0

    def runs_of(minute: int) -> int:
        return JobRun.objects.filter(due=begin + timedelta(minutes=minute)).count()

    def passed() -> bool:
        """Time goes on, but not past a minute whose runs nobody has made yet, nor until due times are skipped."""
        nonlocal seconds
        is_minute_over = seconds % 60 == 56 and seconds >= 60
        if not is_minute_over or (runs_of(seconds // 60) == JOBS and open_runs().count() < JOBS * MAX_WAITING / 2):
            seconds += 4
            set_clock(begin + timedelta(seconds=seconds))
        return seconds >= minutes * 60 + 56 and runs_of(minutes) == JOBS

    def done() -> bool:
        nonlocal seconds
        seconds += 4
        set_clock(begin + timedelta(seconds=seconds))  # so that the leases of the dead expire
        return not open_runs().exists()

    with nursery(clock="clock", lease_seconds=120) as end:
        wait_until(passed, 60 + minutes * 5)
        JobState.objects.update(scheduled_from=begin + timedelta(days=1))
        wait_until(done, 60 + minutes * 5)
        kills = end()
    dues = {begin + timedelta(minutes=minute) for minute in range(1, minutes + 1)}
    for job in jobs:
        assert sorted(JobRun.objects.filter(job_id=job).values_list("due", flat=True)) == sorted(dues)
    runs = check_effects()
    retaken = JobRun.objects.filter(attempts__gt=1).count()
    print(f"{runs} runs, {kills} kills, {retaken} runs taken over")
    assert kills


@pytest.mark.fuzz  # a short run may end before the first kill
def test_each_due_time_of_the_real_clock_has_one_run(client: Client) -> None:
    due_times = 10
    jobs = make_jobs(utc_now() - timedelta(minutes=5))
    count = JobRun.objects.count
    with nursery(clock="database", lease_seconds=1) as end:
        wait_until(lambda: count() >= JOBS * due_times, 60 + 60 * due_times)
        JobState.objects.update(scheduled_from=utc_now() + timedelta(days=1))
        wait_until(lambda: not open_runs().exists(), 60)
        kills = end()
    for job in jobs:
        dues = list(JobRun.objects.filter(job_id=job).order_by("due").values_list("due", flat=True))
        assert len(dues) >= due_times
        assert dues == [dues[0] + timedelta(minutes=number) for number in range(len(dues))]
    runs = check_effects()
    retaken = JobRun.objects.filter(attempts__gt=1).count()
    print(f"{runs} runs, {kills} kills, {retaken} runs taken over")
    assert kills
