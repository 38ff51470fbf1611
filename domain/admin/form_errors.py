"""Assigns errors of the dataset to form fields and rows, else to the form.

Targets of errors:

    Code                  a field of the entity
    Lines/2/Quantity      a field of the third row of a collection, a path into JSON
    Lines(guid)/Quantity  a field of a stored row
    Lines[+2]/Quantity    a field of the third new row

As in the dataset's collections, deleted and empty rows do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from domain.admin.forms import EntityForm
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.errors import ErrorCode, PlatformError
from foundation.texts import sentence

_ROW = re.compile(
    r"(?P<collection>\w+)"
    r"(?:/(?P<index>\d+)|\((?P<id>[0-9a-f-]{36})\)|\[\+(?P<new>\d+)\])"
    r"(?:/(?P<rest>.*))?"
)


@dataclass(frozen=True, slots=True)
class RowTarget:
    """A field of a row: by `index` among all rows, by `new` among the new rows, or by the `id` of a stored row."""

    collection: str
    attribute: str
    index: int | None = None
    new: int | None = None
    id: str | None = None

    def form_among(self, initial: list[Any], extra: list[Any]) -> Any:
        """The row's form; None if there is none."""
        if self.id is not None:
            return next((form for form in initial if str(form.instance.pk) == self.id), None)
        forms, index = (extra, self.new) if self.new is not None else ([*initial, *extra], self.index)
        return forms[index] if index is not None and index < len(forms) else None


def row_of(target: str | None) -> RowTarget | None:
    """The row of a target; None for targets outside of collections."""
    match = _ROW.fullmatch(target or "")
    if match is None:
        return None
    index = match["index"]
    return RowTarget(
        match["collection"],
        match["rest"] or "",
        None if index is None else int(index),
        None if match["new"] is None else int(match["new"]),
        match["id"],
    )


def messages_of(error: PlatformError) -> Iterator[tuple[str | None, ErrorCode, str]]:
    """(target, code, message) of each detail of an error, or of the error itself without details."""
    if not error.details:
        yield error.target, error.code, error.message
    for detail in error.details:
        yield detail.row or detail.target, detail.code, detail.message


def show_error(form: EntityForm, error: PlatformError, collections: frozenset[str]) -> None:
    """Add messages at the form's fields, else above the form; except those about rows of `collections`."""
    repository = repositories.for_model(form._meta.model)
    for target, code, message in messages_of(error):
        row = row_of(target)
        if row is None or row.collection not in collections:
            _add(form, repository, target, code, message)


def show_row_errors(formset: Any, collection: str, error: PlatformError) -> None:
    """Add the messages about one collection at its rows; above the rows if there is no such row."""
    stored = [form for form in formset.initial_forms if not _is_deleted(formset, form)]
    new = [form for form in formset.extra_forms if form.has_changed() and not _is_deleted(formset, form)]
    repository = repositories.for_model(formset.model)
    for target, code, message in messages_of(error):
        row = row_of(target)
        if row is None or row.collection != collection:
            continue
        form = row.form_among(stored, new)
        if form is not None:
            _add(form, repository, row.attribute, code, message)
        else:
            formset._non_form_errors.append(_sentence(code, message))


def _add(form: EntityForm, repository: Repository[Any], target: str | None, code: ErrorCode, message: str) -> None:
    """Add a message; at a field without the name that the API has for it.

    A missing or taken value has Django's message, without names of types. A widget with several inputs has a method
    `refuse(name, message)`, which marks one of them and returns the message with its label.
    """
    field = _field(form, repository, target)
    if field is None:
        form.add_error(None, _sentence(code, message))
        return
    if code is errors.DUPLICATE_VALUE:
        taken = form.instance.unique_error_message(form._meta.model, (field,))
        form._update_errors(ValidationError({field: [taken]}))
        return
    name, _, part = (target or "").partition("/")
    reason = reason_shown(code, message).removeprefix(f"{name}: ")
    if code is errors.REQUIRED_MISSING:
        reason = str(forms.Field.default_error_messages["required"])
    refuse = getattr(form.fields[field].widget, "refuse", None)
    reason = _sentence(code, reason)
    form.add_error(field, refuse(part, reason) if refuse and part else reason)


def reason_shown(code: ErrorCode, message: str) -> str:
    """The message without the code's prefix, such as "The rule cannot be saved:"."""
    before, placeholder, after = gettext(code.message_format).partition("{0}")
    return message.removeprefix(before) if placeholder and not after else message


def _sentence(code: ErrorCode, message: str) -> str:
    """The message as a sentence; that of a rule or script as its author wrote it."""
    return message if code.message_format == "{0}" else sentence(message)


def _is_deleted(formset: Any, form: Any) -> bool:
    return bool(formset.can_delete and formset._should_delete_form(form))


def _field(form: EntityForm, repository: Repository[Any], target: str | None) -> str | None:
    if target in form.fields:
        return target  # a custom property: its field has the API name
    attribute = repository.attribute((target or "").partition("/")[0])
    return attribute.python_name if attribute is not None and attribute.python_name in form.fields else None
