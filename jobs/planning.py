"""Creates due runs: one row for a job's due time (spec 10.4).

Every worker of every node does this; the unique constraint lets one of them succeed. If several due times of a job have
passed while no worker ran, only the latest one gets a run.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Max

from domain.entities.systems_config import Job
from foundation import errors
from jobs.models import CRON, MANUAL, NIGHT, RUNNING, SKIPPED, WAITING, JobRun, JobState
from jobs.schedules import latest_cron, night_end, night_of

#: Maximum waiting runs of a job whose runs take longer than its interval; further due times are skipped.
MAX_WAITING = 10


def runs_plan(now: datetime) -> int:
    """Create the due runs, and skip those whose night is over or whose job is off; returns the number of new ones."""
    _skip_past_nights(now)
    _skip_inactive(now)
    jobs = list(Job._default_manager.filter(is_active=True).exclude(schedule="None"))
    if not jobs:
        return 0
    keys = [job.pk for job in jobs]
    states = JobState.objects.in_bulk(keys)
    scheduled = JobRun.objects.filter(job_id__in=keys, trigger__in=(CRON, NIGHT))
    last = dict(scheduled.values_list("job_id").annotate(Max("due")).order_by())
    return sum(_plan(job, states.get(job.pk), last.get(job.pk), now) for job in jobs)


def due_of(job: Job, state: JobState | None, last: datetime | None, now: datetime) -> datetime | None:
    """The latest due time by now that has no run; None if there is none."""
    if job.schedule == "Night":
        due = night_of(now)
        return None if due is None or (last is not None and due <= last) else due
    if job.schedule != "Cron" or not job.cron_expression or state is None:
        return None
    since = max(filter(None, (state.scheduled_from, last)))
    return latest_cron(job.cron_expression, since, now)


def _plan(job: Job, state: JobState | None, last: datetime | None, now: datetime) -> int:
    due = due_of(job, state, last, now)
    if due is None:
        return 0
    values = {"trigger": NIGHT if job.schedule == "Night" else CRON}
    if JobRun.objects.filter(job_id=job.pk, state=WAITING).count() >= MAX_WAITING:
        values |= {"state": SKIPPED, "message": f"{MAX_WAITING} earlier runs of the job are waiting."}
    return int(_insert(job, due, **values) is not None)


def run_request(job: Job, login: str, now: datetime) -> JobRun:
    """Create a run at a user's request. Raises Refused(JOB_RUNNING) while one runs, or another request waits."""
    open_runs = JobRun.objects.filter(job_id=job.pk)
    if open_runs.filter(state=RUNNING).exists() or open_runs.filter(state=WAITING, trigger=MANUAL).exists():
        raise errors.Refused(errors.JOB_RUNNING, job.name)
    run = _insert(job, now, trigger=MANUAL, started_by=login)
    if run is None:  # another request at the same microsecond
        raise errors.Refused(errors.JOB_RUNNING, job.name)
    return run


def _insert(job: Job, due: datetime, **values: str) -> JobRun | None:
    try:
        with transaction.atomic():
            return JobRun.objects.create(job_id=job.pk, job_name=job.name, job_type=job.job_type, due=due, **values)
    except IntegrityError:  # another worker has created it
        return None


def _skip_past_nights(now: datetime) -> None:
    for run in JobRun.objects.filter(state=WAITING, trigger=NIGHT, due__lt=now - timedelta(hours=1)):
        if now >= night_end(run.due):
            JobRun.objects.filter(pk=run.pk, state=WAITING).update(
                state=SKIPPED, finished=now, message="The night ended before the job could run."
            )


def _skip_inactive(now: datetime) -> None:
    """Runs that users have started remain: RunNow needs no active job."""
    waiting = JobRun.objects.filter(state=WAITING, trigger__in=(CRON, NIGHT))
    inactive = Job._default_manager.filter(pk__in=waiting.values("job_id"), is_active=False)
    if keys := list(inactive.values_list("pk", flat=True)):
        waiting.filter(job_id__in=keys).update(
            state=SKIPPED, finished=now, message="The job was switched off before it could run."
        )


def runs_overdue(now: datetime) -> int:
    """Number of runs that no worker has taken for ten minutes, without night runs, which run one after another."""
    deadline = now - timedelta(minutes=10)
    waiting = JobRun.objects.filter(state=WAITING, due__lt=deadline).exclude(trigger=NIGHT)
    return waiting.count() + JobRun.objects.filter(state=RUNNING, lease_until__lt=deadline).count()


def runs_prune(now: datetime, days: int) -> int:
    """Delete final runs past the retention; the last one of each job stays, because due times count from it."""
    last = JobRun.objects.filter(trigger__in=(CRON, NIGHT)).values("job_id").annotate(last=Max("due")).order_by()
    kept = {(row["job_id"], row["last"]) for row in last}
    old = JobRun.objects.filter(due__lt=now - timedelta(days=days)).exclude(state__in=(WAITING, RUNNING))
    ids = [pk for pk, job_id, due in old.values_list("pk", "job_id", "due") if (job_id, due) not in kept]
    for start in range(0, len(ids), 500):
        JobRun.objects.filter(pk__in=ids[start : start + 500]).delete()
    return len(ids)
