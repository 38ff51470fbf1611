"""Operations

Operations that clients of the reference call (spec 14.6), by HTTP, with rights, row policies and bad input.
"""

from __future__ import annotations

from typing import Any

import pytest

from foundation.guids import new_guid
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, PRODUCTS, order_body
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import World, make_property
from tests.scripts.cast import console
from tests.support.api import Api, error_of, id_of

DOCUMENTS = "General_Documents_Documents"
OBJECTS = "Systems_Core_ExtensibleDataObjects"


def under(parent: str) -> dict[str, Any]:
    """What makes a document the child of another."""
    return {"Parent@odata.bind": f"{DOCUMENTS}({parent.partition('(')[2]}"}


@pytest.fixture
def chain(api: Api, world: World) -> list[str]:
    """Three orders, each under the one before."""
    result = [api.create(ORDERS, order_body(world))["@odata.id"]]
    for _ in range(2):
        result.append(api.create(ORDERS, order_body(world, **under(result[-1])))["@odata.id"])
    return result


def states(api: Api, orders: list[str]) -> list[str]:
    """The state of each."""
    return [api.read(f"{order}?$select=State")["State"] for order in orders]


# --- GetAllParentDocuments ----------------------------------------------------------------------------------------


def ids(body: dict[str, Any]) -> list[str]:
    """The guids of the rows."""
    return [id_of(row) for row in body["value"]]


def test_parents(api: Api, chain: list[str]) -> None:
    """GetAllParentDocuments gives the chain of parents, nearest first, with `includeSelf` the document before them"""
    top, middle, low = (id_of({"@odata.id": each}) for each in chain)
    for call in (
        "GetAllParentDocuments",
        "GetAllParentDocuments()",
        "Default.GetAllParentDocuments(includeSelf=false)",
    ):
        assert ids(api.read(f"{chain[2]}/{call}")) == [middle, top]
    body = api.read(f"{chain[2]}/GetAllParentDocuments(includeSelf=true)")
    assert ids(body) == [low, middle, top]
    assert body["@odata.context"].endswith("$metadata#General_Documents_Documents")
    assert ids(api.read(f"{DOCUMENTS}({low})/GetAllParentDocuments?includeSelf=true")) == [low, middle, top]
    assert ids(api.read(f"{chain[0]}/GetAllParentDocuments")) == []


def test_parents_are_a_collection(api: Api, chain: list[str]) -> None:
    """Query options apply to the documents of GetAllParentDocuments as to those of a set"""
    path = f"{chain[2]}/GetAllParentDocuments(includeSelf=true)"
    counted = api.read(f"{path}?$filter=Parent ne null&$orderby=DocumentNo&$top=1&$count=true&$select=State")
    assert (counted["@odata.count"], len(counted["value"])) == (2, 1)
    assert counted["value"][0]["State"] == "New"
    expanded = api.read(f"{path}?$expand=DocumentType($select=Code)")["value"]
    assert all("Code" in row["DocumentType"] for row in expanded)
    first = api.read(path, Prefer="odata.maxpagesize=2")
    link = first["@odata.nextLink"].partition("/odata/")[2]
    assert ids(first) + ids(api.read(link, Prefer="odata.maxpagesize=2")) == ids(api.read(path))
    assert api.get(f"{path}?$apply=aggregate($count as N)").status_code == 501


def test_parents_in_a_loop(api: Api, chain: list[str]) -> None:
    """A chain of parents that is a loop ends"""
    assert api.patch(chain[0], under(chain[2])).status_code == 204
    assert len(ids(api.read(f"{chain[2]}/GetAllParentDocuments"))) == 2


def test_parents_that_are_hidden(api: Api, chain: list[str]) -> None:
    """The chain of parents ends at a document that a row policy hides"""
    hidden = api.read(f"{chain[1]}?$select=DocumentNo")["DocumentNo"]
    user = person("bob")
    give_role(user, {"*": "r"}, {"Crm.Sales.SalesOrders": f"DocumentNo ne '{hidden}'"})
    bob = caller(user)
    assert ids(bob.read(f"{chain[2]}/GetAllParentDocuments(includeSelf=true)")) == [id_of({"@odata.id": chain[2]})]
    assert bob.get(f"{chain[1]}/GetAllParentDocuments").status_code == 404


