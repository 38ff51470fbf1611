"""$metadata and the service document (spec 02, 2.1)."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema.validators import validator_for
from lxml import etree

from domain.model.registry import repositories
from domain.odata.message.message import JSON, XML
from domain.odata.metadata.csdl import csdl_document
from tests.support.api import Api, error_of
from tests.support.standards import standard_file

EDM = "{http://docs.oasis-open.org/odata/ns/edm}"


@pytest.fixture
def schema(db: None) -> dict[str, Any]:
    """The schema as CSDL JSON."""
    found: dict[str, Any] = json.loads(csdl_document(JSON, "4.01").body)["Erp"]
    return found


@pytest.mark.django_db
def test_the_xml_is_valid_against_the_oasis_schemas() -> None:
    validator = etree.XMLSchema(etree.parse(str(standard_file("edmx.xsd"))))
    validator.assertValid(etree.fromstring(csdl_document(XML, "4.01").body))


@pytest.mark.django_db
def test_the_json_is_valid_against_the_oasis_schema() -> None:
    # The published schema uses \p{L} and the like, which Python's re does not know; \w is the same for our names.
    text = re.sub(r"\\\\p\{\w+\}", r"\\\\w", standard_file("csdl.schema.json").read_text())
    definition = json.loads(text)
    found = validator_for(definition)(definition).iter_errors(json.loads(csdl_document(JSON, "4.01").body))
    assert [f"{list(error.absolute_path)}: {error.message[:200]}" for error in found] == []


def test_both_describe_the_same_members(schema: dict[str, Any]) -> None:
    root = ElementTree.fromstring(csdl_document(XML, "4.01").body)
    in_xml = {
        (structured.get("Name"), member.get("Name"))
        for kind in ("EntityType", "ComplexType")
        for structured in root.iter(f"{EDM}{kind}")
        for member in structured
        if member.tag in (f"{EDM}Property", f"{EDM}NavigationProperty")
    }
    in_json = {
        (name, member)
        for name, node in schema.items()
        if isinstance(node, dict) and node.get("$Kind") in ("EntityType", "ComplexType")
        for member in node
        if not member.startswith(("$", "@"))
    }
    assert in_xml == in_json
    assert len(in_xml) > 1000


def test_every_repository_has_its_set_and_type(schema: dict[str, Any]) -> None:
    for repository in repositories:
        assert schema["Container"][repository.set_name]["$Type"] == f"Erp.{repository.entity_type}"
        assert schema[repository.entity_type]["$Kind"] == "EntityType"


def test_every_navigation_leads_to_a_type_and_every_partner_back(schema: dict[str, Any]) -> None:
    for name, node in schema.items():
        if not isinstance(node, dict) or node.get("$Kind") != "EntityType":
            continue
        for member, value in node.items():
            if not isinstance(value, dict) or value.get("$Kind") != "NavigationProperty":
                continue
            target = schema[value["$Type"].removeprefix("Erp.")]
            assert target["$Kind"] == "EntityType"
            if "$Partner" in value:
                assert value["$Partner"] in _with_bases(schema, target), f"{name}.{member}"


def _with_bases(schema: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    current: dict[str, Any] | None = node
    while current is not None:
        members.update(current)
        base = current.get("$BaseType")
        current = schema[base.removeprefix("Erp.")] if base else None
    return members


def test_every_entity_type_has_a_key_and_a_set(schema: dict[str, Any]) -> None:
    """Tools look up the set of every entity type that they find."""
    types = {name for name, node in schema.items() if isinstance(node, dict) and node.get("$Kind") == "EntityType"}
    assert {f"Erp.{name}" for name in types} == {
        node["$Type"] for node in schema["Container"].values() if isinstance(node, dict) and "$Collection" in node
    }
    assert all("$Key" in schema[name] or "$BaseType" in schema[name] for name in types)
    bound = {overload["$Parameter"][0]["$Type"] for overload in schema["CreateCopy"]}
    assert bound == {f"Erp.{name}" for name in types if "$BaseType" not in schema[name]}


def test_no_collection_has_null_among_its_items(schema: dict[str, Any]) -> None:
    """Of a collection, Nullable speaks of the items (OASIS CSDL 4.01, 7.2.1)."""
    overloads = [entry for node in schema.values() if isinstance(node, list) for entry in node]
    types = [entry["$ReturnType"] for entry in overloads if "$ReturnType" in entry]
    types += [parameter for entry in overloads for parameter in entry.get("$Parameter", ())]
    collections = [node for node in types if node.get("$Collection")]
    assert collections
    assert not [node for node in collections if "$Nullable" in node]


def test_owned_entities_go_with_their_owner(schema: dict[str, Any]) -> None:
    """OnDelete says what becomes of the entities that a property leads to (OASIS CSDL 4.01, 8.6)."""
    assert schema["Crm_Sales_SalesOrder"]["Lines"]["$OnDelete"] == "Cascade"
    assert "$OnDelete" not in schema["Crm_Sales_SalesOrderLine"]["SalesOrder"]
    root = ElementTree.fromstring(csdl_document(XML, "4.01").body)
    lines = root.find(f".//{EDM}EntityType[@Name='Crm_Sales_SalesOrder']/{EDM}NavigationProperty[@Name='Lines']")
    assert lines is not None
    assert [each.get("Action") for each in lines.iterfind(f"{EDM}OnDelete")] == ["Cascade"]
    line = root.find(f".//{EDM}EntityType[@Name='Crm_Sales_SalesOrderLine']")
    assert line is not None
    assert not list(line.iterfind(f"{EDM}NavigationProperty/{EDM}OnDelete"))


def test_optional_parameters_say_what_they_are_without(db: None) -> None:
    root = ElementTree.fromstring(csdl_document(XML, "4.01").body)
    function = root.find(f".//{EDM}Function[@Name='GetAllowedCustomPropertyValues']")
    assert function is not None
    defaults = {
        parameter.get("Name"): [value.get("String") for value in parameter.iter(f"{EDM}PropertyValue")]
        for parameter in function.iter(f"{EDM}Parameter")
        if parameter.find(f"{EDM}Annotation[@Term='Core.OptionalParameter']") is not None
    }
    assert defaults == {
        "search": [],
        "exactMatch": ["false"],
        "orderByDescription": ["false"],
        "top": ["10"],
        "skip": ["0"],
    }


def test_the_container_says_what_the_service_can_do(schema: dict[str, Any]) -> None:
    assert schema["Container"]["@Capabilities.ConformanceLevel"] == "Advanced"
    assert schema["Container"]["@Core.ODataVersions"] == "4.0,4.01"
    assert b'EnumMember="Capabilities.ConformanceLevelType/Advanced"' in csdl_document(XML, "4.01").body


def test_heirs_have_their_base_type(schema: dict[str, Any]) -> None:
    assert schema["Crm_Sales_SalesOrder"]["$BaseType"] == "Erp.General_Documents_Document"
    assert schema["General_Documents_Document"]["$Abstract"] is True
    assert "DocumentNo" not in schema["Crm_Sales_SalesOrder"]
    assert schema["General_Contacts_Person"]["$BaseType"] == "Erp.General_Contacts_Party"


def test_it_can_be_had_as_xml_and_as_json(api: Api) -> None:
    assert api.get("$metadata")["Content-Type"].startswith("application/xml")
    assert api.get("$metadata", Accept="application/json")["Content-Type"].startswith("application/json")
    assert api.get("$metadata?$format=json").json()["$Version"] == "4.01"
    refused = api.get("$metadata", Accept="text/csv")
    assert (refused.status_code, error_of(refused)["type"]) == (406, "NotAcceptable")


@pytest.mark.parametrize("form", [{}, {"OData_MaxVersion": "4.01"}])
def test_clients_without_inheritance_get_flat_types(api: Api, form: dict[str, str]) -> None:
    deep, flat = api.get("$metadata", **form), api.get("$metadata?options=flat", **form)
    assert deep["ETag"] != flat["ETag"]
    assert b"BaseType" not in flat.content
    etree.XMLSchema(etree.parse(str(standard_file("edmx.xsd")))).assertValid(etree.fromstring(flat.content))
    root = ElementTree.fromstring(flat.content)
    order = root.find(f".//{EDM}EntityType[@Name='Crm_Sales_SalesOrder']")
    assert order is not None
    assert [key.get("Name") for key in order.iter(f"{EDM}PropertyRef")] == ["Id"]
    members = [member.get("Name") for member in order if member.get("Name")]
    assert {"Id", "DocumentNo", "Lines", "Customer", "DocumentType"} <= set(members)
    assert len(members) == len(set(members))
    bound = {
        parameter.get("Type")
        for action in root.iter(f"{EDM}Action")
        if action.get("Name") == "ChangeState" and (parameter := action.find(f"{EDM}Parameter")) is not None
    }
    assert {"Erp.Crm_Sales_SalesOrder", "Erp.General_Documents_Document"} <= bound


def test_an_unchanged_document_is_304(api: Api) -> None:
    etag = api.get("$metadata")["ETag"]
    assert api.get("$metadata", If_None_Match=etag).status_code == 304
    api.create(
        "Systems_Bpm_CustomProperties",
        {"Code": "colour", "Name": {"EN": "Colour"}, "EntityName": "General.Products.Products"},
    )
    changed = api.get("$metadata", If_None_Match=etag)
    assert changed.status_code == 200
    assert 'Name="CustomProperty_colour"' in changed.content.decode()


def test_the_service_document_names_the_sets(api: Api) -> None:
    body = api.read("")
    assert {"name": "Crm_Sales_SalesOrders", "kind": "EntitySet", "url": "Crm_Sales_SalesOrders"} in body["value"]
    assert body["@odata.context"] == "http://testserver/api/domain/odata/$metadata"
    root = ElementTree.fromstring(csdl_document(XML, "4.01").body)
    listed = {each.get("Name") for each in root.iter(f"{EDM}FunctionImport") if each.get("IncludeInServiceDocument")}
    assert listed == {entry["name"] for entry in body["value"] if entry["kind"] == "FunctionImport"}
