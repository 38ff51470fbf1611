"""Limits of values: lengths of texts, ranges of numbers, forms that a standard defines (JSON, languages, …)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import orjson

from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.registry import derived
from domain.model.repository import Repository
from foundation import errors
from foundation.fields import JsonDocumentField
from foundation.validators import TextValidator

#: Characters of an invalid JSON text that its error shows.
_SHOWN = 80


def check_limits(record: Record) -> None:
    """Check lengths, numeric ranges and forms of all values to be written.

    Raises Refused or BadRequest naming the attribute.
    """
    values = record.values
    changed = None if record.state == "Added" else record.original_values
    for attribute in _limited(record.repository):
        value = values.get(attribute.name)
        if value is None or (changed is not None and attribute.name not in changed):
            continue
        _check_length(record, attribute, value)
        _check_json(attribute, value)
        _check_form(record, attribute, value)
        _check_range(record, attribute, value)


#: Internal type of an integer field → minimum and maximum of its column on every database.
_WHOLE_NUMBERS = {
    "SmallIntegerField": (-(2**15), 2**15 - 1),
    "PositiveSmallIntegerField": (0, 2**15 - 1),
    "PositiveIntegerField": (0, 2**31 - 1),
}


@derived
def _limited(repository: Repository[Any]) -> list[Attribute]:
    """The attributes with a limit."""
    return [
        member
        for member in repository.attributes.values()
        if member.max_length is not None or member.precision is not None or _whole_range(member) is not None
    ]


def _whole_range(attribute: Attribute) -> tuple[int, int] | None:
    """The range of the column, if narrower than that of the attribute's type."""
    return None if attribute.field is None else _WHOLE_NUMBERS.get(attribute.field.get_internal_type())


def _check_length(record: Record, attribute: Attribute, value: object) -> None:
    if attribute.max_length is None:
        return
    longest = 0
    if isinstance(value, str):
        longest = len(value)
    elif isinstance(value, dict):
        longest = max((len(text) for text in value.values()), default=0)
    if longest > attribute.max_length:
        raise errors.Refused(
            errors.VALUE_TOO_LONG,
            f"{record.repository.entity_type}.{attribute.name}",
            attribute.max_length,
            longest,
            target=attribute.name,
        )


def _check_json(attribute: Attribute, value: object) -> None:
    if isinstance(attribute.field, JsonDocumentField) and isinstance(value, str):
        try:
            orjson.loads(value)
        except ValueError as exc:
            shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
            raise errors.BadRequest(
                errors.INVALID_LITERAL, shown, "JSON", attribute.name, target=attribute.name
            ) from exc


def _check_form(record: Record, attribute: Attribute, value: object) -> None:
    if isinstance(value, str) and value:
        for validator in _text_validators(attribute):
            if problem := validator.find_problem(value):
                name = f"{record.repository.entity_type}.{attribute.name}"
                raise errors.BadRequest(errors.INVALID_VALUE, name, problem, target=attribute.name)


def _text_validators(attribute: Attribute) -> list[TextValidator]:
    declared = [] if attribute.field is None else attribute.field.validators
    return [validator for validator in declared if isinstance(validator, TextValidator)]


def _check_range(record: Record, attribute: Attribute, value: object) -> None:
    if isinstance(value, int) and (whole := _whole_range(attribute)) is not None:
        fits = whole[0] <= value <= whole[1]
    elif isinstance(value, Decimal) and attribute.precision is not None:
        fits = abs(value) < Decimal(10) ** (attribute.precision - (attribute.scale or 0))
    else:
        return
    if not fits:
        raise errors.Refused(
            errors.VALUE_OUT_OF_RANGE, f"{record.repository.entity_type}.{attribute.name}", value, target=attribute.name
        )
