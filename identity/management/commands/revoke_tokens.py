"""manage.py revoke_tokens"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from identity.management.support import PlatformCommand, application_get, user_get
from identity.models import ReferenceToken
from identity.oauth.issue import application_revoke, user_revoke
from identity.reference_tokens import reference_token_revoke


class Command(PlatformCommand):
    """Revokes tokens: at once on this machine, within a second on other nodes."""

    help = "Revoke all tokens of a user or an application, reference tokens included, and close their sessions."
    example = "manage.py revoke_tokens --user demo"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="LOGIN")
        parser.add_argument("--application", metavar="URI")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["user"]) == bool(options["application"]):
            raise CommandError("Give --user or --application.")
        if options["user"]:
            user = user_get(options["user"])
            families = user_revoke(user, by=OPERATOR)
            reference = ReferenceToken.objects.filter(user=user, revoked=None)
        else:
            application = application_get(options["application"])
            families = application_revoke(application, by=OPERATOR)
            reference = ReferenceToken.objects.filter(application=application, revoked=None)
        rows = list(reference)
        for row in rows:
            reference_token_revoke(row, by=OPERATOR)
        result = {"token_families": families, "reference_tokens": len(rows)}
        sentence = f"Revoked {families} token families and {len(rows)} reference tokens."
        self.print_result(result, sentence, as_json=options["as_json"])
