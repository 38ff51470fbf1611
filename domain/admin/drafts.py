"""Drafts: pages that show an unsaved form again, updated for its current values.

The script draft.js (domain/static/domain) posts a form section with `data-draft` and STEP, and replaces the section by
the response.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.forms.formsets import DELETION_FIELD_NAME
from django.forms.utils import ErrorDict
from django.http import HttpRequest

from domain.admin.forms import EntityForm
from domain.admin.submission import Submission
from domain.admin.visible_rows import rows_of, with_visible_references
from domain.model.repository import Repository
from foundation.guids import is_guid, parse_guid

#: POST parameter of a draft, with the step: "show", "try", "add Actions", "remove Actions-0".
STEP = "_draft"
#: Maximum number of offered entities; a search narrows them.
OFFERED = 20


class Draft(Submission):
    """A submission that saves nothing: the form is never valid, and the page removes its errors (`forget_errors`)."""

    def save(self, form: EntityForm) -> None:
        """Refuse the form."""
        form.add_error(None, "a draft")


def is_draft(request: HttpRequest) -> bool:
    """Whether the request is a draft."""
    return request.method == "POST" and STEP in request.POST


def forget_errors(forms: Iterable[Any]) -> None:
    """Remove the errors of the forms of a draft, which is unfinished."""
    for form in forms:
        form._errors = ErrorDict()


def is_removed(row: Any) -> bool:
    """Whether the row of a formset is to be deleted."""
    return DELETION_FIELD_NAME in row.fields and bool(row[DELETION_FIELD_NAME].value())


def is_writable(inline: Any) -> bool:
    """Whether the user may add, change and delete rows of the page."""
    return bool(inline.has_add_permission and inline.has_change_permission and inline.has_delete_permission)


def entities_to_try(repository: Repository[Any], request: HttpRequest, text: str) -> list[tuple[str, str]]:
    """(guid, display text) of entities that match the text; without a text, of the newest."""
    model = repository.model
    result = rows_of(request, model._default_manager.all())
    if is_guid(text):
        result = result.filter(pk=parse_guid(text))
    elif text and model in admin.site._registry:
        result, _ = admin.site._registry[model].get_search_results(request, result, text)
    offered = with_visible_references(request, list(result.order_by("-pk")[:OFFERED]), ())
    return [(str(entity.pk), str(entity)) for entity in offered]
