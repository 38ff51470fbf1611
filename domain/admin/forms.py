"""Forms of entities and of their owned rows."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Protocol

from django import forms
from django.core.exceptions import ValidationError
from django.forms.formsets import DELETION_FIELD_NAME
from django.http import HttpRequest
from django.utils.functional import cached_property
from django.utils.translation import gettext

from domain.admin import custom_properties
from domain.admin.measures import is_percent, measure_text
from domain.admin.visible_rows import with_visible_references
from domain.admin.widgets import MultilanguageFormField
from domain.model.attributes import Attribute
from domain.model.custom_properties import PREFIX
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.kinds import Kind
from identity.admin_bases import NameInput

_ABBREVIATIONS = re.compile(r"\b(?:uri|url|utc|xml|id)\b", re.I)


def texts_of_fields(repository: Repository[Any]) -> dict[str, Any]:
    """Labels and hints of a repository's forms, for the factories of forms: read-only fields have them, too."""
    return {"labels": repository.admin_options.labels, "help_texts": repository.admin_options.hints}


class Saving(Protocol):
    """Interface of domain.admin.submission: saves a valid form, and adds refusals to its errors."""

    def save(self, form: EntityForm) -> None: ...


class EntityForm(forms.ModelForm[Any]):
    """The form of an entity. It is valid only after the dataset has accepted its values.

    No field is required: late defaults may fill it, and the dataset reports all missing values at once.
    """

    #: Set on the class that a page makes for a POST.
    submission: ClassVar[Saving | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        repository = self.repository
        options = repository.admin_options
        for name, field in self.fields.items():
            field.required = False
            if name.startswith(PREFIX):
                continue
            if name in options.short_texts and isinstance(field.widget, forms.Textarea):
                field.widget.attrs["rows"] = 3
            if name not in options.labels:
                field.label = _ABBREVIATIONS.sub(lambda match: match[0].upper(), str(field.label))
            if name in repository.by_python_name:
                field.label = self._with_measure(repository.by_python_name[name], str(field.label))
            if name in options.repository_names and isinstance(field.widget, forms.TextInput):
                field.widget = NameInput(repository_names)
            if name in repository.by_python_name and _must_be_entered(repository, repository.by_python_name[name]):
                widget: Any = field.widget
                getattr(widget, "widget", widget).attrs["aria-required"] = "true"
                if isinstance(field, MultilanguageFormField) and not field.help_text:
                    field.help_text = gettext("One language is enough.")
        if any(name.startswith(PREFIX) for name in self.fields):
            custom_properties.custom_initial(self)

    def _with_measure(self, attribute: Attribute, label: str) -> str:
        """`Unit price (EUR)`, `Scrap rate (%)`."""
        if attribute.field is not None and is_percent(attribute.field):
            return f"{label} (%)"
        measure = measure_text(self.repository, attribute, self.instance) if attribute.is_measured else ""
        return f"{label} ({measure})" if measure else label

    def lacks_values(self) -> bool:
        """Whether valid input leaves out what nothing but the person gives."""
        attributes = self.repository.by_python_name
        return any(
            name in attributes and _must_be_entered(self.repository, attributes[name]) and value in (None, "", {})
            for name, value in self.cleaned_data.items()
        )

    @property
    def repository(self) -> Repository[Any]:
        """The repository whose entity is edited."""
        return repositories.for_model(self._meta.model)

    def full_clean(self) -> None:
        """Validate the input and, in a POST of a page, save it."""
        super().full_clean()
        if self.submission is not None and self.is_bound and not self.errors:
            self.submission.save(self)

    def _update_errors(self, errors: ValidationError) -> None:
        """As Django's; a value that is taken is named by the label of its input."""
        for name, found in errors.error_dict.items():
            for each in found:
                if each.code == "unique":
                    each.params = {**(each.params or {}), "field_label": self.fields[name].label}
        super()._update_errors(errors)  # type: ignore[misc]

    def _post_clean(self) -> None:
        """Skips Django's check of constraints, whose errors name the index; those of the dataset name the attribute."""
        self.instance.validate_constraints = lambda exclude=None: None
        super()._post_clean()  # type: ignore[misc]
        del self.instance.validate_constraints


class ChildFormSet(forms.BaseInlineFormSet[Any, Any, Any]):
    """The forms of an owned collection. The prefix is its name, because references have no reverse accessor.

    A page makes a subclass for each request:

    request   the request
    fixed     keys of rows that the user may read but not change
    kept      keys of rows that the user may read but not delete
    """

    collection: ClassVar[str] = "children"
    request: ClassVar[HttpRequest]
    fixed: ClassVar[frozenset[str]] = frozenset()
    kept: ClassVar[frozenset[str]] = frozenset()

    def get_queryset(self) -> Any:
        """The rows; hidden references are null."""
        if not hasattr(self, "_queryset"):
            with_visible_references(self.request, list(super().get_queryset()))
        return super().get_queryset()

    @cached_property
    def empty_form(self) -> Any:
        """The form of a row that a script adds; cached, since a page reads it five times."""
        return super().empty_form

    def add_fields(self, form: Any, index: int | None) -> None:
        """Disable the fields of a row that may not be changed: submitted values are ignored."""
        super().add_fields(form, index)
        key = str(form.instance.pk)
        for name, field in form.fields.items():
            if name == DELETION_FIELD_NAME:
                field.disabled = key in self.kept
            elif key in self.fixed and name != "id":
                field.disabled = True

    @classmethod
    def get_default_prefix(cls) -> str:
        """`Lines-0-quantity`."""
        return cls.collection


def _must_be_entered(repository: Repository[Any], attribute: Attribute) -> bool:
    """Whether only the user can give the attribute a value."""
    is_given = attribute.initial() is not None or repository.fills_late(attribute) or attribute.kind is Kind.BOOL
    return attribute.required and not is_given


def repository_names() -> list[str]:
    """Suggestions for a field with the name of a repository."""
    return sorted(repository.name for repository in repositories)
