"""Sheets of XLSX files (ECMA-376), read row by row in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import BinaryIO, cast

from openpyxl.utils.datetime import from_excel

from domain.odata.sheets.cells import Cell, CellProblem, SheetRow, broken, is_empty, located, restored
from domain.odata.sheets.workbook import Handler, Workbook, damaged, open_workbook
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Limits of Excel.
MAX_ROWS, MAX_COLUMNS, MAX_CELL_CHARACTERS = 1_048_576, 16_384, 32_767
_REFERENCE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
#: A character that XML cannot hold (ECMA-376, 22.9.2.19).
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def xlsx_sheets(file: BinaryIO) -> list[XlsxSheet]:
    """The sheets of a workbook. Raises BadRequest as `open_workbook`."""
    book = open_workbook(file)
    return [XlsxSheet(name, book, part) for name, part in book.sheets.items()]


@dataclass(frozen=True, slots=True)
class XlsxSheet:
    """A sheet of an open workbook."""

    name: str
    book: Workbook
    part: str

    def rows(self) -> Iterator[SheetRow]:
        """The rows from the header on, without empty rows.

        Raises BadRequest for merged cells, formulas without a value, errors, and cells beside the header.
        """
        rows = _Rows(self.name, self.book)
        with damaged(Message("the sheet is damaged"), Message("sheet {0}", self.name)):
            for _ in self.book.parse(self.part, rows):
                yield from rows.take()


class _Rows(Handler):
    """Collects rows from a sheet's XML as it arrives. A cell without a reference follows the one before."""

    def __init__(self, name: str, book: Workbook) -> None:
        self._name, self._book = name, book
        self._rows: list[SheetRow] = []
        self._row, self._column, self._cells, self._width = 0, 0, cast(list[Cell], []), MAX_COLUMNS
        self._attributes: dict[str, str] = {}
        self._is_formula, self._phonetic, self._size = False, False, 0
        self._value: list[str] | None = None
        self._into: list[str] | None = None

    def take(self) -> list[SheetRow]:
        """The rows that were completed since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def start(self, name: str, attributes: dict[str, str]) -> None:
        match name:
            case "row":
                self._row = self._number(attributes.get("r"), self._row + 1, MAX_ROWS)
                self._cells, self._column = [], 0
            case "c":
                self._begin_cell(attributes)
            case "f":
                self._is_formula = True
            case "v":
                self._value = self._into = []
            case "t" if not self._phonetic:
                self._value = self._into = self._value or []
            case "rPh":
                self._phonetic = True
            case "mergeCell":
                raise broken(
                    Message("sheet {0}, cells {1}", self._name, attributes.get("ref", "")),
                    Message("merged cells cannot be imported; split them"),
                )

    def end(self, name: str) -> None:
        match name:
            case "v" | "t":
                self._into = None
            case "rPh":
                self._phonetic = False
            case "c":
                self._end_cell()
            case "row" if self._cells:
                self._rows.append(SheetRow(self._row, self._cells))
                if self._width == MAX_COLUMNS:  # the header
                    self._width = len(self._cells)

    def text(self, text: str) -> None:
        if self._into is None:
            return
        self._size += len(text)
        if self._size > MAX_CELL_CHARACTERS * 7:  # each character may be written as _xHHHH_
            raise self._broken(Message("a cell has at most {0} characters", MAX_CELL_CHARACTERS))
        self._into.append(text)

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        reference = _REFERENCE.fullmatch(attributes.get("r", ""))
        column = self._column + 1
        if reference is not None:
            column = 0
            for letter in reference[1]:
                column = column * 26 + ord(letter) - ord("A") + 1
        if not self._column < column <= MAX_COLUMNS:
            raise self._broken(Message("the sheet is damaged"))
        self._column, self._attributes = column, attributes
        self._is_formula, self._value, self._size = False, None, 0

    def _end_cell(self) -> None:
        kind, text = self._attributes.get("t", "n"), "".join(self._value or [])
        if self._is_formula and not text and kind != "str":
            raise self._broken(
                Message("the formula has no stored value; open the file in a spreadsheet program and save it")
            )
        if kind == "e":
            raise self._broken(Message("the cell shows the error {0}", text))
        if text and not is_empty(value := self._typed(kind, text)):
            if self._column > self._width:
                raise self._broken(Message("the cell stands in a column without a header"))
            self._cells.extend([None] * (self._column - 1 - len(self._cells)))
            self._cells.append(value)

    def _typed(self, kind: str, text: str) -> Cell:
        try:
            match kind:
                case "n":
                    return self._numeric(text)
                case "s":
                    return _plain(self._book.texts[int(text)])
                case "b":
                    return text == "1"
            return _plain(text)
        except (ValueError, IndexError, OverflowError) as exc:
            raise self._broken(Message("the sheet is damaged")) from exc

    def _numeric(self, text: str) -> Cell:
        number = int(text) if text.lstrip("-").isdigit() else float(text)
        if not isfinite(number):
            raise ValueError(text)
        style = int(self._attributes.get("s", "0"))
        if style not in self._book.dates:
            return number
        try:
            is_duration = style in self._book.durations
            return cast(Cell, from_excel(number, self._book.epoch, timedelta=is_duration))
        except (ValueError, OverflowError):
            return CellProblem(Message("{0} is no day of the calendar", text))

    def _number(self, given: str | None, otherwise: int, most: int) -> int:
        number = otherwise if given is None else int(given) if given.isascii() and given.isdigit() else 0
        if not self._row < number <= most:
            raise self._broken(Message("the sheet is damaged"))
        return number

    def _broken(self, reason: Message) -> errors.BadRequest:
        return broken(located(self._name, max(self._row, 1), max(self._column, 1)), reason)


def _plain(text: str) -> str:
    """The text without escapes and prefix. Raises ValueError for a lone surrogate."""
    if "_x" in text:
        unescaped = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
        text = unescaped.encode("utf-16", "surrogatepass").decode("utf-16")
    return restored(text)
