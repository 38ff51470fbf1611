"""Admin pages of the tables that belong to libraries.

Django Q's own pages let whoever may edit a schedule name any function of the process with its arguments, which is code
on the server. Administrators of business data are not its operators: tasks are shown, and only when they failed.
"""

from __future__ import annotations

from typing import Any

import django_q.admin  # noqa: F401  (registers the library's pages, so that they can be taken back below)
from django.contrib import admin
from django.http import HttpRequest
from django_q.models import Failure, OrmQ, Schedule, Success

for model in (Schedule, Success, OrmQ, Failure):
    if admin.site.is_registered(model):
        admin.site.unregister(model)


@admin.register(Failure)
class FailedTaskAdmin(admin.ModelAdmin[Any]):
    """Tasks that failed, to read."""

    list_display = ("name", "func", "started", "stopped")
    search_fields = ("name", "func")
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    has_delete_permission = has_change_permission
