"""Operations of jobs: run one now, and the latest runs (spec 10.4)."""

from __future__ import annotations

from typing import Any

from domain.dataset.records.record import Record
from domain.entities.systems_config import Job
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations
from foundation import errors
from foundation.clock import database_now
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from jobs.models import JobRun
from jobs.planning import run_request
from jobs.validation import JOBS

_LATEST = 20


def shown(run: JobRun) -> dict[str, Any]:
    """A run as JSON."""
    return {
        "runId": run.pk,
        "due": _time(run.due),
        "trigger": run.trigger,
        "state": run.state,
        "started": _time(run.started),
        "finished": _time(run.finished),
        "durationMs": round(run.duration_ms),
        "attempts": run.attempts,
        "message": run.message,
        "console": run.console,
    }


def _time(moment: Any) -> str | None:
    return None if moment is None else utc_text(moment)


_RUN_MEMBERS = (
    Parameter("runId"),
    Parameter("due"),
    Parameter("trigger"),
    Parameter("state"),
    Parameter("started", optional=True),
    Parameter("finished", optional=True),
    Parameter("durationMs", "Edm.Int32"),
    Parameter("attempts", "Edm.Int32"),
    Parameter("message"),
    Parameter("console"),
)


@operations.register
class RunNow(Operation):
    """Run the job as soon as a worker is free, whatever its schedule; also while it is inactive."""

    name = "RunNow"
    bound_to = JOBS
    scope = "update"
    commits = False
    returns = "Erp.JobRunResult"
    members = _RUN_MEMBERS
    description = "Runs the job now, in a worker, with the rights of its author."

    def run(self, call: OperationCall) -> Result:
        """The waiting run. Raises Refused(JOB_RUNNING)."""
        return Result(shown(run_request(stored(call.bound), _login(call), database_now())), is_object=True)


@operations.register
class GetRuns(Operation):
    """The latest runs of the job, the last one first."""

    name = "GetRuns"
    bound_to = JOBS
    is_function = True
    returns = "Collection(Erp.OpenObject)"
    description = "Lists the latest runs of the job: state, times, message and console."

    def run(self, call: OperationCall) -> Result:
        """The runs, in the form of RunNow's result."""
        return Result([shown(run) for run in JobRun.objects.filter(job_id=call.bound.id)[:_LATEST]])


def stored(record: Record) -> Job:
    """The job's row. Raises Refused for a job that is not saved yet."""
    job: Job | None = Job._default_manager.filter(pk=record.id).first()
    if job is None:
        raise errors.Refused(errors.JOB_INVALID, Message("it is not saved yet"))
    return job


def _login(call: OperationCall) -> str:
    return call.context.user.login if call.context.user is not None else ""
