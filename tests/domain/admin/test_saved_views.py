"""Lists with chosen columns, and views of them that are saved and shared (issue O)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Browser, Page, expect

from domain.admin.measures import attribute_name
from domain.model.saved_settings import MOST_OF_USER, SavedView
from identity.models import Role, RolePermission, RoleUser, User
from tests.rules.cast import World, dataset, new_order
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, administrators_page, fits
from tests.support.platform import LivePlatform

ORDERS, CUSTOMERS = "/admin/domain/salesorder/", "/admin/domain/customer/"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def clerk(world: World) -> Client:
    """A user who reads orders, and neither customers nor parties."""
    role = Role.objects.create(name="Clerks")
    RolePermission.objects.create(role=role, repository="Crm.Sales.SalesOrders", can_read=True)
    user = User.objects.create_user("clerk", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=user)
    return signed_in(user)


@pytest.fixture
def orders(world: World) -> None:
    changes = dataset(world.context)
    for number in ("A-1", "B-2", "C-3"):
        new_order(changes, world, CustomerPurchaseOrderNo=number)
    changes.commit()


def columns(answer: Any) -> list[str]:
    """Names of the columns of a list."""
    return [attribute_name(each) for each in answer.context["cl"].list_display if each != "action_checkbox"]


def said(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def save(client: Client, address: str, name: str, query: str, **options: str) -> Any:
    """Save a view as the list's form does; the list that is shown then."""
    return client.post(f"{address}views/", {"name": name, "query": query, **options}, follow=True)


def query_of(answer: Any) -> dict[str, list[str]]:
    """The query string of the page that redirects led to."""
    return parse_qs(urlsplit(answer.redirect_chain[-1][0]).query)


def test_the_address_names_the_columns(boss: Client, orders: None) -> None:
    answer = boss.get(ORDERS, {"columns": "customer_purchase_order_no,document_date,customer,state"})
    assert columns(answer) == ["customer_purchase_order_no", "document_date", "customer", "shown_state"]
    assert said(answer) == []
    assert re.findall(r"<th[^>]*column-(\w+)", answer.content.decode())[-4:] == columns(answer)
    numbers = re.findall(r"field-customer_purchase_order_no [^>]*><?[^>]*>?([ABC]-\d)", answer.content.decode())
    assert sorted(numbers) == ["A-1", "B-2", "C-3"]  # the first column leads to the order
    assert len(re.findall(r"<a href=\"/admin/domain/salesorder/[^\"]*/change/", answer.content.decode())) == 3


def test_columns_that_do_not_exist_are_left_out_with_a_message(boss: Client, clerk: Client) -> None:
    answer = boss.get(ORDERS, {"columns": "state,nothing,<b>"})
    assert columns(answer) == ["shown_state"]
    assert said(answer) == ["Left out, as you have no such columns or filters: nothing, <b>."]
    assert "<b>." not in answer.content.decode()
    assert columns(boss.get(ORDERS, {"columns": "nothing"})) == columns(boss.get(ORDERS))
    # Neither does a column tell what the user may not read, nor whether there is such a one.
    answer = clerk.get(ORDERS, {"columns": "state,customer,nothing"})
    assert columns(answer) == ["shown_state"]
    assert said(answer) == ["Left out, as you have no such columns or filters: customer, nothing."]
    assert "customer" not in columns(clerk.get(ORDERS))
    for secret in ("additional_data_json", "custom_property_values"):
        assert secret not in columns(boss.get(ORDERS, {"columns": f"state,{secret}"}))


def test_the_chooser_keeps_order_filters_and_search(boss: Client, orders: None) -> None:
    shown = boss.get(ORDERS, {"columns": "state,customer_purchase_order_no", "o": "-2", "q": "0", "state": "New"})
    tools = shown.context["list_tools"]
    assert tools.sort == "-customer_purchase_order_no"
    assert tools.kept == [("q", "0"), ("state", "New")]
    assert [choice.name for choice in tools.choices if choice.is_chosen] == ["state", "customer_purchase_order_no"]
    # As the chooser's form sends it: the sorted column has another place now.
    sent = {**dict(tools.kept), "sort": tools.sort, "columns": ["customer_purchase_order_no", "state"]}
    answer = boss.get(ORDERS, sent, follow=True)
    assert query_of(answer) == {
        "q": ["0"], "state": ["New"], "columns": ["customer_purchase_order_no,state"], "o": ["-1"],
    }  # fmt: skip
    numbers = [each.customer_purchase_order_no for each in answer.context["cl"].result_list]
    assert numbers == ["C-3", "B-2", "A-1"]


