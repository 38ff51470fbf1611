"""manage.py rotate_webhook_secret"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from foundation.errors import PlatformError
from identity.management.support import PlatformCommand
from webhooks.authentication import authentication_schemes
from webhooks.services import signing_secret_remove, signing_secret_rotate


class Command(PlatformCommand):
    """Give a template a new signing secret."""

    help = (
        "Give a webhook template a new signing secret and print it, this once. "
        "The former secret signs beside it for the overlap, so that receivers can change without missing anything."
    )
    example = "manage.py rotate_webhook_secret ORDERS --overlap-hours 48"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("web_hook", help="code or id of the template")
        parser.add_argument("--overlap-hours", type=float, default=24.0)
        parser.add_argument("--scheme", choices=list(authentication_schemes.names()), default="")
        parser.add_argument("--remove", action="store_true", help="sign no more")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["remove"]:
                signing_secret_remove(options["web_hook"], by=OPERATOR)
                self.stdout.write("Deliveries are not signed any more.")
                return
            overlap = timedelta(hours=options["overlap_hours"])
            secret = signing_secret_rotate(options["web_hook"], scheme=options["scheme"], overlap=overlap, by=OPERATOR)
            self.stdout.write(secret)
        except PlatformError as exc:
            raise CommandError(str(exc)) from exc
