"""manage.py issue_token"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from identity.management.support import PlatformCommand, application_get, duration, user_get
from identity.reference_tokens import ReferenceTokenRefused, reference_token_issue


class Command(PlatformCommand):
    """Issues a reference token."""

    help = "Issue a reference token: personal with --user, else one of the application's service."
    example = "manage.py issue_token PublicDemoClient --user demo --scope read --lifetime 30d"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("application", help="ApplicationUri")
        parser.add_argument("--user", metavar="LOGIN", help="whose token it is; without: the service's")
        parser.add_argument("--scope", default="read", help="space-separated; default: read")
        parser.add_argument("--lifetime", default="30d", help="such as 12h or 30d; default: 30d")
        parser.add_argument("--name", default="manage.py issue_token", help="what it is for")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            token, row = reference_token_issue(
                user=user_get(options["user"]) if options["user"] else None,
                application=application_get(options["application"]),
                name=options["name"],
                scopes=options["scope"].split(),
                lifetime=duration(options["lifetime"]),
                by=OPERATOR,
            )
        except ReferenceTokenRefused as refused:
            raise CommandError(str(refused)) from refused
        result = {"token": token, "id": row.pk, "kind": row.kind, "expires": row.expires}
        self.print_result(result, token, as_json=options["as_json"])
