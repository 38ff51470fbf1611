"""Model documents: standardmodel and currentmodel

What BaseInfo says of a member is compared with what the service does with it, and with the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from domain.model.registry import repositories
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import World
from tests.support.api import Api, error_of

# The same on every database.
pytestmark = pytest.mark.once

STANDARD = "/api/domain/standardmodel"
CURRENT = "/api/domain/currentmodel"
ORDERS = "Crm_Sales_SalesOrders"
PRODUCTS = "General_Products_Products"

REPOSITORY = [
    *("Name", "TableName", "RepositoryName", "LocalizedName", "LocalizedDescription", "IsAggregateRoot"),
    *("AggregateParent", "AggregateRoot", "ObjectType", "Category", "UIVisibility"),
]
DETAILS = ["Attributes", "References", "ChildCollections", "Methods"]
ATTRIBUTE = [
    *("Name", "ColumnName", "Type", "LocalizedName", "LocalizedDescription", "IsCustomProperty"),
    *("IsCalculatedDataAttribute", "SupportsAllowedValues", "LimitToAllowedValues", "CategoryId"),
    *("CategoryLocalizedName", "IsBlob", "SupportsSet", "ReadOnly", "IsPersistent", "BaseInfo"),
]
REFERENCE = [
    *("Name", "ColumnName", "Type", "LocalizedName", "LocalizedDescription", "ReferencedEntitySet"),
    *("ReferencedType", "CategoryId", "CategoryLocalizedName", "ReadOnly", "IsOwnership", "IsFilterable"),
    *("IsAggregateParent", "BaseInfo"),
]
CHILD = [
    *("Name", "LocalizedName", "LocalizedDescription", "ReadOnly", "DefaultVisibleIndex", "ChildObjectType"),
    "ChildEntitySet",
]
METHOD = ["Name", "Namespace", "EntitySetPath", "ReturnType", "IsAction", "Parameters"]
BASE_INFO = [
    *("RepositoryName", "LogicalOrder", "Internal", "Nullable", "IsDelayLoading", "Orderable", "Indexed", "MaxLength"),
    *("Precision", "Scale", "DateTimeStorageType", "DateTimeUtc", "SupportedFilters", "IsFilterableReference"),
    *("SecurityCrucial", "AllowTrackChanges", "DefaultValueType", "BaseTableName", "BaseColumnName", "Description"),
    *("DisplayType", "SummaryType", "WidthType", "RequiresUserInput", "Obsolete", "DefaultFormat", "UIVisibility"),
    *("Options", "Subtype", "UnitExpression", "OpenExchangeAttributeName", "ExportInOpenExchange"),
]
VALUES = {
    "SupportedFilters": {"NotFilterable", "Equals", "GreaterThanOrLessThan", "Like", "EqualsIn"},
    "DefaultValueType": {"None", "Constant", "NewGuid", "CurrentDate", "CurrentDateTime", "CurrentDateTimeUtc"},
}
#: A value of each type that a filter may compare with, as the URL has it.
LITERALS = {
    "Edm.Guid": "00000000-0000-0000-0000-000000000001",
    "Edm.String": "'x'",
    "Edm.Int32": "1",
    "Edm.Boolean": "true",
    "Edm.Decimal": "1.5",
    "Erp.Amount": "1.5",
    "Erp.Quantity": "1.5",
    "Edm.Date": "2026-01-02",
    "Edm.DateTimeOffset": "2026-01-02T03:04:05Z",
    "Edm.Binary": "binary'AQID'",
    "Erp.MultilanguageString": "'x'",
}


@pytest.fixture
def client() -> APIClient:
    """The framework's client."""
    return APIClient()


def _read(client: Client, path: str, **headers: str) -> Any:
    response: Any = client.get(path, headers=headers)
    assert response.status_code == 200, response.content
    return response.json()


def _bearer(api: Api) -> dict[str, str]:
    return {"Authorization": f"Bearer {api.token}"}


@pytest.fixture
def detailed(db: None, client: APIClient) -> dict[str, Any]:
    """Name of the set → its detailed node."""
    return {node["Name"]: node for node in _read(client, f"{STANDARD}?details=true")}


