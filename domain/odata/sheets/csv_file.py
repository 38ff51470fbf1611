"""CSV files (RFC 4180) in UTF-8, with commas, semicolons or tabs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from domain.odata.message.json_body import invalid_body
from domain.odata.sheets.cells import SheetRow, broken, is_empty, located, restored
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_DELIMITERS = ",;\t"
_QUOTED = re.compile('"[^"]*"')
#: First bytes of ZIP archives, such as XLSX files.
_ARCHIVE = b"PK\x03\x04"
#: Maximum of a row: a file of one endless line or cell must not fill memory.
MAX_ROW_CHARACTERS = 4 << 20
# Python limits cells for the whole process, by default to 128 KB. Exports have longer texts.
csv.field_size_limit(MAX_ROW_CHARACTERS)


class FileView(io.RawIOBase):
    """A reader of a shared file with a separate position, so that several can read one file alternately."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._at = file, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """The next bytes."""
        self._file.seek(self._at)
        found = self._file.read(len(buffer))
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


class _TooLong(Exception):
    """A row has more than MAX_ROW_CHARACTERS."""


class _Lines:
    """The lines of a text. Raises _TooLong after `left` characters, which the caller sets before each row."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text, self.left = text, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(self.left + 1)
        self.left -= len(line)
        if self.left < 0:
            raise _TooLong
        if not line:
            raise StopIteration
        return line


def _reason(error: Exception) -> Message:
    """The translatable reason why a row cannot be read; csv.Error is in English only."""
    if isinstance(error, _TooLong) or "field limit" in str(error):
        return Message("the row has more than {0} characters; is a quotation mark missing?", MAX_ROW_CHARACTERS)
    if "unexpected end" in str(error):
        return Message("a quotation mark is not closed")
    if "delimiter" in str(error):
        return Message("a quotation mark inside a cell must be doubled")
    return Message("the row cannot be read: {0}", str(error))


@dataclass(frozen=True, slots=True)
class CsvSheet:
    """The only sheet of a CSV file."""

    file: BinaryIO
    name: str = ""

    def rows(self) -> Iterator[SheetRow]:
        """The rows from the header on. Raises BadRequest for another encoding and for rows of another length."""
        self.file.seek(0)
        if self.file.read(len(_ARCHIVE)) == _ARCHIVE:
            raise invalid_body(Message("the file is no CSV file; is it a workbook? Give it the ending .xlsx"))
        text = io.TextIOWrapper(io.BufferedReader(FileView(self.file)), encoding="utf-8-sig", newline="")
        try:
            yield from self._parsed(text)
        except UnicodeDecodeError as exc:
            raise self._undecodable() from exc

    def _parsed(self, text: io.TextIOWrapper) -> Iterator[SheetRow]:
        lines = _Lines(text)
        reader = csv.reader(lines, delimiter=self._delimiter(), strict=True)
        width, before = 0, 0
        while True:
            lines.left = MAX_ROW_CHARACTERS
            try:
                cells = next(reader, None)
            except (csv.Error, _TooLong) as exc:
                raise broken(located(self._place, before + 1, 1), _reason(exc)) from exc
            if cells is None:
                return
            number, before = before + 1, reader.line_num
            if not any(cells):
                continue
            width = width or len(cells)
            if len(cells) != width:
                place = located(self._place, number, min(len(cells), width) + 1)
                raise broken(place, Message("the row has {0} cells, the header {1}", len(cells), width))
            yield SheetRow(number, [None if is_empty(cell) else restored(cell) for cell in cells])

    @property
    def _place(self) -> str:
        return self.name or "CSV"

    def _delimiter(self) -> str:
        """The delimiter that is the most frequent in the first line outside quotation marks."""
        self.file.seek(0)
        first = _QUOTED.sub("", self.file.readline(1 << 16).decode("utf-8", "replace"))
        return max(_DELIMITERS, key=first.count)

    def _undecodable(self) -> errors.BadRequest:
        """The error that names the first character that is not UTF-8."""
        self.file.seek(0)
        if self.file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return invalid_body(Message("the file is UTF-16; save it as CSV UTF-8"))
        self.file.seek(0)
        delimiter = self._delimiter().encode()
        self.file.seek(0)
        lines = iter(partial(self.file.readline, 4 * MAX_ROW_CHARACTERS), b"")
        for number, line in enumerate(lines, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as exc:
                place = located(self._place, number, line.count(delimiter, 0, exc.start) + 1)
                return broken(
                    place, Message("the byte {0} is not UTF-8; save the file as CSV UTF-8", f"0x{line[exc.start]:02X}")
                )
        return invalid_body(Message("the body is not UTF-8"))
