"""XLSX files of exported lists."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import IO, Any

from django.utils.translation import gettext

from domain.admin.cells import Cell, Percent, Rows
from domain.odata.sheets.cells import neutralised

#: Limits of Excel: characters of a cell, first year, and the name of a sheet, which has none of some characters.
_LONGEST_TEXT, _FIRST_YEAR, _LONGEST_NAME, _NOT_IN_NAMES = 32_767, 1900, 31, str.maketrans("[]:*?/\\", "       ")
_WIDTH = 18


def write_xlsx(file: IO[bytes], title: str, headings: Sequence[str], rows: Rows) -> None:
    """Write a workbook with one sheet, row by row through temporary files; numbers, dates and per cents are typed.

    Texts are strings, neither formulas nor links. Those that would be formulas in a CSV file have the prefix here, too,
    for the day when a spreadsheet program saves the workbook as one.
    """
    import xlsxwriter

    book = xlsxwriter.Workbook(file, {"constant_memory": True})
    sheet = book.add_worksheet(title.translate(_NOT_IN_NAMES).strip(" '")[:_LONGEST_NAME] or gettext("List"))
    bold = book.add_format({"bold": True})
    formats: dict[type, Any] = {
        kind: book.add_format({"num_format": pattern})
        for kind, pattern in (
            (datetime.datetime, "yyyy-mm-dd hh:mm:ss"),
            (datetime.date, "yyyy-mm-dd"),
            (datetime.time, "hh:mm:ss"),
            (Percent, "0.00%"),
            (Decimal, "#,##0.00###"),
        )
    }
    sheet.set_column(0, max(len(headings) - 1, 0), _WIDTH)
    sheet.freeze_panes(1, 0)
    for place, heading in enumerate(headings):
        sheet.write_string(0, place, neutralised(heading), bold)
    for number, row in enumerate(rows, start=1):
        for place, cell in enumerate(row):
            _write_xlsx_cell(sheet, number, place, cell, formats.get(type(cell)))
    book.close()


def _write_xlsx_cell(sheet: Any, row: int, place: int, cell: Cell, style: Any) -> None:
    match cell:
        case None | "":
            return
        case bool():
            sheet.write_boolean(row, place, cell)
        case int() | Decimal():
            sheet.write_number(row, place, float(cell), style)
        case datetime.date() if cell.year < _FIRST_YEAR:
            sheet.write_string(row, place, cell.isoformat())
        case datetime.date() | datetime.time():
            sheet.write_datetime(row, place, cell, style)
        case str():
            sheet.write_string(row, place, neutralised(cell)[:_LONGEST_TEXT])
