"""Mappings of sheets to repositories and of columns to attributes, as JSON (spec 11, 11.2).

    {"sheets": {"Kunden": {"repository": "Crm_Sales_Customers", "key": "Number",
                           "columns": {"Kundennummer": "Number", "Firma": "Party.PartyCode", "Notiz": null}}},
     "empty": "keep"}

`repository`, `key` and `columns` beside `sheets` apply to every sheet that `sheets` does not name. A sheet or a column
that maps to null is left out. `key` is the attribute by which rows find their entities. `empty` is the effect of an
empty cell: `keep` (default) leaves the attribute unchanged, `clear` sets it to null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from domain.model.naming import in_words
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.json_body import invalid_body
from domain.odata.sheets.cells import broken
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted

#: Longest name of a sheet in XLSX; longer names of sets are cut.
LONGEST_NAME = 31
#: The suffix, such as " (1)", that browsers add to the name of a file that exists already.
COPY = re.compile(r" ?\(\d{1,4}\)$")
_OF_SHEETS = frozenset({"repository", "key", "columns"})


@dataclass(frozen=True, slots=True)
class SheetMapping:
    """The mapping of one sheet. columns: header → name or path of an attribute, None to leave it out."""

    repository: str | None = None
    key: str | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileMapping:
    """The mapping of a file. sheets: name → mapping of the sheet, None to leave it out; others: of other sheets."""

    sheets: Mapping[str, SheetMapping | None] = field(default_factory=dict)
    others: SheetMapping = field(default_factory=SheetMapping)
    empty: Literal["keep", "clear"] = "keep"

    def of(self, sheet: str) -> SheetMapping | None:
        """The mapping of a sheet."""
        return self.sheets.get(sheet, self.others)


def read_mapping(given: Any) -> FileMapping:
    """The mapping in a JSON value. Raises BadRequest for an invalid one."""
    values = _object(given, "mapping", _OF_SHEETS | {"sheets", "empty"})
    sheets = _object(values.get("sheets", {}), "sheets", None)
    empty = values.get("empty", "keep")
    if empty not in ("keep", "clear"):
        raise errors.BadRequest(errors.INVALID_LITERAL, empty, "keep | clear", "empty", target="empty")
    return FileMapping(
        {name: None if value is None else _of_sheet(value, name) for name, value in sheets.items()},
        _of_sheet({name: value for name, value in values.items() if name in _OF_SHEETS}, "mapping"),
        empty,
    )


def _of_sheet(given: Any, name: str) -> SheetMapping:
    values = _object(given, name, _OF_SHEETS)
    columns = _object(values.get("columns", {}), "columns", None)
    for header, attribute in columns.items():
        if not (attribute is None or isinstance(attribute, str)):
            raise errors.BadRequest(errors.INVALID_LITERAL, attribute, "Edm.String", header, target="columns")
    for member in ("repository", "key"):
        if not isinstance(values.get(member, ""), str):
            raise errors.BadRequest(errors.INVALID_LITERAL, values[member], "Edm.String", member, target=member)
    return SheetMapping(values.get("repository"), values.get("key"), columns)


def _object(given: Any, name: str, known: frozenset[str] | None) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise invalid_body(Message("{0} must be an object", name), target=name)
    unknown = [each for each in given if known is not None and each not in known]
    if unknown:
        raise errors.unknown_parameter("mapping", unknown[0], sorted(known or ()))
    return given


def repository_of(sheet: str, mapping: SheetMapping) -> Repository[Any]:
    """The repository that the mapping or the sheet names: by set, dotted name or caption, in any case.

    Raises BadRequest for an unknown name.
    """
    name = mapping.repository or COPY.sub("", sheet)
    found = repositories.for_entity_name(name) or _by_caption(name)
    if found is None:
        if name:
            reason = Message("there is no repository {0}; name it in a mapping", quoted(name))
        else:
            reason = Message("no set is named for it; choose one ({0}) or use a mapping", "repository")
        raise broken(Message("sheet {0}", sheet or "CSV"), reason)
    return found


def _by_caption(name: str) -> Repository[Any] | None:
    wanted = name.strip().lower()
    matching = [
        each
        for each in repositories
        if wanted in (in_words(each.name.rpartition(".")[2]).lower(), str(each.model._meta.verbose_name_plural).lower())
        or (len(wanted) == LONGEST_NAME and each.set_name.lower().startswith(wanted))
    ]
    return matching[0] if len(matching) == 1 else None