def test_bad_calls_of_parents(api: Api, chain: list[str], world: World) -> None:
    """Bad calls of GetAllParentDocuments are the caller's fault: type of argument, key, entity, method"""
    assert api.get(f"{chain[0]}/GetAllParentDocuments(includeSelf=7)").status_code == 400
    assert api.get(f"{chain[0]}/GetAllParentDocuments(self=true)").status_code == 400
    assert api.get(f"{ORDERS}({new_guid()})/GetAllParentDocuments").status_code == 404
    assert api.get(f"{PRODUCTS}({world.product})/GetAllParentDocuments").status_code in (400, 404)
    assert api.post(f"{chain[0]}/GetAllParentDocuments", {}).status_code == 405


def test_parents_in_a_script(api: Api, chain: list[str]) -> None:
    """Scripts have the parents as entities, in order"""
    order = id_of({"@odata.id": chain[2]})
    script = (
        f"const order = Domain.Crm.Sales.SalesOrdersRepository.getById('{order}');"
        "console.log(order.GetAllParentDocuments(true).map((each) => each.Id).join())"
    )
    expected = ",".join(id_of({"@odata.id": each}) for each in reversed(chain))
    assert console(api, script).strip() == expected


# --- GetPropertyAllowedValues -------------------------------------------------------------------------------------


def allowed(api: Api, entity: str, name: str, **more: Any) -> list[tuple[str, str]]:
    """(Value, Text) of each allowed value."""
    arguments = ",".join(f"{key}={value}" for key, value in {"propertyName": f"'{name}'", **more}.items())
    body = api.read(f"{entity}/GetPropertyAllowedValues({arguments})")
    return [(row["Value"], row["Text"]) for row in body["value"]]


def test_values_of_an_enum(api: Api, chain: list[str]) -> None:
    """GetPropertyAllowedValues of an enum: its members, searched with `%`, a page of ten by default"""
    found = allowed(api, chain[0], "State")
    assert found[:3] == [("New", "New"), ("Adjustment", "Adjustment"), ("Planned", "Planned")]
    assert allowed(api, chain[0], "state", search="'firm%ned'") == [("FirmPlanned", "Firm planned")]
    assert len(allowed(api, chain[0], "DeliveryTermsCode")) == 10
    assert len(allowed(api, chain[0], "DeliveryTermsCode", top=100)) == 12
    assert len(allowed(api, chain[0], "DeliveryTermsCode", top=100, skip=7)) == 5


def test_values_of_a_reference(api: Api, chain: list[str], world: World) -> None:
    """GetPropertyAllowedValues of a reference: entities that the caller may read, each Value writable as it is"""
    for sign in ("AAA", "AAB", "AAC"):
        api.create(CURRENCIES, {"CurrencySign": sign, "Name": sign})
    found = allowed(api, chain[0], "DocumentCurrency", search="'aa%b'")
    assert [text for _, text in found] == ["AAB"]
    assert api.patch(chain[0], {"DocumentCurrency@odata.bind": found[0][0]}).status_code == 204
    assert [text for _, text in allowed(api, chain[0], "DocumentCurrency", search="'aa'", skip=1, top=1)] == ["AAB"]
    user = person("bob")
    give_role(user, {"*": "r"}, {"General.Currencies.Currencies": "CurrencySign ne 'AAB'"})
    assert [text for _, text in allowed(caller(user), chain[0], "DocumentCurrency", search="'aa'")] == ["AAA", "AAC"]
    carol = person("carol")
    give_role(carol, {"Crm.*": "r"})
    assert allowed(caller(carol), chain[0], "DocumentCurrency") == []


def test_values_of_custom_properties(api: Api, world: World) -> None:
    """GetPropertyAllowedValues of a custom property: its allowed values; of a property of free values: none"""
    known = make_property(world, "colour")
    for value in ("red", "green"):
        api.create(
            f"Systems_Bpm_CustomProperties({known})/AllowedValues",
            {"PropertyAllowedValueField": value, "Description": {"EN": value.title()}},
        )
    product = f"{PRODUCTS}({world.product})"
    assert allowed(api, product, "CustomProperty_colour") == [("green", "Green"), ("red", "Red")]
    assert allowed(api, product, "CustomProperty_colour", search="'RED'") == [("red", "Red")]
    assert allowed(api, product, "PartNumber") == []


