"""Pages speak Bulgarian and German: no text of the catalogues, and none of Django's own, is left in English."""

from __future__ import annotations

import gettext
import html
import re
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import translation

from identity.models import User
from platform_site.environment import BASE_DIR
from scripts.models import ScriptRun

pytestmark = [pytest.mark.django_db, pytest.mark.once]

PAGES = (
    "/", "/profile/", "/id/account/password", "/id/account/logout", "/id/connect/authorize?client_id=x", "/api/",
    "/api/query", "/api/builder", "/api/domain/import", "/api/model", "/admin/",
)  # fmt: skip
#: What Django's pages say.
DJANGO = {
    "Add another", "Choose an option", "Clear all filters", "Hide counts", "Home", "Log out", "Run the selected action",
    "Save", "Save and add another", "Save and continue editing", "Search", "Select all", "Show all", "Show counts",
    "Skip to main content", "Start typing to filter…", "Toggle navigation", "Toggle theme (current theme: auto)",
}  # fmt: skip
_TEXT = re.compile(r">([^<>]+)<|\b(?:aria-label|placeholder|title|alt|value)=\"([^\"]*)\"")
_NO_TEXT = re.compile(r"<(script|style|textarea)\b.*?</\1>", re.DOTALL)


def shown(page: str) -> set[str]:
    """Every text of the page, and what its attributes say."""
    return {html.unescape(text or said).strip() for text, said in _TEXT.findall(_NO_TEXT.sub("", page))}


def english_only(language: str) -> set[str]:
    """English texts of the catalogue that say another thing in the language."""
    catalogue = gettext.translation("django", BASE_DIR / "locale", [language])._catalog  # type: ignore[attr-defined]
    return {id for id, text in catalogue.items() if isinstance(id, str) and " " in id and text != id}


def labels() -> Iterator[str]:
    """What the model names is called the same in every language (docs/decisions.md)."""
    for model in apps.get_models():
        for label in (model._meta.verbose_name, model._meta.verbose_name_plural):
            yield from (str(label), str(label).capitalize())
        yield from (str(field.verbose_name).capitalize() for field in model._meta.fields)


def admin_pages() -> Iterator[str]:
    """The list and the page to add something: of all models but the domain's, of whose hundred one for each kind."""
    kinds = {
        type(pages).__mro__[1] if model._meta.app_label == "domain" else model: model._meta
        for model, pages in admin.site._registry.items()
    }
    for model in kinds.values():
        yield reverse(f"admin:{model.app_label}_{model.model_name}_changelist")
        yield reverse(f"admin:{model.app_label}_{model.model_name}_add")


@pytest.mark.parametrize("language", ["bg", "de"])
def test_no_page_is_left_in_english(client: Client, language: str) -> None:
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    english = (english_only(language) | DJANGO) - set(labels())
    found = {}
    for address in [*PAGES, *admin_pages()]:
        answer = client.get(address, headers={"Accept-Language": language})
        if answer.status_code == 403:  # nothing is added by hand there
            continue
        page = answer.content.decode()
        assert f'<html lang="{language}"' in page, address
        if left := shown(page) & english:
            found[address] = left
    assert "\n".join(f"{address}: {left}" for address, left in found.items()) == ""


@pytest.mark.parametrize("language,shown", [("bg", "46,3 ms"), ("de", "46,3 ms"), ("en", "46.3 ms")])
def test_times_are_written_as_the_reader_writes_numbers(language: str, shown: str) -> None:
    with translation.override(language):
        assert admin.site._registry[ScriptRun].duration(ScriptRun(duration_ms=46.3)) == shown  # type: ignore[attr-defined]
