"""Values of cells, and the prefix of texts that a spreadsheet would read as a formula (spec 11, 11.2)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from domain.odata.message.json_body import invalid_body
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Texts that a spreadsheet reads as formulas (OWASP, "CSV Injection"). Also after apostrophes: a text that looks as if
#: it had the prefix gets another one, so that `restored` is the inverse for every text.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")


@dataclass(frozen=True, slots=True)
class CellProblem:
    """A cell without a usable value; `reason` says why."""

    reason: Message


Cell = (
    str | int | float | bool | Decimal | datetime.datetime | datetime.date | datetime.time | datetime.timedelta
    | CellProblem | None
)  # fmt: skip


def neutralised(text: str) -> str:
    """The text, with an apostrophe before it if a spreadsheet would read it as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def restored(text: str) -> str:
    """The text without the prefix of `neutralised`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def is_empty(cell: Cell) -> bool:
    """Whether the cell has no value or an empty text."""
    return cell is None or cell == ""


def shown(cell: Cell) -> str:
    """The cell as text."""
    match cell:
        case None:
            return ""
        case CellProblem():
            return str(cell.reason)
        case bool():
            return "TRUE" if cell else "FALSE"
        case Decimal():
            return f"{cell:f}"
        case datetime.datetime() | datetime.date() | datetime.time():
            return cell.isoformat()
    return str(cell)


def letters(column: int) -> str:
    """The name of the column with a number from 1: A, B … Z, AA."""
    name = ""
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def located(sheet: str, row: int, column: int, header: str = "") -> Message:
    """The place of a cell, for messages."""
    name = f"{letters(column)} ({header})" if header else letters(column)
    return Message("sheet {0}, row {1}, column {2}", sheet, row, name)


def broken(place: str, reason: str) -> errors.BadRequest:
    """The error for a file that cannot be read at a place."""
    return invalid_body(Message("{0}: {1}", place, reason))


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of cells; `number` counts from 1, the header included, as in spreadsheets."""

    number: int
    cells: Sequence[Cell]


class Sheet(Protocol):
    """A sheet: its name ("" in a CSV file), and the rows from the header on.

    Each call of `rows` reads from the start. It raises BadRequest with the place of an error.
    """

    @property
    def name(self) -> str: ...
    def rows(self) -> Iterator[SheetRow]: ...
