"""Limits of values: lengths of texts, ranges of numbers, forms that a standard defines (JSON, languages, …)."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of an attribute's values. whole: the range of an integer column; below: of a decimal's size."""

    name: str
    attribute: Attribute
    is_json: bool
    validators: tuple[TextValidator, ...]
    whole: tuple[int, int] | None
    below: Decimal | None


def check_limits(record: Record) -> None:
    """Check lengths, numeric ranges and forms of all values to be written.

    Raises Refused or BadRequest naming the attribute.
    """
    values = record.values
    changed = None if record.state == "Added" else record.original_values
    for limits in _limited(record.repository):
        value = values.get(limits.name)
        if value is None or (changed is not None and limits.name not in changed):
            continue
        if isinstance(value, str | dict):
            _check_length(record, limits.attribute, value)
            if limits.is_json and isinstance(value, str):
                _check_json(limits.attribute, value)
            if limits.validators and isinstance(value, str) and value:
                _check_form(record, limits, value)
        elif isinstance(value, Decimal):
            if limits.below is not None and abs(value) >= limits.below:
                raise _out_of_range(record, limits, value)
        elif limits.whole is not None and isinstance(value, int):
            least, most = limits.whole
            if not least <= value <= most:
                raise _out_of_range(record, limits, value)


#: Internal type of an integer field → minimum and maximum of its column on every database.
_WHOLE_NUMBERS = {
    "SmallIntegerField": (-(2**15), 2**15 - 1),
    "PositiveSmallIntegerField": (0, 2**15 - 1),
    "PositiveIntegerField": (0, 2**31 - 1),
}


@derived
def _limited(repository: Repository[Any]) -> list[_Limits]:
    """The attributes with a limit."""
    return [
        _Limits(
            member.name,
            member,
            isinstance(member.field, JsonDocumentField),
            _text_validators(member),
            _whole_range(member),
            None if member.precision is None else Decimal(10) ** (member.precision - (member.scale or 0)),
        )
        for member in repository.attributes.values()
        if member.max_length is not None or member.precision is not None or _whole_range(member) is not None
    ]


def _whole_range(attribute: Attribute) -> tuple[int, int] | None:
    """The range of the column, if narrower than that of the attribute's type."""
    return None if attribute.field is None else _WHOLE_NUMBERS.get(attribute.field.get_internal_type())


def _check_length(record: Record, attribute: Attribute, value: str | dict[str, str]) -> None:
    if attribute.max_length is None:
        return
    longest = len(value) if isinstance(value, str) else max(map(len, value.values()), default=0)
    if longest > attribute.max_length:
        raise errors.Refused(
            errors.VALUE_TOO_LONG,
            f"{record.repository.entity_type}.{attribute.name}",
            attribute.max_length,
            longest,
            target=attribute.name,
        )


def _check_json(attribute: Attribute, value: str) -> None:
    try:
        orjson.loads(value)
    except ValueError as exc:
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        raise errors.BadRequest(errors.INVALID_LITERAL, shown, "JSON", attribute.name, target=attribute.name) from exc


def _check_form(record: Record, limits: _Limits, value: str) -> None:
    for validator in limits.validators:
        if problem := validator.find_problem(value):
            name = f"{record.repository.entity_type}.{limits.name}"
            raise errors.BadRequest(errors.INVALID_VALUE, name, problem, target=limits.name)


def _text_validators(attribute: Attribute) -> tuple[TextValidator, ...]:
    declared = [] if attribute.field is None else attribute.field.validators
    return tuple(validator for validator in declared if isinstance(validator, TextValidator))


def _out_of_range(record: Record, limits: _Limits, value: object) -> errors.Refused:
    name = f"{record.repository.entity_type}.{limits.name}"
    return errors.Refused(errors.VALUE_OUT_OF_RANGE, name, value, target=limits.name)
