"""Export entities of a repository as a file that import_data takes (spec 11, 11.2)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError

from audit.actors import OPERATOR
from audit.record import record
from domain.entities.custom_entities import live
from domain.management.imports import context_of, message_of
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.sheets.exporting import checked_names, exported_rows, importable, write_export
from domain.query.api.rows import parse_filter
from foundation import errors
from identity.audit_kinds import DataExported
from identity.management.support import PlatformCommand

_FORMATS = ("csv", "xlsx", "json")


class Command(PlatformCommand):
    """Rows are read in steps and written as they come."""

    help = "Exports the entities of a repository. import_data takes the file; importing it again changes nothing."
    example = 'manage.py export_data Crm_Sales_Customers --output customers.xlsx --filter "Active eq true"'

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What, and to where."""
        parser.add_argument("repository", help="entity set or dotted name, such as Crm_Sales_Customers")
        parser.add_argument("--format", choices=_FORMATS, help="csv unless the name of the file says otherwise")
        parser.add_argument("--output", type=Path, help="the file; without it the standard output")
        parser.add_argument("--filter", default="", help="a $filter")
        parser.add_argument("--select", default="", help="attributes and paths (Customer.Number), with commas")
        parser.add_argument("--user", default="", help="login of the user whose rights decide what is exported")
        parser.add_argument("--template", action="store_true", help="only the headers, to be filled in")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export; the file is there when it is complete."""
        live.follow()
        output: Path | None = options["output"]
        kind = options["format"] or (output.suffix[1:].lower() if output is not None else "")
        try:
            with _opened(output) as file:
                count = _export(file, kind if kind in _FORMATS else "csv", options)
        except OSError as exc:
            raise CommandError(f"{output}: {exc.strerror}") from exc
        except errors.PlatformError as exc:
            raise CommandError(message_of(exc)) from exc
        name, condition = options["repository"], options["filter"][:500]
        record(DataExported, by=OPERATOR, subject=name, rows=count, filter=condition, command="export_data")
        print(f"{count} exported", file=sys.stderr)


def _export(file: IO[bytes], kind: str, options: dict[str, Any]) -> int:
    context = context_of(options["user"])
    repository = _repository(options["repository"])
    selected = options["select"].split(",") if options["select"] else []
    names = checked_names(repository, selected) or importable(repository, context)
    condition = parse_filter(options["filter"]) if options["filter"] else None
    rows = iter(()) if options["template"] else exported_rows(context, repository, names, condition)
    return write_export(file, kind, repository, names, rows)


def _repository(name: str) -> Repository[Any]:
    found = repositories.for_entity_name(name)
    if found is None:
        raise CommandError(f"There is no repository {name}.")
    return found


@contextmanager
def _opened(output: Path | None) -> Iterator[IO[bytes]]:
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    unfinished = output.with_name(f"{output.name}.part")
    try:
        with unfinished.open("wb") as file:
            yield file
        unfinished.replace(output)
    finally:
        unfinished.unlink(missing_ok=True)
