"""Calculated attributes as columns of lists and as read-only fields of pages (spec 10.1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from domain.model.registry import repositories
from foundation import cache_versions
from identity.models import Role, RolePermission, RoleUser, User
from tests.domain.admin.test_list_columns import cells
from tests.domain.calculations.conftest import SET, Orders, body, orders  # noqa: F401  (a fixture)
from tests.rules.cast import World, dataset
from tests.support.api import Api

pytestmark = pytest.mark.django_db

NAMES = ("Length", "Long", "Following", "Ratio", "Day")
LIST = "/admin/domain/customer/"
CUSTOMERS = "Crm.Sales.Customers"


def define(api: Api, notation: str, name: str, repository: str = CUSTOMERS) -> None:
    api.create(SET, body(notation, name=name, repository=repository, Caption={"EN": f"The {name}"}))


def new_customers(world: World, *numbers: str) -> None:
    changes = dataset(world.context)
    for number in numbers:
        changes.create("Crm.Sales.Customers", {"Number": number, "Party": world.party})
    changes.commit()


def listed(boss: Client, *names: str, **more: str) -> Any:
    chosen = ["number", *(f"CalculatedAttribute_{name}" for name in names)]
    return boss.get(LIST, {"columns": ",".join(chosen), **more})


def test_a_list_has_them_in_their_types_with_one_read_for_all(boss: Client, api: Api, world: World) -> None:
    new_customers(world, "K-1", "K-22")
    define(api, "10: LEN ATTRIB:Number", "Length")
    define(api, "10: GT EXP:20 CONST:3\n20: LEN ATTRIB:Number", "Long")
    define(api, "10: INCNUM ATTRIB:Number", "Following")
    define(api, "10: DIVIDE CONST:7 EXP:20\n20: ADD EXP:30 CONST:-3\n30: LEN ATTRIB:Number", "Ratio")
    define(api, "10: GETVALUE CONST:2026-02-28", "Day")
    assert "CalculatedAttribute" not in boss.get(LIST).content.decode().partition("<tbody")[2]
    with CaptureQueriesContext(connection) as few:
        listed(boss, *NAMES)
    new_customers(world, *(f"M-{number}" for number in range(9)))
    with CaptureQueriesContext(connection) as many:
        answer = listed(boss, *NAMES)
    assert len(many) <= len(few), "the values of all rows are read together"
    shown = {name: cells(answer, f"CalculatedAttribute_{name}") for name in ("Length", "Following", "Ratio", "Day")}
    assert (shown["Length"]["K-1"], shown["Length"]["K-22"]) == ("3", "4")
    assert (shown["Following"]["K-1"], shown["Following"]["K-22"]) == ("K-2", "K-23")
    assert shown["Ratio"]["K-22"] == "7"
    assert shown["Ratio"]["K-1"].startswith("⚠"), "3 - 3 divides by nothing"
    assert "Ratio" in shown["Ratio"]["K-1"]
    assert shown["Day"]["K-1"] == "Feb. 28, 2026"
    assert "The Following" in answer.content.decode()
    exported = boss.get(f"{LIST}export/csv/", {"columns": "number,CalculatedAttribute_Length,CalculatedAttribute_Long"})
    assert b"K-22,4,TRUE" in exported.getvalue()


def test_the_page_of_an_entity_shows_them_and_a_form_cannot_set_them(boss: Client, orders: Orders) -> None:  # noqa: F811
    orders.define("10: SUM CHILD:Lines EXP:20\n20: MULTIPLY ATTRIB:QuantityValue ATTRIB:UnitPriceValue", name="Worth")
    page = boss.get(f"/admin/domain/salesorder/{orders.full}/change/").content.decode()
    found = re.search(r"field-CalculatedAttribute_Worth.*?readonly[^>]*>(.*?)</", page, re.DOTALL)
    assert found, "the page has no such field"
    assert found[1].strip() == "121"
    assert "CalculatedAttribute_Worth" not in boss.get("/admin/domain/salesorder/add/").content.decode()


def test_a_broken_one_leaves_the_others_their_values(boss: Client, api: Api, world: World) -> None:
    new_customers(world, "K-1")
    changes = dataset(world.context)
    values = {"Code": "colour", "EntityName": "Crm_Sales_Customers", "PropertyType": "Text", "Name": {"EN": "Colour"}}
    changes.create("Systems.Bpm.CustomProperties", values)
    changes.commit()
    define(api, "10: LEN ATTRIB:Number", "Length")
    define(api, "10: GETVALUE ATTRIB:@colour", "Broken")
    # As a restored database may lack it: the platform refuses to delete what is in use.
    repositories["Systems.Bpm.CustomProperties"].model._default_manager.all().delete()
    cache_versions.bump("custom_properties")
    assert cells(listed(boss, "Length", "Broken"), "CalculatedAttribute_Length")["K-1"] == "3"


def test_it_shows_nothing_that_the_user_may_not_read(client: Client, api: Api, world: World) -> None:
    new_customers(world, "K-1")
    define(api, "10: GETVALUE ATTRIB:Party.PartyCode", "PartyNumber")
    role = Role.objects.create(name="Clerks")
    RolePermission.objects.create(role=role, repository=CUSTOMERS, can_read=True)
    clerk = User.objects.create_user("clerk", "vast-Harbour-42")
    RoleUser.objects.create(role=role, user=clerk)
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    assert cells(listed(client, "PartyNumber"), "CalculatedAttribute_PartyNumber")["K-1"] not in ("-", "")
    client.force_login(clerk)
    assert cells(listed(client, "PartyNumber"), "CalculatedAttribute_PartyNumber")["K-1"] == "-"
