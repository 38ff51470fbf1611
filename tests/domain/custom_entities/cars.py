"""Definitions that the tests of custom entities use."""

from __future__ import annotations

from typing import Any

ENTITIES = "Systems_Bpm_CustomEntities"
CARS = "Custom_Fleet_Cars"

#: One attribute of every type.
CAR: dict[str, Any] = {
    "Name": "Custom.Fleet.Cars",
    "CodeAttribute": "Code",
    "NameAttribute": "Title",
    "DisplayFormat": "{Code} {Title:T}",
    "UniqueConstraints": "Brand, Built",
    "TrackChanges": True,
    "Attributes": [
        {"Name": "Code", "AttributeType": "Text", "MaxLength": 10, "Required": True, "IsUnique": True},
        {"Name": "Title", "AttributeType": "MultilanguageText"},
        {"Name": "Brand", "AttributeType": "Text", "MaxLength": 30, "IsIndexed": True},
        {"Name": "Doors", "AttributeType": "Integer", "DefaultValue": "4"},
        {"Name": "Consumption", "AttributeType": "Decimal", "DecimalPlaces": 2},
        {"Name": "Currency", "AttributeType": "Reference", "TargetRepository": "General.Currencies.Currencies"},
        {"Name": "Price", "AttributeType": "Amount", "MeasureReference": "Currency"},
        {"Name": "Unit", "AttributeType": "Reference", "TargetRepository": "General.Products.MeasurementUnits"},
        {"Name": "Load", "AttributeType": "Quantity", "MeasureReference": "Unit"},
        {"Name": "Built", "AttributeType": "Date"},
        {"Name": "SeenAt", "AttributeType": "DateTime"},
        {"Name": "Electric", "AttributeType": "Boolean", "DefaultValue": "false", "Required": True},
        {"Name": "Tag", "AttributeType": "Guid"},
        {"Name": "Photo", "AttributeType": "Picture"},
        {"Name": "Fuel", "AttributeType": "Enumeration", "EnumMembers": "Petrol; Diesel; LiquidGas = 10"},
        {"Name": "Replaces", "AttributeType": "Reference", "TargetRepository": "Custom.Fleet.Cars"},
    ],
}


def attribute(name: str, type_: str = "Text", **others: Any) -> dict[str, Any]:
    """An attribute of a definition."""
    return {"Name": name, "AttributeType": type_, **others}


def entity(name: str, *attributes: dict[str, Any], **others: Any) -> dict[str, Any]:
    """A definition."""
    return {"Name": name, "Attributes": list(attributes), **others}