def test_an_export_has_the_chosen_columns(boss: Client, orders: None) -> None:
    shown = boss.get(ORDERS, {"columns": "customer_purchase_order_no,state", "o": "1", "view": ""})
    exported: Any = boss.get(f"{ORDERS}export/csv/?{shown.context['list_tools'].exported}")
    lines = b"".join(exported.streaming_content).decode("utf-8-sig").splitlines()
    assert lines == ["Customer purchase order no,State", "A-1,New", "B-2,New", "C-3,New"]


def test_a_view_is_saved_with_columns_filters_order_and_search(boss: Client, orders: None) -> None:
    query = "columns=state,customer_purchase_order_no&o=-2&q=0&state=New&p=3"
    answer = save(boss, ORDERS, "  My   orders ", query)
    assert "The view My orders is saved." in said(answer)
    view = SavedView.objects.get()
    assert (view.name, view.query) == (
        "My orders", "columns=state,customer_purchase_order_no&sort=-customer_purchase_order_no&q=0&state=New",
    )  # fmt: skip
    assert query_of(answer) == {
        "columns": ["state,customer_purchase_order_no"], "q": ["0"], "state": ["New"], "view": [str(view.pk)],
        "o": ["-2"],
    }  # fmt: skip
    assert columns(answer) == ["shown_state", "customer_purchase_order_no"]
    # The same name again changes it.
    save(boss, ORDERS, "My orders", "columns=state")
    assert SavedView.objects.get().query == "columns=state"
    assert "A view needs a name." in said(save(boss, ORDERS, "  ", "columns=state"))
    assert "too long" in said(save(boss, ORDERS, "x" * 81, ""))[0]
    assert SavedView.objects.count() == 1


def test_a_view_belongs_to_its_user_unless_it_is_shared(boss: Client, clerk: Client) -> None:
    save(boss, ORDERS, "Mine", "columns=state")
    save(boss, ORDERS, "Ours", "columns=document_date", is_shared="on")
    mine, ours = SavedView.objects.get(name="Mine"), SavedView.objects.get(name="Ours")
    assert [each.name for each in clerk.get(ORDERS).context["list_tools"].views] == ["Ours"]
    assert columns(clerk.get(ORDERS, {"view": str(ours.pk)}, follow=True)) == ["document_date"]
    answer = clerk.get(ORDERS, {"view": str(mine.pk)}, follow=True)
    assert said(answer) == ["There is no such view any more."]
    for view in (mine, ours):  # neither is another user's to delete
        clerk.post(f"{ORDERS}views/", {"delete": str(view.pk)})
    assert SavedView.objects.count() == 2
    # A list that the user may not open has no views for the user.
    save(boss, CUSTOMERS, "Customers", "columns=number", is_shared="on")
    assert clerk.post(f"{CUSTOMERS}views/", {"name": "x", "query": ""}).status_code == 403
    elsewhere = SavedView.objects.get(name="Customers")
    assert said(clerk.get(ORDERS, {"view": str(elsewhere.pk)}, follow=True)) == ["There is no such view any more."]
    boss.post(f"{ORDERS}views/", {"delete": str(ours.pk)})
    assert not SavedView.objects.filter(pk=ours.pk).exists()


def test_a_shared_view_shows_no_more_than_its_reader_may_see(boss: Client, clerk: Client, orders: None) -> None:
    customer = boss.get(ORDERS).context["cl"].result_list[0].customer_id
    save(boss, ORDERS, "Ours", f"columns=state,customer&o=2&customer__id__exact={customer}", is_shared="on")
    view = str(SavedView.objects.get().pk)
    assert columns(boss.get(ORDERS, {"view": view}, follow=True)) == ["shown_state", "customer"]
    answer = clerk.get(ORDERS, {"view": view}, follow=True)
    assert answer.status_code == 200
    assert query_of(answer) == {"columns": ["state"], "view": [view]}
    assert str(customer) not in answer.content.decode()
    assert any("customer" in text for text in said(answer))


