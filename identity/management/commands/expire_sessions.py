"""manage.py expire_sessions"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from identity.management.support import PlatformCommand
from identity.oauth.issue import tokens_prune
from identity.sessions import sessions_sweep


class Command(PlatformCommand):
    """Closes expired sessions now, as the worker does every minute."""

    help = "Close expired sessions and remove tokens that nobody can use any more."
    example = "manage.py expire_sessions"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        result = {"sessions_closed": sessions_sweep(), "tokens_removed": tokens_prune()}
        sentence = f"Closed {result['sessions_closed']} sessions, removed {result['tokens_removed']} tokens."
        self.print_result(result, sentence, as_json=options["as_json"])
