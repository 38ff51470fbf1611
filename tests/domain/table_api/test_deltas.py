"""Change tracking of tables (spec 02, 2.2, and 11, 11.1)."""

from __future__ import annotations

from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from tests.domain.security.conftest import MARK, Library, administrator, library, restricted
from tests.domain.table_api.conftest import ROOT, Tables, tables_of
from tests.rules.cast import World, dataset, new_order, new_product
from tests.support.api import Api, error_of

__all__ = ["administrator", "library", "restricted"]

# What other transactions see is the point here.
pytestmark = pytest.mark.django_db(transaction=True)

PRODUCTS, TRACK, NEWER = "Gen_Products", "odata.track-changes", {"OData-MaxVersion": "4.01"}


def followed(link: str) -> str:
    return link.partition(ROOT)[2]


def begun(tables: Tables, path: str, **headers: str) -> str:
    """The delta link behind the last page of a tracked read."""
    answer = tables.get(path, Prefer=TRACK, **headers)
    assert TRACK in answer.headers["Preference-Applied"]
    body = tables.read(path, Prefer=TRACK, **headers)
    return followed(body["@odata.deltaLink"])


def told(body: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """(rows, id → reason of those that are gone)."""
    gone = {row["Id"]: row["@removed"]["reason"] for row in body["value"] if "@removed" in row}
    return [row for row in body["value"] if "@removed" not in row], gone


def loaded(ds: Dataset, product: str) -> Record:
    found = ds.load("General.Products.Products", product)
    assert found is not None
    return found


def test_a_delta_has_what_has_changed_since(tables: Tables, world: World) -> None:
    ds = dataset(world.context)
    new_product(ds, world, "X1")
    gone = new_product(ds, world, "X2").id
    ds.commit()
    link = begun(tables, f"{PRODUCTS}?$select=Part_Number&$filter=Part_Number ne 'X4'", **NEWER)
    assert told(tables.read(link, **NEWER)) == ([], {})
    ds = dataset(world.context)
    new_product(ds, world, "X3")
    left = new_product(ds, world, "X4").id
    ds.delete(loaded(ds, gone))
    ds.commit()
    body = tables.read(link, **NEWER)
    assert body["@odata.context"].endswith("/tableapi/odata/$metadata#Gen_Products(Part_Number)/$delta")
    assert told(body) == ([{"Part_Number": "X3"}], {gone: "deleted", left: "changed"})
    assert told(tables.read(followed(body["@odata.deltaLink"]), **NEWER)) == ([], {})
    removed = [row for row in tables.read(link)["value"] if "reason" in row]
    assert {(row["id"], row["reason"]) for row in removed} == {
        (f"{PRODUCTS}({gone})", "deleted"), (f"{PRODUCTS}({left})", "changed"),
    }  # fmt: skip


def test_a_table_of_a_base_has_the_changes_of_all_that_derive_from_it(tables: Tables, world: World) -> None:
    links = {name: begun(tables, name) for name in ("Gen_Documents", "Crm_Sales_Orders", "Gen_Currencies")}
    ds = dataset(world.context)
    order = new_order(ds, world, DocumentNo="D1").id
    ds.commit()
    found = {name: [row["Id"] for row in tables.read(link)["value"]] for name, link in links.items()}
    assert found == {"Gen_Documents": [order], "Crm_Sales_Orders": [order], "Gen_Currencies": []}


def test_pages_keep_the_position_of_the_first(tables: Tables, world: World) -> None:
    path, preferred, pages = f"{PRODUCTS}?$select=Part_Number", f"{TRACK},odata.maxpagesize=1", 0
    ds = dataset(world.context)
    new_product(ds, world, "Y1")
    ds.commit()
    body = tables.read(path, Prefer=preferred)
    while "@odata.nextLink" in body:
        if pages == 0:
            ds = dataset(world.context)
            new_product(ds, world, "Y2")
            ds.commit()
        body = tables.read(followed(body["@odata.nextLink"]), Prefer="odata.maxpagesize=1")
        pages += 1
    assert pages >= 1
    assert tables.rows(followed(body["@odata.deltaLink"])) == [{"Part_Number": "Y2"}]


@pytest.mark.parametrize("query", ["Gen_Property_Values", "Gen_Products?$top=5", "Gen_Products?$format=csv"])
def test_what_cannot_be_tracked_is_read_without_the_preference(tables: Tables, query: str) -> None:
    answer = tables.get(query, Prefer=TRACK)
    assert (answer.status_code, answer.headers.get("Preference-Applied")) == (200, None)


def test_tokens_cannot_be_made_or_used_elsewhere(tables: Tables) -> None:
    token = begun(tables, PRODUCTS).partition("$deltatoken=")[2]
    for path, status, kind in (
        (f"{PRODUCTS}?$deltatoken=x", 400, "InvalidDeltaToken"),
        (f"{PRODUCTS}?$filter=Active eq true&$deltatoken={token}", 400, "InvalidDeltaToken"),
        (f"Gen_Currencies?$deltatoken={token}", 400, "InvalidDeltaToken"),
        (f"Gen_Property_Values?$deltatoken={token}", 501, "NotSupported"),
        (f"{PRODUCTS}?$deltatoken={token}&$format=csv", 501, "NotSupported"),
        (f"{PRODUCTS}?$deltatoken={token}&$top=3", 501, "NotSupported"),
    ):
        answer = tables.get(path)
        assert (answer.status_code, error_of(answer)["type"]) == (status, kind), path


def test_row_policies_hold_in_deltas(library: Library, administrator: Api, restricted: Api) -> None:
    path = "Library_Books?$select=Code,Title"
    mine, theirs = begun(tables_of(restricted), path), begun(tables_of(administrator), path)
    for code, book in library.books.items():
        body = {"Pages": 151 if code == "A1" else 77}
        assert administrator.patch(f"Library_Books({book})", body).status_code == 204
    shown = tables_of(restricted).read(mine, **NEWER)
    assert len(tables_of(administrator).rows(theirs)) == len(library.books)
    assert MARK not in str(shown["value"])
    hidden = {library.books["A3"], library.books["A5"]}
    assert not hidden & {row.get("Id") for row in shown["value"]}
    assert tables_of(restricted).get(theirs).status_code == 410