def test_bad_calls_of_values(api: Api, world: World) -> None:
    """Bad calls of GetPropertyAllowedValues name what is wrong: no name, an unknown one, a negative page"""
    entity = f"{PRODUCTS}({world.product})/GetPropertyAllowedValues"
    refused = api.get(f"{entity}(propertyName='Partnumer')")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "UnknownProperty")
    assert "PartNumber" in error_of(refused)["message"]
    assert error_of(api.get(entity))["type"] == "MissingParameter"
    for wrong in ("top=-1", "skip=-1", "top='x'"):
        assert api.get(f"{entity}(propertyName='Name',{wrong})").status_code == 400, wrong
    for odd in ("''", "'%25'", "'a''b'", "'%25%25x'"):
        assert api.get(f"{entity}(propertyName='ProductGroup',search={odd})").status_code == 200, odd
    assert api.get(f"{entity}(propertyName='ProductGroup',skip=2147483647,top=2147483647)").json()["value"] == []


# --- GetOrCreateExtensibleDataObject ------------------------------------------------------------------------------


def test_a_data_object(api: Api, world: World) -> None:
    """GetOrCreateExtensibleDataObject creates one for the entity at the first call, and gives it at each further one"""
    product = f"{PRODUCTS}({world.product})"
    made = api.read(f"{product}/GetOrCreateExtensibleDataObject")
    assert (made["EntityType"], made["EntityItemId"]) == ("Gen_Products", world.product)
    assert made["DisplayName"] == api.read(f"{product}?$select=DisplayText")["DisplayText"]
    assert id_of(api.read(f"{product}/GetOrCreateExtensibleDataObject()")) == id_of(made)
    assert api.get(f"{OBJECTS}/$count").content == b"1"
    narrow = api.read(f"{product}/GetOrCreateExtensibleDataObject?$select=EntityType")
    assert "DisplayName" not in narrow


def test_head_makes_no_data_object(api: Api, world: World) -> None:
    """HEAD is safe (RFC 9110, 9.2.1), so that of an address whose GET may create is not offered"""
    refused = api.request("HEAD", f"{PRODUCTS}({world.product})/GetOrCreateExtensibleDataObject()")
    assert (refused.status_code, refused["Allow"]) == (405, "GET, OPTIONS")
    assert api.get(f"{OBJECTS}/$count").content == b"0"
    assert api.request("HEAD", "GetVersion()").status_code == 200


def test_a_data_object_in_a_transaction(api: Api, world: World) -> None:
    """A data object is saved at once, within a Domain transaction that is undone, too"""
    inside = api.begin()
    made = inside.read(f"{PRODUCTS}({world.product})/GetOrCreateExtensibleDataObject")
    assert inside.end(commit=False).status_code == 204
    assert api.get(made["@odata.id"]).status_code == 200


def test_who_may_have_a_data_object(api: Api, world: World) -> None:
    """To create a data object takes the right to, and the scope update; to get an existing one the right to read it"""
    product = f"{PRODUCTS}({world.product})/GetOrCreateExtensibleDataObject"
    user = person("bob")
    give_role(user, {"*": "r"})
    bob = caller(user)
    assert (bob.get(product).status_code, error_of(bob.get(product))["type"]) == (403, "PermissionDenied")
    assert api.get(f"{OBJECTS}/$count").content == b"0"
    made = api.read(product)
    assert id_of(bob.read(product)) == id_of(made)
    assert error_of(caller(user, scopes="read").get(product))["parameters"] == ["update"]
    carol = person("carol")
    give_role(carol, {"General.*": "r"})
    assert caller(carol).get(product).status_code == 403
    dave = person("dave")
    give_role(dave, {"*": "crud"}, {"General.Products.Products": "PartNumber eq 'other'"})
    assert caller(dave).get(product).status_code == 404


