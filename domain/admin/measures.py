"""Shows amounts with their currency, quantities with their unit, and discounts in per cent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.db import models
from django.utils.formats import number_format
from django.utils.text import capfirst

from domain.dataset.checks.access import leads_to_hidden
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository

_PERCENT = "_percent"
_HUNDRED = Decimal(100)


def measure_path(repository: Repository[Any], attribute: Attribute) -> list[str]:
    """Python names of the references on the path to an attribute's currency or unit."""
    path: list[str] = []
    for name in attribute.measure:
        reference = repository.references[name]
        path.append(reference.python_name)
        repository = repositories[reference.target]
    return path


def measure_text(repository: Repository[Any], attribute: Attribute, entity: Any) -> str:
    """The code of the currency or unit of a value of an entity or a record; "" if there is none or it is hidden from
    the user.
    """
    for name in attribute.measure:
        reference = repository.references[name]
        # Entities of pages have hidden references removed; records have all.
        if isinstance(entity, Record) and leads_to_hidden(entity, name):
            return ""
        entity = getattr(entity, reference.python_name, None)
        if entity is None:
            return ""
        repository = repositories[reference.target]
    code = repository.code
    return str(getattr(entity, code.python_name)) if code is not None else str(entity)


def is_percent(field: models.Field[Any, Any]) -> bool:
    """Whether the field stores a fraction that is shown as per cent: 0.1 is 10 %."""
    return isinstance(field, models.DecimalField) and field.name.endswith(_PERCENT)


def plain(number: Decimal) -> Decimal:
    """The number without trailing zeros and exponent."""
    short = number.normalize()
    return short if short.as_tuple().exponent <= 0 else short.quantize(Decimal(1))  # type: ignore[operator]


class ValueColumn:
    """A column or read-only field that shows a number with its measure or as per cent.

    attribute_name   the Python name
    """

    def __init__(self, repository: Repository[Any], attribute: Attribute) -> None:
        self.repository = repository
        self.attribute = attribute
        self.attribute_name = self.__name__ = attribute.python_name
        self.short_description = capfirst(str(getattr(attribute.field, "verbose_name", attribute.name)))
        self.admin_order_field = attribute.python_name

    def __eq__(self, other: object) -> bool:
        """Equal by attribute, since Django searches for fields in lists of read-only fields."""
        return isinstance(other, ValueColumn) and other.attribute is self.attribute

    def __hash__(self) -> int:
        return hash(self.attribute_name)

    def __call__(self, entity: Any) -> str:
        """The text for an entity or a record: `1,610.35 EUR`, `2 pcs`, `10 %`; `-` for no value."""
        value: Decimal | None = getattr(entity, self.attribute_name)
        if value is None:
            return "-"
        if not self.attribute.is_measured:
            return f"{number_format(plain(value * _HUNDRED))} %"
        places = max(2, -int(plain(value).as_tuple().exponent)) if self.attribute.kind.name == "AMOUNT" else None
        number = number_format(plain(value), places, use_l10n=True, force_grouping=True)
        return f"{number} {measure_text(self.repository, self.attribute, entity)}".rstrip()


def measured_values(record: Record, prefix: str | None) -> dict[str, str]:
    """Texts of a record's measured values, by the names of their fields in a form with the prefix."""
    repository = record.repository
    columns = [ValueColumn(repository, each) for each in repository.attributes.values() if each.is_measured]
    start = f"{prefix}-" if prefix else ""
    return {f"{start}{each.attribute_name}": each(record) for each in columns}


def readable(repository: Repository[Any], name: str) -> str | ValueColumn:
    """The column for a name: a ValueColumn if its value has a measure or is a percentage, else the name."""
    attribute = repository.by_python_name.get(name)
    if attribute is None or attribute.field is None or not (attribute.is_measured or is_percent(attribute.field)):
        return name
    return ValueColumn(repository, attribute)


def attribute_name(column: object) -> str:
    """The name of the attribute that a column shows; for a column given by name, this name."""
    return str(getattr(column, "attribute_name", column))


class NumberFormField(forms.DecimalField):
    """A decimal, shown without trailing zeros."""

    def prepare_value(self, value: Any) -> Any:
        """Shows a stored 10.000 as 10; keeps typed text."""
        return plain(value) if isinstance(value, Decimal) else value


class PercentFormField(forms.DecimalField):
    """A stored fraction, entered and shown as per cent."""

    def prepare_value(self, value: Any) -> Any:
        """Shows a stored 0.1 as 10; keeps typed text."""
        return plain(value * _HUNDRED) if isinstance(value, Decimal) else value

    def to_python(self, value: Any) -> Any:
        """The fraction; None for no input. Raises ValidationError."""
        number = super().to_python(value)
        return None if number is None else number / _HUNDRED
