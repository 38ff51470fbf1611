"""manage.py close_session"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from foundation.guids import is_guid
from identity.management.support import PlatformCommand, user_get
from identity.sessions import session_close_by_id, session_close_user


class Command(PlatformCommand):
    """Closes sessions and frees their licence slots. A valid token may open a new session; see revoke_tokens."""

    help = "Close sessions by id (see list_sessions), or all of a user."
    example = "manage.py close_session --user demo"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="*", metavar="ID")
        parser.add_argument("--user", metavar="LOGIN")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["ids"] and not options["user"]:
            raise CommandError("Give ids or --user.")
        wrong = [text for text in options["ids"] if not is_guid(text)]
        if wrong:
            raise CommandError(f"Not a session id: {', '.join(wrong)}")
        closed = sum(session_close_by_id(text) for text in options["ids"])
        if options["user"]:
            closed += session_close_user(user_get(options["user"]).pk)
        self.print_result({"closed": closed}, f"Closed {closed} sessions.", as_json=options["as_json"])
