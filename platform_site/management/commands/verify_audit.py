"""manage.py verify_audit: find changed, removed and inserted entries of the audit chain (spec 12.4)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from audit.actors import OPERATOR
from audit.record import record
from audit.verify import ChainVerified, Head, InvalidHead, Report, chain_verify, head_parse
from identity.management.support import PlatformCommand
from platform_site.management.audit_range import add_range, range_read


class Command(PlatformCommand):
    """Verifies the chain. Exit status 1 if it was tampered with, or the range has no entry."""

    help = (
        "Verify the audit chain: hashes, seals, signed heads, and with --head heads that were kept outside of the "
        "instance. Says which entries were changed, removed or inserted. A run over the whole chain is noted in it."
    )
    example = (
        "manage.py verify_audit\n  manage.py verify_audit --from 2026-11-01 --to 2026-11-30\n"
        "  manage.py verify_audit --head heads.ndjson"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_range(parser)
        parser.add_argument(
            "--head",
            action="append",
            default=[],
            metavar="FILE",
            help="heads kept outside: a line for each, the JSON of /sys/audit/head or its jws; - for standard input",
        )
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        external = [head for name in options["head"] for head in _heads(name)]
        first, last = range_read(options["first"], options["last"])
        report = chain_verify(first=first, last=last, external=external)
        if first == 1 and last is None:
            record(
                ChainVerified,
                by=OPERATOR,
                entries=report.entries,
                findings=len(report.findings),
                toPosition=report.last.position,
                hash=report.last.hash,
            )
        self._print(report, as_json=options["as_json"])
        if report.findings:
            raise CommandError(f"The audit chain is not as it was written: {_counted(report)}.")
        if not report.entries and (options["first"] or options["last"]):
            raise CommandError("No chained entry is in this range: nothing was verified.")

    def _print(self, report: Report, *, as_json: bool) -> None:
        if as_json:
            result = {
                "ok": not report.findings,
                "entries": report.entries,
                "heads": report.heads,
                "waiting": report.waiting,
                "uncheckedSeals": report.unchecked_seals,
                "position": report.last.position,
                "hash": report.last.hash,
                "findings": [finding._asdict() for finding in report.findings],
                "notes": report.notes,
            }
            self.stdout.write(json.dumps(result))
            return
        for finding in report.findings:
            self.stdout.write(f"{finding.position or '-':>8}  {finding.what}")
        for note in report.notes:
            self.stdout.write(f"Note: {note}")
        if report.unchecked_seals:
            self.stdout.write(f"Note: {report.unchecked_seals} seals are of keys that are not kept any more")
        self.stdout.write(
            f"{report.entries} entries and {report.heads} heads verified up to position {report.last.position}; "
            f"{report.waiting} entries are not chained yet."
        )


def _counted(report: Report) -> str:
    count = len(report.findings)
    return f"{'at least ' if report.is_full else ''}{count} finding{'' if count == 1 else 's'}"


def _heads(name: str) -> list[Head]:
    """The heads of a file. Raises CommandError."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandError(f"{name} cannot be read: {exc}") from exc
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise CommandError(f"{name} has no head.")
    heads = []
    for number, line in enumerate(lines, start=1):
        try:
            heads.append(head_parse(line))
        except InvalidHead as exc:
            raise CommandError(f"Line {number} of {name} is no head of this instance: {exc}.") from exc
    return heads
