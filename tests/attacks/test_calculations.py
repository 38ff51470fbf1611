"""Definitions that administrators' helpers write: calculated attributes, filters of custom properties, jobs, entities.

Who: a user who may define them, and whoever reads what they define. What: operators on values that they were not made
for, nested groups, settings of another type, names that a database has already, numbers too large for a tile.
What prevents it: each is refused with a reason when it is saved, or has a value; nothing is an internal error.
"""

from __future__ import annotations

import resource
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from domain.model.filter_xml import MAX_DEPTH
from domain.model.saved_settings import SavedQuery
from foundation import errors
from identity.models import User
from tests.attacks.access import refused_as
from tests.domain.calculations.conftest import FAILED, Orders, by_record, orders
from tests.domain.conftest import api, world
from tests.domain.custom_entities.cars import ENTITIES, attribute, entity
from tests.jobs.cast import JOBS, job_body
from tests.rules.cast import World, dataset
from tests.support.api import Api, error_of

__all__ = ["api", "orders", "world"]
CURRENCIES = "General_Currencies_Currencies"
HUGE = f"{CURRENCIES}?$top=1&$select=CurrencySign,N&$compute=1e30 as N"
BARS = {"kind": "bar", "label": "CurrencySign", "split": "", "values": ["N"]}


@pytest.mark.parametrize(
    "rows, value",
    [
        # A predicate over the texts of a multilanguage value with an operand that only Python computes.
        ("10: EQUAL EXP:20 ATTRIB:Customer.DisplayText\n20: INCNUM CONST:'-9'", False),
        ("10: INCNUM ATTRIB:DocumentDate", "2024-02-30"),
        ("10: ADDDAYS ATTRIB:DocumentDate CONST:999999999999999999", FAILED),
    ],
)
def test_operators_on_values_that_they_were_not_made_for(orders: Orders, rows: str, value: Any) -> None:
    name = orders.define(rows)
    assert orders.read(name, orders.full) == value


@pytest.mark.parametrize("by_record_first", [False, True])
def test_a_text_that_grows_tenfold_with_each_row(orders: Orders, world: World, by_record_first: bool) -> None:
    steps = 8  # a thousand million characters, of which SQLite would make several copies
    rows = [f"{number}: REPLACE EXP:{number + 1} CONST:'a' CONST:'aaaaaaaaaa'" for number in range(10, 9 + steps)]
    rows.append(f"{9 + steps}: REPLACE CONST:'aaaaaaaaaa' CONST:'a' CONST:'aaaaaaaaaa'")
    name = orders.define("\n".join(["5: LEN EXP:10", *rows]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if by_record_first:
        with pytest.raises(errors.BadRequest):
            by_record(dataset(world.context), orders.full, name)
    assert orders.api.get(f"Crm_Sales_SalesOrders?$select={name}").status_code == 400
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KB


@pytest.mark.parametrize("group", ["And", "Or", "Not"])
def test_nested_groups_of_a_filter(api: Api, group: str) -> None:
    depth = MAX_DEPTH + 1500
    condition = '<Condition Attribute="Active" Value="true"/>'
    body = {
        "Code": "deep",
        "Name": {"EN": "Deep"},
        "EntityName": "Systems_Security_Users",
        "PropertyType": "Text",
        "LimitToAllowedValues": True,
        "AllowedValuesEntityName": "General.Products.Products",
        "AllowedValuesFilterXML": f"<Filter>{f'<{group}>' * depth}{condition}{f'</{group}>' * depth}</Filter>",
    }
    answer = api.post("Systems_Bpm_CustomProperties", body)
    assert refused_as(answer) == "ValidationFailed"
    assert str(MAX_DEPTH) in error_of(answer)["message"]


@pytest.mark.parametrize("only", [[{}], [[]], [None], [1]])
def test_settings_of_a_job_that_are_no_texts(api: Api, only: list[Any]) -> None:
    answer = api.post(JOBS, job_body("Prune", JobConfigurations={"Only": only}))
    assert refused_as(answer) == "JobInvalid"


def test_a_job_with_a_broken_filter_is_told_why(api: Api) -> None:
    settings = {"Repository": "Crm.Sales.SalesOrders", "Filter": "Nothing eq 1", "State": "Closed"}
    answer = api.post(JOBS, job_body("DocumentChangeState", JobConfigurations=settings))
    assert "'Nothing'" in error_of(answer)["message"]


@pytest.mark.parametrize(
    "attributes, others",
    [
        ([attribute("DriverId"), attribute("Driver", "Reference", TargetRepository="General.Products.Products")], {}),
        ([attribute("Aa" * 24), attribute("Aa" * 23 + "Ab")], {}),
        ([attribute(f"A{number}") for number in range(401)], {}),
        ([attribute("Ctid")], {}),
        ([attribute("Line", "Reference", TargetRepository="Crm.Sales.SalesAnalytics")], {}),
        ([attribute("A")], {"DisplayFormat": "{@nothing}"}),
        ([attribute("A")], {"DisplayFormat": "{$nothing}"}),
        ([attribute(f"A{n}") for n in range(33)], {"UniqueConstraints": ",".join(f"A{n}" for n in range(33))}),
    ],
    ids=["column", "cut-name", "many", "system-column", "view", "property", "value", "wide-index"],
)
def test_an_entity_that_no_table_can_have(api: Api, attributes: list[Any], others: dict[str, Any]) -> None:
    assert refused_as(api.post(ENTITIES, entity("Custom.Test.Things", *attributes, **others))) == "CustomEntityInvalid"


@pytest.mark.parametrize("chart", [None, BARS])
def test_a_tile_with_a_number_of_thirty_digits(administrator: Api, chart: Any) -> None:
    user = User.objects.create_superuser("tiles", "vast-Harbour-42")
    query = SavedQuery.objects.create(user=user, name="Huge", path=HUGE, chart=chart)
    query.on_home_of.add(user)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    assert client.get(reverse("admin:tile", args=[query.pk])).status_code == 200
