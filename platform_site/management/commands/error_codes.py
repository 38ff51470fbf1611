"""manage.py error_codes: the catalogue of the API's error codes (spec 07)."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser

from foundation.errors import error_codes_by_number
from identity.management.support import PlatformCommand


class Command(PlatformCommand):
    """Print every code, its type, HTTP status and message."""

    help = "List the error codes of the Domain API. Numbers and types never change meaning."
    example = "manage.py error_codes\n  manage.py error_codes --json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print a JSON array.")

    def handle(self, *args: Any, **options: Any) -> None:
        entries = error_codes_by_number()
        if options["json"]:
            rows = [
                {"code": item.number, "type": item.type, "status": item.status, "messageFormat": item.message_format}
                for item in entries
            ]
            self.stdout.write(json.dumps(rows, indent=2))
            return
        width = max(len(entry.type) for entry in entries)
        self.stdout.write(f"{'code':>5}  {'type':<{width}}  http  message")
        for entry in entries:
            self.stdout.write(f"{entry.number:>5}  {entry.type:<{width}}  {entry.status:>4}  {entry.message_format}")
