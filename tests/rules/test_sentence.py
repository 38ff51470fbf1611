"""The page of a rule as a sentence: inputs that fit, starting points that fire, drafts tried (spec 05, 5.5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.dataset.records.record import Record
from domain.entities import systems_bpm as bpm
from domain.entities.document_states import document_change_state
from domain.entities.systems_core import Notification
from foundation import cache_versions, errors
from foundation.fields import utc_now
from identity.models import User
from rules import statistics
from rules.models import RuleDay
from rules.starting_points import free_code, starting_points
from tests.acceptance.people import Fields
from tests.domain.security.conftest import give_role
from tests.rules.cast import (
    ORDERS,
    PRODUCTS,
    World,
    dataset,
    fail,
    make_property,
    new_line,
    new_order,
    new_product,
    set_value,
    warn,
    write_rule,
)
from webhooks.models import WebHookDelivery

pytestmark = pytest.mark.once

ADD = "admin:domain_userbusinessrule_add"
CHANGE = "admin:domain_userbusinessrule_change"
LIST = "admin:domain_userbusinessrule_changelist"
Capture = Callable[..., AbstractContextManager[list[Any]]]


@pytest.fixture
def admin(world: World) -> Client:
    client = Client()
    client.force_login(User.objects.get(login="anna"))
    return client


def text_of(response: Any) -> str:
    assert response.status_code == 200, response
    return str(response.content.decode())


def sent(page: str) -> dict[str, str]:
    """What a browser would send of the page's form."""
    start = page.find('id="userbusinessrule_form"')
    return Fields(page[max(start, 0) :]).values


def step(client: Client, url: str, page: str, action: str = "show", **values: str) -> str:
    """The sentence after a choice, and the rest of the form as it was."""
    fields = {**sent(page), **{name.replace("__", "-"): value for name, value in values.items()}}
    return text_of(client.post(url, {**fields, "_draft": action}))


def input_named(page: str, name: str) -> str:
    """The tag of an input or drop-down with its options; "" for none."""
    found = re.search(rf'<(input|select|textarea)\b[^>]*name="{re.escape(name)}"[^>]*>', page)
    if found is None:
        return ""
    end = page.find(f"</{found[1]}>", found.start()) if found[1] != "input" else found.end()
    return page[found.start() : end]


# --- starting points ----------------------------------------------------------------------------------------------


def too_much_discount(world: World) -> None:
    ds = dataset(world.context)
    order = new_order(ds, world)
    new_line(ds, world, order, LineCustomDiscountPercent=Decimal("0.25"))
    with pytest.raises(errors.Refused, match="above 25 %"):
        new_line(ds, world, order, LineCustomDiscountPercent=Decimal("0.3"))


def release(world: World, **values: Any) -> Record:
    ds = dataset(world.context)
    order = new_order(ds, world, **values)
    document_change_state(order, "Released")
    ds.commit()
    return order


def released_without_number(world: World) -> None:
    with pytest.raises(errors.Refused, match="customer's order number"):
        release(world)
    release(world, ReferenceDocumentNo="4711")


def product_without_short_name(world: World) -> None:
    ds = dataset(world.context)
    product = new_product(ds, world, "AC-7")
    ds.commit()
    assert product.values["ShortName"] in ("AC-7", {"EN": "AC-7"})


def message_of_a_failure(world: World) -> None:
    ds = dataset(world.context)
    values = {"ProcessDescription": "nightly import", "Message": "gone", "MachineName": "n", "UserName": "system"}
    for kind in ("Information", "Error"):
        ds.create("Systems.Monitoring.InformationMessages", {**values, "InformationMessageType": kind})
    ds.commit()


def notified(world: World) -> None:
    assert [str(each.subject) for each in Notification.objects.filter(user=world.user)] == ["Failure: nightly import"]


def released_and_sent(world: World) -> None:
    order = release(world)
    assert [each.entity_id for each in WebHookDelivery.objects.filter(web_hook_code="ON-RELEASE")] == [order.id]


