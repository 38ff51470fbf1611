"""$metadata describes every table, validly."""

from __future__ import annotations

import pytest
from django.test import Client
from lxml import etree

from domain.table_api.catalogue import tables as catalogue
from tests.domain.security.conftest import caller, give_role, person
from tests.domain.table_api.conftest import Tables, body_of, tables_of
from tests.support.standards import standard_file

_EDM = "{http://docs.oasis-open.org/odata/ns/edm}"


def test_it_is_valid_against_the_oasis_schemas(tables: Tables) -> None:
    validator = etree.XMLSchema(etree.parse(str(standard_file("edmx.xsd"))))
    validator.assertValid(etree.fromstring(body_of(tables.get("$metadata"))))


def test_it_has_every_table_with_its_stored_columns(tables: Tables) -> None:
    answer = tables.get("$metadata")
    assert answer.headers["Content-Type"] == "application/xml;charset=utf-8"
    types = {node.get("Name"): node for node in etree.fromstring(body_of(answer)).iter(f"{_EDM}EntityType")}
    assert types.keys() == {table.name for table in catalogue().values()}
    for table in catalogue().values():
        declared = [node.get("Name") for node in types[table.name].iter(f"{_EDM}Property")]
        assert declared == [column.name for column in table.columns.values() if not column.on_demand]
    again = tables.get("$metadata", If_None_Match=answer.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.usefixtures("world")
def test_it_has_only_what_the_caller_may_read(client: Client) -> None:
    bob = person("bob")
    give_role(bob, {"General.Currencies.Currencies": "r"})
    tables = tables_of(caller(bob))
    assert [entry["name"] for entry in tables.read("")["value"]] == ["Gen_Currencies", "Gen_Property_Values"]
    types = etree.fromstring(body_of(tables.get("$metadata"))).iter(f"{_EDM}EntityType")
    assert [node.get("Name") for node in types] == ["Gen_Currencies", "Gen_Property_Values"]
