"""The history of a document: its state changes by any client, and the changes made on its pages.

Django's LogEntry records the names of the changed fields, without their earlier values.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest
from django.utils.translation import gettext

from domain.admin.change_messages import without_names
from domain.admin.context import is_administrator, permitted
from domain.admin.visible_rows import rows_of, with_visible_references
from domain.entities.general_document_parts import DocumentStateChange
from domain.entities.general_documents import Document
from domain.model.registry import repositories
from foundation.enums import label

#: Maximum entries of each kind on the page: the newest ones.
MOST_ENTRIES = 200
_CHANGES = "General.Documents.DocumentStateChanges"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A change of a document by a user. before, after: its state and user status; "" for none."""

    at: datetime.datetime
    user: str
    text: str
    before: str = ""
    after: str = ""


def document_history(request: HttpRequest, document: Document) -> list[HistoryEntry]:
    """The entries of the document, newest first."""
    entries = [*_state_changes(request, document), *_page_changes(request, document)]
    entries.append(HistoryEntry(document.creation_time, document.creation_user, gettext("Created")))
    return sorted(entries, key=lambda each: each.at, reverse=True)


def _state_changes(request: HttpRequest, document: Document) -> Iterator[HistoryEntry]:
    if not permitted(request, "read", repositories[_CHANGES]):
        return
    rows = rows_of(request, DocumentStateChange._default_manager.filter(document=document))
    newest: list[Any] = list(rows.select_related("user_status").order_by("-update_time", "-pk")[: MOST_ENTRIES + 1])
    shown = with_visible_references(request, newest[::-1], ["user_status"])
    before = ""
    for row in shown:
        after = gettext("Void") if row.void else label(row.new_state)
        if row.user_status is not None:
            after = f"{after} – {row.user_status}"
        yield HistoryEntry(row.update_time, row.update_user, gettext("State"), before, after)
        before = after


def _page_changes(request: HttpRequest, document: Document) -> Iterator[HistoryEntry]:
    entries = LogEntry.objects.filter(
        object_id=str(document.pk), content_type=ContentType.objects.get_for_model(type(document))
    )
    for entry in entries.select_related("user").order_by("-action_time")[:MOST_ENTRIES]:
        if not entry.change_message.startswith("["):
            continue  # an entry of a button, whose state change is in _state_changes
        if not is_administrator(request) and entry.user_id != request.user.pk:
            entry.change_message = without_names(entry.change_message)
        yield HistoryEntry(entry.action_time, entry.user.get_username(), entry.get_change_message())