#: Starting point → what fires its rule, and what to choose before.
FIRED: Mapping[str, tuple[Callable[[World], None], dict[str, str]]] = {
    "check-a-value": (too_much_discount, {}),
    "require-a-value": (released_without_number, {}),
    "set-a-default": (product_without_short_name, {}),
    "notify-on-failure": (message_of_a_failure, {}),
    "send-a-webhook-on-release": (released_and_sent, {"Actions-0-parameter_1_value": "ON-RELEASE"}),
}


def test_each_starting_point_is_tested() -> None:
    assert set(FIRED) == set(starting_points.names())


@pytest.mark.parametrize("name", sorted(FIRED))
def test_a_starting_point_is_saved_as_it_is_and_fires(
    admin: Client, world: World, name: str, django_capture_on_commit_callbacks: Capture
) -> None:
    ds = dataset(world.context)
    hook = {"Code": "ON-RELEASE", "Name": {"EN": "h"}, "RepositoryName": ORDERS, "URL": "https://example.com/"}
    ds.create("Systems.Config.WebHooks", hook, by_client=True)
    ds.commit()
    cache_versions.expire()
    url = reverse(ADD)
    assert f'href="?start={name}"' in text_of(admin.get(url))
    fields = sent(text_of(admin.get(url, {"start": name})))
    fire, chosen = FIRED[name]
    answer = admin.post(url, {**fields, **chosen, "_save": "1"})
    assert answer.status_code == 302, re.findall(r"errorlist.*?</ul>", answer.content.decode(), re.S)
    assert bpm.UserBusinessRule.objects.get().is_active
    cache_versions.expire()
    with django_capture_on_commit_callbacks(execute=True):
        fire(world)
    if name == "notify-on-failure":
        notified(world)


# --- what is shown ------------------------------------------------------------------------------------------------


def test_the_sentence_offers_what_the_repository_has(admin: Client, world: World) -> None:
    make_property(world, "colour")
    url = reverse(ADD)
    page = step(admin, url, text_of(admin.get(url)), repository_name=PRODUCTS)
    events = input_named(page, "Events-0-event_type")
    assert "is about to be saved" in events
    assert "STATECHANGING" not in events
    page = step(admin, url, page, Events__0__event_type="ATTRIBUTECHANGING")
    parameters = input_named(page, "Events-0-event_parameter")
    assert 'value="PartNumber"' in parameters
    assert 'value="@colour"' in parameters
    assert 'value="ObjectVersion"' not in parameters
    page = step(admin, url, page, "add Conditions", Events__0__event_parameter="PartNumber")
    names = input_named(page, "Conditions-0-attribute_name")
    assert all(f'value="{each}"' in names for each in ("PartNumber", "@colour", "$NewValue", "ProductGroup."))
    # Through the reference, to the names behind it and back.
    names = input_named(
        step(admin, url, page, Conditions__0__attribute_name="ProductGroup."), "Conditions-0-attribute_name"
    )
    assert 'value="ProductGroup.Code"' in names
    assert 'value="PartNumber"' not in names
    assert "back" in names


