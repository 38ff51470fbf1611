"""Preview beside Save: what saving would do (spec 12, 12.1)."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from domain.entities.general_currencies import Currency
from domain.entities.systems_bpm import UserBusinessRule
from platform_site import configuration
from tests.rules.cast import ORDERS, PRODUCTS, World, dataset, fail, new_order, set_value, warn, write_rule

ADD = "admin:domain_currency_add"
GIVEN = {"currency_sign": "USD", "name": "Dollar"}


def test_a_preview_tells_changes_rules_and_warnings_and_saves_nothing(boss: Client, world: World) -> None:
    write_rule(
        world, "General.Currencies.Currencies", ["COMMIT"], code="CUR",
        actions=[set_value("Name", "By a rule"), warn("Look")],
    )  # fmt: skip
    content = boss.post(reverse(ADD), {**GIVEN, "_dry_run": "1"}).content.decode()
    assert 'id="save-preview"' in content
    assert "By a rule" in content
    assert '<th scope="row">CUR</th>' in content
    assert content.count("<li>Look</li>") == 1
    assert not Currency.objects.filter(currency_sign="USD").exists()
    page = boss.get(reverse("admin:index"))
    assert list(page.context["messages"]) == []
    boss.post(reverse(ADD), GIVEN)
    assert Currency.objects.get(currency_sign="USD").name == "By a rule"


def test_a_refusal_is_a_part_of_the_preview(boss: Client, world: World) -> None:
    write_rule(world, "General.Currencies.Currencies", ["COMMIT"], actions=[fail("Not <today>.")])
    content = boss.post(reverse(ADD), {**GIVEN, "_dry_run": "1"}).content.decode()
    assert "Not &lt;today&gt;." in content
    assert "Nothing would change." in content


def test_an_invalid_form_is_shown_with_its_errors(boss: Client, world: World) -> None:
    add = reverse("admin:domain_salesorder_add")
    content = boss.post(add, {"required_delivery_date": "soon", "_dry_run": "1"}).content.decode()
    assert 'id="save-preview"' not in content
    assert "errornote" in content


def test_the_button_is_there_for_those_who_may_save(boss: Client, world: World) -> None:
    assert 'name="_dry_run"' in boss.get(reverse(ADD)).content.decode()
    read_only = reverse("admin:webhooks_webhookdelivery_changelist")
    assert 'name="_dry_run"' not in boss.get(read_only).content.decode()


def test_a_rule_is_tried_on_the_newest_entities(boss: Client, world: World) -> None:
    ds = dataset(world.context)
    orders = [new_order(ds, world, ReferenceDocumentNo=text) for text in ("A", "A", "B", None)]
    ds.commit()
    refusing = write_rule(
        world, ORDERS, ["COMMIT"], conditions=[("ReferenceDocumentNo", "Equals", "A")], actions=[fail("Not A.")]
    )
    response = boss.post(reverse("admin:rules_try", args=[refusing]), {"newest": "1"})
    history = response.context["history"]
    assert (history.entities, history.acted, history.is_whole) == (4, 2, True)
    assert {outcome.entity_id for outcome in history.refused} == {orders[0].id, orders[1].id}
    assert "Not A." in response.content.decode()
    changing = write_rule(world, ORDERS, ["COMMIT"], actions=[set_value("ReferenceDocumentNo", "B")])
    history = boss.post(reverse("admin:rules_try", args=[changing]), {"newest": "1"}).context["history"]
    assert len(history.changing) == 3
    assert {str(each.reference_document_no) for each in _stored(orders)} == {"A", "B", "None"}


def _stored(orders: list[Any]) -> list[Any]:
    model = orders[0].repository.model
    return list(model._default_manager.filter(pk__in=[order.id for order in orders]))


# --- configuration ------------------------------------------------------------------------------------------------


def upload(boss: Client, document: Any, **values: str) -> str:
    """The page after a document was sent."""
    text = document if isinstance(document, str) else configuration.dump(document)
    file = SimpleUploadedFile("config.yaml", text.encode())
    response = boss.post(reverse("admin:configuration"), {"file": file, **values})
    assert response.status_code == 200
    return response.content.decode()


def test_a_configuration_is_compared_and_tried_and_not_applied(boss: Client, world: World) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], code="OLD", actions=[warn("w")])
    document = configuration.export()
    rules = document["rules"]
    (key,) = [key for key in rules if "OLD" in key]
    rules["NEW"] = {**rules[key], "Name": {"EN": "New"}}
    content = upload(boss, document)
    assert "+ rule NEW" in content
    assert "Systems_Bpm_UserBusinessRules(" in content
    assert not UserBusinessRule.objects.filter(code="NEW").exists()
    rules["NEW"] = {**rules["NEW"], "RepositoryName": "No.Such.Thing"}
    assert 'role="alert"' in upload(boss, document)


@pytest.mark.parametrize("text", ["{", "version: 7", "version: 1\nnonsense: {}"])
def test_what_is_no_configuration_is_an_error_at_the_file(boss: Client, world: World, text: str) -> None:
    content = upload(boss, text)
    assert "errorlist" in content
    assert 'id="save-preview"' not in content