# --- Complete -----------------------------------------------------------------------------------------------------


def complete(api: Api, document: str, completion: str) -> Any:
    """Call it."""
    return api.post(f"{document}/Complete", {"completion": completion})


def test_complete_one(api: Api, chain: list[str]) -> None:
    """Complete with OnlyDocument completes the document alone; doing it again changes nothing"""
    assert complete(api, chain[1], "OnlyDocument").status_code == 204
    assert complete(api, chain[1], "OnlyDocument").status_code == 204
    assert states(api, chain) == ["New", "Completed", "New"]
    stored = api.read(f"{chain[1]}?$select=CompleteTime&$expand=StateChanges")
    assert stored["CompleteTime"]
    assert [each["NewState"] for each in stored["StateChanges"]] == ["Completed"]


def test_complete_all(api: Api, chain: list[str]) -> None:
    """Complete with WithAllChildren completes every document below, at any depth, and leaves void ones"""
    assert api.post(f"{chain[1]}/MakeVoid", {"reason": "x"}).status_code == 204
    assert complete(api, chain[0], "withallchildren").status_code == 204
    assert states(api, chain) == ["Completed", "New", "Completed"]


def test_complete_released(api: Api, chain: list[str]) -> None:
    """Complete with WithReleasedChildren completes, of the documents below, those that are released"""
    assert api.post(f"{chain[2]}/ChangeState", {"newState": "Released"}).status_code == 204
    assert complete(api, chain[0], "WithReleasedChildren").status_code == 204
    assert states(api, chain) == ["Completed", "New", "Completed"]


def test_complete_an_activity(api: Api, world: World) -> None:
    """Complete completes an activity, the reference's own example"""
    kind = api.create(
        "Systems_Documents_DocumentTypes",
        {"Code": "TASK", "TypeName": {"EN": "Task"}, "EntityName": "General_Activities_Activities"},
    )
    task = api.create(
        "General_Activities_Activities", {"DocumentType@odata.bind": kind["@odata.id"], "Subject": "Call"}
    )
    assert complete(api, task["@odata.id"], "OnlyDocument").status_code == 204
    assert api.read(f"{task['@odata.id']}?$select=State")["State"] == "Completed"


def test_complete_is_refused(api: Api, chain: list[str], world: World) -> None:
    """Complete is all or nothing: a void document, an unknown completion, a document below that may not be changed"""
    for body in ({"completion": "Some"}, {}, {"completion": 7.5}, {"completion": "OnlyDocument", "x": 1}):
        assert api.post(f"{chain[0]}/Complete", body).status_code == 400, body
    protected = api.read(f"{chain[1]}?$select=DocumentNo")["DocumentNo"]
    user = person("bob")
    give_role(user, {"*": "crud"}, {"Crm.Sales.SalesOrders": f"DocumentNo ne '{protected}'"}, operations="u")
    refused = complete(caller(user), chain[0], "WithAllChildren")
    assert (refused.status_code, error_of(refused)["type"]) == (403, "PermissionDenied")
    assert states(api, chain) == ["New"] * 3
    assert api.post(f"{chain[0]}/MakeVoid", {"reason": "x"}).status_code == 204
    assert error_of(complete(api, chain[0], "OnlyDocument"))["type"] == "DocumentVoid"


# --- MakeVoid -----------------------------------------------------------------------------------------------------


def voided(api: Api, documents: list[str]) -> list[bool]:
    """Which of the documents are void."""
    return [api.read(f"{document}?$select=Void")["Void"] for document in documents]


@pytest.mark.parametrize(
    "void_type, expected",
    [
        ({}, [True, False, False]),
        ({"voidType": None}, [True, False, False]),
        ({"voidType": "VoidDocument"}, [True, False, False]),
        ({"voidType": "voidwithsubdocuments"}, [True, True, True]),
        ({"voidType": "VoidWithReleasedSubDocuments"}, [True, False, True]),
    ],
)
def test_void_type(api: Api, chain: list[str], void_type: dict[str, Any], expected: list[bool]) -> None:
    """MakeVoid makes the document void, alone or with all or the released documents below it"""
    assert api.post(f"{chain[2]}/ChangeState", {"newState": "Released"}).status_code == 204
    assert api.post(f"{chain[0]}/MakeVoid", {"reason": "x", **void_type}).status_code == 204
    assert voided(api, chain) == expected


