"""Tables and columns have the names of the reference model, where that is a fact (spec 11, 11.1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from domain.model.registry import repositories
from domain.table_api.catalogue import PROPERTY_VALUES, table_of
from domain.table_api.catalogue import tables as catalogue
from domain.table_api.names import split_at_capitals
from domain.table_api.table_query import ColumnType
from tests.domain.table_api.conftest import Tables

#: Repository → table, where the reference model says it.
FACTS: dict[str, str] = json.loads((Path(__file__).parent / "table_names.json").read_text())


@pytest.mark.parametrize(
    "name, split",
    [
        ("SalesOrderId", "Sales_Order_Id"), ("DocumentDate", "Document_Date"), ("Id", "Id"),
        ("AllowedValuesFilterXML", "Allowed_Values_Filter_XML"), ("VATNumber", "VAT_Number"),
        ("AggregateLastUpdateTimeUtc", "Aggregate_Last_Update_Time_Utc"), ("Parameter1Type", "Parameter1_Type"),
    ],
)  # fmt: skip
def test_names_are_split_at_capitals(name: str, split: str) -> None:
    assert split_at_capitals(name) == split


@pytest.mark.django_db
def test_every_repository_has_its_table_by_the_name_that_the_model_gives() -> None:
    for repository in repositories:
        assert table_of(repository).name == FACTS.get(repository.name, repository.entity_name)
    assert PROPERTY_VALUES in {table.name for table in catalogue().values()}


@pytest.mark.django_db
def test_no_two_columns_or_references_of_a_table_have_one_name() -> None:
    for table in catalogue().values():
        lowered = [name.lower() for name in (*table.columns, *table.references)]
        assert len(lowered) == len(set(lowered)), table.name


@pytest.mark.django_db
def test_a_derived_table_has_its_own_columns_and_the_key() -> None:
    orders = table_of(repositories["Crm.Sales.SalesOrders"])
    assert {"Id", "Document_Id", "Customer_Id"} <= orders.columns.keys()
    assert not {"Document_Date", "Document_No", "Void"} & orders.columns.keys()
    assert {"Document_Date", "Document_No", "Void"} <= table_of(
        repositories["General.Documents.Documents"]
    ).columns.keys()
    assert orders.references["Document_Reference"].path == ()


@pytest.mark.django_db
def test_columns_have_the_form_in_which_values_are_stored() -> None:
    lines = table_of(repositories["Crm.Sales.SalesOrderLines"]).columns
    assert lines["Sales_Order_Id"].type is ColumnType.GUID
    assert lines["Quantity_Value"].type is ColumnType.DECIMAL
    assert {"Quantity_Unit_Id", "Unit_Price_Value", "Unit_Price_Currency_Id"} <= lines.keys()
    products = table_of(repositories["General.Products.Products"]).columns
    assert (products["Name"].type, products["Name_EN"].on_demand) == (ColumnType.JSON, True)
    assert table_of(repositories["General.Documents.Documents"]).columns["State"].type is ColumnType.INTEGER


@pytest.mark.django_db
def test_secrets_have_no_column() -> None:
    secret = [(table_of(r), a) for r in repositories for a in r.attributes.values() if a.secret]
    assert secret
    for table, attribute in secret:
        assert table.column(split_at_capitals(attribute.name)) is None


def test_every_table_and_column_can_be_read(tables: Tables, subtests: pytest.Subtests) -> None:
    for table in catalogue().values():
        with subtests.test(table.name):
            tables.rows(table.name)
            select = ", ".join(table.columns)
            answer = tables.read(f"{table.name}?$select={select}&$top=500000000&$count=true")
            assert len(answer["value"]) == answer["@odata.count"]
            assert all(list(row) == list(table.columns) for row in answer["value"])
            order = next(name for name in table.columns if name.endswith("Id"))
            tables.rows(f"{table.name}?$orderby={order} desc&$top=1")
