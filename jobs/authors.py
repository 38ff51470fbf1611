"""Authors of jobs: the user who saved a job last. A job runs with its author's rights (spec 10.4)."""

from __future__ import annotations

from domain.dataset.checks.authority import NOBODY, PLATFORM, Authority, context_of, is_administrator
from domain.dataset.checks.authors import Authors
from foundation import errors
from identity.context import CallContext, system_context
from identity.models import User
from jobs.models import JobState

AUTHORS = Authors(JobState)


def author_of(job_id: str) -> Authority:
    """The author of a stored job."""
    return AUTHORS.of([job_id]).get(job_id, NOBODY)


def context_for(author: Authority, job: str, *, administrators_only: bool) -> CallContext:
    """The context of a run: the author's current rights, without a session. CLIENT… events do not fire (spec 05, 5.1).

    Raises Refused(JOB_LACKS_AUTHORITY) if the author may no longer sign in, or is no administrator although the job's
    type requires one.
    """
    if author != PLATFORM and not User.objects.filter(pk=author, active=True).exists():
        raise errors.Refused(errors.JOB_LACKS_AUTHORITY, job)
    if administrators_only and not is_administrator(author):
        raise errors.Refused(errors.JOB_LACKS_AUTHORITY, job)
    if author == PLATFORM:
        return system_context()
    return context_of(author)
