"""Reads the workbooks that the platform writes, without a library for them: a sheet is XML in a ZIP (ECMA-376)."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from xml.etree import ElementTree

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@dataclass(frozen=True, slots=True)
class SheetCell:
    """A cell: its type in the file (`n` number, `b` truth, `str` or `inlineStr` text), its text, its number format."""

    kind: str
    text: str
    format: str


def read_sheet(content: bytes) -> list[dict[str, SheetCell]]:
    """The rows of the first sheet: letters of the column → cell. Raises AssertionError for a formula or a link."""
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        assert book.testzip() is None
        assert not [name for name in book.namelist() if "sheets/_rels" in name]
        styles = ElementTree.fromstring(book.read("xl/styles.xml"))
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    assert sheet.find(f".//{_MAIN}f") is None
    patterns = {each.get("numFmtId", ""): each.get("formatCode", "") for each in styles.iter(f"{_MAIN}numFmt")}
    used = styles.find(f"{_MAIN}cellXfs")
    assert used is not None
    formats = [each.get("numFmtId", "") for each in used]
    rows = []
    for row in sheet.iter(f"{_MAIN}row"):
        cells = {}
        for cell in row:
            number = formats[int(cell.get("s", "0"))]
            text = "".join(part.text or "" for part in cell.iter() if part.tag in (f"{_MAIN}v", f"{_MAIN}t"))
            letters = re.sub(r"\d", "", cell.get("r", ""))
            cells[letters] = SheetCell(cell.get("t", "n"), text, patterns.get(number, number))
        rows.append(cells)
    return rows
