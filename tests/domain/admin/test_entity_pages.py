"""A page of its own is one class; a form is saved while it is validated, once (domain.admin)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client, RequestFactory
from django.urls import reverse

from domain.admin import entity_pages
from domain.admin.entity_pages import EntityAdmin, entity_page
from domain.admin.fieldsets import editable, form_fieldsets, shown_read_only
from domain.admin.lists import list_columns, list_filters
from domain.dataset.dataset import Dataset
from domain.entities.crm_sales import SalesOrder
from domain.entities.general_documents import Document
from domain.model.registry import repositories
from identity.context import system_context
from identity.models import User
from tests.rules.cast import fail, make_world, write_rule
from tests.sample_library.models import Book

pytestmark = pytest.mark.django_db


@pytest.fixture
def pages_restored() -> Iterator[None]:
    """Take back the pages that a test registers."""
    known, shown = dict(entity_pages._pages), dict(admin.site._registry)
    yield
    entity_pages._pages.clear()
    entity_pages._pages.update(known)
    admin.site._registry.clear()
    admin.site._registry.update(shown)


def test_one_class_adds_a_page(rf: RequestFactory, pages_restored: None) -> None:
    @entity_page(Book)
    class BookAdmin(EntityAdmin):
        list_display = ("code", "pages")

    page = admin.site._registry[Book]
    assert isinstance(page, BookAdmin)
    # What the class leaves out comes from the declaration.
    assert list(page.search_fields) == ["code", "title"]
    assert [inline.model.__name__ for inline in page.inlines] == ["Chapter"]
    dataset = Dataset(system_context())
    dataset.create("Library.Books", {"Code": "TEA", "Title": {"EN": "The Book of Tea"}, "Pages": 96})
    dataset.commit()
    # Addresses lead to the pages that were registered when they were first read.
    request = rf.get(reverse("admin:sample_library_book_changelist"))
    request.user = User.objects.create_superuser("boss", "vast-Harbour-42")
    answer: Any = page.changelist_view(request)
    assert re.search(r'<td class="field-pages [^>]*>96</td>', answer.render().content.decode())


def test_the_page_of_a_model_serves_the_models_derived_from_it(pages_restored: None) -> None:
    @entity_page(Document)
    class PlainDocumentAdmin(EntityAdmin):
        pass

    assert isinstance(admin.site._registry[SalesOrder], PlainDocumentAdmin)


def test_options_of_a_declaration_say_how_a_page_shows_it() -> None:
    orders, lines = repositories["Crm.Sales.SalesOrders"], repositories["Crm.Sales.SalesOrderLines"]
    assert orders.admin_options.hints["document_no"] == repositories[orders.identity_name].admin.hints["document_no"]
    assert list_columns(orders)[:4] == ["__str__", "state", "document_date", "customer"]
    assert "product" in list_columns(lines)
    assert not {"entity_name", "planning_only"} & {*list_columns(orders), *list_filters(orders)}
    assert "new_secret_hash" not in editable(repositories["Systems.Security.TrustedApplications"])
    inputs, others = editable(orders), shown_read_only(orders)
    sections = form_fieldsets(orders, [*inputs, *others], others, ["CustomProperty_x"])
    assert sections[0][1]["fields"][-1] == "CustomProperty_x"
    assert ["additional_data_json", "external_id", "external_system"] in [
        sorted(options["fields"]) for _title, options in sections
    ]


def test_a_refused_form_is_built_and_committed_once(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    write_rule(world, "General.Currencies.Currencies", ["CLIENTCOMMIT"], actions=[fail("Not this one.")])
    calls: list[str] = []

    def count(cls: type, name: str) -> None:
        method = getattr(cls, name)

        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return method(self, *args, **kwargs)

        monkeypatch.setattr(cls, name, counted)

    count(EntityAdmin, "get_form")
    count(EntityAdmin, "render_change_form")
    count(Dataset, "commit")
    answer = boss.post(reverse("admin:domain_currency_add"), {"currency_sign": "USD", "name": "Dollar"})
    assert answer.context["adminform"].form.non_field_errors() == ["Not this one."]
    assert calls == ["get_form", "commit", "render_change_form"]
