"""Import a file of objects as the Import action does (spec 03, 3.4; 11, 11.2), with a progress bar."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from django.core.management.base import CommandError

from domain.entities.custom_entities import live
from domain.management.imports import context_of, message_of
from domain.odata.invoke.import_operation import import_sheets
from domain.odata.invoke.importing import ImportSummary, import_objects, read_options
from domain.odata.message.json_stream import JsonObjectFile
from domain.odata.sheets.columns import ERROR
from domain.odata.sheets.mapping import FileMapping, read_mapping
from domain.odata.sheets.saved import saved_mapping_get
from domain.odata.sheets.source import FileKind, SheetSource
from domain.odata.sheets.writing import sheet_writer
from foundation import errors
from identity.context import CallContext
from identity.management.support import PlatformCommand

_WIDTH = 40
_SHEETS: dict[str, FileKind] = {".csv": "csv", ".xlsx": "xlsx"}
Answer = dict[str, Any]


class Command(PlatformCommand):
    """What the API answers of each object goes to a file; problems and a summary are printed."""

    help = (
        'Imports a JSON file {"objects": [{"@odata.type": …}, …]}, which may also hold the options of Import, or the '
        "rows of a CSV or XLSX file."
    )
    example = (
        "manage.py import_data objects.json --transaction all-objects --answers answers.jsonl\n"
        "  manage.py import_data customers.xlsx --mapping mapping.json --dry-run\n"
        "  manage.py import_data customers.xlsx --mapping mapping.json --errors refused.xlsx"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file, and the options of Import, which win over those in the file."""
        parser.add_argument("file", type=Path, help="a JSON, CSV or XLSX file, by the ending of its name")
        parser.add_argument("--transaction", choices=["per-object", "all-objects"])
        parser.add_argument("--model", choices=["frontend", "common", "backend"])
        parser.add_argument("--logging-level", type=int, choices=[0, 1, 2])
        parser.add_argument(
            "--user", default="", help="login of the user who makes the changes, with that user's rights"
        )
        parser.add_argument("--answers", type=Path, help="write the answer of each object to this file, one a line")
        parser.add_argument(
            "--mapping",
            help="a JSON file with repositories of sheets and attributes of columns, or the name of a saved mapping",
        )
        parser.add_argument("--repository", help="of a CSV file, if neither its name nor a mapping says it")
        parser.add_argument("--dry-run", action="store_true", help="tell what each object would do, and change nothing")
        parser.add_argument("--errors", type=Path, help="write refused rows and why to this CSV or XLSX file")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; the exit status is 1 when an object failed."""
        live.follow()
        path: Path = options["file"]
        summary = ImportSummary()
        try:
            with ExitStack() as stack:
                file = stack.enter_context(path.open("rb"))
                answers = options["answers"] and stack.enter_context(options["answers"].open("wb"))
                refused = stack.enter_context(_RefusedRows(options["errors"])) if options["errors"] else None
                for answer in self._imported(file, options, summary):
                    if answers:
                        answers.write(orjson.dumps(answer) + b"\n")
                    if refused is not None and answer["@erpnet.result"] == "fail":
                        refused.add(answer)
        except OSError as exc:
            raise CommandError(f"{exc.filename or path}: {exc.strerror}") from exc
        except errors.PlatformError as exc:
            raise CommandError(f"{path}: {message_of(exc)}") from exc
        print(*summary.warnings, f"{summary.succeeded} succeeded, {summary.failed} failed", sep="\n")
        if summary.failed:
            raise CommandError("Some objects were not imported.")

    def _imported(self, file: BinaryIO, options: dict[str, Any], summary: ImportSummary) -> Iterator[Answer]:
        """The answers, with the bar drawn and problems told on the way."""
        count, answers = _started(file, options, summary)
        bar = _Bar(count)
        for number, answer in enumerate(answers, 1):
            if (line := _result_line(number, answer, is_dry_run=options["dry_run"])) is not None:
                bar.say(line)
            bar.show(number)
            yield answer
        bar.end()


def _started(file: BinaryIO, options: dict[str, Any], summary: ImportSummary) -> tuple[int, Iterator[Answer]]:
    """The number of objects, and their answers. Raises PlatformError for a file that is broken anywhere."""
    path: Path = options["file"]
    given = {"transaction": options["transaction"], "model": options["model"], "loggingLevel": options["logging_level"]}
    given = {name: value for name, value in given.items() if value is not None}
    context = context_of(options["user"])
    kind = _SHEETS.get(path.suffix.lower())
    if kind is None:
        if options["mapping"] or options["repository"] or options["errors"]:
            raise CommandError("--mapping, --repository and --errors are for CSV and XLSX files.")
        source = JsonObjectFile(file, "objects")
        members = source.members()
        wanted = replace(read_options({**members, **given}), rolled_back=options["dry_run"])
        return int(members.get("objects") or 0), import_objects(context, source.elements(), wanted, summary)
    sheets = SheetSource(file, kind, _mapping(context, options["mapping"]), options["repository"] or path.stem)
    wanted = replace(read_options({**given, "objects": 0}), rolled_back=options["dry_run"])
    return sheets.check(), import_sheets(context, sheets, wanted, summary)


def _mapping(context: CallContext, given: str | None) -> FileMapping:
    """The mapping in the file, if there is one; else the saved one of that name, the user's own or a shared one."""
    if not given:
        return FileMapping()
    path = Path(given)
    if not (path.is_file() or path.suffix.lower() == ".json"):
        return saved_mapping_get(context.user_id or None, given)
    try:
        return read_mapping(orjson.loads(path.read_bytes()))
    except orjson.JSONDecodeError as exc:
        raise CommandError(f"{path}: {exc}") from exc


