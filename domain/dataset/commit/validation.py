"""What every entity is held to before it is written: required values, limits, the model's own validations."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from domain.dataset.commit.measures import check_stated_measures
from domain.dataset.records.record import Record
from domain.dataset.unit.autoflush import required_of
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors

if TYPE_CHECKING:
    from domain.dataset.unit.dataset import Dataset


def validate(dataset: Dataset) -> None:
    """Check every entity that will be written. Missing values of all of them are named together."""
    records = [record for record in dataset.changed() if not record.is_deleted]
    missing = [(record, names) for record in records if (names := missing_values(record))]
    if missing:
        raise _missing_error(missing)
    for record in records:
        check_limits(record)
    check_stated_measures(dataset)
    for record in dataset.changed():
        for validation in record.repository.behaviours("validations"):
            validation(record)


def missing_values(record: Record) -> list[str]:
    """API names of required attributes without a value."""
    values = record.values
    # A text in no language at all is none; other kinds have no empty dict.
    return [name for name in required_of(record.repository) if (value := values.get(name)) is None or value == {}]


def _missing_error(missing: list[tuple[Record, list[str]]]) -> errors.Refused:
    details = [
        errors.Detail(
            errors.REQUIRED_MISSING, (record.repository.entity_type, name), target=name, row=_row(record, name)
        )
        for record, names in missing
        for name in names
    ]
    record, names = missing[0]
    if len(missing) == 1:
        return errors.Refused(
            errors.REQUIRED_MISSING, record.repository.entity_type, ", ".join(names), target=names[0], details=details
        )
    summary = "; ".join(
        gettext(errors.REQUIRED_MISSING.message_format)
        .replace("{0}", other.repository.entity_type)
        .replace("{1}", ", ".join(absent))
        for other, absent in missing[:10]
    )
    return errors.Refused(errors.VALIDATION_FAILED, summary, details=details)


def _row(record: Record, name: str) -> str | None:
    """The attribute as it is found on a page of the owner (foundation.errors.Detail); None for a root's."""
    owner = record.parent
    if owner is None:
        return None
    for collection in owner.repository.collections:
        siblings = owner.children(collection)
        if record in siblings:
            new = [sibling for sibling in siblings if sibling.state == "Added"]
            return (
                f"{collection}[+{new.index(record)}]/{name}" if record in new else f"{collection}({record.id})/{name}"
            )
    return None


def check_limits(record: Record) -> None:
    """Lengths and numeric ranges of everything that will be written. Raises Refused naming the attribute."""
    values = record.values
    changed = None if record.state == "Added" else record.original_values
    for attribute in _limited(record.repository):
        value = values.get(attribute.name)
        if value is None or (changed is not None and attribute.name not in changed):
            continue
        _check_length(record, attribute, value)
        _check_range(record, attribute, value)


_limits: dict[tuple[int, str], list[Attribute]] = {}


#: Internal type of a whole number's field → the least and the greatest that its column holds on every database.
_WHOLE_NUMBERS = {
    "SmallIntegerField": (-(2**15), 2**15 - 1),
    "PositiveSmallIntegerField": (0, 2**15 - 1),
    "PositiveIntegerField": (0, 2**31 - 1),
}


def _limited(repository: Repository[Any]) -> list[Attribute]:
    """The attributes that have a limit."""
    key = (repositories.generation, repository.name)
    found = _limits.get(key)
    if found is None:
        found = [
            member
            for member in repository.attributes.values()
            if member.max_length is not None or member.precision is not None or _whole_range(member) is not None
        ]
        _limits[key] = found
    return found


def _whole_range(attribute: Attribute) -> tuple[int, int] | None:
    """The numbers that the column holds, where they are fewer than those of the attribute's type."""
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
