"""CSV and XLSX files of exported lists, for people; domain.odata.sheets writes those for the import."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import IO, Any

from domain.admin.cells import Cell, Percent
from domain.admin.measures import plain
from domain.odata.sheets.cells import neutralised
from domain.odata.sheets.writing import LONGEST_TEXT, CsvWriter, XlsxWriter

#: First year of Excel.
_FIRST_YEAR = 1900
_WIDTH = 18


class CsvListWriter(CsvWriter):
    """Writes moments, percentages and decimals in formats for people."""

    def text_of(self, cell: Cell) -> str:
        match cell:
            case str():
                return neutralised(cell)
            case Percent():
                return f"{plain(cell * 100):f}%"
            case Decimal():
                return f"{plain(cell):f}"
            case datetime.datetime():
                return cell.isoformat(" ", "seconds")
        return super().text_of(cell)


class XlsxListWriter(XlsxWriter):
    """Writes typed and formatted numbers, dates and percentages; truncates texts to Excel's limit.

    Texts are strings, neither formulas nor links. Texts that would be formulas in a CSV file get the same prefix as
    there, since users may save the workbook as CSV.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._formats: dict[type, Any] = {
            datetime.datetime: self._moment,
            datetime.date: self._date,
            datetime.time: self._format("hh:mm:ss"),
            Percent: self._format("0.00%"),
            Decimal: self._format("#,##0.00###"),
        }

    def begin(self, name: str, headers: Sequence[str]) -> None:
        super().begin(name, headers)
        self._sheet.set_column(0, max(len(headers) - 1, 0), _WIDTH)

    def _write_cell(self, place: int, cell: Cell) -> None:
        sheet, row, style = self._sheet, self._row, self._formats.get(type(cell))
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
                sheet.write_string(row, place, neutralised(cell)[:LONGEST_TEXT])


__all__ = ["CsvListWriter", "XlsxListWriter"]
