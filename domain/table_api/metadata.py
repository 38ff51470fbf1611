"""$metadata and the service document: the tables that the caller may read, with all their columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from domain.odata.metadata.csdl_xml import Node, to_xml
from domain.table_api.catalogue import PROPERTY_VALUES, Column, Table
from domain.table_api.table_query import ColumnType

SCHEMA = "Tables"
CONTAINER = "Container"
_KEYS = {PROPERTY_VALUES: ["Entity_Item_Id", "Property_Id"]}
_CAPABILITIES = "Org.OData.Capabilities.V1"
_VOCABULARY = f"https://oasis-tcs.github.io/odata-vocabularies/vocabularies/{_CAPABILITIES}"
#: Facets of columns without a fixed scale.
_VARIABLE = {"$Scale": "variable"}


def metadata_xml(tables: Iterable[Table]) -> bytes:
    """CSDL XML 4.0, which every client reads."""
    return to_xml(_tree(list(tables)))


def service_document(tables: Iterable[Table], root: str) -> dict[str, Any]:
    """The tables by name."""
    entries = [{"name": table.name, "kind": "EntitySet", "url": table.name} for table in tables]
    return {"@odata.context": f"{root}$metadata", "value": entries}


def _tree(tables: list[Table]) -> Node:
    schema: Node = {"$Alias": "Self"}
    for table in tables:
        schema[table.name] = _entity_type(table)
    container: Node = {"$Kind": "EntityContainer"}
    for table in tables:
        container[table.name] = {
            "$Collection": True,
            "$Type": f"{SCHEMA}.{table.name}",
            "@Capabilities.InsertRestrictions": {"Insertable": False},
            "@Capabilities.UpdateRestrictions": {"Updatable": False},
            "@Capabilities.DeleteRestrictions": {"Deletable": False},
        }
    schema[CONTAINER] = container
    return {
        "$Version": "4.0",
        "$Reference": {f"{_VOCABULARY}.json": {"$Include": [{"$Namespace": _CAPABILITIES, "$Alias": "Capabilities"}]}},
        "$EntityContainer": f"{SCHEMA}.{CONTAINER}",
        SCHEMA: schema,
    }


def _entity_type(table: Table) -> Node:
    # Columns on demand are not declared, since a response without $select has none of them. The type is open, as
    # these columns and the references of filters are members of it (OData CSDL 4.01, 6.3).
    keys = _KEYS.get(table.name, ["Id"])
    declared = {column.name: _property(column) for column in table.columns.values() if not column.on_demand}
    return {"$Kind": "EntityType", "$Key": keys, "$OpenType": True, **declared}


def _property(column: Column) -> Node:
    # A JSON text is declared as Edm.String: few clients support Edm.Untyped.
    edm = "Edm.String" if column.type is ColumnType.JSON else column.type.value
    node: Node = {"$Type": edm}
    if column.is_nullable:
        node["$Nullable"] = True
    if column.max_length is not None:
        node["$MaxLength"] = column.max_length
    if column.type is ColumnType.DECIMAL:
        node |= {"$Precision": column.precision, "$Scale": column.scale} if column.precision else _VARIABLE
    if column.type is ColumnType.DATETIME:
        node["$Precision"] = 6
    return node
