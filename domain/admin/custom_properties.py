"""Custom properties as fields of admin forms (spec 08, 8.2; spec 10, 10.2), with a widget for their type."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import escape
from django.utils.translation import gettext
from unfold.widgets import (
    UnfoldAdminDateWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextInputWidget,
)

from domain.admin.context import admin_dataset
from domain.admin.measures import NumberFormField
from domain.admin.widgets import DependentSelect, PictureField
from domain.dataset.lookups.allowed_values import allowed_entities, filter_of, find_allowed, names_parent
from domain.dataset.records.record import Record
from domain.model.custom_properties import PREFIX, AllowedValue, Definition, by_code, definitions
from domain.model.custom_values import canonical, parse_value
from domain.model.repository import Repository
from domain.model.values import in_language
from foundation.kinds import Kind
from foundation.languages import active_language
from identity.admin_bases import NameInput

#: Maximum entities in a select; with more, the user enters the code, which is looked up when the form is saved.
_MAX_OFFERED = 200


def custom_names(repository: Repository[Any]) -> list[str]:
    """API names (`CustomProperty_x`) of the repository's active custom properties; the fields of forms."""
    if repository.access == "ReadOnly" or not hasattr(repository.model, "custom_property_values"):
        return []
    return list(definitions(repository.name))


def custom_fields(repository: Repository[Any], request: HttpRequest) -> dict[str, forms.Field]:
    """API name → form field, of the repository's active custom properties."""
    known = definitions(repository.name)
    return {name: _field(repository, known[name], request) for name in custom_names(repository)}


def _field(repository: Repository[Any], known: Definition, request: HttpRequest) -> forms.Field:
    language = active_language()
    label = in_language(dict(known.name), language) or known.code
    shared: dict[str, Any] = {
        "required": False,
        "label": f"{label} ({known.measure})" if known.measure else label,
        # Django and Unfold do not escape help texts.
        "help_text": escape(" ".join(filter(None, (in_language(dict(known.hint), language), f"@{known.code}")))),
    }
    values = _offered(known, request)
    if known.limited and values is not None:
        return _choice(repository, known, values, shared)
    if values:
        names = [value.value for value in values]
        return forms.CharField(widget=NameInput(lambda: names), **shared)
    return _EDITORS.get(known.kind, _text_editor)(shared)


def _offered(known: Definition, request: HttpRequest) -> list[AllowedValue] | None:
    """The allowed values under any value of the parent; None for too many entities to offer."""
    if not known.allowed_from:
        return list(known.allowed.values())
    condition = filter_of(known)
    found = allowed_entities(
        admin_dataset(request), known, "", "" if names_parent(condition) else condition, limit=_MAX_OFFERED + 1
    )
    return None if len(found) > _MAX_OFFERED else found


def _choice(
    repository: Repository[Any], known: Definition, values: list[AllowedValue], shared: dict[str, Any]
) -> forms.Field:
    """A select; the script custom_values.js filters it by the parent's value."""
    language = active_language()
    described = ((value.value, in_language(dict(value.description), language)) for value in values)
    choices = [(value, f"{value} – {text}" if text and text != value else value) for value, text in described]
    parent = by_code(repository, known.parent) if known.parent else None
    widget = DependentSelect(
        ids={value.value: value.id for value in values},
        parents={value.value: value.parent_id for value in values if value.parent_id},
        parent_field=parent.api_name if parent is not None else "",
    )
    return forms.ChoiceField(choices=[("", "---------"), *choices], widget=widget, **shared)


def _text_editor(shared: dict[str, Any]) -> forms.Field:
    return forms.CharField(widget=UnfoldAdminTextInputWidget(), **shared)


def _boolean_editor(shared: dict[str, Any]) -> forms.Field:
    choices = [("", "---------"), ("true", gettext("Yes")), ("false", gettext("No"))]
    return forms.ChoiceField(choices=choices, widget=UnfoldAdminSelectWidget(), **shared)