@pytest.mark.parametrize(
    "repository, name, shown, missing",
    [
        (ORDERS, "DocumentDate", 'type="date"', "Like"),
        (ORDERS, "CreationTime", 'type="datetime-local"', "Like"),
        (ORDERS, "State", 'value="Released"', "Like"),
        (ORDERS, "Void", 'value="true"', "Greater_Than"),
        (ORDERS, "Customer", 'data-field-name="customer"', "Greater_Than"),
        (ORDERS, "Customer.Party", 'data-model-name="customer"', "Greater_Than"),
        ("Crm.Sales.SalesOrderLines", "LineNo", 'type="number"', "Like"),
        ("Crm.Sales.SalesOrderLines", "UnitPrice", 'inputmode="decimal"', "Like"),
        (ORDERS, "DocumentNotes", 'type="text"', ""),
        (PRODUCTS, "Name", 'type="text"', "Greater_Than"),
    ],
)
def test_values_are_entered_by_kind(
    admin: Client, world: World, repository: str, name: str, shown: str, missing: str
) -> None:
    url = reverse(ADD)
    page = step(admin, url, text_of(admin.get(url)), "add Conditions", repository_name=repository)
    page = step(admin, url, page, Conditions__0__attribute_name=name)
    assert shown in input_named(page, "Conditions-0-value")
    comparisons = input_named(page, "Conditions-0-comparison_type")
    assert 'value="Equals"' in comparisons
    assert not missing or f'value="{missing}"' not in comparisons
    page = step(admin, url, page, Conditions__0__comparison_type="IsNull")
    assert not input_named(page, "Conditions-0-value")


@pytest.mark.parametrize(
    "name, value", [("DocumentDate", "soon"), ("Customer", "nobody"), ("State", "SHIPPED"), ("Void", "x")]
)
def test_a_stored_value_that_does_not_fit_is_kept(admin: Client, world: World, name: str, value: str) -> None:
    rule = write_rule(world, ORDERS, ["COMMIT"], conditions=[("DocumentNotes", "Equals", "x")], IsActive=False)
    bpm.UserBusinessRuleCondition.objects.update(attribute_name=name, value=value)
    page = text_of(admin.get(reverse(CHANGE, args=[rule])))
    assert sent(page)["Conditions-0-value"] == value


def test_only_the_parameters_of_the_chosen_action_are_shown(admin: Client, world: World) -> None:
    url = reverse(ADD)
    page = step(admin, url, text_of(admin.get(url)), repository_name=PRODUCTS)
    assert not input_named(page, "Actions-0-parameter_1_value")
    page = step(admin, url, page, Actions__0__action_type="FAIL")
    assert input_named(page, "Actions-0-parameter_1_value").startswith("<textarea")
    assert not input_named(page, "Actions-0-parameter_2_value")
    page = step(admin, url, page, Actions__0__action_type="SETVALUE")
    assert 'value="ShortName"' in input_named(page, "Actions-0-parameter_1_value")
    assert 'value="Id"' not in input_named(page, "Actions-0-parameter_1_value")
    page = step(admin, url, page, Actions__0__parameter_1_value="Active", Actions__0__parameter_2_type="Constant")
    assert 'value="true"' in input_named(page, "Actions-0-parameter_2_value")
    page = step(admin, url, page, Actions__0__parameter_2_type="Attribute")
    assert 'value="PartNumber"' in input_named(page, "Actions-0-parameter_2_value")
    assert not input_named(page, "Actions-0-parameter_3_value")


def test_rows_are_added_and_removed(admin: Client, world: World) -> None:
    rule = write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("PartNumber", "Equals", "P1")], actions=[warn("w")])
    url = reverse(CHANGE, args=[rule])
    page = step(admin, url, text_of(admin.get(url)), "add Actions")
    page = step(admin, url, page, "remove Conditions-0", Actions__1__action_type="FAIL")
    page = step(admin, url, page, Actions__1__parameter_1_value="No.")
    assert "always" in page
    assert bpm.UserBusinessRuleCondition.objects.count() == 1
    assert admin.post(url, {**sent(text_of(admin.get(url))), **sent(page), "_save": "1"}).status_code == 302
    assert not bpm.UserBusinessRuleCondition.objects.exists()
    stored = bpm.UserBusinessRuleAction.objects.order_by("action_no").values_list("action_type", "parameter_1_type")
    assert list(stored) == [("WARNING", "Interpolate"), ("FAIL", "Interpolate")]


