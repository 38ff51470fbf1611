"""manage.py import_config: show what a configuration document would change, or apply it (spec 09, 9.4)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from audit.record import record
from foundation.errors import PlatformError
from identity.audit_kinds import ConfigurationChanged
from identity.management.support import PlatformCommand
from platform_site.configuration import load
from platform_site.configuration_changes import Difference, apply, compare
from platform_site.configuration_tables import ConfigurationError

#: Exit status if there are differences that were not applied; 1 is an error.
DIFFERS = 3


class Command(PlatformCommand):
    """Compares or applies a document; applying it twice changes nothing the second time."""

    help = (
        "Show what a file made by export_config would change here; with --apply, change it: custom entities "
        "one by one, everything else all or nothing. "
        f"Exit status: 0 nothing to do or applied, {DIFFERS} there are differences, 1 error."
    )
    example = "manage.py import_config config.yaml\n  manage.py import_config config.yaml --apply"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="YAML; - reads standard input")
        parser.add_argument("--apply", action="store_true", help="write the changes")
        parser.add_argument("--delete", action="store_true", help="also delete what the file's sections do not have")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            text = sys.stdin.read() if options["file"] == "-" else Path(options["file"]).read_text(encoding="utf-8")
            differences = compare(load(text), delete=options["delete"])
            notes = apply(differences) if options["apply"] else []
            if options["apply"] and differences:
                changes = [f"{each.section} {each.key}" for each in differences[:100]]
                record(
                    ConfigurationChanged, by=OPERATOR, subject="import_config", objects=len(differences), first=changes
                )
        except UnicodeDecodeError as exc:
            raise CommandError(f"{options['file']} is not UTF-8: {exc}") from exc
        except (OSError, ConfigurationError) as exc:
            raise CommandError(str(exc)) from exc
        except PlatformError as exc:
            raise CommandError(f"{exc.code.type}: {exc.message}") from exc
        if options["as_json"]:
            result = {
                "applied": options["apply"],
                "differences": [
                    {"section": d.section, "key": d.key, "here": d.here, "file": d.there} for d in differences
                ],
                "notes": notes,
            }
            self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False, default=str))
        else:
            self._print(differences, notes, applied=options["apply"])
        if differences and not options["apply"]:
            sys.exit(DIFFERS)

    def _print(self, differences: list[Difference], notes: list[str], *, applied: bool) -> None:
        for difference in differences:
            for line in difference.lines():
                self.stdout.write(line)
        for note in notes:
            self.stdout.write(f"! {note}")
        if not differences:
            self.stdout.write("Nothing differs.")
        elif applied:
            self.stdout.write(f"{len(differences)} objects changed.")
        else:
            self.stdout.write(f"{len(differences)} objects differ; --apply changes them.")
