"""Values that a column does not hold are refused by name, in whatever request and on whatever database (spec 07)."""

from __future__ import annotations

from typing import Any

import pytest

from identity.applications import secret_hash
from tests.rules.cast import World
from tests.support.api import Answer, Api, error_of

GROUPS = "General_Products_ProductGroups"
PRODUCTS = "General_Products_Products"
PROPERTIES = "Systems_Bpm_CustomProperties"


@pytest.fixture
def definition(api: Api) -> str:
    """Where a custom property's definition is, which has small numbers."""
    body = {
        "Code": "size",
        "Name": {"EN": "Size"},
        "EntityName": "General_Products_Products",
        "PropertyType": "Text",
    }
    made: dict[str, Any] = api.create(PROPERTIES, body)
    return str(made["@odata.id"])


def _assert_refused(response: Answer, kind: str, target: str) -> None:
    error = error_of(response)
    assert (response.status_code, error["type"], error["target"]) == (500, kind, target), error


@pytest.mark.parametrize("name, number", [("KeyOrder", 32768), ("KeyOrder", -1), ("MaskLength", 32768)])
def test_a_number_beyond_its_column_is_out_of_range(api: Api, definition: str, name: str, number: int) -> None:
    _assert_refused(api.patch(definition, {name: number}), "ValueOutOfRange", name)
    assert api.patch(definition, {"KeyOrder": 32767, "MaskLength": 32767}).status_code == 204


@pytest.mark.parametrize(
    "kind, target, value",
    [("ValueTooLong", "PartNumber", "x" * 100), ("ValueOutOfRange", "StandardPricePerLot", 1e17)],
)
def test_a_transaction_refuses_it_at_once_and_stays_readable(
    api: Api, world: World, kind: str, target: str, value: object
) -> None:
    inside = api.begin()
    product = f"{PRODUCTS}({world.product})"
    given = value if isinstance(value, str) else {"Value": value}
    _assert_refused(inside.patch(product, {target: given}), kind, target)
    assert inside.read(f"{PRODUCTS}?$select=PartNumber&$orderby=PartNumber")["value"]
    assert inside.end().status_code == 204


def test_a_script_that_looks_for_what_it_has_just_set_is_told(api: Api) -> None:
    groups = "Domain.General.Products.ProductGroupsRepository"
    script = f"{groups}.createNew({{Code: 'x'.repeat(50), Name: 'x'}}); {groups}.query({{Name: 'x'}})"
    _assert_refused(api.post("ExecuteScript", script, Content_Type="text/plain"), "ValueTooLong", "Code")


def test_what_is_refused_of_an_application_does_not_show_its_secret(api: Api) -> None:
    refused = api.patch(
        api.read("Systems_Security_TrustedApplications?$top=1&$filter=ClientType eq 'Confidential'")["value"][0][
            "@odata.id"
        ],
        {"RateLimitPerMinute": -5},
    )
    _assert_refused(refused, "ValueOutOfRange", "RateLimitPerMinute")
    assert secret_hash("DEMO") not in refused.content.decode()


def test_a_broken_rule_of_the_database_shows_its_name_and_not_the_row(api: Api) -> None:
    """PostgreSQL tells the whole row, of which some columns are nobody's to read."""
    from django.db import IntegrityError

    from domain.dataset.checks.database_errors import duplicate_error
    from domain.dataset.records.commit_result import CommitResult

    told = duplicate_error(
        IntegrityError(
            'new row for relation "hook" violates check constraint "hook_timeout_check"\n'
            "DETAIL:  Failing row contains (1, whsec_secret, -5)."
        ),
        CommitResult(),
    )
    assert "hook_timeout_check" in str(told)
    assert "whsec_secret" not in str(told)
    assert "timeout_seconds" in str(
        duplicate_error(IntegrityError("CHECK constraint failed: timeout_seconds"), CommitResult())
    )
