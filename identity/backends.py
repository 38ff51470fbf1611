"""Django's authentication backend, on our users and roles."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Permission
from django.db.models import QuerySet

from identity.models import User


class RoleBackend(ModelBackend):
    """Passwords of people. Django's own permissions are granted to nobody: administrators have all of them.

    What others may do in the admin is what their roles grant on repositories (domain.admin.rights).
    """

    def user_can_authenticate(self, user: Any) -> bool:
        """System users never log in (spec 01, 1.6)."""
        return isinstance(user, User) and user.active and user.user_type != "SystemUserNoLogin"

    def _get_user_permissions(self, user_obj: User | AnonymousUser) -> QuerySet[Permission]:
        return Permission.objects.none()

    def _get_group_permissions(self, user_obj: User) -> QuerySet[Permission]:
        return Permission.objects.none()
