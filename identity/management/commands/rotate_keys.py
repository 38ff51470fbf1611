"""manage.py rotate_keys"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from audit.record import record
from foundation import encryption
from foundation.encrypted_columns import reencrypt_all, rows_of_former_keys
from identity.audit_kinds import SecretChanged
from identity.management.support import PlatformCommand
from identity.models import SigningKey
from identity.oauth.keys import keys_rotate


class Command(PlatformCommand):
    """Replaces the key that signs tokens on this node, or with --secrets the one that encrypts secrets."""

    help = (
        "Publish a new key that signs tokens. It signs after ten minutes, once every application knows it; with --now "
        "at once, for a stolen key. Old tokens stay valid: their key stays published until they have expired. "
        "With --secrets: encrypt the secrets in the database with a new key. What is stored is encrypted anew in "
        "batches while the instance runs; run it again after an interruption, and it goes on where it was. The former "
        "keys stay, for backups of the database, until --forget-former. With ENCRYPTION_KEYS set, put the new key in "
        "front there and restart every node first."
    )
    example = "manage.py rotate_keys\n  manage.py rotate_keys --now\n  manage.py rotate_keys --secrets"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--list", action="store_true", dest="only_list", help="only list the keys")
        parser.add_argument("--now", action="store_true", help="sign with the new key at once: the old one is stolen")
        parser.add_argument("--secrets", action="store_true", help="the key that encrypts secrets in the database")
        parser.add_argument(
            "--forget-former", action="store_true",
            help="with --secrets: no new key; remove the former ones, where nothing needs them any more",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["forget_former"] and not options["secrets"]:
            raise CommandError("--forget-former is for --secrets.")
        if options["secrets"]:
            self._rotate_secrets(options)
            return
        if not options["only_list"]:
            new = keys_rotate(by=OPERATOR, at_once=options["now"])
            if not options["as_json"]:
                since = "now" if options["now"] else "in ten minutes"
                self.stdout.write(f"{new.kid} signs new tokens from {since} on.")
        rows = [
            {"kid": key.kid, "created": key.created, "retired": key.retired}
            for key in SigningKey.objects.order_by("-created")
        ]
        self.print_rows(rows, as_json=options["as_json"])

    def _rotate_secrets(self, options: dict[str, Any]) -> None:
        if options["only_list"]:
            self.print_rows([{"key": key} for key in encryption.key_ids()], as_json=options["as_json"])
            return
        changed, unreadable = reencrypt_all()
        # Rows of a former key are left by an interrupted run, whose new key this run uses.
        new = not (changed or options["forget_former"] or settings.ENCRYPTION_KEYS)
        if new:
            record(SecretChanged, by=OPERATOR, subject=f"encryption key {encryption.key_add()}")
            changed, unreadable = reencrypt_all()
        if options["forget_former"]:
            if needing := rows_of_former_keys():
                places = ", ".join(f"{rows} in {column}" for column, rows in needing.items())
                raise CommandError(
                    f"The former keys stay: rows need them ({places}). Run it again in a minute; rows that are still "
                    "there then are damaged: enter their values anew, or delete them."
                )
            encryption.keys_keep_newest()
        result = {
            "key": encryption.key_ids()[0],
            "rows": changed,
            "unreadable": unreadable,
            "keys": len(encryption.key_ids()),
        }
        sentence = f"Secrets are encrypted with {result['key']}; {changed} rows were encrypted anew."
        if changed and not (new or options["forget_former"] or settings.ENCRYPTION_KEYS):
            sentence += " That ended an interrupted run; run it again for a new key."
        if unreadable:
            sentence += f" {unreadable} rows cannot be decrypted and stay as they are: see manage.py doctor."
        self.print_result(result, sentence, as_json=options["as_json"])