def test_void_type_is_refused(api: Api, chain: list[str]) -> None:
    """MakeVoid with an unknown void type, or with a document below that may not be changed, changes nothing"""
    for wrong in ("Foo", "", 7, True):
        refused = api.post(f"{chain[0]}/MakeVoid", {"reason": "x", "voidType": wrong})
        assert (refused.status_code, error_of(refused)["target"]) == (400, "voidType"), wrong
    protected = api.read(f"{chain[1]}?$select=DocumentNo")["DocumentNo"]
    user = person("bob")
    give_role(user, {"*": "crud"}, {"Crm.Sales.SalesOrders": f"DocumentNo ne '{protected}'"}, operations="u")
    below = caller(user).post(f"{chain[0]}/MakeVoid", {"reason": "x", "voidType": "VoidWithSubDocuments"})
    assert (below.status_code, error_of(below)["type"]) == (403, "PermissionDenied")
    assert voided(api, chain) == [False] * 3
    declared = api.get("$metadata").content.decode()
    assert '<Parameter Name="voidType" Type="Erp.General_Documents_DocumentsRepositoryBase_VoidType"' in declared


@pytest.mark.parametrize(
    "parent, given, expected",
    [
        ("Completed", {}, "Released"),
        ("Completed", {"resetParentState": True}, "Released"),
        ("Completed", {"resetParentState": False}, "Completed"),
        ("Released", {}, "Released"),
        ("Closed", {}, "Closed"),
    ],
)
def test_void_resets_the_parent(api: Api, chain: list[str], parent: str, given: dict[str, Any], expected: str) -> None:
    """MakeVoid with resetParentState, which is the default, returns a completed parent to Released"""
    assert api.post(f"{chain[0]}/ChangeState", {"newState": parent}).status_code == 204
    assert api.post(f"{chain[1]}/MakeVoid", {"reason": "x", **given}).status_code == 204
    assert states(api, chain)[0] == expected
    assert voided(api, chain) == [False, True, False]


def test_void_leaves_a_parent_that_the_caller_may_not_change(api: Api, chain: list[str]) -> None:
    """MakeVoid is refused if the parent to reset may not be changed; a parent that is hidden stays as it is"""
    assert api.post(f"{chain[0]}/ChangeState", {"newState": "Completed"}).status_code == 204
    top = api.read(f"{chain[0]}?$select=DocumentNo")["DocumentNo"]
    reader, blind = person("bob"), person("carl")
    give_role(reader, {"*": "crud"}, {"Crm.Sales.SalesOrders": f"DocumentNo ne '{top}'"}, operations="u")
    give_role(blind, {"*": "crud"}, {"Crm.Sales.SalesOrders": f"DocumentNo ne '{top}'"})
    refused = caller(reader).post(f"{chain[1]}/MakeVoid", {"reason": "x"})
    assert (refused.status_code, error_of(refused)["type"]) == (403, "PermissionDenied")
    assert voided(api, chain) == [False] * 3
    assert caller(blind).post(f"{chain[1]}/MakeVoid", {"reason": "x"}).status_code == 204
    assert states(api, chain)[0] == "Completed"


# --- ChangeFolder -------------------------------------------------------------------------------------------------

FOLDERS = "General_Files_Folders"


def test_a_folder(api: Api, world: World) -> None:
    """ChangeFolder puts a data object into a folder; nothing else does"""
    made = api.read(f"{PRODUCTS}({world.product})/GetOrCreateExtensibleDataObject")["@odata.id"]
    folder = api.create(FOLDERS, {"Name": "Contracts"})["@odata.id"]
    for argument in ({"@odata.id": folder}, folder, {"@odata.id": folder}):
        assert api.post(f"{made}/ChangeFolder", {"folder": argument}).status_code == 204, argument
    stored = api.read(f"{made}?$expand=Folder($select=Name),LastUpdateUser")
    assert stored["Folder"]["Name"] == "Contracts"
    other = api.create(FOLDERS, {"Name": "Other"})["@odata.id"]
    assert api.patch(made, {"Folder@odata.bind": other}).status_code == 400
    assert api.delete(folder).status_code != 204


