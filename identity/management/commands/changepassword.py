"""manage.py changepassword"""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword

from identity.factors.notices import PASSWORD_CHANGED, user_notify
from identity.management.support import PlatformCommand, user_get


class Command(changepassword.Command, PlatformCommand):
    """Django's command, which then tells the user by mail."""

    help = "Set a user's password, and tell the user by mail."
    example = "manage.py changepassword admin"

    def handle(self, *args: Any, **options: Any) -> str | None:
        said: str | None = super().handle(*args, **options)
        user_notify(user_get(options["username"] or getpass.getuser()), PASSWORD_CHANGED)
        return said
