"""Columns of lists that show values of owned collections: the phone of a customer's party."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from domain.entities.crm_sales import Customer
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from tests.rules.cast import World, dataset

pytestmark = pytest.mark.django_db

LIST = "/admin/domain/customer/"
MECHANISMS = "General.Contacts.PartyContactMechanisms"


def new_customer(world: World, number: str, *phones: dict[str, Any]) -> None:
    """A customer whose party has these contact mechanisms."""
    changes = dataset(world.context)
    company = changes.create("General.Contacts.Companies", {"Name": {"EN": f"Company {number}"}})
    for phone in phones:
        changes.create(MECHANISMS, {"ContactMechanismType": "Telephone", **phone}, parent=company)
    changes.create("Crm.Sales.Customers", {"Number": number, "Party": company})
    changes.commit()


def cells(answer: Any, column: str) -> dict[str, str]:
    """Customer's number → text of the column."""
    rows = re.findall(r"<tr class=\"data-row.*?</tr>", answer.content.decode(), re.DOTALL)
    result = {}
    for row in rows:
        texts = dict(re.findall(r"class=\"field-(\w+) [^>]*>(.*?)</t[hd]>", row, re.DOTALL))
        result[re.sub(r"<[^>]*>", "", texts["number"])] = re.sub(r"<[^>]*>", "", texts.get(column, "no such column"))
    return result


def test_customers_are_listed_with_number_party_and_phone(boss: Client, world: World) -> None:
    new_customer(
        world, "C-1",
        {"Name": "111", "IsDefault": False}, {"Name": "222", "IsDefault": True},
        {"Name": "a@example.com", "ContactMechanismType": "Mail", "IsDefault": True},
    )  # fmt: skip
    new_customer(world, "C-2", {"Name": "333", "ContactMechanismType": "MobilePhone"})
    new_customer(world, "C-3", {"Name": "444", "IsActive": False})
    answer = boss.get(LIST)
    phones = cells(answer, "phone")
    assert (phones["C-1"], phones["C-2"], phones["C-3"]) == ("222", "333", "-")
    assert cells(answer, "party")["C-1"].startswith("Company C-1")
    assert "__str__" not in answer.content.decode()


def test_one_query_loads_the_phones_of_a_page(boss: Client, world: World) -> None:
    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            assert boss.get(LIST).status_code == 200
        return [query["sql"] for query in captured if "contactmechanism" in query["sql"]]

    for number in range(3):
        new_customer(world, f"C-{number}", {"Name": f"55{number}"})
    assert len(queries()) == 1


@pytest.fixture
def clerk(world: World) -> tuple[Client, Role]:
    """A user who reads customers and parties, and the user's role."""
    role = Role.objects.create(name="Clerks")
    for repository in ("Crm.Sales.Customers", "General.Contacts.Parties", "General.Contacts.Companies"):
        RolePermission.objects.create(role=role, repository=repository, can_read=True)
    user = User.objects.create_user("clerk", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=user)
    browser = Client()
    browser.force_login(user)
    return browser, role


def test_who_may_not_read_contact_mechanisms_has_no_column_of_phones(clerk: tuple[Client, Role], world: World) -> None:
    new_customer(world, "C-1", {"Name": "111"})
    browser, role = clerk
    assert cells(browser.get(LIST), "phone")["C-1"] == "no such column"
    RolePermission.objects.create(role=role, repository=MECHANISMS, can_read=True)
    assert cells(browser.get(LIST), "phone")["C-1"] == "111"


def test_phones_obey_the_row_policies_of_parties_and_of_contact_mechanisms(
    clerk: tuple[Client, Role], world: World
) -> None:
    browser, role = clerk
    RolePermission.objects.create(role=role, repository=MECHANISMS, can_read=True)
    new_customer(world, "C-1", {"Name": "111"}, {"Name": "private", "IsDefault": True})
    new_customer(world, "C-2", {"Name": "222"})
    policy = RowPolicy.objects.create(
        role=role, repository=MECHANISMS, filter="Name ne 'private'", on_read=True, is_active=True
    )
    phones = cells(browser.get(LIST), "phone")
    assert (phones["C-1"], phones["C-2"]) == ("111", "222")
    policy.delete()
    hidden = Customer.objects.get(number="C-2").party.party_code
    RowPolicy.objects.create(
        role=role, repository="General.Contacts.Parties", filter=f"PartyCode ne '{hidden}'", on_read=True,
        is_active=True,
    )  # fmt: skip
    answer = browser.get(LIST)
    assert (cells(answer, "phone")["C-1"], cells(answer, "phone")["C-2"]) == ("private", "-")
    assert cells(answer, "party")["C-2"] == "-"


def test_custom_properties_are_columns_that_can_be_chosen(boss: Client, world: World) -> None:
    changes = dataset(world.context)
    for code, kind in (("colour", "Text"), ("since", "Date")):
        values = {"Code": code, "EntityName": "Crm_Sales_Customers", "PropertyType": kind, "Name": {"EN": code.title()}}
        changes.create("Systems.Bpm.CustomProperties", values)
    changes.commit()
    new_customer(world, "C-1")
    new_customer(world, "C-2")
    Customer.objects.filter(number="C-1").update(
        custom_property_values={"colour": {"Value": "red"}, "since": {"Value": "2025-03-01"}}
    )
    assert "CustomProperty_colour" not in boss.get(LIST).content.decode().partition("<tbody")[2]
    chosen = {"columns": "number,CustomProperty_colour,CustomProperty_since"}
    answer = boss.get(LIST, chosen)
    assert [cells(answer, "CustomProperty_colour")[number] for number in ("C-1", "C-2")] == ["red", "-"]
    assert cells(answer, "CustomProperty_since")["C-1"] == "March 1, 2025"
    assert "Colour" in answer.content.decode()
    exported = boss.get(f"{LIST}export/csv/", chosen)
    assert b"red" in exported.getvalue()
