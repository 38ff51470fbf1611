"""A custom property that is marked as indexed has an index that queries use; one that is searchable is searched."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.entities.general_products import Product
from tests.domain.odata.test_custom_properties_end_to_end import DEFINITIONS, define, look_again
from tests.domain.odata.test_custom_property_types import new_product
from tests.domain.odata.test_writing import PRODUCTS
from tests.domain.query.conftest import reads
from tests.rules.cast import World
from tests.support.api import Api

__all__ = ["look_again"]


def plan(api: Api, options: str) -> str:
    """What the database does for a page of products."""
    query = f"{PRODUCTS}?{options}"
    api.read(query)
    with CaptureQueriesContext(connection) as captured:
        api.read(query)
    statement = next(text for text in reads(captured) if re.search(r"FROM \"domain_product\"", text))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Of a few rows it would read all before it opens an index.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}")
        else:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def counting(condition: str) -> str:
    return f"$apply=filter(CustomProperty_p {condition})/aggregate($count as N)"


INDEX = r"custom_[0-9a-f]{32}_idx"
ASCENDING = "$select=Id&$top=20&$orderby=CustomProperty_p"


@pytest.mark.parametrize(
    "kind, value, conditions",
    [
        ("Text", "it's 100%", [counting("ge 'i'"), f"{ASCENDING} desc"]),
        ("Number", "10", [counting("gt 9.5"), counting("eq 10"), ASCENDING]),
        ("Date", "2024-02-29", [counting("lt 2025-01-01"), ASCENDING]),
        ("DateTime", "2024-02-29T10:00:00Z", [counting("lt 2025-01-01T00:00:00Z"), f"{ASCENDING} desc"]),
    ],
    ids=["Text", "Number", "Date", "DateTime"],
)
def test_queries_use_the_index(api: Api, world: World, kind: str, value: str, conditions: list[str]) -> None:
    define(api, "p", PropertyType=kind)
    assert api.patch(f"{PRODUCTS}({world.product})", {"CustomProperty_p": value}).status_code == 204
    for condition in conditions:
        assert not re.search(INDEX, plan(api, condition)), condition
    (definition,) = api.read(f"{DEFINITIONS}?$filter=Code eq 'p'")["value"]
    assert api.patch(definition["@odata.id"], {"IsIndexed": True}).status_code == 204
    for condition in conditions:
        shown = plan(api, condition)
        assert re.search(INDEX, shown), (condition, shown)
    assert api.patch(definition["@odata.id"], {"IsActive": False}).status_code == 204
    assert index_names() == []


@pytest.mark.skipif(connection.vendor == "postgresql", reason="PostgreSQL finds equal texts by the index of all values")
def test_equal_texts_are_found_by_it(api: Api, world: World) -> None:
    define(api, "p", IsIndexed=True)
    assert re.search(INDEX, plan(api, counting("eq 'x'")))


def index_names() -> list[str]:
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, Product._meta.db_table)
    return [name for name in constraints if re.fullmatch(INDEX, name)]


@pytest.mark.parametrize("code", ["it's", "100% x", "цвят", "a.b", "$x", "{0}"])
def test_any_code_has_an_index_and_is_found(api: Api, world: World, code: str) -> None:
    from domain.model.custom_properties import PREFIX, escape_code

    define(api, code, IsIndexed=True)
    assert len(index_names()) == 1
    name = PREFIX + escape_code(code)
    assert api.patch(f"{PRODUCTS}({world.product})", {name: "v"}).status_code == 204
    for condition in (f"{name} eq 'v'", f"{name} ge 'v'", f"contains({name},'v')"):
        assert api.get(f"{PRODUCTS}/$count?$filter={quote(condition)}").content == b"1", condition
    (definition,) = api.read(f"{DEFINITIONS}")["value"]
    assert api.delete(definition["@odata.id"]).status_code in (200, 204)
    assert index_names() == []


@pytest.mark.parametrize("searchable", [False, True])
def test_a_searchable_one_is_searched(api: Api, world: World, searchable: bool) -> None:
    values: list[dict[str, Any]] = [
        {"PropertyAllowedValueField": "r", "Description": {"EN": "Crimson", "BG": "Червен"}}
    ]
    define(api, "colour", IsSearchable=searchable, AllowedValues=values)
    define(api, "serial", IsSearchable=searchable, PropertyType="Number")
    product = new_product(api, world, CustomProperty_colour="r", CustomProperty_serial=88123)
    for word in ("crimson", "червен", "88123"):
        found = api.read(f"{PRODUCTS}?$search={quote(word)}")["value"]
        assert [each["@odata.id"] for each in found] == ([product] if searchable else []), word