def test_a_folder_is_refused(api: Api, world: World) -> None:
    """ChangeFolder without a folder, with another entity, a hidden folder, or without the right, changes nothing"""
    made = api.read(f"{PRODUCTS}({world.product})/GetOrCreateExtensibleDataObject")["@odata.id"]
    folder = api.create(FOLDERS, {"Name": "Contracts"})["@odata.id"]
    for body in ({}, {"folder": None}, {"folder": {"@odata.id": f"{PRODUCTS}({world.product})"}}, {"folder": "x"}):
        refused = api.post(f"{made}/ChangeFolder", body)
        assert error_of(refused)["type"] != "InternalError"
        assert refused.status_code == 400, body
    nowhere = api.post(f"{made}/ChangeFolder", {"folder": f"{FOLDERS}({new_guid()})"})
    assert error_of(nowhere)["type"] == "ReferencedEntityNotFound"
    bob, carol = person("bob"), person("carol")
    give_role(bob, {"*": "r"})
    assert error_of(caller(bob).post(f"{made}/ChangeFolder", {"folder": folder}))["type"] == "PermissionDenied"
    give_role(carol, {"*": "crud"}, {"General.Files.Folders": "Name ne 'Contracts'"})
    hidden = caller(carol).post(f"{made}/ChangeFolder", {"folder": folder})
    assert error_of(hidden)["type"] == "ReferencedEntityNotFound"
    assert api.read(f"{made}?$expand=Folder")["Folder"] is None


def test_folders_make_a_tree(api: Api) -> None:
    """A folder is not above itself"""
    top = api.create(FOLDERS, {"Name": "Top"})["@odata.id"]
    low = api.create(FOLDERS, {"Name": "Low", "ParentFolder@odata.bind": top})["@odata.id"]
    assert error_of(api.patch(top, {"ParentFolder@odata.bind": low}))["type"] == "HierarchyLoop"


# --- AdditionalDataJson -------------------------------------------------------------------------------------------


def test_additional_data(api: Api, world: World) -> None:
    """AdditionalDataJson of a root is given only where it is selected, as the text that was written"""
    text = '{ "shop": {"id": 7, "tags": ["a", "б"]} }'
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"AdditionalDataJson": text}).status_code == 204
    assert "AdditionalDataJson" not in api.read(product)
    assert "AdditionalDataJson" not in api.read(PRODUCTS)["value"][0]
    assert api.read(f"{product}?$select=AdditionalDataJson")["AdditionalDataJson"] == text
    assert api.read(f"{product}/AdditionalDataJson")["value"] == text
    order = api.create(ORDERS, order_body(world, AdditionalDataJson="[1]"))["@odata.id"]
    assert api.read(f"{order}?$select=AdditionalDataJson")["AdditionalDataJson"] == "[1]"
    assert api.patch(product, {"AdditionalDataJson": None}).status_code == 204
    assert api.read(f"{product}?$select=AdditionalDataJson")["AdditionalDataJson"] is None


def test_additional_data_is_refused(api: Api, world: World) -> None:
    """AdditionalDataJson takes 32,000 characters of valid JSON, and no more"""
    product = f"{PRODUCTS}({world.product})"
    longest = '"' + "я" * 31_998 + '"'
    assert api.patch(product, {"AdditionalDataJson": longest}).status_code == 204
    refused = api.patch(product, {"AdditionalDataJson": longest + " "})
    assert (error_of(refused)["type"], error_of(refused)["target"]) == ("ValueTooLong", "AdditionalDataJson")
    for wrong in ("{", "", "{'a': 1}", "[" * 5000 + "]" * 5000, "NaN"):
        refused = api.patch(product, {"AdditionalDataJson": wrong})
        assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidLiteral"), wrong[:9]
    assert api.patch(product, {"AdditionalDataJson": {"a": 1}}).status_code == 400
    assert api.read(f"{product}?$select=AdditionalDataJson")["AdditionalDataJson"] == longest
