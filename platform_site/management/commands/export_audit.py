"""manage.py export_audit: the entries of the audit chain as lines of JSON, for a SIEM (spec 12.4)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from audit.export import entry_lines
from audit.kinds import entry_kinds
from audit.record import record
from identity.audit_kinds import DataExported
from identity.management.support import PlatformCommand
from platform_site.management.audit_range import add_range, range_read


class Command(PlatformCommand):
    """Reads the entries in batches and writes each batch at once."""

    help = (
        "Export chained audit entries as NDJSON, a line for each, oldest first. --format ocsf has the fields of the "
        "Open Cybersecurity Schema Framework, as SIEMs read them; the other one has what the hashes are made of."
    )
    example = "manage.py export_audit --from 2026-11-01 --output audit.ndjson\n  manage.py export_audit --format ocsf"

    def add_arguments(self, parser: CommandParser) -> None:
        add_range(parser)
        parser.add_argument("--format", choices=("ndjson", "ocsf"), default="ndjson")
        parser.add_argument("--kind", default="", choices=["", *sorted(entry_kinds.names())], metavar="KIND")
        parser.add_argument("--output", type=Path, help="the file; without it the standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        first, last = range_read(options["first"], options["last"])
        lines = entry_lines(first=first, last=last, kind=options["kind"], as_ocsf=options["format"] == "ocsf")
        output: Path | None = options["output"]
        count = 0
        try:
            file: IO[bytes] = sys.stdout.buffer if output is None else output.open("wb")
            try:
                for line in lines:
                    file.write(line)
                    count += 1
                file.flush()
            finally:
                if output is not None:
                    file.close()
        except OSError as exc:
            raise CommandError(f"{output or 'The output'} cannot be written: {exc.strerror}") from exc
        record(DataExported, by=OPERATOR, subject="audit entries", rows=count, format=options["format"])
        print(f"{count} exported", file=sys.stderr)
