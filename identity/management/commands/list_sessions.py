"""manage.py list_sessions"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from identity.licences import licence_read
from identity.management.support import PlatformCommand
from identity.sessions import sessions_list


class Command(PlatformCommand):
    """Lists the sessions that hold licence slots."""

    help = "List open sessions, newest first."
    example = "manage.py list_sessions --json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", dest="include_closed", help="closed ones, too")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = [
            {
                "id": session.pk,
                "user": session.user.login,
                "application": session.application.application_uri,
                "service": session.is_service,
                "address": session.client_address,
                "opened": session.opened,
                "last_activity": session.last_activity,
                "expires": session.expires,
                "closed": session.closed,
            }
            for session in sessions_list(include_closed=options["include_closed"])
        ]
        self.print_rows(rows, as_json=options["as_json"])
        if not options["as_json"]:
            taken = sum(1 for row in rows if row["closed"] is None)
            self.stdout.write(f"{taken} of {licence_read().sessions} slots are taken.")
