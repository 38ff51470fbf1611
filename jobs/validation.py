"""Validates a job on save, by any client, and records its author and the time of its schedule (spec 10.4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from domain.dataset.checks.authority import NOBODY, context_of, is_administrator, weakest
from domain.dataset.records.record import Record
from domain.model import behaviours
from foundation import errors
from foundation.clock import database_now
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of
from jobs.authors import AUTHORS
from jobs.models import JobState
from jobs.schedules import check_cron
from jobs.types.base import JobType, SettingRefused, job_types, read_settings, setting_problems

JOBS = "Systems.Config.Jobs"
_HARMLESS = frozenset({"IsActive", "Name", "Notes"})
_OF_SCHEDULE = frozenset({"Schedule", "CronExpression", "IsActive"})


def register() -> None:
    """Register the validation of jobs and the recording of authors and schedules."""
    behaviours.add_validation(JOBS, check_job)
    behaviours.add_validation(JOBS, AUTHORS.note)
    behaviours.add_validation(JOBS, note_schedule)


def check_job(job: Record) -> None:
    """Raise Refused(JOB_INVALID) with one detail for each problem. An invalid job can be deactivated."""
    if job.is_deleted:
        return
    switched_off = job.state == "Modified" and not job.values["IsActive"] and set(job.original_values) <= _HARMLESS
    problems = [] if switched_off else list(_problems(job))
    if problems:
        details = [detail for detail, _ in problems]
        raise errors.Refused(errors.JOB_INVALID, problems[0][1], target=details[0].target, details=details)


def _problem(target: str, text: str) -> tuple[errors.Detail, str]:
    return errors.Detail(errors.JOB_INVALID, (text,), target), text


def _problem_of_setting(job_type: JobType, problem: SettingRefused) -> tuple[errors.Detail, str]:
    """The target is the setting: JobConfigurations/State."""
    target = "/".join(filter(None, ("JobConfigurations", problem.setting)))
    found = _problem(target, Message("JobConfigurations: {0}", reason_of(problem)))
    if problem.is_missing:
        return errors.Detail(errors.REQUIRED_MISSING, (job_type.name, problem.setting), target), found[1]
    return found


def _problems(job: Record) -> Iterator[tuple[errors.Detail, str]]:
    """(detail, the Message of the job's error)"""
    values = job.values
    if values["Schedule"] == "Cron":
        try:
            check_cron(values["CronExpression"] or "")
        except ValueError as exc:
            yield _problem("CronExpression", Message("CronExpression: {0}", reason_of(exc)))
    elif values["CronExpression"]:
        yield _problem("CronExpression", Message("CronExpression: {0}", Message("it needs the schedule Cron")))
    job_type = job_types.get(values["JobType"] or "")
    if job_type is None:
        yield _problem("JobType", Message("{0} is not one of {1}", values["JobType"], ", ".join(job_types.names())))
        return
    author = weakest(job.dataset.authorities.get(job.key, set()) or {NOBODY})
    if job_type.administrators_only and not is_administrator(author):
        yield _problem("JobType", Message("only administrators may save a job of the type {0}", job_type.name))
        return
    problems = list(setting_problems(job_type, values["JobConfigurations"]))
    if not problems:
        problems = list(job_type.check(read_settings(job_type, values["JobConfigurations"]), context_of(author)))
    yield from (_problem_of_setting(job_type, problem) for problem in problems)


def note_schedule(job: Record) -> None:
    """Set scheduled_from to now, with the commit, if the schedule is new or changed."""
    if job.is_deleted or (job.state == "Modified" and not _OF_SCHEDULE & set(job.original_values)):
        return
    # After the write of the author, which creates the row.
    job.dataset.defer_write(("job schedule", job.id), partial(_store_schedule, job.id))


def _store_schedule(id: str) -> None:
    JobState.objects.update_or_create(pk=id, defaults={"scheduled_from": database_now()})