def test_saving_an_opened_rule_changes_nothing(admin: Client, world: World) -> None:
    rule = write_rule(
        world, ORDERS, [("STATECHANGING", "RELEASING")],
        conditions=[
            ("Customer.Party.PartyName", "Like", "B*"),
            ("State", "Less_Than", "30"),
            ("$ToState", "Equals", "30"),
        ],
        actions=[fail("No."), set_value("DocumentNotes", "{DocumentNo}", "Interpolate")],
    )  # fmt: skip
    models: list[Any] = [bpm.UserBusinessRuleEvent, bpm.UserBusinessRuleCondition, bpm.UserBusinessRuleAction]
    before = [list(model.objects.order_by("pk").values()) for model in models]
    url = reverse(CHANGE, args=[rule])
    page = text_of(admin.get(url))
    assert admin.post(url, {**sent(page), "_save": "1"}).status_code == 302
    assert [list(model.objects.order_by("pk").values()) for model in models] == before


# --- trying a draft -----------------------------------------------------------------------------------------------


def test_a_draft_is_tried_beside_the_sentence_and_nothing_persists(admin: Client, world: World) -> None:
    url = reverse(ADD)
    page = step(admin, url, text_of(admin.get(url, {"start": "set-a-default"})), try_q="P1")
    assert f'<option value="{world.product}">' in page
    page = step(admin, url, page, try_entity=world.product)
    assert "<strong>acts</strong>" in page
    assert "General_Products_Products" in page
    page = step(admin, url, page, Conditions__0__comparison_type="Not_IsNull")
    assert "does not act" in page
    page = step(admin, url, page, Conditions__0__attribute_name="Nmae")
    assert "It cannot run yet" in page
    assert "no attribute &#x27;Nmae&#x27;" in page
    assert "errorlist" not in page
    assert not bpm.UserBusinessRule.objects.exists()
    stored = dataset(world.context).load(PRODUCTS, world.product)
    assert stored is not None
    assert stored.values["ShortName"] is None


def test_a_draft_with_a_script_waits_for_a_press(admin: Client, world: World) -> None:
    url = reverse(ADD)
    script = {"script_language": "JavaScript", "script_text": "subject.ShortName = 'by script';"}
    page = text_of(admin.get(url))
    given = {"repository_name": PRODUCTS, "Events__0__event_type": "COMMIT", "try_entity": world.product, **script}
    waiting = step(admin, url, page, **given)
    assert "it runs when you press Try" in waiting
    assert "by script" not in waiting
    assert "by script" in step(admin, url, page, "try", **given)


def colleague(world: World, policy: str = "", **letters: str) -> Client:
    """Who may write rules but is no administrator."""
    user = User.objects.create_user("colleague", "colleague")
    children = {f"Systems.Bpm.UserBusinessRule{each}": letters["rules"] for each in ("Events", "Conditions", "Actions")}
    rights = {"Systems.Bpm.UserBusinessRules": letters["rules"], **children, "General.Products.*": "r"}
    give_role(user, rights, {PRODUCTS: policy} if policy else None)
    client = Client()
    client.force_login(user)
    return client


def test_who_may_only_read_rules_gets_no_sentence_and_tries_nothing(world: World) -> None:
    rule = write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("{PartNumber}!")])
    reader = colleague(world, rules="r")
    url = reverse(CHANGE, args=[rule])
    assert 'id="rule-sentence"' not in text_of(reader.get(url))
    assert reader.post(url, {"_draft": "try", "try_entity": world.product}).status_code == 403
    assert reader.post(reverse(ADD), {"_draft": "show"}).status_code == 403
    for verb in ("switch", "duplicate"):
        assert reader.post(reverse(f"admin:domain_userbusinessrule_{verb}", args=[rule])).status_code == 403
    assert 'role="switch"' not in text_of(reader.get(reverse(LIST)))
    assert bpm.UserBusinessRule.objects.get().is_active


