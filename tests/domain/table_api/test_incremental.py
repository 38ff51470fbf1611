"""The documented calls of tools for business intelligence, as these send them, and filters that indexes answer."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from django.db import connection

from domain.syntax import parse_query_options
from domain.table_api import planning
from domain.table_api.catalogue import tables as catalogue
from tests.domain.table_api.conftest import ROOT, Tables, body_of
from tests.rules.cast import World, dataset, new_line, new_order

LINES, DOCUMENTS = "Crm_Sales_Order_Lines", "Gen_Documents"
_DATE = "Sales_Order_Reference/Document_Reference/Document_Date"


@pytest.fixture
def lines(world: World) -> dict[int, str]:
    """Year → guid of the only line of an order of that year."""
    ds, found = dataset(world.context), {}
    for year in (2022, 2023, 2024):
        order = new_order(ds, world, DocumentNo=str(year), DocumentDate=datetime.date(year, 5, 1))
        found[year] = new_line(ds, world, order).id
    ds.commit()
    return found


def web_contents(tables: Tables, path: str, query: dict[str, str], *, plus: bool) -> list[dict[str, Any]]:
    """Power Query's Web.Contents: RelativePath and Query, whose values it encodes with + or %20 for a space."""
    encode = quote_plus if plus else quote
    pairs = "&".join(f"{encode(name)}={encode(value)}" for name, value in query.items())
    headers = {"Authorization": f"Bearer {tables.token}", "Accept": "*/*"}
    answer = tables.client.get(f"{ROOT}{path}?{pairs}", headers=headers)
    assert answer.status_code == 200, body_of(answer)
    rows: list[dict[str, Any]] = json.loads(body_of(answer))["value"]
    return rows


@pytest.mark.parametrize("plus", [True, False])
def test_web_contents_reads_a_range(tables: Tables, lines: dict[int, str], plus: bool) -> None:
    query = {
        "$select": "Id, Sales_Order_Id, Quantity_Value",
        "$filter": f"Sales_Order_Reference/Document_Reference/Void eq false and {_DATE} ge 2023-01-01T00:00:00Z"
        f" and {_DATE} lt 2024-01-01T00:00:00Z",
        "$top": "500000000",
    }
    (row,) = web_contents(tables, LINES, query, plus=plus)
    assert (row["Id"], list(row)) == (lines[2023], ["Id", "Sales_Order_Id", "Quantity_Value"])


def test_web_contents_reads_lists(tables: Tables, lines: dict[int, str]) -> None:
    any_of = " or ".join(f"{_DATE.replace('Date', 'No')} eq '{year}'" for year in (2022, 2024))
    for condition in (f"({any_of})", f"{_DATE.replace('Date', 'No')} in ('2022', '2024')"):
        rows = web_contents(tables, LINES, {"$filter": condition, "$top": "500000000"}, plus=True)
        assert {row["Id"] for row in rows} == {lines[2022], lines[2024]}, condition


def test_odata_feed_walks_from_the_service_document(tables: Tables, lines: dict[int, str]) -> None:
    """OData.Feed with Implementation 2.0: the service document, $metadata, and rows by folded options."""
    headers = {
        "Authorization": f"Bearer {tables.token}", "OData-MaxVersion": "4.0", "MaxDataServiceVersion": "3.0",
        "Accept": "application/json;odata.metadata=minimal;q=1.0,application/json;odata=minimalmetadata;q=0.9,"
        "application/atomsvc+xml;q=0.8,application/atom+xml;q=0.8,application/xml;q=0.7,text/plain;q=0.7",
    }  # fmt: skip
    service = json.loads(body_of(tables.client.get(ROOT, headers=headers)))
    (entry,) = [each for each in service["value"] if each["name"] == LINES]
    metadata = tables.client.get(f"{ROOT}$metadata", headers=headers | {"Accept": "application/xml"})
    assert (metadata.status_code, metadata.headers["OData-Version"]) == (200, "4.0")
    answer = tables.client.get(
        f"{ROOT}{entry['url']}?$filter=Line_No%20gt%200&$select=Id%2CLine_No&$top=1000", headers=headers
    )
    body = json.loads(body_of(answer))
    assert answer.headers["OData-Version"] == "4.0"
    assert body["@odata.context"].endswith(f"$metadata#{LINES}(Id,Line_No)")
    assert {row["Id"] for row in body["value"]} == set(lines.values())


_NEWER = "2024-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "table, condition, index",
    [
        (DOCUMENTS, "Document_Date ge 2023-01-01 and Document_Date lt 2024-01-01", "document_date"),
        (DOCUMENTS, f"Aggregate_Last_Update_Time_Utc ge {_NEWER}", "aggregate_last_update_time_utc"),
        ("Gen_Products", f"Aggregate_Last_Update_Time_Utc gt {_NEWER}", "aggregate_last_update_time_utc"),
        ("Gen_Parties", f"Aggregate_Last_Update_Time_Utc gt {_NEWER}", "aggregate_last_update_time_utc"),
    ],
)
def test_ranges_of_dates_and_stamps_are_read_off_an_index(
    world: World, lines: dict[int, str], table: str, condition: str, index: str
) -> None:
    options = parse_query_options(f"$select=Id&$filter={condition}")
    query = planning.plan(catalogue()[table.lower()], options, world.context)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # So few rows are read as a whole unless that is dear.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("EXPLAIN " + query.text, query.parameters)
            told = " ".join(row[0] for row in cursor.fetchall())
        assert re.search(rf"Index Cond: \(+(\w+\.)?{index} ", told.replace('"', "")), told
    else:
        assert connection.connection is not None
        found = connection.connection.execute(f"EXPLAIN QUERY PLAN {query.text}", query.parameters).fetchall()
        told = " ".join(row[3] for row in found)
        assert re.search(rf"SEARCH .*\({index}[<>]", told), told
