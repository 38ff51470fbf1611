"""Writes rows as CSV and XLSX files that the import reads back unchanged (spec 11, 11.2).

They are exports, templates and files of refused rows.
"""

from __future__ import annotations

import base64
import csv
import datetime
import io
from collections.abc import Sequence
from decimal import Decimal
from typing import IO, Any, Protocol

import orjson
from django.utils.translation import gettext

from domain.odata.message.json_body import invalid_body
from domain.odata.sheets.cells import located, neutralised
from domain.odata.sheets.mapping import LONGEST_NAME
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text

#: First date that Excel represents correctly, and digits of a number that it keeps.
_FIRST_DAY, _DIGITS = datetime.date(1900, 3, 1), 15
LONGEST_TEXT = 32_767
_NOT_IN_NAMES = str.maketrans("[]:*?/\\", "       ")


class SheetWriter(Protocol):
    """Writes sheets one after another, row by row."""

    def begin(self, name: str, headers: Sequence[str]) -> None: ...
    def write(self, cells: Sequence[Any]) -> None: ...
    def close(self) -> None: ...


def sheet_writer(file: IO[bytes], kind: str) -> SheetWriter:
    """The writer for "csv" or "xlsx". Cells are canonical values of attributes."""
    return XlsxWriter(file) if kind == "xlsx" else CsvWriter(file)


class CsvWriter:
    """Writes CSV in UTF-8 with a byte order mark, by which Excel recognizes the encoding. A file has one sheet."""

    def __init__(self, file: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        self._writer = csv.writer(self._text)
        self._has_sheet = False

    def begin(self, name: str, headers: Sequence[str]) -> None:
        """Write the header. Raises BadRequest for a second sheet."""
        if self._has_sheet:
            raise invalid_body(Message("a CSV file has one sheet; write XLSX"))
        self._has_sheet = True
        self._writer.writerow([neutralised(header) for header in headers])

    def write(self, cells: Sequence[Any]) -> None:
        """Write a row."""
        self._writer.writerow([self.text_of(cell) for cell in cells])

    def text_of(self, cell: Any) -> str:
        """The text of a cell."""
        return _neutral_text(cell)

    def close(self) -> None:
        """Write what is left; the file stays open."""
        self._text.flush()
        self._text.detach()


class XlsxWriter:
    """Writes a workbook in constant memory, by temporary files. Cells of numbers, dates and Booleans are typed."""

    def __init__(self, file: IO[bytes]) -> None:
        import xlsxwriter

        self._book = xlsxwriter.Workbook(file, {"constant_memory": True})
        self._bold = self._book.add_format({"bold": True})
        self._date, self._moment = self._format("yyyy-mm-dd"), self._format("yyyy-mm-dd hh:mm:ss")
        self._sheet: Any = None
        self._row = 0

    def _format(self, pattern: str) -> Any:
        return self._book.add_format({"num_format": pattern})

    def begin(self, name: str, headers: Sequence[str]) -> None:
        """Begin a sheet."""
        title = name.translate(_NOT_IN_NAMES).strip(" '")[:LONGEST_NAME] or gettext("List")
        self._sheet, self._row = self._book.add_worksheet(title), 0
        self._sheet.freeze_panes(1, 0)
        for place, header in enumerate(headers):
            self._sheet.write_string(0, place, neutralised(header), self._bold)

    def write(self, cells: Sequence[Any]) -> None:
        """Write a row. Raises BadRequest for a text that is too long for a cell."""
        self._row += 1
        for place, cell in enumerate(cells):
            self._write_cell(place, cell)

    def _write_cell(self, place: int, cell: Any) -> None:
        sheet, row = self._sheet, self._row
        match cell:
            case None:
                return
            case bool():
                sheet.write_boolean(row, place, cell)
            case int() | Decimal() if len(Decimal(cell).normalize().as_tuple().digits) <= _DIGITS:
                sheet.write_number(row, place, float(cell))
            case datetime.datetime() if cell.date() >= _FIRST_DAY and not cell.microsecond:
                sheet.write_datetime(row, place, cell.astimezone(datetime.UTC).replace(tzinfo=None), self._moment)
            case datetime.datetime():
                sheet.write_string(row, place, _text(cell))
            case datetime.date() if cell >= _FIRST_DAY:
                sheet.write_datetime(row, place, cell, self._date)
            case _:
                self._write_text(place, _neutral_text(cell))

    def _write_text(self, place: int, text: str) -> None:
        if len(text) > LONGEST_TEXT:
            where = located(self._sheet.name, self._row + 1, place + 1)
            raise invalid_body(
                Message("{0}: a cell has at most {1} characters; write CSV or JSON", where, LONGEST_TEXT)
            )
        self._sheet.write_string(self._row, place, text)

    def close(self) -> None:
        """Write the workbook; the file stays open."""
        self._book.close()


def _neutral_text(cell: Any) -> str:
    return neutralised(_text(cell)) if isinstance(cell, str | dict) else _text(cell)


def _text(cell: Any) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return "TRUE" if cell else "FALSE"
        case Decimal():
            return f"{cell:f}"
        case datetime.datetime():
            return utc_text(cell)
        case datetime.date():
            return cell.isoformat()
        case bytes():
            return base64.b64encode(cell).decode()
        case dict():
            return orjson.dumps(cell).decode()
    return str(cell)


__all__ = ["LONGEST_TEXT", "CsvWriter", "SheetWriter", "XlsxWriter", "sheet_writer"]
