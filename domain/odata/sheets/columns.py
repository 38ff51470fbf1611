"""Columns of a sheet: finds the attribute of a header and converts cells to values of a body (spec 11, 11.2).

A header is the API name of an attribute, its caption in the caller's language, a custom property
(`CustomProperty_Color`), or a path (`Customer.Number`), which finds the referenced entity by that attribute.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from domain.dataset.lookups.name_binding import Name, UnknownName, bind_path
from domain.model.attributes import Attribute
from domain.model.custom_properties import is_name
from domain.model.naming import in_words, near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.references import reference_path
from domain.odata.sheets.cells import Cell, CellProblem, shown
from domain.odata.write.search_criteria import ByAttribute
from foundation import errors
from foundation.guids import parse_guid
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

#: Header of the error column in a file of refused rows; the import ignores the column.
ERROR = "Error"
_NUMBERS = frozenset({Kind.INT, Kind.DECIMAL, Kind.AMOUNT, Kind.QUANTITY})
#: Kinds of attributes at the end of a path by which entities are found.
_FINDING = frozenset({Kind.STRING, Kind.MULTILANGUAGE, Kind.INT, Kind.DECIMAL, Kind.BOOL})


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is imported.

    place     index in a row
    header    as written
    member    name in the body
    path      name or path of the attribute, as in a mapping
    value_of  converts a cell that is not empty to the JSON value of the member. Raises PlatformError
    """

    place: int
    header: str
    member: str
    path: str
    value_of: Callable[[Cell], Any]


class UnknownColumn(ValueError):
    """A header that names no attribute that can be imported."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason)
        self.reason = reason


def column_of(repository: Repository[Any], header: str, place: int, mapped: Mapping[str, str | None]) -> Column | None:
    """The column of a header; None where the mapping leaves it out. Raises UnknownColumn."""
    name = mapped.get(header, None if header == ERROR else header)
    if name is None:
        return None
    name = name.strip()
    if is_name(name):
        return Column(place, header, name, name, _text)
    attribute = _attribute(repository, name)
    if attribute is not None:
        _check_settable(attribute)
        return Column(place, header, attribute.name, attribute.name, _value_of(attribute))
    first, _, rest = name.partition(".")
    reference = _attribute(repository, first)
    if rest and reference is not None and reference.is_reference:
        _check_settable(reference)
        path, value_of = _finder(repositories[reference.target], rest)
        return Column(place, header, reference.name, f"{reference.name}.{path}", value_of)
    raise UnknownColumn(
        Message("{0} has no attribute {1}.{2}", repository.set_name, name, near(name, repository.attributes))
    )


def _attribute(repository: Repository[Any], name: str) -> Attribute | None:
    found = repository.attribute(name) or repository.attribute_behind(name)
    if found is not None:
        return found
    matching = [each for each in repository.attributes.values() if name.lower() in _captions(each)]
    return matching[0] if len(matching) == 1 else None


def _captions(attribute: Attribute) -> set[str]:
    verbose = str(getattr(attribute.field, "verbose_name", ""))
    return {in_words(attribute.name).lower(), verbose.lower()}


def _check_settable(attribute: Attribute) -> None:
    if attribute.read_only and attribute.name != "ObjectVersion" and not attribute.key_alias:
        raise UnknownColumn(Message("{0} cannot be set", attribute.name))


def _value_of(attribute: Attribute) -> Callable[[Cell], Any]:
    if attribute.is_reference:
        return _reference(repositories[attribute.target])
    if attribute.kind in _NUMBERS:
        return _number
    if attribute.kind is Kind.BOOL:
        return _truth
    if attribute.kind is Kind.MULTILANGUAGE:
        return _texts
    if attribute.kind is Kind.STRING:
        return _text
    return lambda cell: _text(cell).strip()


def _reference(target: Repository[Any]) -> Callable[[Cell], Any]:
    """A guid or `Set(guid)`; another text is the code of the entity, or its name where it has no code."""
    path = target.code_path or target.label_path

    def value_of(cell: Cell) -> Any:
        text = _text(cell).strip()
        if (guid := _guid(text)) is not None:
            return {"@odata.id": reference_path(target, guid)}
        if text.endswith(")") and "(" in text:
            return {"@odata.id": text}
        return _found_by(path or ("Id",), text)

    return value_of


def _finder(target: Repository[Any], path: str) -> tuple[str, Callable[[Cell], Any]]:
    """(path in the registry's spelling, function from a cell to the value that finds by it). Raises UnknownColumn."""
    names = path.split(".")
    if len(names) == 1 and (own := _attribute(target, path)) is not None:
        names = [own.name]
    if names == ["Id"]:
        return "Id", _reference(target)
    try:
        bound = bind_path(target, names)
    except UnknownName as exc:
        raise UnknownColumn(Message("{0} has no attribute {1}.{2}", target.set_name, path, "")) from exc
    if bound.kind not in _FINDING or bound.attribute is None or bound.attribute.secret or bound.attribute.calculated:
        raise UnknownColumn(Message("nothing can be found by {0}", path))
    return bound.text, lambda cell: _found_by(tuple(names), _searched(bound, cell))


def _searched(bound: Name, cell: Cell) -> Any:
    if bound.kind in (Kind.STRING, Kind.MULTILANGUAGE):
        return _text(cell)
    if bound.kind is Kind.BOOL:
        return _truth(cell)
    try:
        return Decimal(_number(cell))
    except ArithmeticError as exc:
        raise errors.BadRequest(errors.INVALID_LITERAL, shown(cell), bound.kind.value, bound.text) from exc


def _found_by(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return {"@erpnet.action": "findSingle", "@erpnet.findBy": ByAttribute(path, value)}


def _guid(text: str) -> str | None:
    try:
        return parse_guid(text)
    except ValueError:
        return None


def _number(cell: Cell) -> Any:
    """The number as a text; of a float the shortest form, which spreadsheets show."""
    if isinstance(cell, float):
        return f"{Decimal(repr(cell)):f}"
    return _text(cell).strip()


def _truth(cell: Cell) -> Any:
    if isinstance(cell, bool):
        return cell
    text = _text(cell).strip().lower()
    return {"1": True, "0": False}.get(text, text)


def _texts(cell: Cell) -> Any:
    """A text in the caller's language, or all of them as a JSON object."""
    text = _text(cell)
    if text.startswith("{"):
        try:
            parsed = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
        if isinstance(parsed, dict) and all(isinstance(each, str) for each in parsed.values()):
            return parsed
    return text


def _text(cell: Cell) -> str:
    match cell:
        case CellProblem():
            raise errors.BadRequest(errors.INVALID_BODY, cell.reason)
        case datetime.datetime():
            midnight = cell.time() == datetime.time()
            return cell.date().isoformat() if midnight else cell.isoformat()
        case float() if cell.is_integer():
            return f"{cell:.0f}"
    return shown(cell)
