"""Admin pages of the tables of libraries.

On Django Q's own pages a user who may edit a schedule can name any function with arguments, and so run code on the
server. Administrators of business data are not operators, so the pages here are read-only.
"""

from __future__ import annotations

import django_q.admin  # noqa: F401  (registers the library's pages, which are unregistered below)
from django.conf import settings
from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from django_q.models import Failure, OrmQ, Schedule, Success

from identity.admin_bases import HistoryAdmin
from platform_site import audit_pages, request_inspector  # noqa: F401  (registers its pages)

for model in (Schedule, Success, OrmQ, Failure):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


class TaskAdmin(HistoryAdmin):
    """Pages of the task queue without actions."""

    actions = None


@admin.register(Failure)
class FailedTaskAdmin(TaskAdmin):
    """Failed tasks."""

    list_display = ("name", "func", "started", "stopped")
    search_fields = ("name", "func")


@admin.register(Schedule)
class ScheduleAdmin(TaskAdmin):
    """The schedules of the task cluster."""

    fields = list_display = ("name", "func", "schedule_type", "minutes", "next_run")


class QueuedTaskAdmin(TaskAdmin):
    """Waiting tasks, and tasks that a worker has taken, whose lock ends in the future."""

    list_display = ("task_name", "function", "lock")
    fields = ("task_name", "function", "lock")

    @admin.display(description=_("Name"))
    def task_name(self, task: OrmQ) -> str:
        """The task's name."""
        return str(task.name())

    @admin.display(description=_("Function"))
    def function(self, task: OrmQ) -> str:
        """The function that the task calls."""
        return str(task.func())


# With Redis the queue is not a table; /tools/resource-monitor shows its length.
if "orm" in settings.Q_CLUSTER:
    admin.site.register(OrmQ, QueuedTaskAdmin)
