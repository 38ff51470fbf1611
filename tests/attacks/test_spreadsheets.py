"""A spreadsheet to import can neither fill memory or time nor fail unexpectedly, whatever is in it.

Who: a caller with the scope update. What: archives that decompress to much, lie about themselves or are damaged; XML
with entities, deep nesting, endless tags or names; cells, rows, columns and texts without end. What prevents it: bounds
of domain.odata.sheets.workbook, xlsx_file and csv_file; every refusal is a 400 that says why, and nothing is imported.
"""

from __future__ import annotations

import io
import re
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from domain.odata.sheets.csv_file import MAX_ROW_CHARACTERS
from domain.odata.sheets.mapping import FileMapping
from domain.odata.sheets.source import MOST_COLUMNS, FileKind, SheetSource
from foundation import errors
from tests.domain.conftest import api, world
from tests.domain.odata.sheets.test_import_sheets import SET, XLSX, refusal, send, states, workbook
from tests.support.api import Api

__all__ = ["api", "world"]

ROWS: list[list[Any]] = [["CurrencySign", "Name"], ["USD", "Dollar"]]
SHEET, TEXTS, STYLES, BOOK = (f"xl/{name}.xml" for name in ("worksheets/sheet1", "sharedStrings", "styles", "workbook"))
MOST_MEMORY = 90 << 20
DOCTYPE = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'


def changed(part: str, change: Callable[[bytes], bytes], **options: Any) -> bytes:
    """A workbook of which one part is changed."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook({SET: ROWS}))) as old, zipfile.ZipFile(result, "w", **options) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name == part else old.read(name))
    return result.getvalue()


def replaced(part: str, old: bytes, new: bytes) -> bytes:
    def change(content: bytes) -> bytes:
        assert old in content
        return content.replace(old, new, 1)

    return changed(part, change, compression=zipfile.ZIP_DEFLATED)


def cells(row: bytes) -> bytes:
    """A workbook with these rows behind the header."""
    return replaced(SHEET, b"</sheetData>", row + b"</sheetData>")


def flagged() -> bytes:
    """A workbook whose parts are said to be encrypted."""
    content = bytearray(workbook({SET: ROWS}))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(signature), bytes(content)):
            content[found.start() + flags] |= 1
    return bytes(content)


def directory() -> bytes:
    """An archive of nothing but its directory, with a hundred thousand entries."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a", b"")
    content = made.getvalue()
    at, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    entries = content[at:end] * 100_000
    tail = bytearray(content[end:])
    tail[12:16] = len(entries).to_bytes(4, "little")
    return content[:at] + entries + bytes(tail)


def tampered() -> bytes:
    """A sheet whose compressed bytes are damaged."""
    content = bytearray(changed(SHEET, lambda part: part * 3, compression=zipfile.ZIP_DEFLATED))
    at = bytes(content).index(SHEET.encode()) + len(SHEET) + 20
    content[at : at + 40] = b"\xff" * 40
    return bytes(content)


BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "entities in the sheet": (lambda: replaced(SHEET, b"<worksheet", DOCTYPE + b"<worksheet"), "damaged"),
    "entities in the texts": (lambda: replaced(TEXTS, b"<sst", DOCTYPE + b"<sst"), "no XLSX"),
    "entities in the workbook": (lambda: replaced(BOOK, b"<workbook ", DOCTYPE + b"<workbook "), "no XLSX"),
    "entities in the styles": (lambda: replaced(STYLES, b"<styleSheet", DOCTYPE + b"<styleSheet"), "no XLSX"),
    "nesting": (lambda: cells(b"<a>" * 400_000), f"sheet {SET}: the sheet is damaged"),
    "an endless tag": (lambda: cells(b'<a b="' + b"x" * (8 << 20) + b'"/>'), f"sheet {SET}: the sheet is damaged"),
    "an endless comment": (lambda: cells(b"<!--" + b"x" * (8 << 20) + b"-->"), f"sheet {SET}: the sheet is damaged"),
    "names": (lambda: cells(b"".join(b"<a%d/>" % n for n in range(100_000))), f"sheet {SET}: the sheet is damaged"),
    "names in the texts": (
        lambda: replaced(TEXTS, b"</sst>", b"".join(b"<a%d/>" % n for n in range(100_000)) + b"</sst>"), "no XLSX",
    ),
    "an endless text": (
        lambda: cells(b'<row r="3"><c r="A3" t="str"><v>' + b"x " * (4 << 20) + b"</v></c></row>"), "row 3, column A",
    ),
    "a row that Excel has not": (lambda: cells(b'<row r="1048577"><c><v>1</v></c></row>'), "the sheet is damaged"),
    "a row without a number": (lambda: cells('<row r="²"><c><v>1</v></c></row>'.encode()), "the sheet is damaged"),
    "rows in another order": (lambda: cells(b'<row r="1"><c><v>1</v></c></row>'), "the sheet is damaged"),
    "a column that Excel has not": (lambda: cells(b'<row r="3"><c r="XFE3"><v>1</v></c></row>'), "row 3"),
    "a column beside the header": (
        lambda: cells(b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(3, 90_000))),
        "row 3, column XFD: the cell stands in a column without a header",
    ),
    "a text that is not there": (lambda: cells(b'<row r="3"><c r="A3" t="s"><v>99</v></c></row>'), "row 3, column A"),
    "a text before the first": (lambda: cells(b'<row r="3"><c r="A3" t="s"><v>-1</v></c></row>'), "row 3, column A"),
    "half a character": (lambda: cells(b'<row r="3"><c r="A3" t="str"><v>_xD800_</v></c></row>'), "row 3, column A"),
    "no number": (lambda: cells(b'<row r="3"><c r="A3"><v>1e999</v></c></row>'), "row 3, column A"),
    "no style": (lambda: cells(b'<row r="3"><c r="A3" s="x"><v>1</v></c></row>'), "row 3, column A"),
    "a header in the last column": (
        lambda: replaced(SHEET, b"</row>", b'<c r="XFD1" t="str"><v>x</v></c></row>'),
        f"at most {MOST_COLUMNS} columns",
    ),
    "another sheet once more": (
        lambda: replaced(BOOK, b"</sheets>", b'<sheet name="x" sheetId="9" r:id="rId1"/></sheets>'), "no XLSX",
    ),
    "a sheet that is not there": (
        lambda: replaced("xl/_rels/workbook.xml.rels", b"sheet1.xml", b"../../../etc/passwd"), "the sheet is damaged",
    ),
    "a directory without end": (directory, "no XLSX"),
    "damaged bytes": (tampered, "the sheet is damaged"),
    "a rare compression": (
        lambda: re.sub(
            rb"(PK\x01\x02.{6})..", lambda found: found[1] + b"\x63\x00", workbook({SET: ROWS}), flags=re.DOTALL
        ),
        "no XLSX",
    ),
    "an encrypted archive": (flagged, "encrypted"),
    "an encrypted workbook": (
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 4096 + "EncryptedPackage".encode("utf-16-le"),
        "encrypted",
    ),
    "an old workbook": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 4096, "save it as XLSX"),
    "a web page": (lambda: b"<html><table><tr><td>CurrencySign</td></tr></table></html>", "no XLSX"),
    "another archive": (lambda: replaced("xl/workbook.xml", b"<sheets>", b"<nothing>"), "no XLSX"),
}  # fmt: skip


