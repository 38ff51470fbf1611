"""Django authentication backend on the platform's users and roles."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Permission
from django.db.models import QuerySet

from identity.models import User


class RoleBackend(ModelBackend):
    """Password login of users. Administrators have all of Django's own permissions, other users none.

    Admin rights of other users come from the repository permissions of their roles (domain.admin.context).
    """

    def user_can_authenticate(self, user: Any) -> bool:
        """System users never log in (spec 01, 1.6)."""
        return isinstance(user, User) and user.active and user.user_type != "SystemUserNoLogin"

    def _get_user_permissions(self, user_obj: User | AnonymousUser) -> QuerySet[Permission]:
        return Permission.objects.none()

    def _get_group_permissions(self, user_obj: User) -> QuerySet[Permission]:
        return Permission.objects.none()
