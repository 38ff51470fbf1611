"""Plans and executes runs; every worker process of every node calls `Worker().work()` every few seconds."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any

from django.utils import translation

from domain.entities.systems_config import Job
from foundation import errors
from foundation.clock import Clock, database_now
from foundation.failures import record_failure
from foundation.messages import TranslatableMessage as Message
from foundation.texts import storable
from identity.context import system_context
from jobs.authors import author_of, context_for
from jobs.leases import max_running_per_node, renewed, run_lease
from jobs.models import FAILED, NIGHT, RUNNING, SUCCEEDED, TIME_LIMIT, WAITING, JobRun
from jobs.notices import failure_dataset
from jobs.planning import runs_plan
from jobs.run import LeaseLost, Run, Stopping, TimeLimit
from jobs.schedules import night_end
from jobs.types.base import job_types, read_settings

logger = logging.getLogger("platform.jobs")

#: Limit of one run (spec 10.4).
RUN_SECONDS = 300.0
#: A worker that does not renew its lease for this time counts as dead.
LEASE_SECONDS = 30.0
#: A worker that hangs loses its lease this long after the time limit.
MARGIN_SECONDS = 30.0
#: A run fails when this many of its workers have died without progress: the run itself may kill them.
MAX_LOST = 10


@dataclass(frozen=True)
class Worker:
    """The work of one worker process.

    seconds      no further run begins after this time
    max_running  maximum of running runs of this node
    """

    clock: Clock = database_now
    lease_seconds: float = LEASE_SECONDS
    run_seconds: float = RUN_SECONDS
    seconds: float = 30.0
    max_running: int = field(default_factory=max_running_per_node)

    def work(self) -> int:
        """Create due runs, then execute runs until none is left or the time is up; returns their number."""
        end = time.monotonic() + self.seconds
        runs_plan(self.clock())
        done = 0
        while time.monotonic() < end:
            row = run_lease(self.clock(), seconds=self.lease_seconds, max_running=self.max_running)
            if row is None:
                break
            self.execute(row)
            done += 1
        return done

    def execute(self, row: JobRun) -> None:
        """Execute one leased run and record its outcome. A lost lease is not an error: another worker continues."""
        run = Run(row, system_context(), self._seconds_of(row), carried_over(row))
        try:
            with (
                translation.override("en"),  # readers of all languages see the stored texts
                renewed(row, self.clock, seconds=self.lease_seconds, max_seconds=self.run_seconds + MARGIN_SECONDS),
            ):
                self._execute(run)
        except LeaseLost:
            logger.warning("the run of %s at %s was taken over", row.job_name, row.due)

    def _seconds_of(self, row: JobRun) -> float:
        if row.trigger != NIGHT:
            return self.run_seconds
        return min(self.run_seconds, (night_end(row.due) - self.clock()).total_seconds())

    def _execute(self, run: Run) -> None:
        try:
            message = _do(run)
        except LeaseLost:
            raise
        except TimeLimit:
            run.log(f"The time limit of {run.seconds:.0f} s is reached; the next run goes on.")
            self._finish(run, TIME_LIMIT, "The time limit is reached; the next run goes on from here.")
        except Stopping:
            run.store(state=WAITING, lease_token="", duration_ms=run.elapsed_ms, console=run.row.console,
                      progress=run.progress)  # fmt: skip
        except errors.PlatformError as exc:
            run.log(f"{exc.message}\n{exc.info or ''}")
            self._fail(run, exc.message)
        except Exception as exc:
            record_failure(f"job {run.row.job_name}", exc)
            run.log(f"{type(exc).__name__}: {exc}")
            self._fail(run, f"{type(exc).__name__}: {exc}")
        else:
            run.log(message)
            self._finish(run, SUCCEEDED, message)

    def _finish(self, run: Run, state: str, message: str) -> None:
        run.store(**self._outcome(run, state, message))

    def _fail(self, run: Run, message: str) -> None:
        """Store the outcome and the notifications of administrators in one commit."""
        dataset = failure_dataset(run.row, message)
        dataset.defer_write(("job run", run.row.pk), lambda: run.store(**self._outcome(run, FAILED, message)))
        dataset.commit()

    def _outcome(self, run: Run, state: str, message: str) -> dict[str, Any]:
        return {
            "state": state,
            "message": storable(message[:10_000]),
            "finished": self.clock(),
            "duration_ms": round(run.elapsed_ms, 3),
            "console": storable(run.row.console),
            "progress": run.progress,
            "output_name": run.output[0],
            "output": storable(run.output[1]),
            "lease_token": "",
            "lease_until": None,
        }


def _do(run: Run) -> str:
    row = run.row
    if row.lost >= MAX_LOST:
        raise errors.Refused(errors.JOB_FAILED, Message("its workers ended {0} times without progress", row.lost))
    job = Job._default_manager.filter(pk=row.job_id).first()
    job_type = None if job is None else job_types.get(job.job_type)
    if job is None or job_type is None:
        raise errors.Refused(errors.JOB_FAILED, Message("the job or its type is not there any more"))
    run.context = context_for(author_of(str(job.pk)), job.name, administrators_only=job_type.administrators_only)
    try:
        values = read_settings(job_type, job.job_configurations)
    except ValueError as exc:
        raise errors.Refused(errors.JOB_INVALID, errors.reason(exc)) from exc
    return job_type.run(run, values)


def carried_over(row: JobRun) -> dict[str, Any]:
    """The progress to continue from: the run's own, else that of the job's last run if it reached its time limit."""
    if row.progress:
        return dict(row.progress)
    last = JobRun.objects.filter(job_id=row.job_id, due__lt=row.due).exclude(state__in=(WAITING, RUNNING)).first()
    return dict(last.progress) if last is not None and last.state == TIME_LIMIT else {}
