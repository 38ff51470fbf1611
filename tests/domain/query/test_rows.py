"""Reads for the platform itself give canonical Python values (foundation.kinds)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Model
from prometheus_client import REGISTRY

from domain.model.registry import repositories
from domain.query import follow, select_ids, select_rows
from domain.query.api import cache
from domain.syntax import parse_boolean_expression
from foundation import errors
from identity.context import CallContext
from tests.domain.query.conftest import Ask
from tests.domain.query.reference import Row

PRODUCTS = repositories["General.Products.Products"]


def test_values_are_canonical(products: list[Row], context: CallContext) -> None:
    names = (
        "Id",
        "PartNumber",
        "Name",
        "Active",
        "GuaranteePeriodDays",
        "MinimalSalesQuantityBase",
        "CreationTime",
        "ABCClass",
    )
    expected = [tuple(row[name] for name in names) for row in products]
    assert select_rows(PRODUCTS, names, ctx=context) == expected


def test_paths_lead_over_references(products: list[Row], context: CallContext) -> None:
    rows = select_rows(
        PRODUCTS, ["ProductGroup.ParentGroup.Code", "CostingCurrency/CurrencySign", "ProductGroup"], ctx=context
    )
    assert rows == [
        (
            row["ProductGroup"]["ParentGroup"] and row["ProductGroup"]["ParentGroup"]["Code"],
            row["CostingCurrency"] and row["CostingCurrency"]["CurrencySign"],
            row["ProductGroup"]["Id"],
        )
        for row in products
    ]


def test_rows_by_keys_in_key_order(products: list[Row], context: CallContext) -> None:
    wanted = [products[5]["Id"], products[2]["Id"], "00000000-0000-0000-0000-000000000000"]
    rows = select_rows(PRODUCTS, ["Id"], ctx=context, ids=wanted)
    assert [row[0] for row in rows] == [products[2]["Id"], products[5]["Id"]]
    assert select_rows(PRODUCTS, ["Id"], ctx=context, ids=[]) == []


def test_filter_as_text_or_tree_with_order_and_limit(products: list[Row], context: CallContext) -> None:
    expected = sorted((row["PartNumber"] for row in products if row["Active"]), reverse=True)[:3]
    for condition in ("Active eq true", parse_boolean_expression("Active")):
        rows = select_rows(PRODUCTS, ["PartNumber"], ctx=context, filter=condition, orderby="PartNumber desc", limit=3)
        assert [row[0] for row in rows] == expected


def test_display_texts_and_measures(products: list[Row], context: CallContext) -> None:
    prices = repositories["Crm.Pricing.ProductPrices"]
    rows = select_rows(prices, ["Price", "Price/Currency", "Product.DisplayText", "FromDate"], ctx=context, limit=5)
    expected = [price for product in products for price in product["Prices"]][:5]
    assert [(row[0], row[1], row[3]) for row in rows] == [
        (price["Price"], price["Currency"]["CurrencySign"], price["FromDate"]) for price in expected
    ]
    names = [price["Product"]["Name"] for price in expected]
    assert [row[2] for row in rows] == [name.get("EN", next(iter(name.values()))) for name in names]


def test_where_references_lead(products: list[Row], context: CallContext) -> None:
    row = products[0]
    assert follow(PRODUCTS, row["Id"], ("ProductGroup",), context) == (
        "General.Products.ProductGroups",
        row["ProductGroup"]["Id"],
    )
    assert follow(PRODUCTS, row["Id"], (), context) == ("General.Products.Products", row["Id"])
    without = next(each for each in products if each["CostingCurrency"] is None)
    assert follow(PRODUCTS, without["Id"], ("CostingCurrency",), context) is None
    with pytest.raises(errors.BadRequest):
        follow(PRODUCTS, row["Id"], ("PartNumber",), context)


def test_reads_of_one_shape_share_a_plan(products: list[Row], context: CallContext) -> None:
    def asked(outcome: str) -> float:
        return REGISTRY.get_sample_value("platform_query_plans_total", {"outcome": outcome}) or 0

    made, found = asked("made"), asked("found")
    for number in range(10):
        select_ids(PRODUCTS, ctx=context, filter=f"PartNumber eq '{number}'")
    assert (asked("made") - made, asked("found") - found) == (1, 9)


def test_a_read_makes_no_model_instances(
    products: list[Row], ask: Ask, context: CallContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (
        "$count=true&$filter=Prices/any(p:p/Price gt 1)&$orderby=Name,ProductGroup/Code",
        "$expand=ProductGroup($expand=ParentGroup),Prices($expand=Currency;$top=1;$count=true)",
        "$apply=groupby((ProductGroup/Code),aggregate($count as N))",
        "$select=*",
    )
    for options in asked:
        ask(PRODUCTS.set_name, options)  # what belongs to the plan: definitions of custom properties, cache versions

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a model instance was made")

    monkeypatch.setattr(Model, "__init__", refuse)
    for options in asked:
        assert ask(PRODUCTS.set_name, options)["value"]


def test_decimals_finer_than_any_attribute_stay_exact(products: list[Row], context: CallContext) -> None:
    zero = {row["Id"] for row in products if row["ScrapRate"] == 0}
    assert set(select_ids(PRODUCTS, ctx=context, filter="ScrapRate lt 0.0000005")) == zero
    assert set(select_ids(PRODUCTS, ctx=context, filter="ScrapRate add 0.0000005 eq 0.0000005")) == zero
    assert select_ids(PRODUCTS, ctx=context, filter="ScrapRate eq 0.0000005") == []


def test_dates_in_display_texts_follow_the_language(products: list[Row], context: CallContext) -> None:
    prices = repositories["Crm.Pricing.ProductPrices"]
    price = next(each for row in products for each in row["Prices"] if each["FromDate"] is not None)
    day = price["FromDate"]
    for language, written in (("en", f"{day.month}/{day.day}/{day.year}"), ("bg", f"{day:%d.%m.%Y}"), ("xx", f"{day}")):
        rows = select_rows(prices, ["DisplayText"], ctx=context.with_(language=language), ids=[price["Id"]])
        assert rows[0][0].endswith(f" - {written}")


def test_very_long_lists_are_answered_but_not_kept(products: list[Row], context: CallContext) -> None:
    wanted = ",".join(f"'{row['PartNumber']}'".replace("it's", "it''s") for row in products)
    others = ",".join(f"'none{number}'" for number in range(1000))
    before = len(cache.plans)
    assert len(select_ids(PRODUCTS, ctx=context, filter=f"PartNumber in ({wanted},{others})")) == len(products)
    assert len(cache.plans) == before
