"""Shows amounts with their currency, quantities with their unit, and discounts in per cent."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.formats import get_format, number_format
from django.utils.text import capfirst
from django.utils.translation import gettext
from unfold.widgets import UnfoldAdminTextInputWidget

from domain.dataset.checks.access import leads_to_hidden
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository

_PERCENT = "_percent"
_HUNDRED = Decimal(100)
#: Separators of thousands in languages such as French and Bulgarian.
_SPACES = re.compile(r"\s+")
#: A number with separators of thousands that has both separators, or one of them twice: `1.610,35`, `1,610,350`.
_GROUPED = tuple(
    (
        re.compile(
            rf"(?P<whole>[+-]?\d{{1,3}}(?:[{mark}]\d{{3}})+(?:[{mark}]\d{{3}}|(?=[{point}])))"
            rf"(?:[{point}](?P<digits>\d*))?"
        ),
        mark,
    )
    for mark, point in (",.", ".,")
)
_FRACTION = re.compile(r"([+-]?\d*)([.,])(\d*)")
_FIRST_GROUP = re.compile(r"[+-]?[1-9]\d{0,2}")


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
    if not attribute.measure:
        return ""
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
    """A decimal, shown in the format of the language without trailing zeros. Its input takes a point and a comma.

    Not an input of the type number: browsers drop a comma from it, or a point, without a word.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "widget": UnfoldAdminTextInputWidget({"inputmode": "decimal"})})

    def prepare_value(self, value: Any) -> Any:
        """Shows a stored 10.500 as 10.5, in German as 10,5; keeps typed text."""
        return number_format(plain(value)) if isinstance(value, Decimal) else value

    def to_python(self, value: Any) -> Any:
        """The number; None for no input. Raises ValidationError."""
        return super().to_python(unlocalized(value) if isinstance(value, str) else value)


class PercentFormField(NumberFormField):
    """A stored fraction, entered and shown as per cent."""

    def prepare_value(self, value: Any) -> Any:
        """Shows a stored 0.1 as 10; keeps typed text."""
        return super().prepare_value(value * _HUNDRED if isinstance(value, Decimal) else value)

    def to_python(self, value: Any) -> Any:
        """The fraction; None for no input. Raises ValidationError."""
        number = super().to_python(value)
        return None if number is None else number / _HUNDRED


def unlocalized(text: str) -> str:
    """A typed number with a decimal point and without separators of thousands; other text unchanged.

    `79.25` and `79,25` are the same number in every language. Raises ValidationError for `1,234` where the comma is not
    the decimal separator of the language, and for `1.234` where the point is not.
    """
    text = _SPACES.sub("", text)
    for grouped, mark in _GROUPED:
        if match := grouped.fullmatch(text):
            return f"{match['whole'].replace(mark, '')}.{match['digits'] or ''}"
    match = _FRACTION.fullmatch(text)
    if match is None:
        return text
    whole, mark, digits = match.groups()
    if mark != get_format("DECIMAL_SEPARATOR") and len(digits) == 3 and _FIRST_GROUP.fullmatch(whole):
        raise ValidationError(
            gettext("%(text)s can be read as %(whole)s or as %(fraction)s. Enter one of these."),
            params={"text": text, "whole": whole + digits, "fraction": number_format(f"{whole}.{digits}")},
        )
    return f"{whole}.{digits}"
