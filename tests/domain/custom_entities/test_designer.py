"""The page of a custom entity: its picture, and the confirmation of a change that loses data (spec 10, 10.3)."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from domain.entities.systems_custom_entities import CustomEntity, CustomEntityAttribute
from identity.models import User
from tests.domain.custom_entities.cars import CARS, ENTITIES, attribute, entity
from tests.support.api import Api

pytestmark = pytest.mark.once

LIST = "/admin/domain/customentity/"


@pytest.fixture
def boss(admin: Api) -> Client:
    """A signed-in administrator; a car with a brand is stored."""
    definition = entity(
        "Custom.Fleet.Cars",
        attribute("Code", Required=True, IsUnique=True),
        attribute("Brand", MaxLength=30),
        attribute("Currency", "Reference", TargetRepository="General.Currencies.Currencies"),
        CodeAttribute="Code",
    )
    admin.create(ENTITIES, definition)
    admin.create(CARS, {"Code": "C1", "Brand": "Volta"})
    browser = Client()
    browser.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return browser


def change_url() -> str:
    return f"{LIST}{CustomEntity.objects.get().pk}/change/"


def form_of(boss: Client) -> dict[str, str]:
    """What the form of the stored definition sends."""
    form = boss.get(change_url()).context["adminform"].form
    formsets = [each.formset for each in boss.get(change_url()).context["inline_admin_formsets"]]
    sent: dict[str, Any] = {form.add_prefix(name): form[name].value() for name in form.fields}
    for formset in formsets:
        forms = [formset.management_form, *formset.initial_forms]
        sent |= {each.add_prefix(name): each[name].value() for each in forms for name in each.fields}
    return {name: "on" if value is True else str(value) for name, value in sent.items() if value not in (None, False)}


def row_of(data: dict[str, str], name: str) -> str:
    """Attributes-1, the prefix of the attribute's row."""
    return next(key for key, value in data.items() if key.endswith("-name") and value == name).rpartition("-")[0]


def confirmation(answer: Any) -> dict[str, str]:
    """What the page that asks for a confirmation sends when it is confirmed."""
    html = answer.content.decode()
    assert "What will happen" in html, html[-3000:]
    kept = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', html))
    token = re.search(r'name="plan_token" value="([^"]*)"', html)
    assert token is not None
    return {name: unescape(value) for name, value in kept.items() if name != "csrfmiddlewaretoken"} | {
        "plan_token": token[1]
    }


def test_the_page_has_a_picture_of_the_references(boss: Client) -> None:
    html = boss.get(change_url()).content.decode()
    assert 'href="/api/model#General_Currencies_Currencies"' in html
    assert "Plan token" not in html
    # What cannot be changed has the label and the hint of its input.
    assert ">Stamp changes<" in re.sub(r"\s+", "", html).replace("Stampchanges", "Stamp changes")
    assert "With time and user of creation and last change." in html
    assert "<svg" not in boss.get(f"{LIST}add/").content.decode().partition('id="content"')[2]


def test_a_change_that_loses_data_is_planned_confirmed_and_saved(boss: Client) -> None:
    data = form_of(boss)
    data[f"{row_of(data, 'Brand')}-DELETE"] = "on"
    asked = boss.post(change_url(), data)
    text = asked.content.decode()
    assert "The attribute Brand is dropped with 1 value." in text
    assert "It takes less than a second." in text
    assert CustomEntityAttribute.objects.filter(name="Brand").exists(), "nothing has been changed yet"
    assert boss.post(change_url(), confirmation(asked)).status_code == 302
    assert not CustomEntityAttribute.objects.filter(name="Brand").exists()


def test_a_confirmation_is_for_the_plan_that_was_shown(boss: Client, admin: Api) -> None:
    data = form_of(boss)
    data[f"{row_of(data, 'Brand')}-DELETE"] = "on"
    confirmed = confirmation(boss.post(change_url(), data))
    admin.create(CARS, {"Code": "C2", "Brand": "Ampere"})
    again = boss.post(change_url(), confirmed)
    assert "dropped with 2 values" in again.content.decode(), "the plan has changed, and is shown anew"
    assert CustomEntityAttribute.objects.filter(name="Brand").exists()


def test_the_way_back_keeps_what_was_entered(boss: Client) -> None:
    data = form_of(boss)
    data[f"{row_of(data, 'Brand')}-max_length"] = "2"
    asked = boss.post(change_url(), data)
    back = boss.post(change_url(), {**confirmation(asked), "plan_token": "", "_draft": "show"}).content.decode()
    assert re.search(r'name="Attributes-1-max_length" value="2"', back)
    assert "errornote" not in back
    assert CustomEntityAttribute.objects.get(name="Brand").max_length == 30


def test_a_change_that_loses_nothing_is_saved_at_once(boss: Client) -> None:
    data = form_of(boss)
    data[f"{row_of(data, 'Brand')}-max_length"] = "60"
    assert boss.post(change_url(), data).status_code == 302
    assert CustomEntityAttribute.objects.get(name="Brand").max_length == 60


def test_other_refusals_are_shown_at_their_fields(boss: Client) -> None:
    data = form_of(boss)
    data[f"{row_of(data, 'Brand')}-name"] = "Id"
    html = boss.post(change_url(), data).content.decode()
    assert "This name is reserved" in html
    assert "What will happen" not in html


def test_each_fault_is_shown_at_its_field(boss: Client) -> None:
    data = form_of(boss)
    row = row_of(data, "Brand")
    data |= {"display_format": "{Nothing}", "code_attribute": "Nowhere", f"{row}-max_length": "0"}
    answer = boss.post(change_url(), data)
    errors = answer.context["adminform"].form.errors
    assert {"display_format", "code_attribute"} <= errors.keys()
    assert errors["code_attribute"] == ["There is no attribute Nowhere"]
    rows = answer.context["inline_admin_formsets"][0].formset
    (found,) = [each.errors for each in rows.forms if each.prefix == row]
    assert list(found) == ["max_length"]


def test_an_entity_with_rows_is_removed_after_its_plan_was_confirmed(boss: Client) -> None:
    url = change_url().replace("/change/", "/delete/")
    asked = boss.get(url)
    assert "is dropped with 1 row" in asked.content.decode()
    assert boss.post(url, {"post": "yes"}, follow=True).redirect_chain
    assert CustomEntity.objects.exists(), "not confirmed"
    assert boss.post(url, confirmation(asked)).status_code == 302
    assert not CustomEntity.objects.exists()


def test_only_administrators_have_the_page(boss: Client) -> None:
    clerk = Client()
    clerk.force_login(User.objects.create_user("clerk", "vast-Harbour-42"))
    for url in (change_url(), change_url().replace("/change/", "/delete/")):
        assert clerk.get(url).status_code != 200
