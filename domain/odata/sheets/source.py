"""The rows of a spreadsheet as bodies for the import, one after another (spec 11, 11.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, BinaryIO, Literal

from domain.model.repository import Repository
from domain.odata.message.json_body import invalid_body
from domain.odata.sheets.cells import Cell, Sheet, SheetRow, broken, is_empty, located, shown
from domain.odata.sheets.columns import ERROR, Column, UnknownColumn, column_of
from domain.odata.sheets.csv_file import CsvSheet
from domain.odata.sheets.mapping import FileMapping, SheetMapping, repository_of
from domain.odata.write.search_criteria import ByAttribute
from foundation import errors
from foundation.messages import TranslatableMessage as Message

FileKind = Literal["csv", "xlsx"]
#: Media type → kind, which is also the file's extension.
KINDS: Mapping[str, FileKind] = {
    "text/csv": "csv",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
#: Maximum of columns of a sheet; no entity has so many attributes.
MOST_COLUMNS = 1_000


@dataclass(frozen=True, slots=True)
class BoundSheet:
    """A sheet with its repository and columns. problems: header → why it cannot be imported."""

    sheet: Sheet
    repository: Repository[Any]
    headers: tuple[str, ...]
    columns: tuple[Column, ...]
    key: str | None
    problems: Mapping[str, errors.BadRequest]

    def rows(self) -> Iterator[SheetRow]:
        """The rows after the header."""
        rows = self.sheet.rows()
        next(rows)
        return rows

    def cells(self, row: SheetRow) -> dict[str, str]:
        """The row as texts by header; "" for an empty cell."""
        return {
            header: shown(cell) for header, cell in zip_longest(self.headers, row.cells) if header not in ("", ERROR)
        }


@dataclass(frozen=True, slots=True)
class UnboundSheet:
    """A sheet that is not imported, for a preview. problem: the reason; None if the mapping leaves the sheet out."""

    sheet: Sheet
    headers: tuple[str, ...]
    problem: errors.PlatformError | None


@dataclass(frozen=True)
class SheetSource:
    """A file of sheets.

    name     of the only sheet of a CSV file: the file's name without extension, or ""
    """

    file: BinaryIO
    kind: FileKind
    mapping: FileMapping
    name: str = ""

    @cached_property
    def sheets(self) -> list[BoundSheet]:
        """The sheets that have a header and are not left out. Raises BadRequest."""
        bound = [each for each in map(self._bound, self._all()) if each is not None]
        if not bound:
            raise invalid_body(Message("the file has no rows"))
        return bound

    def all_sheets(self) -> list[BoundSheet | UnboundSheet]:
        """All sheets that have a header, for a preview. Raises BadRequest for a file that cannot be read."""
        found: list[BoundSheet | UnboundSheet] = []
        for sheet in self._all():
            header = next(sheet.rows(), None)
            if header is None:
                continue
            problem = None
            try:
                bound = self._bound(sheet)
            except errors.PlatformError as exc:
                bound, problem = None, exc
            headers = tuple(shown(cell).strip() for cell in header.cells[:MOST_COLUMNS])
            found.append(bound or UnboundSheet(sheet, headers, problem))
        return found

    def _all(self) -> list[Sheet]:
        if self.kind == "csv":
            return [CsvSheet(self.file, self.name)]
        # Imported late: importing openpyxl takes longer than most commands run.
        from domain.odata.sheets.xlsx_file import xlsx_sheets

        return [*xlsx_sheets(self.file)]

    def _bound(self, sheet: Sheet) -> BoundSheet | None:
        mapping = self.mapping.of(sheet.name)
        header = None if mapping is None else next(sheet.rows(), None)
        if mapping is None or header is None:
            return None
        if len(header.cells) > MOST_COLUMNS:
            place = located(sheet.name or "CSV", header.number, MOST_COLUMNS + 1)
            raise broken(place, Message("a sheet has at most {0} columns", MOST_COLUMNS))
        repository = repository_of(sheet.name, mapping)
        columns, problems = _columns(sheet, repository, header, mapping)
        key = mapping.key and _key(sheet, repository, columns, mapping.key)
        return BoundSheet(
            sheet, repository, tuple(shown(cell).strip() for cell in header.cells), tuple(columns), key, problems
        )

    def check(self) -> int:
        """Read the whole file before the import; returns the number of rows. Raises BadRequest for any error in it."""
        for sheet in self.sheets:
            for problem in sheet.problems.values():
                raise problem
        return self.count()

    def count(self) -> int:
        """Read all rows; returns their number. Raises BadRequest for a row that cannot be read, but not for headers."""
        return sum(1 for _ in self.rows())

    def rows(self) -> Iterator[tuple[BoundSheet, SheetRow]]:
        """Every row with its sheet, in order."""
        for sheet in self.sheets:
            for row in sheet.rows():
                yield sheet, row

    def bodies(self) -> Iterator[Any]:
        """Every row as an object of Import, or as a PlatformError if a cell has no usable value."""
        for sheet, row in self.rows():
            try:
                yield self._body(sheet, row)
            except errors.PlatformError as error:
                yield error

    def _body(self, sheet: BoundSheet, row: SheetRow) -> dict[str, Any]:
        body: dict[str, Any] = {"@odata.type": f"Erp.{sheet.repository.entity_type}"}
        for column in sheet.columns:
            cell = row.cells[column.place] if column.place < len(row.cells) else None
            if not is_empty(cell):
                body[column.member] = _value(sheet, row, column, cell)
            elif self.mapping.empty == "clear" and column.member != "Id":
                body[column.member] = None
        if body.get("Id") is not None:
            body["@erpnet.findBy"] = {"Id": body["Id"]}
        elif sheet.key is not None:
            if body.get(sheet.key) is None:
                place = located(sheet.sheet.name or "CSV", row.number, _place(sheet, sheet.key), sheet.key)
                raise broken(place, Message("the key is empty"))
            body["@erpnet.findBy"] = ByAttribute((sheet.key,), body[sheet.key])
        return body


def _value(sheet: BoundSheet, row: SheetRow, column: Column, cell: Cell) -> Any:
    try:
        return column.value_of(cell)
    except errors.PlatformError as error:
        place = located(sheet.sheet.name or "CSV", row.number, column.place + 1, column.header)
        raise broken(place, error.message) from error


def _place(sheet: BoundSheet, member: str) -> int:
    return next(column.place + 1 for column in sheet.columns if column.member == member)


def _columns(
    sheet: Sheet, repository: Repository[Any], header: SheetRow, mapping: SheetMapping
) -> tuple[list[Column], dict[str, errors.BadRequest]]:
    columns: list[Column] = []
    problems: dict[str, errors.BadRequest] = {}
    taken: dict[str, str] = {}
    for place, cell in enumerate(header.cells):
        text = shown(cell).strip()
        where = located(sheet.name or "CSV", header.number, place + 1, text)
        if not text:
            problems[f"#{place + 1}"] = broken(where, Message("the column has no header"))
            continue
        try:
            column = column_of(repository, text, place, mapping.columns)
        except UnknownColumn as exc:
            problems[text] = broken(where, exc.reason)
            continue
        if column is None:
            continue
        if column.member in taken:
            problems[text] = broken(where, Message("the column {0} sets {1}, too", taken[column.member], column.member))
            continue
        taken[column.member] = text
        columns.append(column)
    return columns, problems


def _key(sheet: Sheet, repository: Repository[Any], columns: list[Column], key: str) -> str:
    attribute = repository.attribute(key)
    if attribute is None or attribute.is_reference or attribute.name not in {column.member for column in columns}:
        raise broken(Message("sheet {0}", sheet.name or "CSV"), Message("the key {0} is no column of the sheet", key))
    return attribute.name
