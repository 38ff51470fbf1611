"""Pages by an indexed attribute or a reference are read off an index, in the order of the key.

With a million products such a page must cost about what it costs with ten thousand (make bench; bench.scale measures
it). What it depends on is the plan that the database chooses, and that can be asked of a small table too.
"""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.entities.systems_custom_properties import CustomProperty
from foundation import cache_versions
from tests.domain.query.conftest import Ask, english, reads
from tests.domain.query.reference import Row

GUID = "00000000-0000-7000-8000-000000000000"


def plan_of(statement: str) -> str:
    """What the database says it would do."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Of the forty rows that there are it would read all, and sort them, before it opens an index. So it is told
            # of a million (it estimates by the rows to a page that pg_class says), and of an empty table that it was
            # never analyzed, until the test's transaction is rolled back.
            for table in re.findall(r'(?:FROM|JOIN) "(\w+)"', statement):
                cursor.execute(
                    "UPDATE pg_class SET (reltuples, relpages) ="
                    " (SELECT CASE WHEN pg_relation_size(oid) > 0 THEN 1000000 ELSE -1 END,"
                    " CASE WHEN pg_relation_size(oid) > 0 THEN 1 ELSE 0 END) WHERE oid = %s::regclass",
                    [table],
                )
                cursor.execute("DELETE FROM pg_statistic WHERE starelid = %s::regclass", [table])
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
            cursor.execute(f"EXPLAIN {statement}")
        else:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


@pytest.mark.parametrize(
    "set_name, condition, column",
    [
        ("General_Products_Products", f"ProductGroup eq '{GUID}'", "product_group_id"),
        ("General_Products_Products", "PlanningBucket eq 'Week'", "planning_bucket"),
        ("Crm_Pricing_ProductPrices", f"Product eq '{GUID}'", "product_id"),
        ("Crm_Sales_SalesOrders", f"Customer eq '{GUID}'", "customer_id"),
    ],
)
def test_a_page_is_neither_sorted_nor_searched_for(
    products: list[Row], ask: Ask, set_name: str, condition: str, column: str
) -> None:
    with CaptureQueriesContext(connection) as captured:
        ask(set_name, f"$filter={condition}&$select=Id&$top=50")
    (statement,) = reads(captured)
    assert " ORDER BY " in statement
    plan = plan_of(statement)
    assert "Sort" not in plan, plan
    assert "TEMP B-TREE" not in plan, plan
    assert not re.search(r"^SCAN|Seq Scan", plan, re.MULTILINE), plan
    assert re.search(rf"Index Cond: .*\b{column}\b|USING.* INDEX \w+ \({column}=\?", plan), plan


def test_texts_with_a_prefix_are_a_range_of_the_index(products: list[Row], ask: Ask) -> None:
    with CaptureQueriesContext(connection) as captured:
        ask("General_Products_Products", "$filter=startswith(PartNumber,'P1')&$orderby=PartNumber&$select=Id&$top=50")
    plan = plan_of(reads(captured)[-1])
    is_range = r"Index Cond: .*part_number.* >= .*<= |INDEX \w+ \(part_number>\? AND part_number<\?\)"
    assert re.search(is_range, plan), plan
    assert not re.search(r"Sort|TEMP B-TREE|^SCAN|Seq Scan", plan, re.MULTILINE), plan


@pytest.mark.parametrize(
    "apply",
    [
        "groupby((Product),aggregate(LineAmountValue with sum as Total))",
        "groupby((Product),aggregate($count as Number))",
        "groupby((Product),aggregate(QuantityBaseValue with sum as Total))",
        "groupby((SalesOrder/Customer),aggregate(LineAmountValue with sum as Total))",
    ],
)
def test_totals_of_lines_are_read_off_an_index(products: list[Row], ask: Ask, apply: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        ask("Crm_Sales_SalesOrderLines", f"$apply={apply}")
    plan = plan_of(reads(captured)[-1])
    assert re.search(r"t1 USING COVERING INDEX|Index Only Scan using \w+ on domain_salesorderline", plan), plan


def test_what_no_two_rows_share_is_an_order_by_itself(products: list[Row], ask: Ask) -> None:
    def order_of(options: str) -> str:
        with CaptureQueriesContext(connection) as captured:
            ask("General_Products_Products", f"$select=Id&{options}")
        # PostgreSQL is asked before, once in a process, how it sorts texts.
        return reads(captured)[-1].rpartition(" ORDER BY ")[2]

    assert '"id"' not in order_of("$orderby=PartNumber desc,Active")
    assert "active" not in order_of("$orderby=PartNumber desc,Active")
    assert '"id"' in order_of("$orderby=Active")
    # Unique among product groups, not among the products in one.
    assert '"id"' in order_of("$orderby=ProductGroup/Code")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no index of what JSON contains")
def test_custom_properties_are_found_by_an_index(products: list[Row], ask: Ask) -> None:
    CustomProperty.objects.create(
        code="colour", name=english("Colour"), entity_name="General.Products.Products", property_type="Text"
    )
    cache_versions.bump("custom_properties")
    cache_versions.expire()
    query = "$select=Id&$filter=CustomProperty_colour eq 'red'"
    ask("General_Products_Products", query)
    with CaptureQueriesContext(connection) as captured:
        ask("General_Products_Products", query)
    (statement,) = reads(captured)
    with connection.cursor() as cursor:
        # Of forty rows it would read all, and in the order of the key, before it opens this index.
        for way in ("seqscan", "indexscan", "indexonlyscan"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"EXPLAIN {statement}")
        plan = "\n".join(str(row[0]) for row in cursor.fetchall())
    assert "Bitmap Index Scan on domain_product_" in plan, plan
    assert "custom_gin" in plan or "Recheck Cond: ((custom_property_values)::jsonb @>" in plan, plan
