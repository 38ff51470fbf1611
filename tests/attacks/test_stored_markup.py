"""Text that people store is text on every page that shows it.

Who: a user who may write some entity, or an author of custom properties, scripts or rules. What: to store elements with
attributes of htmx, which act when an administrator opens a page, with the administrator's session and CSRF token. What
prevents it: templates escape everything; the Content-Security-Policy alone would not, since htmx is loaded.
"""

from __future__ import annotations

import json

import pytest
from django.apps import apps
from django.contrib import admin
from django.db import models
from django.test import Client
from django.urls import reverse

from domain.dataset.dataset import Dataset
from domain.demo.configuration import rules, tools
from domain.model.custom_properties import CACHE_VERSION
from foundation import cache_versions
from foundation.fields import MultilanguageField
from identity.context import system_context
from identity.demo import seed_identity
from identity.models import User
from tests.domain.conftest import fresh_process
from tests.rules.cast import dataset, make_world, new_order

__all__ = ["fresh_process"]

pytestmark = pytest.mark.once

MARKUP = "<i hx-get='/planted' hx-trigger='load'>planted</i>"
#: Columns of plain text that nothing but people reads.
TEXTS = frozenset({
    "notes", "description", "subject", "message", "document_notes", "product_description", "event_parameter_text",
    "display_name", "party_name", "heading", "reason", "delivery_terms_code", "reference_document_no", "detail",
})  # fmt: skip


@pytest.fixture
def planted(db: None, fresh_process: None) -> None:
    """Rows of many kinds, whose names, hints, descriptions and notes are markup in every language."""
    seed_identity()
    for items in (tools(), rules()):
        demo = Dataset(system_context())
        for item in items:
            demo.create(item.repository, item.values, id=item.id)
        demo.commit()
    world = make_world()
    orders = dataset(world.context)
    new_order(orders, world)
    orders.commit()
    properties = Dataset(system_context())
    for entity in ("Crm_Sales_SalesOrders", "Crm_Sales_SalesOrderLines", "General_Products_Products", "Crm_Customers"):
        for kind in ("Text", "Number", "Boolean", "Date"):
            names = {"Code": f"{kind}1", "Name": {"EN": kind}, "Hint": {"EN": kind}}
            properties.create("Systems.Bpm.CustomProperties", {**names, "EntityName": entity, "PropertyType": kind})
    schema = {"price": {"type": "number", "description": MARKUP}, "size": {"enum": [MARKUP], "description": MARKUP}}
    script = {
        "Code": "PLANTED",
        "Name": {"EN": "x"},
        "Language": "JavaScript",
        "ScriptText": "return 1",
        "ParameterSchema": json.dumps(schema),
    }
    properties.create("Systems.Core.Scripts", script)
    properties.commit()
    translated = json.dumps(dict.fromkeys(("EN", "BG", "DE"), MARKUP))
    for model in apps.get_models():
        texts: dict[str, str] = {}
        for field in model._meta.concrete_fields:
            if isinstance(field, MultilanguageField):
                texts[field.name] = translated
            elif isinstance(field, models.CharField | models.TextField) and field.name in TEXTS and not field.choices:
                texts[field.name] = MARKUP[: field.max_length]
        if texts and model._meta.managed:
            for name, text in texts.items():
                model._default_manager.update(**{name: text})
    cache_versions.bump(CACHE_VERSION)


@pytest.mark.usefixtures("planted")
def test_no_page_of_the_admin_prints_markup_that_was_stored(client: Client) -> None:
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    addresses = ["/admin/", "/admin/search/?q=planted", "/admin/search/?s=planted"]
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        addresses += [reverse(f"{name}_changelist"), reverse(f"{name}_add")]
        keys = model._default_manager.values_list("pk", flat=True)[:2]
        addresses += [reverse(f"{name}_{page}", args=[key]) for key in keys for page in ("change", "history", "delete")]
    shown = 0
    for address in addresses:
        response = client.get(address, follow=True)
        page = b"".join(response) if response.streaming else response.content
        assert b"<i hx-get" not in page, address
        shown += b"hx-get=&#x27;/planted" in page or b"&lt;i hx-get" in page
    assert shown > 60
