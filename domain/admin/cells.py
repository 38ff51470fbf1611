"""Values of a list's rows for exported files: typed values, where the list shows texts."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from html import unescape
from typing import Any

from django.contrib.admin.utils import label_for_field, lookup_field
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext

from domain.admin.measures import ValueColumn, measure_text
from domain.model.values import in_language
from foundation.languages import active_language


class Percent(Decimal):
    """A fraction that is shown as per cent."""


#: Moments are without a zone, in the zone of the request; dates of XLSX have none.
Cell = str | bool | int | Decimal | datetime.date | datetime.datetime | datetime.time | None
Rows = Iterable[Sequence[Cell]]


class ExportColumn:
    """A column of an exported list: its heading, and the value of an entity."""

    def __init__(self, title: str, value: Callable[[Any], Any]) -> None:
        self.title = title
        self._value = value

    def cell(self, entity: Any) -> Cell:
        """The value of a row."""
        return _cell(self._value(entity))


def export_columns(page: Any, columns: list[Any]) -> list[ExportColumn]:
    """The columns of a list (Django's list_display) for a file; a currency or unit has a column of its own."""
    result: list[ExportColumn] = []
    for column in columns:
        if column == "action_checkbox":
            continue
        title = capfirst(str(label_for_field(column, page.model, page)))
        if not isinstance(column, ValueColumn):
            result.append(ExportColumn(title, _shown(page, column)))
        elif column.attribute.is_measured:
            result.append(ExportColumn(title, _stored(column)))
            unit = gettext("Currency") if column.attribute.kind.name == "AMOUNT" else gettext("Unit")
            result.append(ExportColumn(f"{title}: {unit}", _measure(column)))
        else:
            result.append(ExportColumn(title, _percent(column)))
    return result


def _stored(column: ValueColumn) -> Callable[[Any], Any]:
    return lambda entity: getattr(entity, column.attribute_name)


def _percent(column: ValueColumn) -> Callable[[Any], Any]:
    def value(entity: Any) -> Percent | None:
        stored = getattr(entity, column.attribute_name)
        return None if stored is None else Percent(stored)

    return value


def _measure(column: ValueColumn) -> Callable[[Any], Any]:
    """A function that returns the currency or unit; None if there is no value."""

    def value(entity: Any) -> str | None:
        if getattr(entity, column.attribute_name) is None:
            return None
        return measure_text(column.repository, column.attribute, entity)

    return value


def _shown(page: Any, column: Any) -> Callable[[Any], Any]:
    """A function that returns the value as Django's list does: of a field, a method of the page or of the model."""

    def value(entity: Any) -> Any:
        try:
            field, _, found = lookup_field(column, entity, page)
        except ObjectDoesNotExist:
            return None
        if field is not None and field.remote_field is not None:
            return getattr(entity, field.name)
        return found

    return value


def _cell(value: Any) -> Cell:
    match value:
        case SafeString():
            return " ".join(unescape(strip_tags(value)).split())
        case None | str() | bool() | int() | Decimal():
            return value
        case datetime.datetime():
            return timezone.make_naive(value) if timezone.is_aware(value) else value
        case datetime.date() | datetime.time():
            return value
        case float():
            return Decimal(str(value))
        case dict():
            return in_language(value, active_language())
    return str(value)
