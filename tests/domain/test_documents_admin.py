"""The steps of a document's life on its admin page: states, user statuses, voiding, recalculation (spec 03, 3.5)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.entities.crm_sales import SalesOrder
from domain.entities.systems_document_types import DocumentTypeUserStatus
from foundation import cache_versions
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from tests.rules.cast import ORDERS, World, dataset, fail, make_world, new_line, new_order, write_rule

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def world(fresh_process: None) -> World:
    return make_world()


@pytest.fixture
def boss(client: Client, world: World) -> Client:
    """An administrator's browser."""
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def saved_order(world: World) -> str:
    ds = dataset(world.context)
    order = new_order(ds, world)
    ds.commit()
    return str(order.id)


def page(boss: Client, order: str) -> Any:
    return boss.get(reverse("admin:domain_salesorder_change", args=[order]))


def step(boss: Client, name: str, order: str, **form: str) -> list[str]:
    """Take a step as the page's form does; what the page says then."""
    answer = boss.post(reverse(f"admin:domain_salesorder_{name}", args=[order]), form, follow=True)
    return [str(message) for message in answer.context["messages"]]


def offered(boss: Client, order: str) -> list[str]:
    return [label for _, label in page(boss, order).context["next_states"]]


def test_an_order_goes_through_its_states(boss: Client, world: World) -> None:
    order = saved_order(world)
    assert offered(boss, order) == ["Planned", "Firm planned", "Released", "Completed", "Closed"]
    assert step(boss, "change_state", order, state="Planned") == ["The state is Planned now."]
    assert offered(boss, order)[-1] == "New"  # ways back come last
    assert step(boss, "change_state", order, state="Released") == ["The state is Released now."]
    assert offered(boss, order) == ["Completed", "Closed"]
    document = SalesOrder.objects.get(pk=order)
    assert document.release_time is not None
    history = page(boss, order).content.decode()
    assert history.count("boss") > 1  # who moved it stands in the document's state changes


def test_the_history_tells_states_pages_and_who(boss: Client, world: World) -> None:
    order = saved_order(world)
    step(boss, "change_state", order, state="Planned")
    step(boss, "change_state", order, state="Released")
    step(boss, "make_void", order, reason="ordered twice")
    shown = boss.get(reverse("admin:domain_salesorder_history", args=[order]))
    told = [(each.user, each.text, each.before, each.after) for each in shown.context["happened"]]
    assert told[:3] == [
        ("boss", "State", "Released", "Void"),
        ("boss", "State", "Planned", "Released"),
        ("boss", "State", told[2][2], "Planned"),
    ]
    assert told[-1][1] == "Created"
    assert "not their earlier values" in shown.content.decode()


def test_a_rule_refuses_a_step_with_its_message(boss: Client, world: World) -> None:
    order = saved_order(world)
    write_rule(world, ORDERS, [("STATECHANGING", "RELEASED")], actions=[fail("Notes first.")])
    assert step(boss, "change_state", order, state="Released") == ["Notes first."]
    assert SalesOrder.objects.get(pk=order).state == "New"


def test_user_statuses_of_the_type_are_offered(boss: Client, world: World) -> None:
    order = saved_order(world)
    status = DocumentTypeUserStatus(
        document_type_id=SalesOrder.objects.get(pk=order).document_type_id,
        user_status_name={"EN": "Approved"},  # type: ignore[misc]
        display_order=10,
        state="Released",
    )
    status.save()
    assert "Released – Approved" in offered(boss, order)
    assert step(boss, "change_state", order, state=f"Released/{status.pk}") == ["The state is Released now."]
    assert SalesOrder.objects.get(pk=order).user_status_id == status.pk
    assert "Released – Approved" not in offered(boss, order)


def test_an_order_is_made_void_for_a_reason(boss: Client, world: World) -> None:
    order = saved_order(world)
    (refused,) = step(boss, "make_void", order, reason=" ")
    assert "reason" in refused
    assert step(boss, "make_void", order, reason="ordered twice") == ["The document is void now."]
    assert "ordered twice" in page(boss, order).content.decode()
    assert "document-state" not in page(boss, order).content.decode()


def test_a_list_shows_and_filters_void_orders_as_void(boss: Client, world: World) -> None:
    orders = [saved_order(world), saved_order(world)]
    for order in orders:
        step(boss, "change_state", order, state="Released")
    step(boss, "make_void", orders[0], reason="ordered twice")
    address = reverse("admin:domain_salesorder_changelist")
    for query, states in (("", ["Released", "Void"]), ("?state=Void", ["Void"]), ("?state=Released", ["Released"])):
        shown = boss.get(address + query).content.decode()
        assert sorted(re.findall(r'class="field-shown_state [^>]*>(\w+)<', shown)) == states, query


@pytest.mark.parametrize("state, void", [("Released", False), ("Planned", True), ("Released", True)])
def test_what_nobody_may_edit_is_shown_read_only_and_says_why(
    boss: Client, world: World, state: str, void: bool
) -> None:
    ds = dataset(world.context)
    order = new_order(ds, world)
    line = new_line(ds, world, order)
    ds.commit()
    step(boss, "change_state", order.id, state=state)
    if void:
        step(boss, "make_void", order.id, reason="ordered twice")
    line_page = reverse("admin:domain_salesorderline_change", args=[line.id])
    for shown in (page(boss, order.id), boss.get(line_page)):
        text = shown.content.decode()
        assert ("is void" if void else "is Released") + " and cannot be changed" in text
        assert not re.search(r'name="_(save|continue|addanother)"|/delete/|class="add-row |-DELETE', text)
    text = page(boss, order.id).content.decode()
    assert ("change-state" in text, "make-void" in text, "recalculate" in text) == (not void, not void, False)
    for name in ("change", "delete"):
        refused = boss.post(reverse(f"admin:domain_salesorder_{name}", args=[order.id]), {"post": "yes"})
        assert refused.status_code == 403
    assert SalesOrder.objects.filter(pk=order.id).exists()