def test_a_draft_shows_no_entity_that_its_author_may_not_read(world: World) -> None:
    writer = colleague(world, policy="PartNumber eq 'P2'", rules="crud")
    ds = dataset(world.context)
    visible = new_product(ds, world, "P2")
    ds.commit()
    url = reverse(ADD)
    page = text_of(writer.get(url, {"start": "set-a-default"}))
    offered = step(writer, url, page)
    assert visible.id in offered
    assert world.product not in offered
    assert "<strong>acts</strong>" not in step(writer, url, page, "try", try_entity=world.product)
    assert "<strong>acts</strong>" in step(writer, url, page, "try", try_entity=visible.id)
    # Nor names behind references to what the user may not read.
    assert 'value="Customer."' not in step(writer, url, page, "add Conditions", repository_name=ORDERS)


# --- the list -----------------------------------------------------------------------------------------------------


def test_rules_are_switched_in_the_list(admin: Client, world: World) -> None:
    rule = write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("w")], code="ONE")
    shown = text_of(admin.get(reverse(LIST), {"q": "ONE"}))
    (url,) = re.findall(r'role="switch"[^>]*formaction="([^"]*)"', shown)
    answer = admin.post(url.replace("&amp;", "&"))
    assert (answer.status_code, answer["Location"]) == (302, f"{reverse(LIST)}?q=ONE")
    assert not bpm.UserBusinessRule.objects.get().is_active
    bpm.UserBusinessRuleAction.objects.update(action_type="GONE")
    other = write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("w")], code="TWO", IsActive=False)
    data = {"action": "activate_chosen", "_selected_action": [rule, other]}
    answer = admin.post(reverse(LIST), data, follow=True)
    said = [str(message) for message in answer.context["messages"]]
    assert said[0].startswith("ONE: ")
    assert said[1] == "1 rule is active now."
    assert dict(bpm.UserBusinessRule.objects.values_list("code", "is_active")) == {"ONE": False, "TWO": True}
    admin.post(reverse(LIST), {**data, "action": "deactivate_chosen"})
    assert not bpm.UserBusinessRule.objects.filter(is_active=True).exists()


def test_a_rule_is_duplicated_with_its_rows_and_not_active(admin: Client, world: World) -> None:
    rule = write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        conditions=[("PartNumber", "IsNull")],
        actions=[fail("No.")],
        code="ALONGERCODE-16CH",
    )
    url = reverse("admin:domain_userbusinessrule_duplicate", args=[rule])
    assert f'action="{url}"' in text_of(admin.get(reverse(CHANGE, args=[rule])))
    for code in ("ALONGERCODE--2", "ALONGERCODE--3"):
        answer = admin.post(url)
        copy = bpm.UserBusinessRule.objects.latest("pk")
        assert answer["Location"] == reverse(CHANGE, args=[copy.pk])
        assert (copy.code, copy.is_active, copy.repository_name) == (code, False, PRODUCTS)
        assert bpm.UserBusinessRuleAction.objects.get(user_business_rule=copy).parameter_1_value == "No."
        assert bpm.UserBusinessRuleCondition.objects.filter(user_business_rule=copy).count() == 1
    assert free_code("FREE") == "FREE"


def test_firings_are_counted_by_day_and_old_days_go(admin: Client, world: World) -> None:
    rule = write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("w")])
    today = utc_now().date()
    for ago, fired in ((statistics.RETENTION_DAYS, 5), (1, 6)):
        RuleDay.objects.create(rule_id=rule, day=today - timedelta(days=ago), fired_count=fired)
    for failed in (False, False, True):
        statistics.note(rule, 0.001, failed=failed)
        statistics.pending.flush()
    days = {each.day: (each.fired, each.failed) for each in statistics.rule_days([rule])[rule]}
    assert len(days) == 14
    assert days[today] == (2, 1)
    assert days[today - timedelta(days=1)] == (6, 0)
    assert sorted(RuleDay.objects.values_list("day", flat=True)) == [today - timedelta(days=1), today]
    assert "1.1 a day" in text_of(admin.get(reverse(LIST)))
