"""Notifies administrators of failed jobs: Systems.Core.Notifications (spec 10.4)."""

from __future__ import annotations

from django.utils import translation
from django.utils.translation import gettext

from domain.dataset.dataset import Dataset
from identity.context import system_context
from identity.models import User
from jobs.models import JobRun

NOTIFICATION_CLASS = "JOB_FAILED"


def failure_dataset(run: JobRun, message: str) -> Dataset:
    """A dataset with a notification for each active administrator, in the administrator's language."""
    dataset = Dataset(system_context())
    for user in User.objects.filter(active=True, is_admin=True):
        with translation.override(user.default_language or "en"):
            subject = gettext("The job {0} failed: {1}").replace("{0}", run.job_name).replace("{1}", message)
        values = {"User": str(user.pk), "Subject": subject[:256], "NotificationClass": NOTIFICATION_CLASS,
                  "Priority": "High"}  # fmt: skip
        dataset.create("Systems.Core.Notifications", values)
    return dataset