def test_an_open_order_can_be_edited(boss: Client, world: World) -> None:
    text = page(boss, saved_order(world)).content.decode()
    assert 'name="_save"' in text
    assert "/delete/" in text
    assert 'class="add-row ' in text
    assert "edit-refusal" not in text


def restricted(client: Client, policy: tuple[str, str]) -> Client:
    """The browser of a user who may do everything in sales but sees not every row of a repository."""
    role = Role.objects.create(name="Sellers")
    RolePermission.objects.create(
        role=role, repository="*", can_read=True, can_create=True, can_update=True, can_delete=True
    )
    RowPolicy.objects.create(
        role=role, repository=policy[0], filter=policy[1], on_create=False, on_update=False, on_delete=False
    )
    user = User.objects.create_user("seller", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=user)
    cache_versions.expire()
    client.force_login(user)
    return client


def test_related_documents_are_those_that_the_user_may_read(client: Client, boss: Client, world: World) -> None:
    first, second, hidden = (saved_order(world) for _ in range(3))
    SalesOrder.objects.filter(pk__in=(second, hidden)).update(parent_id=first)
    number = SalesOrder.objects.get(pk=hidden).document_no
    assert {second, hidden} == {address.split("/")[-3] for address, _, _ in page(boss, first).context["related"]}
    seller = restricted(client, (ORDERS, f"DocumentNo ne '{number}'"))
    assert [second] == [address.split("/")[-3] for address, _, _ in page(seller, first).context["related"]]


def test_a_preview_names_no_hidden_currency(client: Client, boss: Client, world: World) -> None:
    order = saved_order(world)
    form = {
        "document_notes": "x", "_preview": "1", "Lines-TOTAL_FORMS": "1", "Lines-INITIAL_FORMS": "0",
        "Lines-0-product": world.product, "Lines-0-quantity": "2", "Lines-0-unit_price": "5",
    }  # fmt: skip
    address = reverse("admin:domain_salesorder_change", args=[order])
    known = boss.get(address).context["adminform"].form.initial

    def preview(browser: Client) -> str:
        empty = {
            f"{formset.formset.prefix}-{name}": "0"
            for formset in browser.get(address).context["inline_admin_formsets"]
            for name in ("TOTAL_FORMS", "INITIAL_FORMS")
        }
        fields = browser.get(address).context["adminform"].form.initial
        stored = {name: value for name, value in known.items() if isinstance(value, str) and fields[name] is not None}
        return str(browser.post(address, {**empty, **stored, **form}).json().get("Lines-0-line_amount"))

    assert preview(boss) == "10.00 EUR"
    assert preview(restricted(client, ("General.Currencies.Currencies", "CurrencySign ne 'EUR'"))) == "10.00"
    assert not SalesOrder.objects.get(pk=order).document_notes


def test_steps_are_not_taken_by_following_a_link(boss: Client, world: World) -> None:
    order = saved_order(world)
    assert boss.get(reverse("admin:domain_salesorder_make_void", args=[order])).status_code == 405
    assert step(boss, "recalculate", order) == ["The document is recalculated."]
    (refused,) = step(boss, "change_state", order, state="Sideways")
    assert "Sideways" in refused


def test_whoever_may_not_change_orders_gets_no_steps(client: Client, world: World) -> None:
    order = saved_order(world)
    stranger = User.objects.create_user("charlie", "secret")
    client.force_login(stranger)
    answer = client.post(reverse("admin:domain_salesorder_change_state", args=[order]), {"state": "Released"})
    assert answer.status_code in (302, 403)
    assert SalesOrder.objects.get(pk=order).state == "New"


def test_an_order_is_offered_the_types_of_orders(boss: Client, world: World) -> None:
    ds = dataset(world.context)
    for code, name in (("3-ers", "Crm.Invoicing.Invoices"), ("2-ers", ORDERS), ("1-ers", ORDERS)):
        ds.create("Systems.Documents.DocumentTypes", {"Code": code, "TypeName": {"EN": "A type"}, "EntityName": name})
    ds.commit()

    def offered_types(model: str) -> list[str]:
        """As the chooser of the page asks for them."""
        if model != "document":  # the page of all documents has no form for a new one
            shown = boss.get(reverse(f"admin:domain_{model}_add")).content.decode()
            assert f'data-model-name="{model}" data-field-name="document_type"' in shown
        asked = {"app_label": "domain", "model_name": model, "field_name": "document_type", "term": "ers"}
        return [row["text"] for row in boss.get(reverse("admin:autocomplete"), asked).json()["results"]]

    assert offered_types("salesorder") == ["A type (1-ers)", "A type (2-ers)"]
    assert offered_types("document") == ["A type (1-ers)", "A type (2-ers)", "A type (3-ers)"]
    assert offered_types("invoice") == ["A type (3-ers)"]
