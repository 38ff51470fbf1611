"""Documents as a board by state: bounded columns, and cards that move as by the button of the page (issue O)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Browser, Page, expect

from domain.admin.document_board import CARDS, BoardColumn
from domain.entities.crm_sales import SalesOrder
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from tests.rules.cast import ORDERS, World, dataset, fail, new_line, new_order, write_rule
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, administrators_page, fits
from tests.support.platform import LivePlatform

LIST = "/admin/domain/salesorder/"
BOARD = f"{LIST}board/"


def new_orders(world: World, count: int, **values: Any) -> list[str]:
    """Ids of new orders."""
    changes = dataset(world.context)
    made = [new_order(changes, world, **values) for _ in range(count)]
    for each in made:
        new_line(changes, world, each, Quantity=Decimal(1), UnitPrice=Decimal(10))
    changes.commit()
    return [str(each.id) for each in made]


def board(client: Client, **query: str) -> dict[str, BoardColumn]:
    """State → column."""
    answer = client.get(BOARD, query)
    assert answer.status_code == 200
    return {column.state: column for column in answer.context["columns"]}


def move(client: Client, order: str, state: str, **form: str) -> Any:
    """Move a card as its menu does; the page that is shown then."""
    return client.post(f"{LIST}{order}/change-state/", {"state": state, "board": "", **form}, follow=True)


def said(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def test_cards_stand_in_the_columns_of_their_states(boss: Client, world: World) -> None:
    first, second, third = new_orders(world, 3)
    move(boss, second, "Released")
    assert "Void" not in board(boss)
    boss.post(f"{LIST}{third}/make-void/", {"reason": "ordered twice"})
    columns = board(boss)
    assert [*columns] == ["New", "Planned", "FirmPlanned", "Released", "Completed", "Closed", "Void"]
    shown = {state: [str(card.document.pk) for card in column.cards] for state, column in columns.items()}
    assert {state: ids for state, ids in shown.items() if ids} == {
        "New": [first],
        "Released": [second],
        "Void": [third],
    }
    (card,) = columns["New"].cards
    order = SalesOrder.objects.get(pk=first)
    assert order.document_no in str(card.document)
    assert any(value.startswith("Buyers & Sons") for value in card.values)
    assert any(value.endswith("10.00 EUR") for value in card.values)
    assert [*card.moves] == ["Planned", "FirmPlanned", "Released", "Completed", "Closed"]
    assert card.moves["FirmPlanned"] == "Firm planned"
    assert columns["Released"].cards[0].moves == {"Completed": "Completed", "Closed": "Closed"}
    assert columns["Void"].cards[0].moves == {}
    page = boss.get(BOARD).content.decode()
    assert page.count(f'<summary aria-label="Move {order.document_no}">Move</summary>') == 1
    assert boss.get(f"{LIST}{columns['Void'].list_query}").context["cl"].result_count == 1


def test_a_moved_card_changes_the_state_and_leads_back_to_the_board(boss: Client, world: World) -> None:
    (order,) = new_orders(world, 1)
    answer = move(boss, order, "Planned", board="q=0&state=New")
    assert answer.redirect_chain[-1][0] == "../../board/?q=0&state=New"
    assert said(answer) == ["The state is Planned now."]
    assert SalesOrder.objects.get(pk=order).state == "Planned"
    # The address is made here: what was posted is its query alone.
    answer = move(boss, order, "New", board="//evil.example/?a=b")
    assert answer.redirect_chain[-1][0].startswith("../../board/?")
    # The button of the page leads to the page, as before.
    answer = boss.post(f"{LIST}{order}/change-state/", {"state": "Planned"}, follow=True)
    assert answer.redirect_chain[-1][0] == f"{LIST}{order}/change/"


def test_a_rule_refuses_a_move_on_the_board(boss: Client, world: World) -> None:
    (order,) = new_orders(world, 1)
    write_rule(world, ORDERS, [("STATECHANGING", "RELEASED")], actions=[fail("Notes first.")])
    answer = move(boss, order, "Released")
    assert answer.redirect_chain[-1][0] == "../../board/?"
    assert said(answer) == ["Notes first."]
    assert [str(card.document.pk) for card in board(boss)["New"].cards] == [order]


def test_columns_are_bounded_and_link_to_their_rest(boss: Client, world: World) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            board(boss)
        return len(captured)

    new_orders(world, 2)
    queries()
    few = queries()
    new_orders(world, CARDS)
    assert queries() <= few + 3  # one counts the rest; what the process keeps is read again now and then
    column = board(boss, q="0")["New"]
    assert (len(column.cards), column.more) == (CARDS, "2")
    assert boss.get(f"{LIST}{column.list_query}").context["cl"].result_count == CARDS + 2
    assert board(boss, q="no such order", state="New")["New"].cards == []
    assert boss.get(BOARD, {"total_line_amount__regex": "1"}).status_code == 400


def test_the_board_obeys_permissions_and_row_policies(world: World) -> None:
    mine, other, still = new_orders(world, 3)
    number = SalesOrder.objects.get(pk=other).document_no
    role = Role.objects.create(name="Clerks")
    user = User.objects.create_user("clerk", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=user)
    browser = Client()
    browser.force_login(user)
    RolePermission.objects.create(role=role, repository="Crm.Sales.Customers", can_read=True)
    assert browser.get(BOARD).status_code == 403
    permission = RolePermission.objects.create(role=role, repository="Crm.Sales.SalesOrders", can_read=True)
    assert {tuple(card.moves) for card in board(browser)["New"].cards} == {()}
    permission.can_update = True
    permission.save()
    policy = {"role": role, "repository": "Crm.Sales.SalesOrders", "is_active": True}
    only = {"on_read": False, "on_create": False, "on_update": False, "on_delete": False}
    RowPolicy.objects.create(filter=f"DocumentNo ne '{number}'", **{**policy, **only, "on_read": True})
    kept = SalesOrder.objects.get(pk=still).document_no
    RowPolicy.objects.create(filter=f"DocumentNo ne '{kept}'", **{**policy, **only, "on_update": True})
    cards = {str(card.document.pk): card for card in board(browser)["New"].cards}
    assert cards.keys() == {mine, still}
    assert (bool(cards[mine].moves), bool(cards[still].moves)) == (True, False)
    assert not any("Buyers" in value for card in cards.values() for value in card.values)  # parties are not readable
    assert move(browser, still, "Released").status_code == 403
    assert SalesOrder.objects.get(pk=still).state == "New"


# --- in Chromium ------------------------------------------------------------------------------------------------------


def column(page: Page, state: str) -> Any:
    return page.locator(f".board-column[data-state={state}]")


@pytest.mark.browser
@pytest.mark.process
def test_a_card_moves_by_drag_and_by_keyboard(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url, reduced_motion="reduce") as page:
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(LIST)
        page.get_by_role("link", name="Board", exact=True).click()
        card = column(page, "New").locator(".board-card").first
        title = card.locator("a").inner_text()
        assert violations(page) == []

        with page.expect_navigation():
            card.drag_to(column(page, "Planned").locator("h2"))
        assert page.url.endswith("/board/?")
        assert "The state is Planned now." in page.inner_text(".messagelist")
        moved = column(page, "Planned").locator(".board-card", has_text=title)
        expect(moved).to_have_count(1)

        moved.locator("summary").focus()
        page.keyboard.press("Enter")
        moved.get_by_role("button", name="New", exact=True).focus()
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert "The state is New now." in page.inner_text(".messagelist")
        expect(column(page, "New").locator(".board-card", has_text=title)).to_have_count(1)

        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="dark")
        assert violations(page, only=("color-contrast",)) == []
        assert fits(page)
