"""manage.py rotate_keys"""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from identity.management.support import PlatformCommand
from identity.models import SigningKey
from identity.oauth.keys import keys_rotate


class Command(PlatformCommand):
    """Replaces the key that signs tokens on this node."""

    help = "Sign with a new key from now on. Old tokens stay valid: their key stays published until they have expired."
    example = "manage.py rotate_keys"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--list", action="store_true", dest="only_list", help="only list the keys")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["only_list"]:
            new = keys_rotate()
            if not options["as_json"]:
                self.stdout.write(f"New tokens are signed with {new.kid}.")
        rows = [
            {"kid": key.kid, "created": key.created, "retired": key.retired}
            for key in SigningKey.objects.order_by("-created")
        ]
        self.print_rows(rows, as_json=options["as_json"])