def _members(detailed: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(set, node) of each attribute and reference."""
    for name, node in detailed.items():
        for member in (*node["Attributes"], *node["References"]):
            yield name, member


def _member(node: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(member for member in node[kind] if member["Name"] == name)
    return found


# --- shape --------------------------------------------------------------------------------------------------------


def test_the_compact_form(db: None, client: APIClient) -> None:
    """Compact: an anonymous JSON array of every set, members in order, null ones left out."""
    body = _read(client, STANDARD)
    assert [node["Name"] for node in body] == [repository.set_name for repository in repositories]
    for node in body:
        assert list(node) == [name for name in REPOSITORY if name in node]
        assert None not in node.values()
    by_name = {node["Name"]: node for node in body}
    assert by_name[ORDERS] == {
        "Name": ORDERS,
        "TableName": "Crm_Sales_Orders",
        "RepositoryName": "Crm.Sales.SalesOrders",
        "LocalizedName": "Sales orders",
        "IsAggregateRoot": True,
        "ObjectType": "Erp.Crm_Sales_SalesOrder",
        "Category": "Documents",
        "UIVisibility": "ShownByDefault",
    }
    parts = by_name["General_Documents_DocumentAmountReferencedDocuments"]
    assert (parts["AggregateParent"], parts["AggregateRoot"], parts["IsAggregateRoot"]) == (
        "General_Documents_DocumentAmounts",
        "General_Documents_Documents",
        False,
    )
    assert by_name["Finance_Payments_PaymentTypes"]["Category"] == "Settings"


def test_the_detailed_form(detailed: dict[str, Any]) -> None:
    """Detailed: every named member of repositories, attributes, references, collections and methods, nulls kept."""
    for node in detailed.values():
        assert list(node) == [*REPOSITORY, *DETAILS]
        for attribute in node["Attributes"]:
            assert [name for name in attribute if name != "enumValues"] == ATTRIBUTE, attribute
        assert all(list(member) == REFERENCE for member in node["References"])
        assert all(list(member) == CHILD for member in node["ChildCollections"])
        assert all(list(member) == METHOD for member in node["Methods"])
    for _set, member in _members(detailed):
        assert list(member["BaseInfo"]) == BASE_INFO
        for name, allowed in VALUES.items():
            assert set(member["BaseInfo"][name].split(", ")) <= allowed


@pytest.mark.parametrize("spelling", [ORDERS, "Crm.Sales.SalesOrders", f"{ORDERS}/"])
def test_one_set(db: None, client: APIClient, detailed: dict[str, Any], spelling: str) -> None:
    """One set, by its name with underscores or dots, is an object and always detailed."""
    assert _read(client, f"{STANDARD}/{spelling}") == detailed[ORDERS]


def test_members_of_an_order(detailed: dict[str, Any]) -> None:
    """The sales order: code, enum with its values, amount with its currency's path, references, lines, ChangeState."""
    order = detailed[ORDERS]
    number = _member(order, "Attributes", "DocumentNo")
    info = number["BaseInfo"]
    assert (number["Type"], info["MaxLength"], info["Subtype"], info["Nullable"]) == (
        "Edm.String",
        20,
        "String_Code",
        False,
    )
    assert (info["BaseTableName"], info["BaseColumnName"]) == ("Gen_Documents", "document_no")
    state = _member(order, "Attributes", "State")
    assert (state["ReadOnly"], state["SupportsSet"]) == (True, False)
    assert {"Value": 30, "Name": "Released", "LocalizedName": "Released", "LocalizedDescription": None} in state[
        "enumValues"
    ]
    customer = _member(order, "References", "Customer")
    assert (customer["ReferencedEntitySet"], customer["ReferencedType"], customer["IsOwnership"]) == (
        "Crm_Sales_Customers",
        "Erp.Crm_Sales_Customer",
        False,
    )
    assert customer["BaseInfo"]["RequiresUserInput"]
    lines = _member(order, "ChildCollections", "Lines")
    assert (lines["ChildEntitySet"], lines["ChildObjectType"]) == (
        "Crm_Sales_SalesOrderLines",
        "Erp.Crm_Sales_SalesOrderLine",
    )
    line = detailed["Crm_Sales_SalesOrderLines"]
    owner = _member(line, "References", "SalesOrder")
    assert (owner["IsOwnership"], owner["IsAggregateParent"]) == (True, True)
    price = _member(line, "Attributes", "UnitPrice")["BaseInfo"]
    assert (price["Subtype"], price["UnitExpression"]) == ("Decimal_Amount", "SalesOrder.DocumentCurrency")
    change = _member(order, "Methods", "ChangeState")
    assert (change["Namespace"], change["IsAction"], change["ReturnType"]) == ("Erp", True, "void")
    assert [each["Name"] for each in change["Parameters"]] == ["newState", "userStatus"]


# --- what is said holds -------------------------------------------------------------------------------------------


def test_types_and_methods_are_those_of_the_metadata(api: Api, detailed: dict[str, Any]) -> None:
    """Types, nullability and methods agree with `$metadata`."""
    schema = api.read("$metadata?$format=json")["Erp"]
    for name, node in detailed.items():
        declared: dict[str, Any] = {}
        kind: str | None = node["ObjectType"]
        while kind is not None:
            declared = {**schema[kind.removeprefix("Erp.")], **declared}
            kind = schema[kind.removeprefix("Erp.")].get("$BaseType")
        for attribute in node["Attributes"]:
            told = declared[attribute["Name"]]
            assert attribute["Type"] == told.get("$Type", "Edm.String"), (name, attribute["Name"])
            if not told.get("$Nullable", False):
                assert not attribute["BaseInfo"]["Nullable"], (name, attribute["Name"])
        for method in node["Methods"]:
            overloads = schema[method["Name"]]
            assert {each["$Kind"] for each in overloads} == {"Action" if method["IsAction"] else "Function"}


def test_columns_and_indexes_are_those_of_the_database(db: None, detailed: dict[str, Any]) -> None:
    """ColumnName and Indexed: each column is there, and an index begins with it exactly where that is said."""
    columns: dict[str, set[str]] = {}
    firsts: dict[str, set[str]] = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor, include_views=True):
            columns[table] = {each.name for each in connection.introspection.get_table_description(cursor, table)}
            constraints = connection.introspection.get_constraints(cursor, table).values()
            firsts[table] = {
                each["columns"][0]
                for each in constraints
                if each["columns"] and (each["index"] or each["unique"] or each["primary_key"])
            }
    tables = {repository.set_name: {table for table, _ in repository.tables} for repository in repositories}
    checked = 0
    for name, member in _members(detailed):
        column = member["ColumnName"]
        if column is None:
            assert not member.get("IsPersistent", False)
            continue
        holders = [table for table in tables[name] if column in columns[table]]
        assert holders, (name, column)
        if len(holders) == 1:
            checked += 1
            assert member["BaseInfo"]["Indexed"] == (column in firsts[holders[0]]), (name, column)
    assert checked > 1000


