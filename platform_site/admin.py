"""Admin pages of the tables that belong to libraries.

Django Q's own pages let a user who may edit a schedule name any function of the process with its arguments, and so run
code on the server. Administrators of business data are not operators: the only page here shows failed tasks.
"""

from __future__ import annotations

from typing import Any

import django_q.admin  # noqa: F401  (registers the library's pages, which are unregistered below)
from django.contrib import admin
from django.http import HttpRequest
from django_q.models import Failure, OrmQ, Schedule, Success

for model in (Schedule, Success, OrmQ, Failure):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


@admin.register(Failure)
class FailedTaskAdmin(admin.ModelAdmin[Any]):
    """Failed tasks, read-only."""

    list_display = ("name", "func", "started", "stopped")
    search_fields = ("name", "func")
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_delete_permission = has_change_permission
