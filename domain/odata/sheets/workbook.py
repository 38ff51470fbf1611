"""Reads XLSX workbooks (ECMA-376): the list of sheets, the shared texts, the date formats.

Every part is parsed by expat as it is decompressed, within bounds: a file of some megabytes can decompress to names,
nesting, styles or texts that would fill memory.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast
from xml.parsers import expat

from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format
from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH

from domain.odata.message.json_body import invalid_body
from domain.odata.sheets.cells import broken
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Bounds of the decompressed file: all parts, the shared texts, any other part except sheets, the compression ratio.
MAX_UNPACKED_BYTES, MAX_TEXTS_BYTES, MAX_PART_BYTES, MAX_RATIO = 1 << 30, 64 << 20, 16 << 20, 200
#: The ratio is not checked up to this size.
_SMALL_BYTES = 16 << 20
#: Maximum of the archive's directory, which zipfile reads at once: some 10,000 parts.
_MAX_DIRECTORY_BYTES = 1 << 20
#: Bounds of XML: bytes of one token (a tag, a comment), nesting, distinct names of elements and attributes.
_MAX_SILENT_BYTES, _MAX_DEPTH, _MAX_NAMES = 1 << 20, 100, 10_000
#: Bytes that are parsed at once; small, so that the rows in them need little memory.
_CHUNK = 1 << 13
_LONGEST_FORMAT = 255
_OLE, _PACKAGE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "EncryptedPackage".encode("utf-16-le")
_BLOCK = 1 << 20
#: Exceptions of expat, zipfile and our own parsers. NotImplementedError: an unsupported compression method.
_DAMAGED = (expat.ExpatError, zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, NotImplementedError)


class Handler:
    """Receives the elements of a part; their names have no namespaces."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins. Names of attributes in a namespace are prefixed with it and "}"."""

    def end(self, name: str) -> None:
        """An element ends."""

    def text(self, text: str) -> None:
        """A piece of text."""


