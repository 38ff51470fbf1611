"""The page of a calculated attribute: its rows as a tree, with types, mistakes and values, before it is saved."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.entities.systems_bpm import CalculatedAttribute
from domain.query.bind.calculations import operators
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from tests.domain.calculations.conftest import Orders
from tests.rules.cast import LINES, ORDERS
from tests.support.calculations import parse_rows

pytestmark = [pytest.mark.django_db, pytest.mark.once]

ADD = reverse("admin:domain_calculatedattribute_add")
WORTH = """
10: IIF EXP:20 CONST:'large' EXP:40
20: GT EXP:30 CONST:100
30: SUM CHILD:Lines EXP:50
50: MULTIPLY ATTRIB:QuantityValue ATTRIB:UnitPriceValue
40: CONCAT CONST:'small: ' EXP:30
"""


@pytest.fixture
def boss(client: Client, orders: Orders) -> Client:
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


def fields(notation: str, *, repository: str = ORDERS, **more: str) -> dict[str, str]:
    """What the form of a new attribute sends."""
    rows = parse_rows(notation)
    result = {
        "name": "Worth", "caption_en": "Worth", "repository_name": repository, "script_language": "Integrated",
        "starting_expression_no": "10", "Expressions-TOTAL_FORMS": str(len(rows)), "Expressions-INITIAL_FORMS": "0",
    }  # fmt: skip
    for index, row in enumerate(rows):
        given = {"expression_no": str(row.number), "operator": row.operator}
        for number, parameter in enumerate(row.parameters, 1):
            given |= {f"parameter_{number}_type": parameter.type, f"parameter_{number}_value": parameter.value}
        result |= {f"Expressions-{index}-{name}": value for name, value in given.items()}
    return {**result, **more}


class Shown:
    """The rows on a page."""

    def __init__(self, answer: Any) -> None:
        assert answer.status_code == 200, answer.status_code
        self.html = answer.content.decode()
        self.rows = {
            int(part[: part.index('"')]): part for part in self.html.split('<li id="row-')[1:] if part[0].isdigit()
        }

    def texts(self, number: int, kind: str) -> list[str]:
        """Texts of the elements of a class in the row."""
        found = re.findall(rf'class="{kind}[^"]*"[^>]*>(.*?)</(?:span|ul|output)>', self.rows[number], re.DOTALL)
        return [" ".join(unescape(re.sub(r"<[^>]*>", " ", each)).split()) for each in found]

    def type(self, number: int) -> str:
        return next(iter(self.texts(number, "calculation-type")), "")

    def errors(self, number: int) -> list[str]:
        return self.texts(number, "errorlist")

    def values(self) -> dict[int, str]:
        """Number of the row → its value."""
        found = {number: re.search(r"<output>= (.*?)</output>", part) for number, part in self.rows.items()}
        return {number: unescape(match[1]) for number, match in found.items() if match}

    @property
    def value(self) -> str:
        found = re.search(r'<output for="try_entity">(.*?)</output>', self.html)
        return unescape(found[1]) if found else ""


def draft(client: Client, notation: str, step: str = "show", **more: str) -> Shown:
    """The tree as it stands on the page, sent again as htmx does."""
    data = fields(notation, **more)
    return Shown(client.post(ADD, {**data, "_draft": step}, headers={"HX-Request": "true"}))


def test_each_row_stands_below_the_row_that_uses_it_with_its_type(boss: Client, orders: Orders) -> None:
    shown = draft(boss, WORTH)
    assert list(shown.rows) == [10, 20, 30, 50, 40]
    assert [shown.type(number) for number in shown.rows] == [
        "Edm.String", "Edm.Boolean", "Edm.Decimal", "Edm.Decimal", "Edm.String",
    ]  # fmt: skip
    assert "for each of Crm.Sales.SalesOrderLines" in shown.rows[50]
    assert "<html" not in shown.html, "a part of the page"
    assert not CalculatedAttribute.objects.exists()
    lists = draft(
        boss, "10: COUNT EXP:20\n20: FILTER CHILD:Lines EXP:30\n30: GT ATTRIB:QuantityValue CONST:1\n40: TODAY"
    )
    assert lists.type(20) == "list of Crm.Sales.SalesOrderLines"
    assert "not used" in lists.rows[40]
    assert lists.type(40) == "Edm.Date"


def test_every_row_has_its_value_on_the_chosen_entity(boss: Client, orders: Orders) -> None:
    shown = draft(boss, WORTH, try_entity=orders.full)
    assert shown.values() == {10: "large", 20: "Yes", 30: "121", 40: "small: 121"}
    assert shown.value == "large"
    empty = draft(boss, WORTH, try_entity=orders.empty)
    assert (empty.value, empty.values()[30]) == ("small: 0", "0")
    more = """
    10: COUNT EXP:20
    20: SORT CHILD:Lines ATTRIB:Notes
    30: FIRST EXP:20
    40: DIVIDE CONST:1 CONST:0
    50: ADDDAYS ATTRIB:DocumentDate CONST:1
    """
    found = draft(boss, more, try_entity=orders.full).values()
    assert (found[10], found[20], found[40], found[50]) == ("3", "3 entities", "fails in row 40", "March 1, 2024")
    assert draft(boss, WORTH, try_entity="no guid").value == ""


@pytest.mark.parametrize(
    "notation, row, reason",
    [
        ("10: ADD EXP:20 CONST:1\n20: LEN ATTRIB:NoSuch", 20, "has no attribute NoSuch"),
        ("10: ADD EXP:20 CONST:1\n20: NOT CONST:1", 20, "must be: a condition"),
        ("10: ADD EXP:20 CONST:1\n20: TOUPPER CONST:a", 10, "must be: a number"),
        ("10: ADD EXP:20 CONST:1", 10, "there is no row 20"),
        ("10: ADD EXP:20 CONST:1\n20: FLOOR EXP:10", 10, "refers to itself"),
        ("10: ADD CONST:1 CONST:1\n20: ADD CONST:1", 20, "needs parameters"),
        ("10: SUM CHILD:Lines EXP:20\n20: GETVALUE ATTRIB:DocumentNo", 20, "has no attribute DocumentNo"),
        ("10: ADD CONST:1 CONST:1\n10: TODAY", 10, "two rows have this number"),
    ],
)
def test_a_mistake_is_shown_at_its_row(boss: Client, orders: Orders, notation: str, row: int, reason: str) -> None:
    shown = draft(boss, notation, try_entity=orders.full)
    assert any(reason in text for text in shown.errors(row)), shown.errors(row)
    wrong = [number for number in shown.rows if shown.errors(number)]
    assert wrong == [row]


def test_what_is_refused_on_save_is_shown_at_its_row_too(boss: Client, orders: Orders) -> None:
    answer = boss.post(ADD, fields("10: ADD EXP:20 CONST:1\n20: LEN ATTRIB:NoSuch"))
    assert "row 20" in answer.content.decode()
    assert Shown(answer).errors(20)


def test_rows_are_added_and_removed(boss: Client, orders: Orders) -> None:
    assert list(draft(boss, "10: LEN EXP:25", "add Expressions").rows) == [10, 20]
    shown = draft(boss, "10: LEN EXP:25")
    assert 'value="add Expressions 25"' in shown.rows[10], "the missing row can be added"
    assert list(draft(boss, "10: LEN EXP:25", "add Expressions 25").rows) == [10, 25]
    left = draft(boss, "10: LEN EXP:20\n20: TODAY", "remove Expressions-1")
    assert list(left.rows) == [10]
    assert 'name="Expressions-1-DELETE" value="on"' in left.html


def test_it_works_without_scripts(boss: Client, orders: Orders) -> None:
    page = boss.post(ADD, {**fields(WORTH, try_entity=orders.full), "_draft": "show"})
    assert Shown(page).value == "large"
    assert "<html" in page.content.decode()
    saved = boss.post(ADD, fields(WORTH, is_active="on"))
    assert saved.status_code == 302, saved.content.decode()
    stored = CalculatedAttribute.objects.get()
    shown = Shown(boss.get(reverse("admin:domain_calculatedattribute_change", args=[stored.pk])))
    assert list(shown.rows) == [10, 20, 30, 50, 40]
    listed = boss.get(reverse("admin:domain_calculatedattribute_changelist")).content.decode()
    assert "sound" in listed
    assert "broken" not in listed


def test_inputs_suggest_what_the_type_can_name(boss: Client, orders: Orders) -> None:
    html = draft(boss, "10: SUM CHILD:L EXP:20\n20: GETVALUE ATTRIB:Customer.\n30: IN SYS:Login REPO:x").html
    lists = dict(re.findall(r'<datalist id="([^"]*)">(.*?)</datalist>', html, re.DOTALL))
    assert "Lines" in lists[f"names-ChildList-{ORDERS}-"]
    assert 'value="Customer.Number"' in lists["names-Attribute-Crm.Sales.Customers-Customer"]
    assert 'value="UserId"' in next(text for id, text in lists.items() if "System" in id)
    assert 'value="30"' in next(text for id, text in lists.items() if "Expression" in id)


@pytest.fixture
def analyst(orders: Orders) -> tuple[Client, Role]:
    """A user whose role may define calculated attributes and read orders."""
    role = Role.objects.create(name="Analysts")
    for repository in ("Systems.Bpm.CalculatedAttributes", "Systems.Bpm.CalculatedAttributeExpressions"):
        RolePermission.objects.create(
            role=role, repository=repository, can_read=True, can_create=True, can_update=True, can_delete=True
        )
    RolePermission.objects.create(role=role, repository=ORDERS, can_read=True)
    user = User.objects.create_user("analyst", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=user)
    browser = Client()
    browser.force_login(user)
    return browser, role


def test_values_are_those_that_the_user_may_read(analyst: tuple[Client, Role], orders: Orders) -> None:
    browser, role = analyst
    lines = "10: COUNT CHILD:Lines"
    assert draft(browser, lines, try_entity=orders.full).value == "0", "it may read no lines"
    RolePermission.objects.create(role=role, repository=LINES, can_read=True)
    assert draft(browser, lines, try_entity=orders.full).value == "3"
    assert draft(browser, "10: GETVALUE ATTRIB:Customer.Number", try_entity=orders.full).value == "null"
    RowPolicy.objects.create(role=role, repository=ORDERS, filter="DocumentNo ne 'A-009'", on_read=True, is_active=True)
    hidden = draft(browser, lines, try_entity=orders.full)
    assert hidden.value == ""
    assert orders.full not in hidden.html


def test_who_may_not_write_definitions_evaluates_none(analyst: tuple[Client, Role], orders: Orders) -> None:
    browser, role = analyst
    RolePermission.objects.filter(role=role).update(can_create=False, can_update=False, can_delete=False)
    data = {**fields("10: TODAY", try_entity=orders.full), "_draft": "show"}
    assert browser.post(ADD, data).status_code == 403


def test_every_parameter_has_a_name() -> None:
    wrong = [each.name for each in operators if len(each.parameters) != each.arity[1]]
    assert wrong == []


def test_a_script_has_its_value_on_the_chosen_entity(boss: Client, orders: Orders) -> None:
    script = {"script_language": "JavaScript", "value_type": "Int32", "try_entity": orders.full}
    assert draft(boss, "", script_text="return subject.DocumentNo.length", **script).value == "5"
    assert "no such thing" in draft(boss, "", script_text="throw new Error('no such thing')", **script).value
    kept = draft(boss, "10: TODAY", script_text="return 1", **script)
    assert 'name="Expressions-0-operator"' in kept.html, "rows are kept"
