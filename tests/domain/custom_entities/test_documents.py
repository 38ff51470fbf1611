"""A custom entity that is a document has states, numbers and operations as shipped documents have (spec 10, 10.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.custom_entities.cars import ENTITIES, attribute, entity
from tests.rules.cast import World
from tests.support.api import Api, error_of, id_of

TRIPS = "Custom_Fleet_Trips"
TRIP = "Custom.Fleet.Trips"
DOCUMENTS = "General_Documents_Documents"
DEFINITION = entity(
    TRIP,
    attribute("Purpose", MaxLength=60, IsIndexed=True),
    attribute("Distance", "Decimal", DecimalPlaces=1),
    attribute("Driver", "Reference", TargetRepository="General.Contacts.Persons"),
    attribute("ReturnOf", "Reference", TargetRepository=TRIP),
    IsDocument=True,
)
STOPS = entity("Custom.Fleet.Stops", attribute("Place", Required=True), OwnerRepository=TRIP)


@pytest.fixture
def trips(admin: Api, world: World) -> Api:
    """Trips with their stops, and a document type of trips."""
    admin.create(ENTITIES, DEFINITION)
    admin.create(ENTITIES, STOPS)
    admin.create("Systems_Documents_DocumentTypes", {"Code": "TR", "TypeName": {"EN": "Trip"}, "EntityName": TRIPS})
    return admin


def create(api: Api, **values: Any) -> dict[str, Any]:
    """A trip with all its attributes."""
    made = api.create(TRIPS, {"Purpose": "Fair", **values})
    read: dict[str, Any] = api.read(f"{TRIPS}({id_of(made)})?$select=*,DisplayText")
    return read


def test_it_is_a_document(trips: Api) -> None:
    trip = create(trips, Distance=12.5)

    assert (trip["State"], trip["DocumentNo"], trip["Void"]) == ("New", "0000000001", False)
    assert (trip["EntityName"], trip["Distance"]) == (TRIPS, 12.5)
    assert trip["DisplayText"] == "Trip 0000000001"
    assert create(trips)["DocumentNo"] == "0000000002"
    # Among all documents, by its type.
    path = f"{DOCUMENTS}({trip['Id']})"
    assert trips.read(f"{path}?$select=DocumentNo")["@odata.type"].endswith("Custom_Fleet_Trip")
    assert trips.read(f"{path}/Erp.Custom_Fleet_Trip?$select=Purpose")["Purpose"] == "Fair"
    assert trips.read(f"{TRIPS}?$filter=State eq 'New' and Purpose eq 'Fair'&$count=true")["@odata.count"] == 2


def test_its_states_and_its_voiding(trips: Api) -> None:
    trip = create(trips, Stops=[{"Place": "Varna"}])
    path = trip["@odata.id"]
    stop = trips.read(f"{path}/Stops")["value"][0]["@odata.id"]

    assert trips.post(f"{path}/ChangeState", {"newState": "Released"}).status_code == 204
    assert error_of(trips.patch(path, {"Purpose": "x"}))["type"] == "DocumentLocked"
    assert error_of(trips.patch(stop, {"Place": "x"}))["type"] == "DocumentLocked"
    assert error_of(trips.post(f"{path}/ChangeState", {"newState": "New"}))["type"] == "StateTransitionNotAllowed"
    changes = trips.read(f"{path}/StateChanges?$orderby=UpdateTime")["value"]
    assert [change["NewState"] for change in changes] == ["Released"]
    assert error_of(trips.post(f"{path}/MakeVoid", {"reason": ""}))["type"] == "VoidReasonRequired"
    assert trips.post(f"{path}/MakeVoid", {"reason": "rain"}).status_code == 204
    assert trips.read(f"{path}?$select=VoidReason,FullState")["VoidReason"] == "rain"
    # A planned one becomes a firm plan when its parts are edited.
    planned = create(trips, Stops=[{"Place": "Russe"}])["@odata.id"]
    trips.post(f"{planned}/ChangeState", {"newState": "Planned"})
    trips.patch(trips.read(f"{planned}/Stops")["value"][0]["@odata.id"], {"Place": "Vidin"})
    assert trips.read(f"{planned}?$select=State")["State"] == "FirmPlanned"


def test_references_from_and_to_it(trips: Api) -> None:
    first = create(trips)
    second = create(
        trips, **{"ReturnOf@odata.bind": first["@odata.id"], "Parent@odata.bind": f"{DOCUMENTS}({first['Id']})"}
    )
    found = trips.read(f"{TRIPS}?$filter=ReturnOf/DocumentNo eq '{first['DocumentNo']}'&$select=Id")["value"]
    assert [row["Id"] for row in found] == [second["Id"]]
    parents = trips.read(f"{second['@odata.id']}/GetAllParentDocuments?$select=Id")["value"]
    assert [parent["Id"] for parent in parents] == [first["Id"]]
    assert error_of(trips.delete(first["@odata.id"]))["type"] == "ReferenceInUse"


def test_its_definition_changes_as_others_do(trips: Api) -> None:
    trip = create(trips)
    definition = trips.read(f"{ENTITIES}?$filter=Name eq '{TRIP}'&$expand=Attributes")["value"][0]
    purpose = next(row["@odata.id"] for row in definition["Attributes"] if row["Name"] == "Purpose")
    assert trips.patch(purpose, {"Name": "Aim", "IsUnique": True}).status_code < 300
    assert trips.read(f"{trip['@odata.id']}?$select=Aim")["Aim"] == "Fair"
    assert error_of(trips.post(TRIPS, {"Aim": "Fair"}))["type"] == "DuplicateValue"


def test_what_cannot_change_later(trips: Api) -> None:
    path = trips.read(f"{ENTITIES}?$filter=Name eq '{TRIP}'")["value"][0]["@odata.id"]
    assert "IsDocument cannot be changed" in error_of(trips.patch(path, {"IsDocument": False}))["message"]
    stops = trips.read(f"{ENTITIES}?$filter=Name eq 'Custom.Fleet.Stops'")["value"][0]["@odata.id"]
    assert trips.delete(stops).status_code == 204
    assert "Trip refer" in error_of(trips.delete(path))["message"]
    # Stored documents keep their entity, as their type keeps them.
    trip, type_ = create(trips), trips.read("Systems_Documents_DocumentTypes?$filter=Code eq 'TR'")["value"][0]
    assert trips.delete(trip["@odata.id"]).status_code == 204
    assert trips.delete(type_["@odata.id"]).status_code == 204
    assert trips.delete(path).status_code == 204
    assert trips.get(f"{DOCUMENTS}?$top=1").status_code == 200


REFUSED = {
    "owner": ({"OwnerRepository": "Custom.Fleet.Cars"}, "a document has no owner"),
    "tracked": ({"TrackChanges": True}, "its own times and users"),
    "code": ({"CodeAttribute": "Purpose"}, "DocumentNo"),
    "state": ({"Attributes": [attribute("State")]}, "reserved"),
    "number": ({"Attributes": [attribute("DocumentNo")]}, "reserved"),
    "collection": ({"Attributes": [attribute("Comments")]}, "reserved"),
}


@pytest.mark.parametrize("values, said", REFUSED.values(), ids=REFUSED)
def test_refused_definitions(admin: Api, values: dict[str, Any], said: str) -> None:
    admin.create(ENTITIES, entity("Custom.Fleet.Cars", attribute("Code")))
    error = error_of(admin.post(ENTITIES, {**DEFINITION, **values}))
    assert (error["type"], said in error["message"]) == ("CustomEntityInvalid", True), error


def test_collections_have_names_of_their_own(admin: Api) -> None:
    admin.create(ENTITIES, DEFINITION)
    comments = entity("Custom.Fleet.Comments", attribute("Text"), OwnerRepository=TRIP)
    assert "another member Comments" in error_of(admin.post(ENTITIES, comments))["message"]
    admin.create(ENTITIES, STOPS)
    others = entity("Custom.Other.Stops", attribute("Place"), OwnerRepository=TRIP, SingularName="OtherStop")
    assert "another member Stops" in error_of(admin.post(ENTITIES, others))["message"]
    path = admin.read(f"{ENTITIES}?$filter=Name eq '{TRIP}'")["value"][0]["@odata.id"]
    more = {"CustomEntity@odata.bind": path, **attribute("Stops")}
    assert "name of a collection" in error_of(admin.post("Systems_Bpm_CustomEntityAttributes", more))["message"]