def test_one_view_opens_with_the_list(boss: Client, clerk: Client) -> None:
    save(boss, ORDERS, "First", "columns=state", is_default="on")
    assert columns(boss.get(ORDERS, follow=True)) == ["shown_state"]
    save(boss, ORDERS, "Second", "columns=document_date", is_default="on", is_shared="on")
    assert columns(boss.get(ORDERS, follow=True)) == ["document_date"]
    assert list(SavedView.objects.filter(is_default=True).values_list("name", flat=True)) == ["Second"]
    assert "document_date" in columns(boss.get(ORDERS, {"view": ""}))
    assert len(columns(boss.get(ORDERS, {"view": ""}))) > 1
    assert len(columns(clerk.get(ORDERS, follow=True))) > 1  # it is the default of its owner alone


def test_the_number_of_views_is_bounded(boss: Client, world: World) -> None:
    user = User.objects.get(login="boss")
    SavedView.objects.bulk_create(
        SavedView(user=user, repository="Crm.Sales.Customers", name=f"View {n}") for n in range(MOST_OF_USER)
    )
    assert any(str(MOST_OF_USER) in text for text in said(save(boss, ORDERS, "One more", "")))
    assert SavedView.objects.count() == MOST_OF_USER
    assert "is saved" in said(save(boss, CUSTOMERS, "View 0", ""))[0]


def test_more_columns_of_references_need_no_more_queries(boss: Client, world: World) -> None:
    query = {"columns": "customer,document_type,store,sales_person,document_currency,total_line_amount"}

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert boss.get(ORDERS, query).status_code == 200
        return len(captured)

    def add(count: int) -> None:
        changes = dataset(world.context)
        for _ in range(count):
            new_order(changes, world)
        changes.commit()

    add(1)
    queries()
    one = queries()
    add(5)
    assert queries() <= one + 2  # what the process keeps is read again now and then


# --- in Chromium ------------------------------------------------------------------------------------------------------


def open_tool(page: Page, title: str) -> None:
    page.locator(".list-tools summary", has_text=title).focus()
    page.keyboard.press("Enter")


@pytest.mark.browser
@pytest.mark.process
def test_columns_are_chosen_and_a_view_is_saved_by_keyboard(live_platform: LivePlatform, chromium: Browser) -> None:
    still = {"reduced_motion": "reduce"}
    with administrators_page(chromium, live_platform.base_url, **still) as page:
        page.goto(f"{ORDERS}?state=Released")
        open_tool(page, "Columns")
        box = page.get_by_role("checkbox", name="Customer purchase order no")
        box.focus()
        page.keyboard.press("Space")
        up = page.get_by_role("button", name="Move Customer purchase order no up")
        up.focus()
        before = page.locator(".column-choices li").all_inner_texts()
        page.keyboard.press("Enter")
        assert page.locator(".column-choices li").all_inner_texts() != before
        expect(up).to_be_focused()
        assert violations(page) == []
        page.get_by_role("button", name="Show columns").focus()
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "customer_purchase_order_no" in page.url
        assert "state=Released" in page.url
        expect(page.locator("th.column-customer_purchase_order_no")).to_have_count(1)

        open_tool(page, "Views")
        page.get_by_label("Save these columns, filters and order as").focus()
        page.keyboard.type("Released ones")
        assert violations(page) == []
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "The view Released ones is saved." in page.inner_text(".messagelist")
        page.goto(ORDERS)
        open_tool(page, "Views")
        page.get_by_role("link", name="Released ones").focus()
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.locator("th.column-customer_purchase_order_no")).to_have_count(1)
        assert "state=Released" in page.url

        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="dark")
        for title in ("Released ones", "Columns", "Export"):
            open_tool(page, title)
            assert violations(page, only=("color-contrast",)) == [], title
            assert fits(page), title
            page.keyboard.press("Escape")
            assert page.locator(".list-tools details[open]").count() == 0
        open_tool(page, "Released ones")
        page.get_by_role("button", name="Delete view").focus()
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "is deleted" in page.inner_text(".messagelist")