class PartParser:
    """Passes the elements of XML to a handler as bytes arrive. Raises ValueError beyond the bounds or for a DOCTYPE."""

    def __init__(self, handler: Handler) -> None:
        self._parser = expat.ParserCreate(namespace_separator="}")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = handler.text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._handler, self._depth, self._fed = handler, 0, 0

    def feed(self, chunk: bytes, *, is_last: bool = False) -> None:
        """Parse the next bytes."""
        self._fed += len(chunk)
        self._parser.Parse(chunk, is_last)
        if self._fed - self._parser.CurrentByteIndex > _MAX_SILENT_BYTES or len(self._parser.intern) > _MAX_NAMES:
            raise ValueError("an element is too long, or there are too many names")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("elements are nested too deeply")
        self._handler.start(name.rpartition("}")[2], attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handler.end(name.rpartition("}")[2])

    def _doctype(self, *_: Any) -> None:
        raise ValueError("a part has a document type")


class SharedTexts:
    """The shared texts by number, in one buffer: as Python objects, short ones would need ten times the memory."""

    def __init__(self) -> None:
        self._bytes, self._ends = bytearray(), array("Q", [0])

    def add(self, text: str) -> None:
        """Append a text."""
        self._bytes += text.encode()
        self._ends.append(len(self._bytes))

    def __getitem__(self, number: int) -> str:
        """The text with the number. Raises IndexError."""
        if number < 0:
            raise IndexError(number)
        return self._bytes[self._ends[number] : self._ends[number + 1]].decode()


@dataclass(frozen=True, slots=True)
class Workbook:
    """An open workbook.

    sheets      name → part
    texts       the shared texts
    dates       numbers of the styles that show a number as a date or time; durations: as a duration
    epoch       day 0
    """

    archive: zipfile.ZipFile
    sheets: dict[str, str]
    texts: SharedTexts
    dates: frozenset[int]
    durations: frozenset[int]
    epoch: Any

    def parse(self, part: str, handler: Handler) -> Iterator[None]:
        """Pass the part's elements to the handler; yields after each chunk. Raises what `damaged` converts."""
        return _parsed(self.archive, part, handler)


def open_workbook(file: BinaryIO) -> Workbook:
    """The workbook in the file. Raises BadRequest for another file, an encrypted one, or one too large decompressed."""
    _check_kind(file)
    with damaged(Message("the file is no XLSX workbook")):
        archive = zipfile.ZipFile(cast(BinaryIO, _BoundedFile(file)))
        _check_parts(archive)
        return _read_workbook(archive)


@contextmanager
def damaged(reason: Message, place: Message | None = None) -> Iterator[None]:
    """Convert exceptions for a damaged archive or part to BadRequest with the reason, and the place if given."""
    try:
        yield
    except errors.PlatformError:
        raise
    except _DAMAGED as exc:
        raise (invalid_body(reason, info=repr(exc)) if place is None else broken(place, reason)) from exc


class _BoundedFile:
    """A file that limits the reads of zipfile, which reads the directory in the size that the archive states."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises ValueError for more than _MAX_DIRECTORY_BYTES."""
        found = b"" if size > _MAX_DIRECTORY_BYTES else self._file.read(size if size >= 0 else _MAX_DIRECTORY_BYTES)
        if size > _MAX_DIRECTORY_BYTES or len(found) == _MAX_DIRECTORY_BYTES:
            raise ValueError("the archive has too many parts")
        return found

    def seekable(self) -> bool:
        """Yes."""
        return True


def _check_kind(file: BinaryIO) -> None:
    """Refuse files of other formats, with a reason. Raises BadRequest."""
    file.seek(0)
    begin = file.read(len(_OLE))
    if begin == _OLE:
        if _contains(file, _PACKAGE):
            raise invalid_body(Message("the workbook is encrypted; save it without a password"))
        raise invalid_body(Message("the file is a workbook of the old format XLS; save it as XLSX"))
    if not begin.startswith(b"PK"):
        raise invalid_body(Message("the file is no XLSX workbook"))


def _contains(file: BinaryIO, wanted: bytes) -> bool:
    file.seek(0)
    last = b""
    while block := file.read(_BLOCK):
        if wanted in last + block:
            return True
        last = block[-len(wanted) :]
    return False


def _check_parts(archive: zipfile.ZipFile) -> None:
    """Refuse other formats, encryption and excessive sizes. zipfile reads at most a part's size in the directory."""
    parts = archive.infolist()
    names = {part.filename for part in parts}
    if "META-INF/manifest.xml" in names or "xl/workbook.bin" in names:
        raise invalid_body(Message("the file is a workbook of another format (ODS, XLSB); save it as XLSX"))
    if any(part.flag_bits & 1 for part in parts):
        raise invalid_body(Message("the workbook is encrypted; save it without a password"))
    unpacked, packed = sum(part.file_size for part in parts), sum(part.compress_size for part in parts)
    if unpacked > MAX_UNPACKED_BYTES or (unpacked > _SMALL_BYTES and unpacked > MAX_RATIO * packed):
        raise _too_large()


def _too_large() -> errors.BadRequest:
    return invalid_body(Message("the workbook is too large when it is decompressed"))


def _read_workbook(archive: zipfile.ZipFile) -> Workbook:
    (main,) = _related(archive, "").get("officeDocument", {"": "xl/workbook.xml"}).values()
    book = _Book()
    _parse(archive, main, book)
    related = _related(archive, main)
    worksheets = related.get("worksheet", {})
    sheets = {name: worksheets[key] for name, key in book.sheets.items() if key in worksheets}
    if not sheets or len(set(sheets.values())) < len(sheets):
        raise ValueError("no sheet, or one that is another one, too")
    texts, styles = _Texts(), _Styles()
    for part in related.get("sharedStrings", {}).values():
        _parse(archive, part, texts, MAX_TEXTS_BYTES)
    for part in related.get("styles", {}).values():
        _parse(archive, part, styles)
    epoch = MAC_EPOCH if book.is_1904 else WINDOWS_EPOCH
    return Workbook(
        archive, sheets, texts.texts, styles.having(is_date_format), styles.having(is_timedelta_format), epoch
    )


def _related(archive: zipfile.ZipFile, part: str) -> dict[str, dict[str, str]]:
    """The parts that a part refers to: last word of the type → id → name. Raises KeyError if the archive has none."""
    folder, name = posixpath.split(part)
    found = _Relationships(folder)
    relationships = posixpath.join(folder, "_rels", f"{name}.rels")
    if part == "" or relationships in archive.namelist():
        _parse(archive, relationships, found)
    return found.parts


def _parse(archive: zipfile.ZipFile, part: str, handler: Handler, most: int = MAX_PART_BYTES) -> None:
    if archive.getinfo(part).file_size > most:
        raise _too_large()
    for _ in _parsed(archive, part, handler):
        pass


def _parsed(archive: zipfile.ZipFile, part: str, handler: Handler) -> Iterator[None]:
    parser = PartParser(handler)
    with archive.open(part) as stream:
        while chunk := stream.read(_CHUNK):
            parser.feed(chunk)
            yield
    parser.feed(b"", is_last=True)
    yield


class _Relationships(Handler):
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.parts: dict[str, dict[str, str]] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name != "Relationship" or attributes.get("TargetMode") == "External":
            return
        target = posixpath.normpath(posixpath.join("/", self._folder, attributes["Target"])).lstrip("/")
        self.parts.setdefault(attributes["Type"].rpartition("/")[2], {})[attributes["Id"]] = target


class _Book(Handler):
    """Collects the sheets: name → id of the relationship."""

    def __init__(self) -> None:
        self.sheets: dict[str, str] = {}
        self.is_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "workbookPr":
            self.is_1904 = attributes.get("date1904", "") in ("1", "true", "on")
        elif name == "sheet":
            if attributes["name"] in self.sheets:
                raise ValueError("two sheets have one name")
            self.sheets[attributes["name"]] = next(
                (value for key, value in attributes.items() if key.endswith("}id")), ""
            )


class _Texts(Handler):
    """Collects the shared texts. A text may consist of runs; phonetic runs are not part of it."""

    def __init__(self) -> None:
        self.texts = SharedTexts()
        self._runs: list[str] = []
        self._is_text = self._is_phonetic = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "t":
            self._is_text = not self._is_phonetic
        elif name == "rPh":
            self._is_phonetic = True
        elif name == "si":
            self._runs = []

    def end(self, name: str) -> None:
        if name == "t":
            self._is_text = False
        elif name == "rPh":
            self._is_phonetic = False
        elif name == "si":
            self.texts.add("".join(self._runs))

    def text(self, text: str) -> None:
        if self._is_text:
            self._runs.append(text)


@dataclass(slots=True)
class _Styles(Handler):
    """Collects the styles. formats: id → code of a number format; used: number of a style → id of its format."""

    formats: dict[int, str] = field(default_factory=lambda: dict(BUILTIN_FORMATS))
    used: list[int] = field(default_factory=list)
    _is_in: str = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("numFmts", "cellXfs"):
            self._is_in = name
        elif name == "numFmt" and self._is_in == "numFmts":
            self.formats[int(attributes["numFmtId"])] = attributes["formatCode"][:_LONGEST_FORMAT]
        elif name == "xf" and self._is_in == "cellXfs":
            self.used.append(int(attributes.get("numFmtId", "0")))

    def end(self, name: str) -> None:
        if name == self._is_in:
            self._is_in = ""

    def having(self, shows: Callable[[str], bool]) -> frozenset[int]:
        """The numbers of the styles for whose format code `shows` is true."""
        known = {number: shows(code) for number, code in self.formats.items()}
        return frozenset(style for style, number in enumerate(self.used) if known.get(number))
