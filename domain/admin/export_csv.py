"""CSV files of exported lists."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Sequence
from decimal import Decimal
from typing import IO

from domain.admin.cells import Cell, Percent, Rows
from domain.admin.measures import plain
from domain.odata.sheets.cells import neutralised


def write_csv(file: IO[bytes], title: str, headings: Sequence[str], rows: Rows) -> None:
    """Write UTF-8 with a byte order mark, by which Excel knows it; commas, and quotes where they are needed.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    writer = csv.writer(text)
    writer.writerow([neutralised(heading) for heading in headings])
    writer.writerows([_csv_cell(cell) for cell in row] for row in rows)
    text.flush()
    text.detach()


def _csv_cell(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case str():
            return neutralised(cell)
        case bool():
            return "TRUE" if cell else "FALSE"
        case Percent():
            return f"{plain(cell * 100):f}%"
        case Decimal():
            return f"{plain(cell):f}"
        case datetime.datetime():
            return cell.isoformat(" ", "seconds")
    return str(cell)
