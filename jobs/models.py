"""Tables of job states and runs; jobs themselves are entities (Systems.Config.Jobs)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from foundation.fields import GuidField, utc_now
from foundation.guids import new_guid

#: States of a run. Open runs are Waiting or Running; the others are final.
WAITING, RUNNING = "Waiting", "Running"
SUCCEEDED, FAILED, TIME_LIMIT, SKIPPED = "Succeeded", "Failed", "TimeLimit", "Skipped"
#: Triggers of a run.
CRON, NIGHT, MANUAL = "Cron", "Night", "Manual"


class JobState(models.Model):
    """The platform's data about a job, in a table that no caller can write.

    author           the authority that saved the job last (domain.dataset.checks.authors)
    scheduled_from   time of the last change of the schedule; only later due times count
    """

    job_id = GuidField(primary_key=True)
    author = models.CharField(max_length=36, default="", blank=True)
    scheduled_from = models.DateTimeField(default=utc_now)

    objects: ClassVar[models.Manager[JobState]]

    def __str__(self) -> str:
        return str(self.job_id)


class JobRun(models.Model):
    """One run of a job for one due time; kept after the job is deleted.

    Three unique constraints guarantee spec 10.4 on any number of nodes: one row for a job's due time, one running row
    of a job, and one running row of the night's sequence.

    due           due time; for a run that was started manually the time of the request
    started       time of the first attempt; duration_ms is the working time of all attempts
    attempts      number of attempts: more than one after a worker died or stopped
    lost          workers that died since the run last recorded progress
    progress      from which a further attempt, or the next run after the time limit, continues
    console       log of the run; output is a document that it produced, output_name its file name
    lease_token   of the worker that runs it; another may take it after lease_until
    """

    id = models.CharField(primary_key=True, max_length=36, default=new_guid, editable=False)
    job_id = GuidField(db_index=True)
    job_name = models.CharField(max_length=254)
    job_type = models.CharField(max_length=64)
    trigger = models.CharField(max_length=8)
    due = models.DateTimeField()
    state = models.CharField(max_length=16, default=WAITING)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    duration_ms = models.FloatField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    lost = models.PositiveIntegerField(default=0)
    progress: models.Field[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    message = models.TextField(blank=True, default="")
    console = models.TextField(blank=True, default="")
    output = models.TextField(blank=True, default="")
    output_name = models.CharField(max_length=128, blank=True, default="")
    started_by = models.CharField(max_length=64, blank=True, default="")
    node = models.CharField(max_length=128, blank=True, default="")
    lease_token = models.CharField(max_length=32, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager[JobRun]]

    class Meta:
        ordering = ["-due", "job_name"]
        constraints = [
            models.UniqueConstraint(fields=["job_id", "due"], name="job_run_due"),
            models.UniqueConstraint(fields=["job_id"], condition=Q(state=RUNNING), name="job_run_running"),
            models.UniqueConstraint(
                fields=["trigger"], condition=Q(state=RUNNING, trigger=NIGHT), name="job_run_night"
            ),
        ]
        indexes = [models.Index(fields=["state", "due"], name="job_run_state_due")]

    def __str__(self) -> str:
        return f"{self.job_name} {self.due:%Y-%m-%d %H:%M:%S} {self.state}"
