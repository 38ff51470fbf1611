"""The errors of a form and of its rows, with their positions on the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django import template
from django.template.defaultfilters import slugify

register = template.Library()
_GENERAL = "general"


@dataclass(frozen=True, slots=True)
class PageError:
    """A message about a field. tab: Unfold's name of the tab that shows the field."""

    label: str
    message: str
    field_id: str
    tab: str = _GENERAL


@register.filter
def page_errors(adminform: Any, formsets: Iterable[Any] | None) -> Iterator[PageError]:
    """The errors of fields, those of the form first; without non-field errors, which the page shows itself."""
    for field in _wrong_fields(adminform.form):
        yield from (PageError(field.label, message, field.id_for_label) for message in field.errors)
    for inline in formsets or ():
        tab = slugify(inline.formset.prefix) if getattr(inline.opts, "tab", False) else _GENERAL
        for number, form in enumerate(inline.formset.forms, start=1):
            for field in _wrong_fields(form):
                label = f"{inline.opts.verbose_name_plural} {number}: {field.label}"
                yield from (PageError(label, message, field.id_for_label, tab) for message in field.errors)


def _wrong_fields(form: Any) -> list[Any]:
    return [form[name] for name in form.errors if name in form.fields]