def _samples(detailed: dict[str, Any]) -> dict[tuple[Any, ...], tuple[str, str, str, dict[str, Any]]]:
    """One member for each combination of type and claims: (set, name, literal, BaseInfo)."""
    found: dict[tuple[Any, ...], tuple[str, str, str, dict[str, Any]]] = {}
    for name, member in _members(detailed):
        info = member["BaseInfo"]
        kind = "reference" if "ReferencedType" in member else "enum" if "enumValues" in member else member["Type"]
        literal = LITERALS.get(kind, "")
        if kind == "reference":
            literal = f"'{member['ReferencedEntitySet']}({LITERALS['Edm.Guid']})'"
        if kind == "enum":
            literal = f"'{member['enumValues'][0]['Name']}'"
        claims = (
            kind,
            member["Type"].endswith("DocumentState"),
            info["SupportedFilters"],
            info["Orderable"],
            member["ColumnName"] is None,
        )
        found.setdefault(claims, (name, member["Name"], literal, info))
    return found


def test_supported_filters_and_orderable(api: Api, detailed: dict[str, Any]) -> None:
    """SupportedFilters and Orderable: for every type what is named is answered, what is not named is refused."""
    samples = _samples(detailed)
    assert {kind for kind, *_ in samples} >= {*LITERALS, "enum", "reference"}
    for set_name, name, literal, info in samples.values():
        text = "'x'"
        filters = {
            "Equals": f"{name} eq {literal}",
            "GreaterThanOrLessThan": f"{name} ge {literal}",
            "EqualsIn": f"{name} in ({literal},{literal})",
            "Like": f"contains({name},{text})",
        }
        claimed = set(info["SupportedFilters"].split(", ")) - {"NotFilterable"}
        for filter_name, expression in filters.items():
            answered = api.get(f"{set_name}?$top=1&$filter={expression}")
            assert (answered.status_code == 200) == (filter_name in claimed), (set_name, expression, answered.content)
            assert answered.status_code in (200, 400)
        ordered = api.get(f"{set_name}?$top=1&$orderby={name}")
        assert (ordered.status_code == 200) == info["Orderable"], (set_name, name, ordered.content)
        assert ordered.status_code in (200, 400)