_EDITORS: Mapping[Kind, Callable[[dict[str, Any]], forms.Field]] = {
    Kind.DATE: lambda shared: forms.DateField(widget=UnfoldAdminDateWidget(), **shared),
    Kind.DATETIME: lambda shared: forms.SplitDateTimeField(widget=UnfoldAdminSplitDateTimeWidget(), **shared),
    Kind.DECIMAL: lambda shared: NumberFormField(**shared),
    Kind.BOOL: _boolean_editor,
    Kind.BINARY: lambda shared: PictureField(**shared),
}


def custom_initial(form: Any) -> None:
    """Fill the fields of a form from its entity. A stored value that is no longer allowed stays a choice."""
    stored = form.instance.custom_property_values or {}
    for name, known in definitions(form.repository.name).items():
        if name not in form.fields:
            continue
        field = form.fields[name]
        if known.code not in stored:
            if known.default and form.instance._state.adding:
                form.initial[name] = _initial(known, known.default)
            continue
        value = stored[known.code].get("Value")
        form.initial[name] = _initial(known, value)
        if isinstance(field, forms.ChoiceField):
            choices: Any = field.choices
            if value not in dict(choices):
                field.choices = [*choices, (value, value)]


def _initial(known: Definition, value: Any) -> Any:
    if known.kind is Kind.DATETIME and value:
        return timezone.localtime(canonical(known.kind, value))
    return canonical(known.kind, value) if known.kind is Kind.DECIMAL and value else value


def show_custom(form: Any) -> None:
    """Put values on the instance and labels on the fields, for Django's read-only fields."""
    stored = form.instance.custom_property_values or {}
    for name, known in definitions(form.repository.name).items():
        if (field := form.fields.get(name)) is None:
            continue
        field.short_description = field.label
        shown = _shown(known, field, stored.get(known.code, {}).get("Value"))
        setattr(form.instance, name, "-" if shown in (None, "") else shown)


def _shown(known: Definition, field: forms.Field, value: Any) -> Any:
    """A stored value as text for people."""
    if not value:
        return None
    if known.kind is Kind.DATE:
        return date_format(datetime.date.fromisoformat(value))
    if known.kind is Kind.DATETIME:
        return date_format(_initial(known, value), "DATETIME_FORMAT")
    if known.kind is Kind.BINARY:
        return gettext("a picture")
    if isinstance(field, forms.ChoiceField):
        choices: Any = field.choices
        return dict(choices).get(value, value)
    return f"{value} {known.measure}" if known.measure else value


class CustomColumn:
    """A list's column of a custom property. Its values are in the rows that the list loads anyway.

    attribute_name   the property's API name
    """

    def __init__(self, known: Definition) -> None:
        self._known = known
        self.attribute_name = self.__name__ = known.api_name
        self.short_description = in_language(dict(known.name), active_language()) or known.code

    def __call__(self, entity: Any) -> Any:
        """The value in its type, with the description of an allowed value or a reference; None for none."""
        stored = (entity.custom_property_values or {}).get(self._known.code, {})
        value = stored.get("Value")
        if value in (None, ""):
            return None
        if self._known.kind is not Kind.STRING:
            return canonical(self._known.kind, value)
        text = in_language(stored.get("Description") or {}, active_language()) if self._known.limited else ""
        return f"{value} – {text}" if text and text != value else value


def custom_columns(repository: Repository[Any]) -> list[CustomColumn]:
    """Columns of the repository's active custom properties that a list can show."""
    if not hasattr(repository.model, "custom_property_values"):
        return []
    return [CustomColumn(each) for each in definitions(repository.name).values() if each.kind is not Kind.BINARY]


def set_custom(record: Record, form: Any, names: Iterable[str]) -> None:
    """Set the named fields that are custom properties."""
    dataset, language = record.dataset, active_language()
    for name in names:
        if not name.startswith(PREFIX):
            continue
        find = partial(find_allowed, dataset)
        code, parsed = parse_value(record.repository.name, name, _given(form.cleaned_data.get(name)), language, find)
        dataset.set_custom(record, code, parsed)


def _given(value: Any) -> Any:
    """A cleaned form value in the input format of the API."""
    if value in ("", False):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value
