"""Custom properties as fields of admin forms (spec 08, 8.2)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from functools import partial
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminDateWidget, AdminTextInputWidget
from django.utils.formats import date_format

from domain.dataset.lookups.allowed_values import find_allowed
from domain.dataset.records.record import Record
from domain.model.custom_properties import PREFIX, Definition, definitions, parse_value
from domain.model.repository import Repository
from domain.model.values import in_language
from foundation.languages import active_language
from identity.admin_bases import NameInput

#: Property type of files, which forms do not show.
_PICTURE = "Picture"


def custom_fields(repository: Repository[Any]) -> dict[str, forms.Field]:
    """API name (`CustomProperty_x`) → form field, of the repository's active custom properties."""
    if repository.access == "ReadOnly" or not hasattr(repository.model, "custom_property_values"):
        return {}
    return {
        name: _field(known) for name, known in definitions(repository.name).items() if known.property_type != _PICTURE
    }


def _field(known: Definition) -> forms.Field:
    language = active_language()
    shared: dict[str, Any] = {
        "required": False,
        "label": in_language(dict(known.name), language) or known.code,
        "help_text": f"@{known.code}",
    }
    if known.limited and not known.allowed_from:
        described = ((value, in_language(dict(entry.description), language)) for value, entry in known.allowed.items())
        choices = [(value, f"{value} – {text}" if text else value) for value, text in described]
        return forms.ChoiceField(choices=[("", "---------"), *choices], **shared)
    if known.property_type == "Date":
        return forms.DateField(widget=AdminDateWidget(), **shared)
    if known.property_type == "Number":
        return forms.DecimalField(**shared)
    widget = (
        NameInput(f"values-{known.api_name}", lambda: list(known.allowed)) if known.allowed else AdminTextInputWidget()
    )
    return forms.CharField(widget=widget, **shared)


def custom_initial(form: Any) -> None:
    """Fill the fields of a form from its entity. A stored value that is no longer allowed stays a choice."""
    stored = form.instance.custom_property_values or {}
    for name, known in definitions(form.repository.name).items():
        if name not in form.fields or known.code not in stored:
            continue
        value = form.initial[name] = stored[known.code].get("Value")
        field = form.fields[name]
        if isinstance(field, forms.ChoiceField) and value not in known.allowed:
            choices: Any = field.choices
            field.choices = [*choices, (value, value)]


def show_custom(form: Any) -> None:
    """Put values on the instance and labels on the fields, for Django's read-only fields."""
    stored = form.instance.custom_property_values or {}
    for name, known in definitions(form.repository.name).items():
        if (field := form.fields.get(name)) is None:
            continue
        field.short_description = field.label
        value = stored.get(known.code, {}).get("Value")
        if known.property_type == "Date" and value:
            value = date_format(datetime.date.fromisoformat(value))
        elif isinstance(field, forms.ChoiceField):
            choices: Any = field.choices
            value = dict(choices).get(value, value) if value else None
        setattr(form.instance, name, "-" if value in (None, "") else value)


def set_custom(record: Record, form: Any, names: Iterable[str]) -> None:
    """Set the named fields that are custom properties."""
    dataset, language = record.dataset, active_language()
    for name in names:
        if not name.startswith(PREFIX):
            continue
        value = form.cleaned_data.get(name)
        given = value.isoformat() if hasattr(value, "isoformat") else value
        find = partial(find_allowed, dataset)
        code, parsed = parse_value(record.repository.name, name, None if given == "" else given, language, find)
        dataset.set_custom(record, code, parsed)
