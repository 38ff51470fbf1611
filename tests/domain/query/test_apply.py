"""$apply compared with plain Python over the same rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.model.registry import repositories
from domain.query import count
from domain.syntax import parse_query_options
from foundation import errors
from identity.context import CallContext
from tests.domain.query.conftest import Ask, reads
from tests.domain.query.reference import Row

SET, PRICES = "General_Products_Products", "Crm_Pricing_ProductPrices"


def grouped(rows: list[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by key."""
    made: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        made[key(row)].append(row)
    return made


def prices_of(products: list[Row]) -> list[Row]:
    """All prices."""
    return [price for product in products for price in product["Prices"]]


def number(value: Any) -> Decimal | None:
    """A JSON number, exactly as written."""
    return None if value is None else Decimal(str(value))


def test_groups_count_and_aggregate(products: list[Row], ask: Ask) -> None:
    sums = "MinimalSalesQuantityBase with sum as S,MinimalSalesQuantityBase with min as Low"
    others = "$count as N,ScrapRate with max as High,PartNumber with countdistinct as D"
    body = ask(SET, f"$apply=groupby((ABCClass),aggregate({sums},{others}))")
    expected = grouped(products, lambda row: row["ABCClass"])
    assert {row["ABCClass"] for row in body["value"]} == set(expected)
    for row in body["value"]:
        rows = expected[row["ABCClass"]]
        known = [each["MinimalSalesQuantityBase"] for each in rows if each["MinimalSalesQuantityBase"] is not None]
        assert row["N"] == len(rows)
        assert number(row["S"]) == (sum(known) if known else None)
        assert number(row["Low"]) == min(known, default=None)
        assert number(row["High"]) == max(each["ScrapRate"] for each in rows)
        assert row["D"] == len({each["PartNumber"] for each in rows})


