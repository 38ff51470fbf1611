"""Amounts with their currency, quantities with their unit, and discounts in per cent, as people read them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.db import models
from django.utils.formats import number_format
from django.utils.text import capfirst

from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository

_PERCENT = "_percent"
_HUNDRED = Decimal(100)


def measure_path(repository: Repository[Any], attribute: Attribute) -> list[str]:
    """Python names of the references that lead to an attribute's currency or unit."""
    path: list[str] = []
    for name in attribute.measure:
        reference = repository.references[name]
        path.append(reference.python_name)
        repository = repositories[reference.target]
    return path


def measure_text(repository: Repository[Any], attribute: Attribute, entity: Any) -> str:
    """The code of the currency or unit of an entity's value; "" where there is none that the user may see."""
    for name in measure_path(repository, attribute):
        entity = getattr(entity, name, None)
        if entity is None:
            return ""
    code = repositories.for_model(type(entity)).code
    return str(getattr(entity, code.python_name)) if code is not None else str(entity)


def is_percent(field: models.Field[Any, Any]) -> bool:
    """Whether the field stores a fraction that people read as per cent: 0.1 is 10 %."""
    return isinstance(field, models.DecimalField) and field.name.endswith(_PERCENT)


def plain(number: Decimal) -> Decimal:
    """The number without zeros at the end, and without an exponent."""
    short = number.normalize()
    return short if short.as_tuple().exponent <= 0 else short.quantize(Decimal(1))  # type: ignore[operator]


class ValueColumn:
    """A column, or a read-only field, of a value that needs more than its number to be read.

    attribute_name   the Python name
    """

    def __init__(self, repository: Repository[Any], attribute: Attribute) -> None:
        self.repository = repository
        self.attribute = attribute
        self.attribute_name = self.__name__ = attribute.python_name
        self.short_description = capfirst(str(getattr(attribute.field, "verbose_name", attribute.name)))
        self.admin_order_field = attribute.python_name

    def __eq__(self, other: object) -> bool:
        """Django looks fields up in its lists of read-only ones."""
        return isinstance(other, ValueColumn) and other.attribute is self.attribute

    def __hash__(self) -> int:
        return hash(self.attribute_name)

    def __call__(self, entity: Any) -> str | None:
        """`1,610.35 EUR`, `2 pcs`, `10 %`; None for no value."""
        value: Decimal | None = getattr(entity, self.attribute_name)
        if value is None:
            return None
        if not self.attribute.is_measured:
            return f"{number_format(plain(value * _HUNDRED))} %"
        places = max(2, -int(plain(value).as_tuple().exponent)) if self.attribute.kind.name == "AMOUNT" else None
        number = number_format(plain(value), places, use_l10n=True, force_grouping=True)
        return f"{number} {measure_text(self.repository, self.attribute, entity)}".rstrip()


def readable(repository: Repository[Any], name: str) -> str | ValueColumn:
    """A name of a column or read-only field, or what shows its value better."""
    attribute = repository.by_python_name.get(name)
    if attribute is None or attribute.field is None or not (attribute.is_measured or is_percent(attribute.field)):
        return name
    return ValueColumn(repository, attribute)


def attribute_name(column: object) -> str:
    """The name of the attribute that a column shows; that of another column as it is."""
    return str(getattr(column, "attribute_name", column))


class PercentFormField(forms.DecimalField):
    """A stored fraction, entered and shown as per cent."""

    def prepare_value(self, value: Any) -> Any:
        """A stored 0.1 is shown as 10; what was typed stays."""
        return plain(value * _HUNDRED) if isinstance(value, Decimal) else value

    def to_python(self, value: Any) -> Any:
        """The fraction; None for no input. Raises ValidationError."""
        number = super().to_python(value)
        return None if number is None else number / _HUNDRED
