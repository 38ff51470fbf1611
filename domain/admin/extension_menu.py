"""The applications that extensions add to the home page of the admin (domain.entities.systems_extensions)."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from domain.admin.context import admin_context
from domain.admin.visible_rows import rows_of
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import InvalidTemplate, compile_template
from domain.entities.systems_extensions import MAIN_MENU, Extension, data_of
from foundation.languages import active_language


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An application on the home page: title, hint and URL."""

    title: str
    hint: str
    url: str


def menu_entries(request: HttpRequest) -> list[MenuEntry]:
    """The active entries that the user may read, by title."""
    visible = rows_of(request, Extension.objects.filter(extension_path=MAIN_MENU, is_active=True))
    records = Dataset(admin_context(request)).load_many(
        "Systems.Core.Extensions", list(visible.values_list("pk", flat=True))
    )
    entries = [entry for record in records.values() if (entry := _entry(record)) is not None]
    return sorted(entries, key=lambda entry: entry.title.lower())


def _entry(record: Record) -> MenuEntry | None:
    """The entry; None if its URL template has names that the model no longer has."""
    try:
        template = compile_template(record.repository, str(data_of(record.extension_data).get("uri", "")))
    except InvalidTemplate:
        return None
    url = template.render(record, escape="url")
    return MenuEntry(_text(record.title) or record.name, _text(record.hint), url) if url else None


def _text(texts: dict[str, str] | None) -> str:
    known = texts or {}
    return known.get(active_language().upper()) or known.get("EN") or next(iter(known.values()), "")