def test_grouping_by_paths_and_references_nests(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$apply=groupby((ProductGroup/ParentGroup/Code,CostingCurrency),aggregate($count as N))")
    expected = grouped(
        products,
        lambda row: (
            row["ProductGroup"]["ParentGroup"] and row["ProductGroup"]["ParentGroup"]["Code"],
            row["CostingCurrency"] and row["CostingCurrency"]["Id"],
        ),
    )
    assert body["@odata.context"].endswith(
        "#General_Products_Products(ProductGroup(ParentGroup(Code)),CostingCurrency,N)"
    )
    found = {}
    for row in body["value"]:
        link = row["CostingCurrency"]
        key = link["Id"] if link is not None else None
        assert link == (key and {"@odata.id": f"General_Currencies_Currencies({key})", "Id": key})
        found[row["ProductGroup"]["ParentGroup"]["Code"], key] = row["N"]
    assert found == {key: len(rows) for key, rows in expected.items()}


@pytest.mark.parametrize(
    "written", ["CostingCurrency,CostingCurrency/CurrencySign", "CostingCurrency/CurrencySign,CostingCurrency"]
)
def test_a_reference_and_what_is_behind_it_are_one_object(products: list[Row], ask: Ask, written: str) -> None:
    rows = ask(SET, f"$apply=groupby(({written}),aggregate($count as N))")["value"]
    expected = {
        (row["CostingCurrency"] or {}).get("Id"): (row["CostingCurrency"] or {}).get("CurrencySign") for row in products
    }
    found = [row["CostingCurrency"] for row in rows]
    assert {each.get("Id"): each["CurrencySign"] for each in found} == expected
    links = {each["@odata.id"] for each in found if "@odata.id" in each}
    assert links == {f"General_Currencies_Currencies({key})" for key in expected if key is not None}
    texts = ask(SET, "$apply=groupby((Name/EN,Name),aggregate($count as N))")["value"]
    assert sum(row["N"] for row in texts) == len(products)
    assert all("EN" in row["Name"] or len(row["Name"]) for row in texts)


def test_amounts_are_kept_apart_by_their_currency(products: list[Row], ask: Ask) -> None:
    body = ask(PRICES, "$apply=groupby((IsActive),aggregate(Price with sum as Total))")
    expected = grouped(prices_of(products), lambda row: (row["IsActive"], row["Currency"]["CurrencySign"]))
    found = {(row["IsActive"], row["Total"]["Currency"]): number(row["Total"]["Value"]) for row in body["value"]}
    assert found == {key: sum(row["Price"] for row in rows) for key, rows in expected.items()}
    bare = ask(PRICES, "$apply=aggregate(PriceValue with sum as Total)")["value"]
    assert number(bare[0]["Total"]) == sum(row["Price"] for row in prices_of(products))


def test_averages_ignore_null(products: list[Row], ask: Ask) -> None:
    row = ask(SET, "$apply=aggregate(GuaranteePeriodDays with average as A)")["value"][0]
    known = [each["GuaranteePeriodDays"] for each in products if each["GuaranteePeriodDays"] is not None]
    assert row["A"] == pytest.approx(sum(known) / len(known), abs=1e-9)


def test_filters_before_and_behind_a_grouping(products: list[Row], ask: Ask) -> None:
    apply = (
        "filter(Active)/groupby((ProductGroup/Code),aggregate($count as N))/filter(N gt 1)/compute(N mul 2 as Twice)"
    )
    body = ask(SET, f"$apply={apply}&$filter=Twice lt 100&$orderby=N desc,ProductGroup/Code&$count=true")
    expected = grouped([row for row in products if row["Active"]], lambda row: row["ProductGroup"]["Code"])
    counted = sorted(((-len(rows), code) for code, rows in expected.items() if len(rows) > 1))
    assert [(-row["N"], row["ProductGroup"]["Code"]) for row in body["value"]] == counted
    assert [row["Twice"] for row in body["value"]] == [-2 * n for n, _ in counted]
    assert body["@odata.count"] == len(counted)


def test_a_filter_that_names_what_only_the_entities_have_is_asked_before(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$apply=groupby((ABCClass),aggregate($count as N))&$filter=GuaranteePeriodDays gt 300")
    kept = [row for row in products if (row["GuaranteePeriodDays"] or 0) > 300]
    assert {row["ABCClass"]: row["N"] for row in body["value"]} == {
        key: len(rows) for key, rows in grouped(kept, lambda row: row["ABCClass"]).items()
    }
    for wrong in ("GuaranteePeriodDays gt N", "Nothing eq 1", "N gt 1 and Nothing eq 1"):
        with pytest.raises(errors.BadRequest):
            ask(SET, f"$apply=groupby((ABCClass),aggregate($count as N))&$filter={wrong}")


def test_month_of_a_date(products: list[Row], ask: Ask) -> None:
    body = ask(PRICES, "$apply=groupby((yearmonth(FromDate)),aggregate($count as N))")
    expected = grouped(prices_of(products), lambda row: row["FromDate"] and f"{row['FromDate']:%Y-%m}")
    assert {row["yearmonth"]: row["N"] for row in body["value"]} == {key: len(rows) for key, rows in expected.items()}


def test_collections_are_aggregated_for_each_row(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$apply=groupby((ABCClass),aggregate(Prices/$count as N,Prices/PriceValue with max as M))")
    for row in body["value"]:
        rows = [price for product in products if product["ABCClass"] == row["ABCClass"] for price in product["Prices"]]
        assert row["N"] == len(rows)
        assert number(row["M"]) == max((price["Price"] for price in rows), default=None)


def test_the_greatest_and_the_least(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$apply=topcount(3,GuaranteePeriodDays)&$select=GuaranteePeriodDays")
    known = sorted(
        (row["GuaranteePeriodDays"] for row in products if row["GuaranteePeriodDays"] is not None), reverse=True
    )
    assert sorted((row["GuaranteePeriodDays"] for row in body["value"]), reverse=True) == known[:3]
    groups = ask(SET, "$apply=groupby((ProductGroup/Code),aggregate($count as N))/bottomcount(2,N)")["value"]
    sizes = sorted(len(rows) for rows in grouped(products, lambda row: row["ProductGroup"]["Code"]).values())
    assert sorted(row["N"] for row in groups) == sizes[:2]


def test_rows_stay_entities_until_they_are_grouped(products: list[Row], ask: Ask) -> None:
    apply = "filter(Active)/orderby(PartNumber desc)/top(3)/compute(1 add 1 as Two)"
    body = ask(SET, f"$apply={apply}&$select=Id,Two&$expand=Prices($select=Id)")
    active = sorted((row for row in products if row["Active"]), key=lambda row: row["PartNumber"], reverse=True)[:3]
    assert [row["Id"] for row in body["value"]] == [row["Id"] for row in active]
    assert [len(row["Prices"]) for row in body["value"]] == [len(row["Prices"]) for row in active]
    assert all(row["Two"] == 2 for row in body["value"])


def test_concatenation_and_rollup(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$apply=concat(top(2),aggregate($count as N))&$count=true")
    assert [row.get("N") for row in body["value"]] == [None, None, len(products)]
    assert body["@odata.count"] == 3
    rows = ask(SET, "$apply=groupby((rollup(ABCClass,Active)),aggregate($count as N))")["value"]
    whole = grouped(products, lambda row: (row["ABCClass"], row["Active"]))
    sums = grouped(products, lambda row: (row["ABCClass"], None))
    assert {(row["ABCClass"], row["Active"]): row["N"] for row in rows} == {
        key: len(each) for key, each in {**whole, **sums}.items()
    }


def test_a_concatenation_may_end_in_another(products: list[Row], ask: Ask) -> None:
    groups = "groupby((ABCClass),aggregate($count as N))/orderby(ABCClass)"
    body = ask(
        SET,
        f"$apply=filter(Active)/concat(aggregate($count as All),{groups}/concat(aggregate($count as Groups),top(2)))",
    )
    active = [row for row in products if row["Active"]]
    sizes = {name: len(rows) for name, rows in grouped(active, lambda row: row["ABCClass"]).items()}
    total, number, *first = body["value"]
    assert (total["All"], number["Groups"]) == (len(active), len(sizes))
    assert {row["ABCClass"]: row["N"] for row in first}.items() <= sizes.items()
    assert len(first) == min(2, len(sizes))
    deep = ask(SET, "$apply=concat(concat(concat(top(1),top(1)),top(1)),concat(top(1),aggregate($count as N)))&$top=5")
    assert [row.get("N") for row in deep["value"]] == [None] * 4 + [len(products)]


def test_groups_can_be_expanded(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$apply=groupby((ProductGroup),aggregate($count as N))/expandgroup=ProductGroup($select=Code)")
    expected = {code: len(rows) for code, rows in grouped(products, lambda row: row["ProductGroup"]["Code"]).items()}
    assert {row["ProductGroup"]["Code"]: row["N"] for row in body["value"]} == expected
    beside = ask(SET, "$apply=groupby((ProductGroup),aggregate($count as N))&expandgroup=ProductGroup($select=Code)")
    assert beside == body


def test_groups_are_paged_in_a_total_order(products: list[Row], ask: Ask) -> None:
    options = "$apply=groupby((PartNumber,ABCClass))&$orderby=ABCClass desc"
    everything = ask(SET, options)["value"]
    seen: list[Any] = []
    token = ""
    while True:
        body = ask(SET, f"{options}&$skiptoken={token}" if token else options, max_page_size=7)
        seen += body["value"]
        if "@odata.nextLink" not in body:
            break
        token = unquote(body["@odata.nextLink"].partition("$skiptoken=")[2])
    assert seen == everything


def leading(rows: list[Row], name: str, amount: Decimal, value: Callable[[Row], Decimal | None]) -> list[Any]:
    """Keys of the first rows whose sum reaches the amount, or percentage of the whole, in their order."""
    known = [(each, row["Id"]) for row in rows if (each := value(row)) is not None]
    ordered = sorted(known, key=lambda pair: (-pair[0] if name.startswith("top") else pair[0], pair[1]))
    limit = sum(pair[0] for pair in known) * amount / 100 if name.endswith("percent") else amount
    found: list[Any] = []
    total = Decimal(0)
    for each, id in ordered:
        if total >= limit:
            break
        found.append(id)
        total += each
    return found


@pytest.mark.parametrize("name", ["topsum", "bottomsum", "toppercent", "bottompercent"])
@pytest.mark.parametrize("amount", ["0.5", "10", "55.5", "100"])
@pytest.mark.parametrize("minus", [0, 2])
def test_entities_that_make_up_a_share(products: list[Row], ask: Ask, name: str, amount: str, minus: int) -> None:
    """Also where values are below zero."""

    def value(row: Row) -> Decimal | None:
        stored = row["MinimalSalesQuantityBase"]
        return None if stored is None else stored - minus

    expected = leading(products, name, Decimal(amount), value)
    rank = f"{name}({amount},MinimalSalesQuantityBase sub {minus})"
    assert len(expected) < len(products)
    body = ask(SET, f"$apply={rank}&$select=Id&$count=true")
    assert [row["Id"] for row in body["value"]] == expected
    assert body["@odata.count"] == len(expected)
    grouped_body = ask(SET, f"$apply={rank}/groupby((ABCClass),aggregate($count as N))")
    classes = grouped([row for row in products if row["Id"] in expected], lambda row: row["ABCClass"])
    assert {row["ABCClass"]: row["N"] for row in grouped_body["value"]} == {
        key: len(rows) for key, rows in classes.items()
    }


def test_a_share_of_what_is_left_of_a_set(products: list[Row], ask: Ask) -> None:
    """Behind a filter and a limit, before both, and with paging."""
    quantity = "MinimalSalesQuantityBase"

    def value(row: Row) -> Decimal | None:
        known: Decimal | None = row[quantity]
        return known

    active = [row for row in products if row["Active"]]
    expected = leading(active, "toppercent", Decimal(40), value)
    body = ask(SET, f"$apply=filter(Active)/toppercent(40,{quantity})&$select=Id&$orderby=Id")
    assert [row["Id"] for row in body["value"]] == sorted(expected)
    everything = leading(products, "toppercent", Decimal(40), value)
    body = ask(SET, f"$apply=toppercent(40,{quantity})/filter(Active)/aggregate($count as N)")
    assert body["value"][0]["N"] == len({row["Id"] for row in active} & set(everything))
    first = sorted(products, key=lambda row: row["Id"])[:10]
    body = ask(SET, f"$apply=orderby(Id)/top(10)/topsum(20,{quantity})&$select=Id")
    assert [row["Id"] for row in body["value"]] == leading(first, "topsum", Decimal(20), value)


def test_counting_and_the_number_of_queries(products: list[Row], ask: Ask, context: CallContext) -> None:
    repository = repositories["General.Products.Products"]
    options = parse_query_options("$apply=groupby((ProductGroup/Code))")
    assert count(repository, options, context) == len(grouped(products, lambda row: row["ProductGroup"]["Code"]))
    with CaptureQueriesContext(connection) as captured:
        ask(SET, "$apply=groupby((ProductGroup),aggregate(Prices/$count as N))")
    assert len(reads(captured)) == 1


@pytest.mark.parametrize(
    "apply, named",
    [
        ("ancestors($root/X,Q,Id,filter(Active))", "ancestors"),
        ("join(Prices as P)", "join"),
        ("nest(groupby((ABCClass)) as G)", "nest"),
        ("aggregate(Prices/PriceValue with average as A)", "average"),
        ("aggregate(PartNumber with Custom.method as A)", "Custom.method"),
    ],
)
def test_what_is_not_offered_is_named(products: list[Row], ask: Ask, apply: str, named: str) -> None:
    with pytest.raises(errors.NotSupported) as failure:
        ask(SET, f"$apply={apply}")
    assert named.lower() in str(failure.value).lower()


@pytest.mark.parametrize("apply", ["aggregate(PartNumber with sum as S)", "groupby((Nothing))", "filter(PartNumber)"])
def test_what_cannot_be_is_refused(products: list[Row], ask: Ask, apply: str) -> None:
    with pytest.raises(errors.BadRequest):
        ask(SET, f"$apply={apply}")


def test_decimals_of_sums_are_exact(products: list[Row], ask: Ask) -> None:
    body = ask(SET, "$apply=aggregate(ScrapRate with sum as S)")
    assert orjson.dumps(body["value"][0]["S"]).decode() == f"{sum(row['ScrapRate'] for row in products).normalize():f}"
