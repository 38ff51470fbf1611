"""A POST of an entity's page: the form and its rows are saved by one dataset and one commit.

Django validates forms, then saves them; rules and validations refuse at the commit. So the commit is the last step of
the form's validation, and a refusal becomes errors at the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.db import models, transaction
from django.forms.formsets import all_valid
from django.http import HttpRequest
from django.utils.translation import gettext

from domain.admin import custom_properties
from domain.admin.context import admin_context, admin_dataset
from domain.admin.form_errors import show_error, show_row_errors
from domain.admin.forms import ChildFormSet, EntityForm
from domain.admin.measures import measured_values
from domain.admin.save_previews import SavePreview, previewed
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.values import parse_input
from foundation import dry_runs, errors

#: Sets the named values of the form on the record (EntityAdmin.fill).
Fill = Callable[[Record, EntityForm, Iterable[str]], None]


class Submission:
    """The forms of one request. The page sets `formsets` before the form is validated.

    preview        to fill instead of saving: `prefix-name` → text of a measured value; None to save
    is_dry_run     whether to run a dry run instead of saving
    save_preview   the report of the dry run, once valid forms were run
    """

    preview: dict[str, str] | None = None
    is_dry_run = False
    save_preview: SavePreview | None = None

    def __init__(self, request: HttpRequest, fill: Fill) -> None:
        self.request, self._fill = request, fill
        self.formsets: list[Any] = []

    def save(self, form: EntityForm) -> None:
        """Commit the forms, if the rows are valid too; a refusal becomes errors of the forms."""
        if not all_valid(self.formsets):
            return
        if self.preview is not None:
            self._show(form, self.preview)
            return
        if self.is_dry_run:
            self.save_preview = previewed(admin_context(self.request), lambda: self.commit_forms(form))
            form.add_error(None, gettext("This was a preview."))  # so that Django does not continue to save
            return
        try:
            with transaction.atomic():
                saved = self.commit_forms(form)
        except errors.PlatformError as error:
            rows = [formset for formset in self.formsets if isinstance(formset, ChildFormSet)]
            show_error(form, error, frozenset(formset.collection for formset in rows))
            for formset in rows:
                show_row_errors(formset, formset.collection, error)
        else:
            for each, record in saved:
                each.instance.pk = record.id

    def commit_forms(self, form: EntityForm) -> list[tuple[Any, Record]]:
        """Write and commit; (form, record) of created entities. Raises PlatformError."""
        dataset = admin_dataset(self.request)
        records = self._write(dataset, form)
        commit(self.request, dataset)
        return [(each, record) for each, record in records if each.instance._state.adding]

    def _show(self, form: EntityForm, shown: dict[str, str]) -> None:
        """Calculate without a commit: no rule on COMMIT runs, nothing is stored or sent. Ignores refusals."""
        with suppress(errors.PlatformError):
            dataset = admin_dataset(self.request)
            written = self._write(dataset, form)
            dataset.complete(written[0][1])
            for each, record in written:
                shown |= measured_values(record, each.prefix)
        form.add_error(None, gettext("This was a preview."))  # so that Django does not go on to save

    def _write(self, dataset: Dataset, form: EntityForm) -> list[tuple[Any, Record]]:
        """Write the forms to the dataset. Returns (form, record) of the entity and of its changed rows."""
        if form.instance._state.adding:
            changed = form.has_changed() or any(formset.has_changed() for formset in self.formsets)
            if not changed and not form.lacks_values():
                # Some entities, offers for instance, need no value; an unchanged form is a mistake.
                raise errors.Refused(errors.VALIDATION_FAILED, gettext("nothing has been entered."))
            record = dataset.create(form.repository, by_client=True)
            # Initial values of the form count as entered; defaults fill empty fields.
            names = [name for name, value in form.cleaned_data.items() if value not in (None, "", {})]
        else:
            record = dataset.open(form.repository, str(form.instance.pk), "update")
            names = form.changed_data
        written: list[tuple[Any, Record]] = [(form, record)]
        self._fill(record, form, names)
        for formset in self.formsets:
            if isinstance(formset, ChildFormSet):
                written += _write_rows(dataset, record, formset)
        return written


def _write_rows(dataset: Dataset, parent: Record, formset: ChildFormSet) -> list[tuple[Any, Record]]:
    model: Any = formset.model
    repository = repositories.for_model(model)
    for form in formset.initial_forms:
        if form in formset.deleted_forms:
            dataset.delete(dataset.open(repository, str(form.instance.pk), "delete"), by_client=True)
    written: list[tuple[Any, Record]] = []
    for form in formset.forms:
        if form in formset.deleted_forms or not form.has_changed():
            continue
        if form in formset.extra_forms:
            record = dataset.create(repository, parent=parent, by_client=True)
        else:
            record = dataset.open(repository, str(form.instance.pk), "update")
        written.append((form, record))
        fill_record(record, form.cleaned_data, form.changed_data)
    return written


def fill_entity(record: Record, form: EntityForm, names: Iterable[str]) -> None:
    """Set the named values of an entity's form on the record, custom properties included."""
    fill_record(record, form.cleaned_data, names)
    custom_properties.set_custom(record, form, names)


def fill_record(record: Record, cleaned: dict[str, Any], names: Iterable[str]) -> None:
    """Set the named form values on a record, in declared order."""
    for attribute in record.repository.attributes.values():
        name = attribute.python_name
        if name in names and name in cleaned and not attribute.read_only and not attribute.owner:
            record.dataset.set(record, attribute, form_value(attribute, cleaned[name]))


def form_value(attribute: Attribute, value: Any) -> Any:
    """Canonical form of a cleaned form value."""
    if isinstance(value, models.Model):
        return str(value.pk)
    if value in ("", {}) and attribute.nullable:
        return None
    return parse_input(attribute, value)


def commit(request: HttpRequest, dataset: Dataset) -> None:
    """Commit, and show the warnings of rules as messages, except in a dry run, whose report has them."""
    dataset.commit()
    run = dry_runs.current()
    for warning in dataset.warnings:
        if run is None:
            messages.warning(request, warning)
        else:
            run.add("warnings", warning)