def _result_line(number: int, answer: Answer, *, is_dry_run: bool) -> str | None:
    """The line about an object; None if there is nothing to report."""
    source = answer.get("@erpnet.source")
    place = f"object {number}" if source is None else f"{source['sheet']} row {source['row']}".strip()
    if answer["@erpnet.result"] == "fail" and "@erpnet.error" in answer:
        return f"{place}: {answer['@erpnet.error']['message']}"
    return f"{place}: {answer['@erpnet.state']}" if is_dry_run else None


class _RefusedRows:
    """A file of refused rows with their errors, which can be mended and imported; empty if no row is refused."""

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() not in _SHEETS:
            raise CommandError("--errors takes the name of a CSV or XLSX file.")
        self._path, self._stack, self._sheet = path, ExitStack(), ""
        self._headers: list[str] = []

    def __enter__(self) -> _RefusedRows:
        file = self._stack.enter_context(self._path.open("wb"))
        self._writer = sheet_writer(file, _SHEETS[self._path.suffix.lower()])
        return self

    def add(self, answer: Answer) -> None:
        """Write a row."""
        source = answer["@erpnet.source"]
        cells = source["cells"]
        if not self._headers or source["sheet"] != self._sheet:
            self._sheet, self._headers = source["sheet"], list(cells)
            self._writer.begin(self._sheet or self._path.stem, [*self._headers, ERROR])
        message = answer.get("@erpnet.error", {}).get("message") or answer.get("@erpnet.message", "")
        self._writer.write([*(cells.get(header) for header in self._headers), message])

    def __exit__(self, *failure: object) -> None:
        self._writer.close()
        self._stack.close()


class _Bar:
    """A progress bar on a terminal; nothing where the output goes to a file."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.shown = -1
        self.active = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, done: int) -> None:
        """Draw it, where it has moved."""
        percent = 100 if not self.count else done * 100 // self.count
        if not self.active or percent == self.shown:
            return
        self.shown = percent
        filled = percent * _WIDTH // 100
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {percent:3d} % ({done} of {self.count})")
        sys.stderr.flush()

    def say(self, text: str) -> None:
        """A line above the bar."""
        sys.stderr.write(f"\r{' ' * (_WIDTH + 40)}\r{text}\n" if self.active else f"{text}\n")
        self.shown = -1

    def end(self) -> None:
        """Leave the bar behind."""
        if self.active:
            sys.stderr.write("\n")
