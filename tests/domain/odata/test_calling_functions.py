"""How functions may be called, and what they answer (spec 02, 2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.cast import World
from tests.support.api import Api, error_of

NAME = "repositoryName"
REPOSITORY = "General.Products.Products"
ALLOWED = "GetAllowedCustomPropertyValues"


@pytest.mark.parametrize(
    "path",
    [
        f"GetRepositoryEvents({NAME}='{REPOSITORY}')", f"GetRepositoryEvents({NAME}=@p)?@p='{REPOSITORY}'",
        f"GetRepositoryEvents?@{NAME}='{REPOSITORY}'", f"GetRepositoryEvents?{NAME}='{REPOSITORY}'",
        f"GetRepositoryEvents()?{NAME}={REPOSITORY}", f"getrepositoryevents(REPOSITORYNAME='{REPOSITORY}')",
        f"GetRepositoryEvents({NAME}='{REPOSITORY}')?@{NAME}='Other'",
        f"Erp.GetRepositoryEvents({NAME}='{REPOSITORY}')",
        f"erp.GetRepositoryEvents?{NAME}={REPOSITORY}",
    ],
)  # fmt: skip
def test_a_parameter_may_stand_in_the_path_or_behind_it(api: Api, path: str) -> None:
    body = api.read(path)
    assert body["repositoryName"] == REPOSITORY
    assert body["@odata.context"].endswith("$metadata#Erp.OpenObject")


def test_an_action_may_have_its_namespace(api: Api) -> None:
    begun = api.post("Erp.BeginTransaction", {})
    assert begun.status_code == 200, begun.content
    ended = api.within(begun.content.decode()).post("Erp.EndTransaction", {"commit": False})
    assert ended.status_code == 204
    for wrong in ("Erp.General_Products_Products", "Other.GetVersion()", "Erp.Nothing()"):
        assert api.get(wrong).status_code == 400, wrong


def test_an_alias_that_stands_for_itself_is_null(api: Api) -> None:
    refused = api.get(f"GetRepositoryEvents({NAME}=@a)?@a=@b&@b=@a")
    assert refused.status_code == 400, refused.content


def test_an_unknown_parameter_is_answered_with_the_known_ones(api: Api, world: World) -> None:
    for refused, known in (
        (api.get(f"GetRepositoryEvents(repo='{REPOSITORY}')"), NAME),
        (api.get("GetVersion(x=1)"), ""),
        (
            api.get(f"General_Products_Products({world.product})/{ALLOWED}(code='a')"),
            "customPropertyCode, search, exactMatch, orderByDescription, top, skip",
        ),
        (api.post("BeginTransaction", {"mode": "common"}), "model, trackChanges"),
        (api.post("Import", {"objects": [], "mode": 1}), "objects, transaction, model, loggingLevel"),
    ):
        error = error_of(refused)
        assert (refused.status_code, error["type"]) == (400, "UnknownParameter"), error
        assert error["message"].endswith(f"It takes {known}." if known else "'x'."), error


@pytest.mark.parametrize(
    "path",
    [
        f"GetRepositoryEvents({NAME}='{REPOSITORY}',{NAME}='{REPOSITORY}')",
        f"GetRepositoryEvents({NAME}='{REPOSITORY}',REPOSITORYNAME='{REPOSITORY}')",
        f"GetRepositoryEvents?{NAME}={REPOSITORY}&{NAME}={REPOSITORY}",
        f"GetRepositoryEvents?{NAME}={REPOSITORY}&repositoryname={REPOSITORY}",
    ],
)
def test_a_parameter_stands_once(api: Api, path: str) -> None:
    refused = api.get(path)
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidValue"), refused.content
    assert "given twice" in error_of(refused)["message"]


def test_a_parameter_in_the_path_wins_in_any_case(api: Api) -> None:
    assert api.read(f"GetRepositoryEvents({NAME.upper()}='{REPOSITORY}')?{NAME}=Other")["repositoryName"] == REPOSITORY


def test_a_parameter_of_an_action_stands_once_in_any_case(api: Api) -> None:
    refused = api.post("BeginTransaction", {"model": "common", "Model": "frontend"})
    assert (refused.status_code, error_of(refused)["target"]) == (400, "model"), refused.content


@pytest.fixture
def colour(api: Api, world: World) -> str:
    """A product's address; it may have one of three colours."""
    definition = {
        "Code": "colour",
        "Name": {"EN": "Colour"},
        "EntityName": REPOSITORY,
        "LimitToAllowedValues": True,
        "AllowedValues": [{"PropertyAllowedValueField": value} for value in ("blue", "green", "red")],
    }
    api.create("Systems_Bpm_CustomProperties", definition)
    return f"General_Products_Products({world.product})"