@pytest.fixture
def memory() -> Iterator[Callable[[], int]]:
    """The most memory that Python has allocated since the start, in bytes."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make,told", BROKEN.values(), ids=BROKEN)
def test_a_broken_workbook_is_refused_and_nothing_is_imported(api: Api, make: Callable[[], bytes], told: str) -> None:
    message = refusal(api, make(), XLSX)
    assert told in message


def test_a_workbook_of_another_format_is_named(api: Api) -> None:
    for name in ("META-INF/manifest.xml", "xl/workbook.bin"):
        content = io.BytesIO(workbook({SET: ROWS}))
        with zipfile.ZipFile(content, "a") as archive:
            archive.writestr(name, b"x")
        assert "save it as XLSX" in refusal(api, content.getvalue(), XLSX)
    assert "workbook" in refusal(api, workbook({SET: ROWS}), "text/csv", repository=SET)


def read(content: bytes, kind: FileKind) -> str:
    """Read all of a file; the message of the refusal."""
    try:
        for _ in SheetSource(io.BytesIO(content), kind, FileMapping(), SET).bodies():
            pass
    except errors.PlatformError as refused:
        return refused.message
    return ""


def test_shared_texts_take_no_more_memory_than_they_are_long(memory: Callable[[], int]) -> None:
    texts = b"".join(b"<si><t>%x</t></si>" % n for n in range(600_000))
    content = replaced(TEXTS, b"</sst>", texts + b"</sst>")
    begun = memory()
    assert read(content, "xlsx") == ""
    assert memory() - begun < 60 << 20  # as objects they need 34 MB more


@pytest.mark.parametrize(
    "make,told",
    [
        (lambda: b"CurrencySign,Name\n" + b"," * (40 << 20), "row 2, column A: the row has more than"),
        (lambda: b"CurrencySign" + b",x" * (20 << 20), "row 1, column A: the row has more than"),
        (lambda: b'CurrencySign,Name\nUSD,"' + b"x\n" * (20 << 20), "row 2, column A: the row has more than"),
        (lambda: b"CurrencySign,Name\nUSD,\xff" + b"x" * (40 << 20), "row 2, column B: the byte 0xFF"),
    ],
    ids=["cells", "headers", "a cell without end", "a byte"],
)
def test_a_row_without_end_is_refused_before_it_is_in_memory(
    memory: Callable[[], int], make: Callable[[], bytes], told: str
) -> None:
    content = make()
    begun = memory()
    assert told in read(content, "csv")
    assert memory() - begun < MOST_MEMORY
    assert len(content) > 9 * MAX_ROW_CHARACTERS


def test_what_excel_writes_otherwise_is_read(api: Api) -> None:
    inline = (
        b'<row r="3"><c r="A3" t="inlineStr"><is><r><t>G</t></r><r><t>BP</t></r></is></c>'
        b'<c r="B3" t="str"><v>x</v></c></row>'
    )
    strict = changed("_rels/.rels", lambda part: part.replace(b'"xl/workbook.xml"', b'"/xl/workbook.xml"'))
    assert states(send(api, cells(inline), XLSX).json()) == ["Added", "Added"]
    assert states(send(api, strict, XLSX).json()) == ["Unchanged"]
