"""Leases of runs, in the database (spec 10.4).

A lease is one conditional update, Waiting → Running, with a token. The worker renews it while it works; when the worker
dies the lease expires, and the next worker takes the run over and continues from its progress. The unique constraints
of jobs.models.JobRun refuse a second running run of a job, and of the night.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import F, Q

from domain.dataset.tables.write_transaction import write_transaction
from domain.entities.systems_config import Job
from foundation.clock import Clock
from identity.sessions import open_count
from jobs.models import NIGHT, RUNNING, WAITING, JobRun
from jobs.schedules import night_of

logger = logging.getLogger("platform.jobs")

#: Number of open sessions from which an instance is busy: night runs of jobs with RunOnIdle wait.
BUSY_SESSIONS = 5


def node_name() -> str:
    """The task cluster of this process: its machine and the process that started its workers."""
    return f"{socket.gethostname()}:{os.getppid()}"[:128]


def run_lease(now: datetime, *, seconds: float, max_running: int) -> JobRun | None:
    """Lease the next run that is due, or one whose worker died; None if there is none.

    max_running: maximum of running runs of this node; its other workers stay free to deliver webhooks.
    """
    due = Q(state=WAITING, due__lte=now) | Q(state=RUNNING, lease_until__lt=now)
    if not JobRun.objects.filter(due).exists():
        return None
    with write_transaction():
        node = node_name()
        running = JobRun.objects.filter(state=RUNNING, node=node, lease_until__gte=now)
        if running.count() >= max_running:
            return None
        for run in JobRun.objects.filter(due).order_by("due", "job_name", "id"):
            if run.state == WAITING and run.trigger == NIGHT and not _may_run_tonight(run, now):
                continue
            if _take(run, now, seconds, node):
                return JobRun.objects.get(pk=run.pk)
    return None


def _may_run_tonight(run: JobRun, now: datetime) -> bool:
    if night_of(now) != run.due:
        return False
    job = Job._default_manager.filter(pk=run.job_id).first()
    return job is None or not job.run_on_idle or open_count() < BUSY_SESSIONS


def _take(run: JobRun, now: datetime, seconds: float, node: str) -> bool:
    """Take the lease; False if another worker has it, which may happen on PostgreSQL."""
    same = JobRun.objects.filter(pk=run.pk, state=run.state, lease_token=run.lease_token)
    values = {
        "state": RUNNING,
        "lease_token": secrets.token_hex(16),
        "lease_until": now + timedelta(seconds=seconds),
        "attempts": F("attempts") + 1,
        "started": run.started or now,
        "node": node,
    }
    if run.state == RUNNING:
        values["lost"] = F("lost") + 1
        values["console"] = f"{run.console}[The worker ended at about {run.lease_until:%H:%M:%S}; another goes on.]\n"
    try:
        with transaction.atomic():
            return bool(same.update(**values))
    except IntegrityError:  # another run of the job, or of the night, is running
        return False


@contextmanager
def renewed(run: JobRun, clock: Clock, *, seconds: float, max_seconds: float) -> Iterator[None]:
    """Renew the lease in a thread while the block runs, for at most `max_seconds`: a worker that hangs loses it."""
    ended = threading.Event()

    def renew() -> None:
        try:
            for _ in range(int(max_seconds / (seconds / 3))):
                if ended.wait(seconds / 3):
                    return
                try:
                    held = JobRun.objects.filter(pk=run.pk, state=RUNNING, lease_token=run.lease_token)
                    if not held.update(lease_until=clock() + timedelta(seconds=seconds)):
                        return
                except DatabaseError:
                    logger.warning("the lease of the job %s could not be renewed", run.job_name, exc_info=True)
        finally:
            connection.close()

    thread = threading.Thread(target=renew, name="job lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(seconds)


def max_running_per_node() -> int:
    """The maximum of running runs of a node: one fewer than its task cluster has workers."""
    return max(1, int(settings.Q_CLUSTER.get("workers", 2)) - 1)