def test_requires_user_input(api: Api, detailed: dict[str, Any]) -> None:
    """RequiresUserInput: creating an entity of nothing names exactly those members, and what late defaults lacked."""
    refused = 0
    for repository in repositories:
        if not repository.is_root or repository.abstract or repository.access == "ReadOnly":
            continue
        node = detailed[repository.set_name]
        claimed = {
            member["Name"]
            for member in (*node["Attributes"], *node["References"])
            if member["BaseInfo"]["RequiresUserInput"]
        }
        answered = api.post(repository.set_name, {})
        if answered.status_code == 201:
            assert not claimed, repository.name
            continue
        error = error_of(answered)
        assert error["type"] == "RequiredAttributeMissing", (repository.name, error)
        named = set(error["message"].partition("for: ")[2].rstrip(".").split(", "))
        late = {name for name, each in repository.attributes.items() if repository.fills_late(each) or each.read_only}
        assert claimed <= named <= claimed | late, repository.name
        refused += 1
    assert refused > 40


def test_default_value_types(api: Api, detailed: dict[str, Any], world: World) -> None:
    """DefaultValueType: a new entity has a constant, the day, the time, or nothing, as is said."""
    members = detailed["Crm_Pricing_PriceLists"]["Attributes"]
    every = ",".join(member["Name"] for member in members)
    created = api.create(f"Crm_Pricing_PriceLists?$select={every}", {"Name": "Cheap"})
    for member in members:
        kind = member["BaseInfo"]["DefaultValueType"]
        if kind in ("Constant", "NewGuid", "CurrentDate", "CurrentDateTimeUtc"):
            assert created[member["Name"]] is not None, member["Name"]
        elif member["BaseInfo"]["Nullable"] and not member["ReadOnly"]:
            assert created[member["Name"]] is None, member["Name"]


def test_read_only_members_cannot_be_set(api: Api, detailed: dict[str, Any], world: World) -> None:
    """ReadOnly: a PATCH of such a member of a product is refused or changes nothing."""
    path = f"{PRODUCTS}({world.product})"
    for member in detailed[PRODUCTS]["Attributes"]:
        if not member["ReadOnly"] or member["Type"] not in ("Edm.String", "Edm.DateTimeOffset"):
            continue
        before = api.read(f"{path}?$select={member['Name']}")
        value = "2001-01-01T00:00:00Z" if member["Type"] == "Edm.DateTimeOffset" else "changed"
        answered = api.patch(path, {member["Name"]: value})
        assert answered.status_code in (204, 400, 403, 500)
        assert api.read(f"{path}?$select={member['Name']}") == before, member["Name"]


# --- languages and the current model ------------------------------------------------------------------------------


