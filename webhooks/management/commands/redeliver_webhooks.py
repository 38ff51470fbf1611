"""manage.py redeliver_webhooks"""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet

from foundation.guids import is_guid
from identity.management.support import PlatformCommand, moment
from webhooks.models import REDELIVERABLE_STATES, WebHookDelivery
from webhooks.services import deliveries_redeliver


class Command(PlatformCommand):
    """Send failed and other finished deliveries again."""

    help = "Send deliveries again: the failed ones unless --state or --id says otherwise."
    example = "manage.py redeliver_webhooks --web-hook ORDERS --since 2026-01-31 --dry-run --json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--id", action="append", dest="ids", default=[], help="a delivery; may be repeated")
        parser.add_argument("--web-hook", help="only deliveries of the template with this code")
        parser.add_argument(
            "--state", choices=REDELIVERABLE_STATES, help="only deliveries in this state (default: Failed)"
        )
        parser.add_argument("--since", help="created at or after this moment (ISO 8601)")
        parser.add_argument("--dry-run", action="store_true", help="only list them")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        deliveries = self._selected(options).order_by("creation_time_utc", "sequence")
        rows = [
            {"id": str(row.pk), "web_hook": row.web_hook_code, "state": row.state, "error": row.last_error}
            for row in deliveries.only("id", "web_hook_code", "state", "last_error").iterator()
        ]
        count = len(rows) if options["dry_run"] else deliveries_redeliver(deliveries)
        if not options["dry_run"]:
            states = dict(WebHookDelivery.objects.filter(pk__in=[row["id"] for row in rows]).values_list("id", "state"))
            rows = [{**row, "state": states.get(row["id"], row["state"])} for row in rows]
        if options["as_json"]:
            self.stdout.write(json.dumps(rows))
            return
        for row in rows:
            self.stdout.write(f"{row['id']}  {row['web_hook']}  {row['state']}  {row['error'] or ''}")
        verb = "would be sent again" if options["dry_run"] else "will be sent again"
        self.stdout.write(f"{count} deliveries {verb}.")

    def _selected(self, options: dict[str, Any]) -> QuerySet[WebHookDelivery]:
        if options["ids"]:
            wrong = [id for id in options["ids"] if not is_guid(id)]
            if wrong:
                raise CommandError(f"{wrong[0]!r} is not the id of a delivery.")
            deliveries = WebHookDelivery.objects.filter(pk__in=options["ids"], state__in=REDELIVERABLE_STATES)
        else:
            deliveries = WebHookDelivery.objects.filter(state=options["state"] or "Failed")
        if options["web_hook"]:
            deliveries = deliveries.filter(web_hook_code__iexact=options["web_hook"])
        if options["since"]:
            deliveries = deliveries.filter(creation_time_utc__gte=moment(options["since"]))
        return deliveries
