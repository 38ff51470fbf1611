"""spec 02 The Domain API as OData: root, metadata, models"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.acceptance.caller import ODATA, Caller, answered, error_of
from tests.acceptance.objects import ORDER_TYPE, ORDERS, PRODUCTS, Maker, order
from tests.acceptance.statements import statement

EDM = "{http://docs.oasis-open.org/odata/ns/edm}"
EDMX = "{http://docs.oasis-open.org/odata/ns/edmx}"
OLD_TYPES, NEW_TYPES = "General_DocumentTypes", "Systems_Documents_DocumentTypes"


@pytest.fixture(scope="module")
def schema(service: Caller) -> ElementTree.Element:
    """The schema of $metadata."""
    return schema_of(service)


def schema_of(caller: Caller) -> ElementTree.Element:
    """The schema of $metadata as it is now."""
    root = ElementTree.fromstring(answered(caller.get("$metadata", Accept="application/xml"), 200).content)
    found = root.find(f"{EDMX}DataServices/{EDM}Schema")
    assert found is not None
    return found


def part(schema: ElementTree.Element, path: str) -> ElementTree.Element:
    """The element at a path, whose names are those of CSDL."""
    found = schema.find("/".join(f"{EDM}{step}" for step in path.split("/")))
    assert found is not None, path
    return found


class TestServiceDocument:
    @statement("spec 2.1", "GET of the root is the service document: each entity set with name, kind and url")
    def test_sets(self, service: Caller, schema: ElementTree.Element) -> None:
        answer = service.read("")
        assert answer["@odata.context"].endswith(f"{ODATA}$metadata")
        sets = [entry for entry in answer["value"] if entry.get("kind", "EntitySet") == "EntitySet"]
        assert {"name": PRODUCTS, "kind": "EntitySet", "url": PRODUCTS} in sets
        names = {found.attrib["Name"] for found in schema.iterfind(f"{EDM}EntityContainer/{EDM}EntitySet")}
        assert {entry["name"] for entry in sets} == names

    @statement("spec 2.1", "The root answers with and without its trailing slash")
    def test_slash(self, service: Caller) -> None:
        assert service.read(ODATA.rstrip("/")) == service.read(ODATA)


class TestMetadata:
    @statement("spec 2.1", "$metadata is CSDL XML")
    def test_xml(self, service: Caller) -> None:
        answer = answered(service.get("$metadata"), 200)
        assert answer.headers["Content-Type"].startswith("application/xml")
        assert ElementTree.fromstring(answer.content).tag == f"{EDMX}Edmx"

    @statement("spec 14.2", "$metadata is CSDL 4.0, and CSDL 4.01 where OData-MaxVersion allows it")
    def test_version(self, service: Caller) -> None:
        answer = answered(service.get("$metadata"), 200)
        assert ElementTree.fromstring(answer.content).attrib["Version"] == "4.0"
        answer = answered(service.get("$metadata", OData_MaxVersion="4.01"), 200)
        assert ElementTree.fromstring(answer.content).attrib["Version"] == "4.01"

    @statement("spec 2.1", "$metadata is CSDL JSON by $format and by Accept")
    def test_json(self, service: Caller) -> None:
        for answer in (service.get("$metadata?$format=json"), service.get("$metadata", Accept="application/json")):
            found = answered(answer, 200).json()
            assert answer.headers["Content-Type"].startswith("application/json")
            assert found["$Version"] == "4.01"
            assert found["Erp"]["Crm_Sales_SalesOrder"]["$Kind"] == "EntityType"

    @statement("spec 2.1", "$metadata has the same text each time, an ETag, and is 304 for who has it")
    def test_etag(self, service: Caller) -> None:
        one, two = service.get("$metadata"), service.get("$metadata")
        if one.headers["ETag"] == two.headers["ETag"]:  # no other test added a custom property in between
            assert one.content == two.content
            answer = service.get("$metadata", If_None_Match=one.headers["ETag"])
            assert (answer.status_code, answer.content) in ((304, b""), (200, answer.content))

    @pytest.mark.parametrize(
        "name, properties",
        [
            ("Amount", {"Value": "Edm.Decimal", "Currency": "Edm.String"}),
            ("Quantity", {"Value": "Edm.Decimal", "Unit": "Edm.String"}),
            ("CustomPropertyValue", {"Value": "Edm.String", "Description": None, "ValueId": "Edm.Guid"}),
        ],
    )
    @statement("spec 2.1", "$metadata has the complex type {name} with its properties")
    def test_complex(self, schema: ElementTree.Element, name: str, properties: dict[str, str | None]) -> None:
        found = part(schema, f"ComplexType[@Name='{name}']")
        types = {each.attrib["Name"]: each.attrib["Type"] for each in found.iterfind(f"{EDM}Property")}
        assert set(types) == set(properties)
        assert all(types[each] == kind for each, kind in properties.items() if kind)

    @statement("spec 2.1", "MultilanguageString is an open type")
    def test_open(self, schema: ElementTree.Element) -> None:
        assert part(schema, "ComplexType[@Name='MultilanguageString']").attrib["OpenType"] == "true"

    @statement("spec 2.1", "$metadata has the enums with names and numbers of their members")
    def test_enums(self, schema: ElementTree.Element) -> None:
        members = part(schema, "EnumType[@Name='General_DocumentState']").iterfind(f"{EDM}Member")
        assert {member.attrib["Name"]: int(member.attrib["Value"]) for member in members} == {
            "New": 0,
            "Adjustment": 5,
            "Planned": 10,
            "FirmPlanned": 20,
            "Released": 30,
            "Completed": 40,
            "Closed": 50,
        }

    @statement("spec 2.1", "$metadata has entity types with base types and keys")
    def test_types(self, schema: ElementTree.Element) -> None:
        assert part(schema, "EntityType[@Name='Crm_Sales_SalesOrder']").attrib["BaseType"] == (
            "Erp.General_Documents_Document"
        )
        assert part(schema, "EntityType[@Name='General_Documents_Document']").attrib["Abstract"] == "true"
        for found in schema.iterfind(f"{EDM}EntityType"):
            key = found.find(f"{EDM}Key/{EDM}PropertyRef")
            assert ("BaseType" in found.attrib) != (key is not None and key.attrib["Name"] == "Id")

    @statement("spec 2.1", "Navigation has partners; parts go with their root")
    def test_navigation(self, schema: ElementTree.Element) -> None:
        lines = part(schema, "EntityType[@Name='Crm_Sales_SalesOrder']/NavigationProperty[@Name='Lines']")
        assert lines.attrib["Type"] == "Collection(Erp.Crm_Sales_SalesOrderLine)"
        assert lines.attrib["Partner"] == "SalesOrder"
        cascade = lines.find(f"{EDM}OnDelete")
        assert cascade is not None
        assert cascade.attrib["Action"] == "Cascade"
        parent = part(schema, "EntityType[@Name='Crm_Sales_SalesOrderLine']/NavigationProperty[@Name='SalesOrder']")
        assert parent.attrib["Partner"] == "Lines"
        assert parent.find(f"{EDM}OnDelete") is None

    @statement("spec 2.1", "Each navigation property of a set is bound to a set that is there")
    def test_bindings(self, schema: ElementTree.Element) -> None:
        sets = list(schema.iterfind(f"{EDM}EntityContainer/{EDM}EntitySet"))
        names = {found.attrib["Name"] for found in sets}
        targets = {b.attrib["Target"] for found in sets for b in found.iterfind(f"{EDM}NavigationPropertyBinding")}
        assert targets <= names

    @statement("spec 2.1", "$metadata has the bound and the unbound operations")
    def test_operations(self, schema: ElementTree.Element) -> None:
        bound = {each.attrib["Name"] for each in schema if each.attrib.get("IsBound") == "true"}
        imports = {each.attrib["Name"] for each in part(schema, "EntityContainer") if each.tag.endswith("Import")}
        assert bound >= {"ChangeState", "MakeVoid", "Recalculate", "CreateCopy", "CreateNotification", "Execute"}
        assert "GetAllowedCustomPropertyValues" in bound
        assert imports >= {
            "GetRepositoryEvents",
            "ExecuteScript",
            "BeginTransaction",
            "EndTransaction",
            "GetChanges",
            "WaitForChanges",
            "Import",
            "GetVersion",
            "GetRenamedEntityTypes",
        }

    @statement("spec 2.1", "Entity sets have capabilities annotations")
    def test_capabilities(self, service: Caller) -> None:
        text = answered(service.get("$metadata"), 200).text
        for term in ("Capabilities.SearchRestrictions", "Capabilities.InsertRestrictions", "Core.Computed"):
            assert term in text

    @statement("spec 2.1", "$metadata has the instance's custom properties")
    def test_custom_properties(self, make: Maker) -> None:
        name = f"CustomProperty_{make.text_property(PRODUCTS)}"
        found = part(schema_of(make.caller), f"EntityType[@Name='General_Products_Product']/Property[@Name='{name}']")
        assert found.attrib["Type"] == "Erp.CustomPropertyValue"


class TestModels:
    @pytest.mark.parametrize("path", ["/api/domain/reset", "Reset"])
    @pytest.mark.parametrize("method", ["GET", "POST"])
    @statement("spec 2.1", "{method} {path} answers success: true")
    def test_reset(self, service: Caller, method: str, path: str) -> None:
        assert answered(service.send(method, path), 200).json() == {"success": True}

    @statement("spec 2.1", "The standard model is JSON for everybody; the current model needs a token")
    def test_models(self, anyone: Caller, service: Caller) -> None:
        assert PRODUCTS in str(anyone.read("/api/domain/standardmodel"))
        assert PRODUCTS in str(service.read("/api/domain/currentmodel"))
        error_of(anyone.get("/api/domain/currentmodel"), 401)

    @pytest.mark.parametrize("model", ["standardmodel", "currentmodel"])
    @statement("spec 2.1", "The {model} of one set, with details and without")
    def test_one_set(self, service: Caller, model: str) -> None:
        for query in ("", "?details=true"):
            answer = service.read(f"/api/domain/{model}/{ORDERS}{query}")
            assert "Crm_Sales_SalesOrders" in str(answer)
            assert "Lines" in str(answer)
        error_of(service.get(f"/api/domain/{model}/Nonsense"), 400)

    @statement("spec 2.1", "/api/openapi.json describes the sets and the operations of the same model")
    def test_openapi(self, anyone: Caller, schema: ElementTree.Element) -> None:
        found = anyone.read("/api/openapi.json")
        assert found["openapi"].startswith("3.")
        for each in schema.iterfind(f"{EDM}EntityContainer/{EDM}EntitySet"):
            assert f"/{each.attrib['Name']}" in found["paths"]
        assert {"get", "post"} <= set(found["paths"][f"/{ORDERS}"])
        assert {"get", "patch", "delete"} <= set(found["paths"][f"/{ORDERS}({{Id}})"])
        assert any(path.partition("(")[0] == "/GetRepositoryEvents" for path in found["paths"])


class TestRenamedSets:
    @statement("spec 2.1", "A renamed set is accepted in a path, with a Warning: 299 that names the new set")
    def test_path(self, service: Caller) -> None:
        warned(service.get(OLD_TYPES))
        assert "Warning" not in service.get(NEW_TYPES).headers

    @statement("spec 2.1", "… in a reference's string in a filter")
    def test_filter(self, service: Caller) -> None:
        old = ORDER_TYPE.replace(NEW_TYPES, OLD_TYPES)
        answer = service.get(f"{ORDERS}?$filter=DocumentType eq '{old}'&$top=1")
        warned(answer)
        assert answer.json()["value"]

    @statement("spec 2.1", "… in a reference of a body")
    def test_reference(self, make: Maker) -> None:
        body: dict[str, Any] = {**order(), "DocumentType@odata.bind": ORDER_TYPE.replace(NEW_TYPES, OLD_TYPES)}
        answer = answered(make.caller.post(ORDERS, body), 201)
        make.remove_later(answer.json()["@odata.id"])
        warned(answer)

    @statement("spec 2.1", "… in @odata.type")
    def test_type(self, service: Caller) -> None:
        body = {"@odata.type": "#Erp.General_DocumentType", "Notes": None}
        answer = answered(service.patch(ORDER_TYPE, body), 204, 200)
        warned(answer)

    @statement("spec 2.1", "GetRenamedEntityTypes lists the old and the new names")
    def test_list(self, service: Caller) -> None:
        pairs = {(row["OldName"], row["NewName"]) for row in service.rows("GetRenamedEntityTypes()")}
        assert (OLD_TYPES, NEW_TYPES) in pairs

    @statement("spec 2.1", "GetVersion answers the version of the model")
    def test_version(self, service: Caller) -> None:
        assert isinstance(service.read("GetVersion()")["value"], str)


def warned(answer: Any) -> None:
    """The answer succeeded and has a warning that names the new set."""
    answered(answer, 200, 201, 204)
    assert answer.headers["Warning"].startswith("299 ")
    assert NEW_TYPES.removesuffix("s") in answer.headers["Warning"]


@statement("spec 2.1", "An unknown set is a 400 that names it")
def test_unknown_set(service: Caller) -> None:
    assert "General_Products_Produkts" in error_of(service.get("General_Products_Produkts"), 400)["message"]
