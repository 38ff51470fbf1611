"""manage.py prune_webhooks"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from foundation.fields import utc_now
from identity.management.support import PlatformCommand
from webhooks.conf import webhook_settings
from webhooks.models import FINISHED_STATES
from webhooks.services import deliveries_prune


class Command(PlatformCommand):
    """Delete finished deliveries with their attempts. The worker does so once a day."""

    help = "Remove finished deliveries and their attempts."
    example = "manage.py prune_webhooks --days 7 --state Delivered"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, help="keep what finished within so many days (default: the setting)")
        parser.add_argument("--state", choices=FINISHED_STATES, help="only deliveries in this state")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        days = webhook_settings().retention_days if options["days"] is None else options["days"]
        if days < 0:
            raise CommandError("--days must not be negative.")
        removed = deliveries_prune(before=utc_now() - timedelta(days=days), state=options["state"])
        self.stdout.write(json.dumps({"removed": removed}) if options["as_json"] else f"{removed} deliveries removed.")
