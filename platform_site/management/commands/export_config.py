"""manage.py export_config: the configuration of administrators as YAML (spec 09, 9.4)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from audit.record import record
from identity.audit_kinds import DataExported
from identity.management.support import PlatformCommand
from platform_site import configuration


class Command(PlatformCommand):
    """Exports the configuration, without secrets."""

    help = (
        "Write trusted applications (without secrets), rules, webhook templates, scripts, custom properties and row "
        "policies as YAML."
    )
    example = "manage.py export_config --output config.yaml"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--output", metavar="FILE", help="default: standard output")
        parser.add_argument("--json", action="store_true", dest="as_json", help="JSON instead of YAML")

    def handle(self, *args: Any, **options: Any) -> None:
        document = configuration.export()
        record(DataExported, by=OPERATOR, subject="configuration", command="export_config")
        if options["as_json"]:
            text = json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n"
        else:
            text = configuration.dump(document)
        if options["output"]:
            try:
                Path(options["output"]).write_text(text, encoding="utf-8")
            except OSError as exc:
                raise CommandError(f"{options['output']} cannot be written: {exc}") from exc
        else:
            self.stdout.write(text, ending="")
