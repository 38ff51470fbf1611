"""manage.py changepassword"""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.core.management.base import CommandParser
from django.db import transaction

from audit.actors import OPERATOR
from identity.factors.notices import PASSWORD_CHANGED, user_notify
from identity.management.support import PlatformCommand, user_get
from identity.passwords import password_access_revoke


class Command(changepassword.Command, PlatformCommand):
    """Django's command, which then revokes the access of the old password and notifies the user by mail."""

    help = "Set a user's password, end the user's sessions and tokens, and tell the user by mail."
    example = "manage.py changepassword admin"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--keep-access", action="store_true", help="keep the user's tokens and licensed sessions")

    def handle(self, *args: Any, **options: Any) -> str | None:
        # Outside of a transaction: it waits for the operator's input.
        result: str | None = super().handle(*args, **options)
        user = user_get(options["username"] or getpass.getuser())
        if not options["keep_access"]:
            with transaction.atomic():
                password_access_revoke(user, by=OPERATOR)
        user_notify(user, PASSWORD_CHANGED, by=OPERATOR)
        return result
