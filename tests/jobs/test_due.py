"""Which run is made and taken when: schedules, nights, takeovers, retention (spec 10.4)."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import call_command

from foundation.fields import utc_now
from foundation.guids import new_guid
from identity.models import Session
from jobs.leases import run_lease
from jobs.models import JobRun, JobState
from jobs.planning import runs_overdue, runs_plan, runs_prune
from jobs.run import LeaseLost, Run
from jobs.worker import Worker
from tests.jobs.cast import make_job, run_now, work_at
from tests.scripts.cast import make_script
from tests.support.api import Api

NOON = datetime(2026, 7, 1, 12, 0, 30, tzinfo=UTC)
TEN = datetime(2026, 7, 1, 22, 0, 5, tzinfo=UTC)


def saved_at(moment: datetime) -> None:
    """As if all jobs had been saved then."""
    JobState.objects.update(scheduled_from=moment)


def summary(runs: list[JobRun]) -> list[tuple[str, str]]:
    return [(f"{run.due:%H:%M}", run.state) for run in runs]


def test_a_due_time_has_one_run_and_saving_is_no_due_time(api: Api) -> None:
    make_job(api, Schedule="Cron", CronExpression="*/10 * * * *")
    saved_at(NOON)
    assert summary(work_at(NOON + timedelta(minutes=9))) == []
    for _ in range(3):
        assert summary(work_at(NOON + timedelta(minutes=10))) == [("12:10", "Succeeded")]
    # Nobody was there for an hour: the last due time counts.
    assert summary(work_at(NOON + timedelta(minutes=75))) == [("12:10", "Succeeded"), ("13:10", "Succeeded")]


def test_a_changed_schedule_counts_from_its_saving_and_an_inactive_one_not_at_all(api: Api) -> None:
    job = make_job(api, Schedule="Cron", CronExpression="* * * * *", IsActive=False)
    saved_at(utc_now() - timedelta(hours=1))
    assert work_at(utc_now()) == []
    assert api.patch(job, {"IsActive": True}).status_code == 204
    assert JobState.objects.get().scheduled_from > utc_now() - timedelta(minutes=1)
    saved_at(NOON)
    assert api.patch(job, {"Notes": "x"}).status_code == 204
    assert JobState.objects.get().scheduled_from == NOON


def test_one_worker_makes_the_run_of_a_due_time(api: Api) -> None:
    make_job(api, Schedule="Cron", CronExpression="0 12 * * *")
    saved_at(NOON - timedelta(days=1))
    assert [runs_plan(NOON), runs_plan(NOON)] == [1, 0]


def test_due_times_behind_long_runs_wait_and_then_are_skipped(api: Api) -> None:
    make_job(api, Schedule="Cron", CronExpression="* * * * *")
    saved_at(NOON)
    for minute in range(1, 14):
        runs_plan(NOON + timedelta(minutes=minute))
    assert [run.state for run in JobRun.objects.order_by("due")] == ["Waiting"] * 10 + ["Skipped"] * 3
    (first, *rest) = work_at(NOON + timedelta(minutes=13))
    assert {run.state for run in (first, *rest)} == {"Succeeded", "Skipped"}


def test_jobs_of_the_night_run_one_by_one_and_once(api: Api) -> None:
    for name in ("b", "a", "c"):
        make_job(api, Name=name, Schedule="Night")
    saved_at(NOON)
    assert work_at(NOON) == []
    runs = work_at(TEN)
    assert [(run.job_name, run.state, run.trigger) for run in runs] == [
        ("a", "Succeeded", "Night"), ("b", "Succeeded", "Night"), ("c", "Succeeded", "Night"),
    ]  # fmt: skip
    assert all(
        before.finished <= after.started for before, after in pairwise(runs) if before.finished and after.started
    )
    assert len(work_at(TEN + timedelta(hours=6))) == 3
    assert len(work_at(TEN + timedelta(hours=24))) == 6


def test_no_second_run_of_the_night_begins_while_one_runs(api: Api) -> None:
    for name in ("a", "b"):
        make_job(api, Name=name, Schedule="Night")
    runs_plan(TEN)
    assert run_lease(TEN, seconds=30, max_running=9) is not None
    assert run_lease(TEN, seconds=30, max_running=9) is None
    # A run that somebody asks for by day or night is not of the sequence.
    job = make_job(api, Name="c")
    assert api.post(f"{job}/RunNow", {}).status_code == 200
    taken = run_lease(utc_now() + timedelta(days=900), seconds=30, max_running=9)
    assert taken is not None


def busy(world_user: Any, count: int) -> None:
    from identity.models import TrustedApplication

    application = TrustedApplication.objects.all()[0]
    for _ in range(count):
        Session.objects.create(
            key=new_guid(), user_id=world_user, application=application, expires=utc_now() + timedelta(hours=1)
        )


def test_a_busy_night_is_skipped_where_the_job_runs_on_idle(api: Api, world: Any) -> None:
    make_job(api, Name="idle", Schedule="Night", RunOnIdle=True)
    make_job(api, Name="always", Schedule="Night", RunOnIdle=False)
    saved_at(NOON)
    busy(world.user, 5)
    assert {run.job_name: run.state for run in work_at(TEN)} == {"idle": "Waiting", "always": "Succeeded"}
    Session.objects.update(closed=utc_now())
    busy(world.user, 4)
    assert {run.job_name: run.state for run in work_at(TEN)} == {"idle": "Succeeded", "always": "Succeeded"}


def test_a_run_that_waits_is_skipped_when_its_job_is_switched_off(api: Api, world: Any) -> None:
    job = make_job(api, Schedule="Night")
    busy(world.user, 5)
    assert [run.state for run in work_at(TEN)] == ["Waiting"]
    assert api.patch(job, {"IsActive": False}).status_code == 204
    Session.objects.update(closed=utc_now())
    (run,) = work_at(TEN)
    assert (run.state, run.message) == ("Skipped", "The job was switched off before it could run.")
    assert run_now(api, job).state == "Succeeded"


def test_a_night_that_was_busy_to_its_end_is_in_the_history(api: Api, world: Any) -> None:
    make_job(api, Schedule="Night")
    busy(world.user, 5)
    work_at(TEN)
    (run,) = work_at(TEN + timedelta(hours=7))
    assert (run.state, run.message) == ("Skipped", "The night ended before the job could run.")


def test_the_run_of_a_dead_worker_is_taken_over_and_is_the_same_run(api: Api) -> None:
    make_job(api, Schedule="Cron", CronExpression="0 12 * * *")
    saved_at(NOON - timedelta(days=1))
    runs_plan(NOON)
    dead = run_lease(NOON, seconds=30, max_running=9)
    assert dead is not None
    assert run_lease(NOON + timedelta(seconds=29), seconds=30, max_running=9) is None
    (run,) = work_at(NOON + timedelta(seconds=31))
    assert (run.pk, run.state, run.attempts) == (dead.pk, "Succeeded", 2)
    assert run.console.startswith("[The worker ended at about 12:01:00; another goes on.]")
    with pytest.raises(LeaseLost):
        Run(dead, None, 1, {}).record()  # type: ignore[arg-type]  # the dead one was only slow


def test_a_run_that_kills_its_workers_fails(api: Api) -> None:
    job = make_job(api)
    api.post(f"{job}/RunNow", {})
    JobRun.objects.update(state="Running", lost=9, lease_until=NOON)
    Worker().work()
    run = JobRun.objects.get()
    assert (run.state, run.message) == ("Failed", "The job failed: its workers ended 10 times without progress")


def test_a_script_is_not_run_again_behind_its_own_commit(api: Api) -> None:
    source = "Domain.General.Currencies.CurrenciesRepository.createNew({CurrencySign: 'XTS', Name: 'x'});"
    make_script(api, source, Code="TWICE")
    job = make_job(api, "RunScript", JobConfigurations={"Script": "TWICE"})
    for progress, state in (({"commits": 1}, "Failed"), ({"commits": 1, "result": "done"}, "Succeeded")):
        api.post(f"{job}/RunNow", {})
        JobRun.objects.filter(state="Waiting").update(state="Running", lease_until=NOON, progress=progress)
        Worker().work()
        assert JobRun.objects.first().state == state  # type: ignore[union-attr]
    assert "nobody knows how far it came" in JobRun.objects.last().message  # type: ignore[union-attr]


def test_old_runs_are_deleted_but_the_last_due_time_of_a_job(api: Api) -> None:
    make_job(api, Schedule="Cron", CronExpression="0 12 1 1 *")
    saved_at(NOON - timedelta(days=800))
    first, second = work_at(NOON - timedelta(days=400)) + work_at(NOON)[1:]
    assert runs_prune(NOON + timedelta(days=300), 90) == 1
    assert list(JobRun.objects.all()) == [second] != [first]
    assert len(work_at(NOON + timedelta(days=1))) == 1


def test_a_stopping_worker_hands_its_run_back(api: Api) -> None:
    job = make_job(api, "Prune")
    api.post(f"{job}/RunNow", {})
    row = run_lease(utc_now(), seconds=30, max_running=9)
    assert row is not None
    from foundation import cluster

    cluster._stopping.value = 1
    try:
        Worker().execute(row)
    finally:
        cluster._stopping.value = 0
    assert JobRun.objects.get().state == "Waiting"
    Worker().work()
    assert run_now(api, job).state == "Succeeded"
    assert set(JobRun.objects.values_list("state", flat=True)) == {"Succeeded"}


def test_the_doctor_counts_overdue_runs(api: Api) -> None:
    make_job(api, Schedule="Cron", CronExpression="0 12 * * *")
    saved_at(NOON - timedelta(days=1))
    runs_plan(NOON)
    assert runs_overdue(NOON + timedelta(minutes=9)) == 0
    out = StringIO()
    with suppress(SystemExit):  # it finds other things to say about an instance of tests
        call_command("doctor", "--json", stdout=out)
    assert "1 runs of jobs have waited for more than ten minutes for a worker" in out.getvalue()
    work_at(NOON)
    assert runs_overdue(utc_now()) == 0
