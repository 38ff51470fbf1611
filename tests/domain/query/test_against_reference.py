"""Random filters, orders and pages give the same rows in the same order as the reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundation import errors
from tests.domain.query.conftest import Ask, reads
from tests.domain.query.expressions import orders, predicates
from tests.domain.query.reference import Node, Row, matching, ordered

SET = "General_Products_Products"
_ABSENT = "00000000-0000-7000-8000-999999999999"
# Rows are made once for a test and only read by its examples.
quietly = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def orderby(keys: Sequence[tuple[Node, bool]]) -> str:
    """The $orderby of the keys."""
    return ",".join(f"{node.text()}{' desc' if is_descending else ''}" for node, is_descending in keys)


@quietly
@given(predicate=predicates())
def test_filter_finds_what_the_text_says(products: list[Row], ask: Ask, predicate: Node) -> None:
    body = ask(SET, f"$select=Id&$count=true&$filter={predicate.text()}")
    expected = [row["Id"] for row in ordered(matching(products, predicate), [])]
    assert [row["Id"] for row in body["value"]] == expected
    assert body["@odata.count"] == len(expected)


def test_a_chain_of_equalities_is_one_list(products: list[Row], ask: Ask) -> None:
    wanted = [row["PartNumber"].replace("'", "''") for row in products[::3]]
    chain = " or ".join([*(f"PartNumber eq '{number}'" for number in wanted), "Active eq null"])
    with CaptureQueriesContext(connection) as captured:
        body = ask(SET, f"$select=Id&$filter={chain}")
    assert [row["Id"] for row in body["value"]] == sorted(row["Id"] for row in products[::3])
    (statement,) = reads(captured)
    assert statement.count(" OR ") == 1


def test_in_looks_through_a_collection(products: list[Row], ask: Ask) -> None:
    for path, only_active in (
        ("Prices/Currency/CurrencySign", False),
        ("Prices/$filter(IsActive)/Currency/CurrencySign", True),
        ("$it/Prices/Currency/CurrencySign", False),
    ):
        found = ask(SET, f"$select=Id&$filter='EUR' in {path}")["value"]
        expected = sorted(
            row["Id"]
            for row in products
            if any(p["Currency"]["CurrencySign"] == "EUR" for p in row["Prices"] if p["IsActive"] or not only_active)
        )
        assert [row["Id"] for row in found] == expected
        assert 0 < len(expected) < len(products)
    # The operand is of the outer row, also where the collection's rows have such a property.
    own = ask(SET, "$select=Id&$filter=Id in Prices/Product/Id")["value"]
    assert [row["Id"] for row in own] == sorted(row["Id"] for row in products if row["Prices"])


def test_root_names_one_entity_of_any_set(products: list[Row], ask: Ask) -> None:
    one = products[0]
    price = next(price for product in products for price in product["Prices"])
    for written, expected in (
        (f"ProductGroup eq $root/General_Products_ProductGroups({one['ProductGroup']['Id']})", None),
        (f"ProductGroup/Code eq $root/{SET}({one['Id']})/ProductGroup/Code", None),
        (f"$root/{SET}(Id={one['Id']})/ProductGroup eq ProductGroup", None),
        (f"Id eq $root/Crm_Pricing_ProductPrices({price['Id']})/Product/Id", "price"),
        (f"$root/{SET}({one['Id']})/Prices/$count ge 0 and Id eq '{one['Id']}'", "one"),
        (f"$root/{SET}({_ABSENT})/PartNumber eq null", "all"),
        (f"$root/{SET}({_ABSENT})/PartNumber eq PartNumber", "none"),
    ):
        found = {row["Id"] for row in ask(SET, f"$select=Id&$filter={written}")["value"]}
        of_group = {row["Id"] for row in products if row["ProductGroup"]["Id"] == one["ProductGroup"]["Id"]}
        owners = {row["Id"] for row in products if price in row["Prices"]}
        known = {None: of_group, "price": owners, "one": {one["Id"]}, "all": {row["Id"] for row in products}}
        assert found == known.get(expected, set()), written


@pytest.mark.parametrize("written", ["$root/Nothing(1) eq null", "PartNumber in Active", "PartNumber in @p"])
def test_what_in_and_root_cannot_mean_is_refused(products: list[Row], ask: Ask, written: str) -> None:
    with pytest.raises((errors.BadRequest, errors.NotFound)):
        ask(SET, f"$filter={written}")


@quietly
@given(predicate=predicates())
def test_a_value_that_is_computed_is_the_one_that_filters(products: list[Row], ask: Ask, predicate: Node) -> None:
    body = ask(SET, f"$select=Id,X&$compute={predicate.text()} as X")
    expected = {row["Id"]: predicate.of({"": row}) for row in products}
    assert {row["Id"]: row["X"] for row in body["value"]} == expected


@quietly
@given(predicate=predicates(), keys=orders(), size=st.integers(1, 15), top=st.none() | st.integers(0, 45))
def test_pages_together_are_the_ordered_set(
    products: list[Row], ask: Ask, predicate: Node, keys: list[tuple[Node, bool]], size: int, top: int | None
) -> None:
    options = f"$select=Id&$filter={predicate.text()}"
    if keys:
        options += f"&$orderby={orderby(keys)}"
    if top is not None:
        options += f"&$top={top}"
    seen: list[str] = []
    token = ""
    for _ in range(len(products) + 2):
        body = ask(SET, f"{options}&$skiptoken={token}" if token else options, max_page_size=size, base_path="x")
        assert len(body["value"]) <= size
        seen += [row["Id"] for row in body["value"]]
        if "@odata.nextLink" not in body:
            break
        token = unquote(body["@odata.nextLink"].partition("$skiptoken=")[2])
    else:
        pytest.fail("paging does not end")
    expected = ordered(matching(products, predicate), keys)[:top]
    assert seen == [row["Id"] for row in expected]


@quietly
@given(keys=orders(), skip=st.integers(0, 45), top=st.integers(0, 45))
def test_skip_and_top_cut_the_ordered_set(
    products: list[Row], ask: Ask, keys: list[tuple[Node, bool]], skip: int, top: int
) -> None:
    options = f"$select=Id&$skip={skip}&$top={top}" + (f"&$orderby={orderby(keys)}" if keys else "")
    body = ask(SET, options)
    assert [row["Id"] for row in body["value"]] == [row["Id"] for row in ordered(products, keys)[skip : skip + top]]
