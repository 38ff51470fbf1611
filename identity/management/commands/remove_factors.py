"""manage.py remove_factors"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from audit.actors import OPERATOR
from identity.factors.listing import factors_of, factors_remove
from identity.factors.notices import REMOVED_BY_ADMINISTRATOR, user_notify
from identity.management.support import PlatformCommand, user_get


class Command(PlatformCommand):
    """Removes all second factors of a user who has lost them, for example of the only administrator."""

    help = "Remove the passkeys, authenticator app and recovery codes of a user, and tell the user by mail."
    example = "manage.py remove_factors admin"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        user = user_get(options["login"])
        factors = factors_of(user)
        removed = len(factors.passkeys) + int(factors.app is not None)
        with transaction.atomic():
            factors_remove(user, passkeys=factors.passkeys, app=True)
            if removed:
                user_notify(user, REMOVED_BY_ADMINISTRATOR, by=OPERATOR)
        self.print_result({"removed": removed}, f"Removed {removed} second factors.", as_json=options["as_json"])