def test_names_in_the_language_of_the_request(db: None, client: APIClient) -> None:
    """LocalizedDescription and categories are in the language of the request, also from the cache."""
    texts: dict[str, tuple[str, str]] = {}
    for language in ("en", "de", "bg", "en"):
        node = _read(client, f"{STANDARD}?details=true", **{"Accept-Language": language})
        hook = next(each for each in node if each["Name"] == "Systems_Config_WebHooks")
        url = _member(hook, "Attributes", "URL")
        version = _member(hook, "Attributes", "ObjectVersion")
        texts.setdefault(language, (url["LocalizedDescription"], version["CategoryLocalizedName"]))
    assert len({description for description, _ in texts.values()}) == 3
    assert len({category for _, category in texts.values()}) == 3


def test_custom_properties_are_in_the_current_model(api: Api) -> None:
    """currentmodel: custom properties, named in the caller's language, with allowed values; standardmodel has none."""
    created = api.create(
        "Systems_Bpm_CustomProperties?$select=Id",
        {"Code": "colour", "Name": {"EN": "Colour", "DE": "Farbe"}, "EntityName": "General.Products.Products"},
    )
    path = f"{CURRENT}/{PRODUCTS}"
    colour = _member(_read(api.client, path, **_bearer(api)), "Attributes", "CustomProperty_colour")
    assert list(colour) == ATTRIBUTE
    assert list(colour["BaseInfo"]) == BASE_INFO
    assert (colour["IsCustomProperty"], colour["LocalizedName"], colour["SupportsAllowedValues"]) == (
        True,
        "Colour",
        False,
    )
    api.create(
        "Systems_Bpm_CustomPropertyAllowedValues",
        {
            "Property@odata.bind": f"Systems_Bpm_CustomProperties({created['Id']})",
            "PropertyAllowedValueField": "red",
            "Description": {"EN": "Red"},
        },
    )
    german = _read(api.client, path, **_bearer(api), **{"Accept-Language": "de"})
    colour = _member(german, "Attributes", "CustomProperty_colour")
    assert (colour["LocalizedName"], colour["SupportsAllowedValues"]) == ("Farbe", True)
    shipped = _read(api.client, f"{STANDARD}/{PRODUCTS}")
    assert not [member for member in shipped["Attributes"] if member["IsCustomProperty"]]


def test_the_current_model_has_what_the_caller_may_read(world: World) -> None:
    """currentmodel: only the sets that the caller's roles may read."""
    reader = person("reader")
    give_role(reader, {"Crm.Sales.SalesOrders": "r"})
    mine = caller(reader)
    assert [node["Name"] for node in _read(mine.client, CURRENT, **_bearer(mine))] == [ORDERS]
    hidden: Any = mine.client.get(f"{CURRENT}/{PRODUCTS}", headers=_bearer(mine))
    assert hidden.status_code == 400


# --- refusals and caching -----------------------------------------------------------------------------------------


def test_refusals(db: None, client: APIClient) -> None:
    """Bad input: no token 401, unknown set 400 with near names, another method 405, `details=maybe` 400."""
    anonymous: Any = client.get(CURRENT)
    assert (anonymous.status_code, error_of(anonymous)["type"]) == (401, "TokenMissing")
    unknown: Any = client.get(f"{STANDARD}/Crm_Sales_SalesOrder")
    assert (unknown.status_code, error_of(unknown)["type"]) == (400, "UnknownEntitySet")
    assert ORDERS in error_of(unknown)["message"]
    posted: Any = client.post(STANDARD)
    assert (posted.status_code, posted["Allow"]) == (405, "GET, HEAD")
    maybe: Any = client.get(f"{STANDARD}?details=maybe")
    assert maybe.status_code == 400
    assert "details" in error_of(maybe)["message"]


def test_the_standard_model_has_an_etag(db: None, client: APIClient) -> None:
    """standardmodel: ETag and 304."""
    first: Any = client.get(STANDARD)
    assert client.get(STANDARD, headers={"If-None-Match": first["ETag"]}).status_code == 304
    other: Any = client.get(f"{STANDARD}?details=true", headers={"If-None-Match": first["ETag"]})
    assert other.status_code == 200