@pytest.mark.parametrize(
    "call",
    [
        f"{ALLOWED}(customPropertyCode='colour',search='re',top=1)",
        f"Erp.{ALLOWED}(customPropertyCode=@c,search=@s,top=@t)?@c='colour'&@s='re'&@t=1",
        f"{ALLOWED}?@customPropertyCode='colour'&search=re&@top=1",
    ],
)
def test_a_bound_function_takes_them_likewise(api: Api, colour: str, call: str) -> None:
    found = api.read(f"{colour}/{call}")
    assert found["@odata.context"].endswith("$metadata#Collection(Erp.CustomPropertyValue)")
    assert [value["Value"] for value in found["value"]] == ["green"]
    assert set(found["value"][0]) == {"Value", "Description", "ValueId"}


@pytest.mark.parametrize("option", ["$filter=true", "$top=1", "$count=true", "$select=version", "orderby=version"])
def test_options_of_queries_are_not_ignored(api: Api, option: str) -> None:
    refused = api.get(f"GetVersion()?{option}")
    assert (refused.status_code, error_of(refused)["type"]) == (501, "NotSupported")
    assert "GetVersion" in error_of(refused)["message"]


def test_parameters_of_a_function_may_stand_in_a_body(api: Api, colour: str) -> None:
    """The platform's .NET client calls functions so."""
    found: Any = api.request("GET", f"{colour}/{ALLOWED}", {"customPropertyCode": "colour", "search": "red"})
    assert [value["Value"] for value in found.json()["value"]] == ["red"]
    refused: Any = api.request("GET", f"{colour}/{ALLOWED}", "customPropertyCode=colour", Content_Type="text/plain")
    assert refused.status_code == 415
    assert api.get(f"{colour}/{ALLOWED}").status_code == 400


def test_the_version_is_an_object_and_a_value(api: Api) -> None:
    body = api.read("GetVersion()")
    assert body == api.read("GetVersion")
    assert body["version"] == body["value"]
    assert body["@odata.context"].endswith("$metadata#Erp.OpenObject")


def test_former_names_are_told_with_the_version_that_changed_them(api: Api) -> None:
    body = api.read("GetRenamedEntityTypes()")
    assert body["@odata.context"].endswith("$metadata#Collection(Erp.OpenObject)")
    renamed = {entry["OldName"]: entry for entry in body["value"]}
    assert renamed["General_DocumentTypes"]["NewName"] == "Systems_Documents_DocumentTypes"
    assert renamed["Crm_Customers"]["Version"] == "25.1.2.28"
    assert all(entry["Version"] for entry in renamed.values())


def test_values_with_the_type_that_clients_send_along_are_taken(api: Api, colour: str) -> None:
    """Classes of a client write their type into every complex value."""
    path = colour
    body = {
        "@odata.type": "Erp.General_Products_Product",
        "Name": {"@odata.type": "Erp.MultilanguageString", "EN": "Apple", "de": "Apfel"},
        "StandardLotSizeBase": {"@odata.type": "#Erp.Quantity", "Value": 3, "Unit": "pcs"},
        "CustomProperty_colour": {"@odata.type": "Erp.Systems_Bpm_CustomPropertyValue", "Value": "red"},
    }
    changed = api.patch(path, body)
    assert changed.status_code == 204, changed.content
    stored = api.read(f"{path}?$select=Name,CustomProperty_colour,StandardLotSizeBase")
    assert stored["Name"] == {"EN": "Apple", "DE": "Apfel", "BG": "Стол"}
    assert stored["StandardLotSizeBase"]["Value"] == 3
    assert set(stored["CustomProperty_colour"]) == {"Value", "Description", "ValueId"}
    refused = api.patch(path, {"Name": {"not a language": "x"}})
    assert error_of(refused)["type"] == "InvalidLiteral"


@pytest.mark.parametrize("level", ["none", "minimal", "full"])
def test_results_say_which_control_information_they_have(api: Api, level: str) -> None:
    """OData JSON 4.01, 3.1 and 4.1."""
    for function in ("GetVersion()", "GetRenamedEntityTypes()"):
        response = api.get(function, Accept=f"application/json;odata.metadata={level}")
        assert f";odata.metadata={level}" in response["Content-Type"]
        assert ("@odata.context" in response.json()) is (level != "none")
