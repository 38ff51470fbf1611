"""2 Resources and their fields"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import requests

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.objects import (
    APPLICATIONS,
    ORDERS,
    RULES,
    WEBHOOKS,
    Maker,
    condition,
    fail,
    state_of,
    webhook,
)
from tests.acceptance.people import Person, token_request
from tests.acceptance.receiving import Hooks
from tests.acceptance.statements import statement

ORDER_EVENTS, LINE_EVENTS = "Crm.Sales.SalesOrders", "Crm.Sales.SalesOrderLines"
PRODUCT_EVENTS, GROUP_EVENTS = "General.Products.Products", "General.Products.ProductGroups"
EDM = "{http://docs.oasis-open.org/odata/ns/edm}"
STATE_NAMES = ("PLANNED", "FIRM PLANNED", "RELEASED", "COMPLETED", "CLOSED")


class TestTrustedApplication:
    @statement("2.1", "A trusted application is stored in the instance's database and read back")
    def test_stored(self, make: Maker) -> None:
        made = make.new(APPLICATIONS, {"ApplicationUri": f"app/{make.mark}", "Name": "kept"})
        assert make.caller.read(made["@odata.id"])["ApplicationUri"] == f"app/{make.mark}"

    @statement("2.1", "ApplicationUri is a string; SystemUserAllowed a boolean; the URLs for login and logout strings")
    def test_types(self, service: Caller) -> None:
        (found,) = service.rows(f"{APPLICATIONS}?$filter=ApplicationUri eq 'DualDemoClient'")
        assert found["ApplicationUri"] == "DualDemoClient"
        assert found["SystemUserAllowed"] is True
        assert found["ImpersonateLoginUrl"].startswith("http://localhost:5080/")
        assert found["ImpersonateLogoutUrl"].startswith("http://localhost:5080/")

    @statement("2.1", "ImpersonateLoginUrl and ImpersonateLogoutUrl may be empty")
    def test_empty_urls(self, make: Maker) -> None:
        urls = {"ImpersonateLoginUrl": "", "ImpersonateLogoutUrl": ""}
        made = make.new(APPLICATIONS, {"ApplicationUri": f"app/{make.mark}", "Name": "x", **urls})
        assert (made["ImpersonateLoginUrl"], made["ImpersonateLogoutUrl"]) == ("", "")

    @statement("2.1", "The ApplicationUri is the client's identity: there is one application of a name")
    def test_unique(self, service: Caller) -> None:
        twice = service.post(APPLICATIONS, {"ApplicationUri": "ServiceDemoClient", "Name": "again"})
        assert error_of(twice, 500)["code"] == 2129

    @statement("2.1", "A service application must be configured with a system user")
    def test_system_user(self, service: Caller, mark: str) -> None:
        body = {"ApplicationUri": f"app/{mark}", "Name": "x", "SystemUserAllowed": True}
        assert error_of(service.post(APPLICATIONS, body), 500)["target"] == "SystemUser"


class TestDiscovery:
    @pytest.fixture(scope="class")
    @classmethod
    def sites(cls, anyone: Caller) -> list[dict[str, Any]]:
        answer = answered(anyone.get("/sys/auto-discovery"), 200)
        assert answer.headers["Content-Type"].startswith("application/json")
        found: list[dict[str, Any]] = answer.json()["WebSites"]
        return found

    @statement("2.2", "The discovery result is an object whose property WebSites is an array")
    def test_array(self, anyone: Caller) -> None:
        answer = anyone.read("/sys/auto-discovery")
        assert isinstance(answer, dict)
        assert isinstance(answer["WebSites"], list)

    @statement("2.2", "Type of a site is a string; the instance has sites of the types ID and API")
    def test_type(self, sites: list[dict[str, Any]]) -> None:
        assert all(isinstance(site["Type"], str) for site in sites)
        assert [site["Type"] for site in sites[:2]] == ["ID", "API"]

    @statement("2.2", "Status of a site is a string; a working site reports Working")
    def test_status(self, sites: list[dict[str, Any]]) -> None:
        assert {site["Status"] for site in sites} == {"Working"}

    @statement("2.2", "Url of a site is its absolute address, where it answers")
    def test_url(self, sites: list[dict[str, Any]]) -> None:
        for site in sites:
            assert urlsplit(site["Url"]).scheme in {"http", "https"}
            assert requests.get(site["Url"], timeout=60).status_code < 500

    @statement("2.2", "AdditionalProperties is null for ID")
    def test_id_site(self, sites: list[dict[str, Any]]) -> None:
        (found,) = [site for site in sites if site["Type"] == "ID"]
        assert found["AdditionalProperties"] is None

    @statement("2.2", "AdditionalProperties of API contains ODataServiceRoot, the address of the OData root")
    def test_api_site(self, sites: list[dict[str, Any]], service: Caller) -> None:
        (found,) = [site for site in sites if site["Type"] == "API"]
        root = found["AdditionalProperties"]["ODataServiceRoot"]
        assert root == service.url("")
        assert requests.get(root, headers=dict(service.headers), timeout=60).status_code == 200

    @statement("2.2", "AdditionalProperties of every site is an object or null")
    def test_additional_properties(self, sites: list[dict[str, Any]]) -> None:
        assert all(isinstance(site["AdditionalProperties"], dict | None) for site in sites)


class TestTokenResponse:
    @statement("2.3", "The authorization code grant answers JSON with access_token, id_token and refresh_token")
    def test_code(self, demo: Person) -> None:
        assert all(isinstance(demo.tokens[name], str) for name in ("access_token", "id_token", "refresh_token"))

    @statement("2.3", "The refresh_token grant answers a new access_token and a new refresh_token")
    def test_refresh(self, anyone: Caller) -> None:
        with Person.signed_in(anyone, "demo") as person:
            old = person.tokens
            form = {"grant_type": "refresh_token", "refresh_token": old["refresh_token"]}
            fresh = answered(token_request(anyone, **form), 200).json()
            assert isinstance(fresh["access_token"], str)
            assert isinstance(fresh["refresh_token"], str)
            assert fresh["access_token"] != old["access_token"]
            assert fresh["refresh_token"] != old["refresh_token"]

    @statement("2.3", "The client_credentials grant answers an access_token and no user identity")
    def test_client_credentials(self, anyone: Caller) -> None:
        answer = token_request(anyone, grant_type="client_credentials", client_id="ServiceDemoClient")
        tokens = answered(answer, 200).json()
        assert isinstance(tokens["access_token"], str)
        assert not {"id_token", "refresh_token"} & set(tokens)


def events_of(service: Caller, repository: str) -> dict[str, dict[str, Any]]:
    """Event type → item of GetRepositoryEvents."""
    answer = service.read(f"GetRepositoryEvents(repositoryName='{repository}')")
    return {item["EventType"]: item for item in answer["events"]}


@pytest.fixture(scope="module")
def schema(service: Caller) -> ElementTree.Element:
    """$metadata."""
    return ElementTree.fromstring(answered(service.get("$metadata"), 200).content)


@pytest.mark.parametrize("repository", [ORDER_EVENTS, LINE_EVENTS, PRODUCT_EVENTS, "Systems.Core.Scripts"])
class TestRepositoryEventsOf:
    @statement("2.4", "GetRepositoryEvents answers repositoryName, the name that was asked for, and events, an array")
    def test_result(self, service: Caller, repository: str) -> None:
        answer = service.read(f"GetRepositoryEvents(repositoryName='{repository}')")
        assert {name for name in answer if not name.startswith("@")} == {"repositoryName", "events"}
        assert answer["repositoryName"] == repository
        assert isinstance(answer["events"], list)

    @statement("2.4", "An item has exactly the six properties, EventType to EventAttributes, named as documented")
    def test_properties(self, service: Caller, repository: str) -> None:
        for item in events_of(service, repository).values():
            assert list(item) == [
                "EventType",
                "Description",
                "Layer",
                "RequiresEventParameter",
                "EventParameterDescription",
                "EventAttributes",
            ]

    @statement("2.4", "EventType is a string, the code that a rule is registered with; each comes once")
    def test_event_type(self, service: Caller, repository: str) -> None:
        items = service.read(f"GetRepositoryEvents(repositoryName='{repository}')")["events"]
        codes = [item["EventType"] for item in items]
        assert all(re.fullmatch("[A-Z]+", code) for code in codes)
        assert len(set(codes)) == len(codes)

    @statement("2.4", "Description is a string that says when the event occurs")
    def test_description(self, service: Caller, repository: str) -> None:
        for item in events_of(service, repository).values():
            assert isinstance(item["Description"], str)
            assert len(item["Description"]) > 10

    @statement("2.4", "Layer is Common, BackEnd or FrontEnd")
    def test_layer(self, service: Caller, repository: str) -> None:
        assert {item["Layer"] for item in events_of(service, repository).values()} <= {"Common", "BackEnd", "FrontEnd"}

    @statement("2.4", "RequiresEventParameter is a boolean")
    def test_requires_parameter(self, service: Caller, repository: str) -> None:
        assert all(type(item["RequiresEventParameter"]) is bool for item in events_of(service, repository).values())

    @statement("2.4", "EventParameterDescription is the format of a required parameter, a string; else null")
    def test_parameter_description(self, service: Caller, repository: str) -> None:
        for item in events_of(service, repository).values():
            expected = str if item["RequiresEventParameter"] else type(None)
            assert type(item["EventParameterDescription"]) is expected

    @statement("2.4", "EventAttributes is null where there are none, else an array of Name and Description")
    def test_attributes(self, service: Caller, repository: str) -> None:
        for item in events_of(service, repository).values():
            attributes = item["EventAttributes"]
            assert attributes is None or attributes
            for attribute in attributes or ():
                assert set(attribute) == {"Name", "Description"}
                assert all(isinstance(value, str) and value for value in attribute.values())

    @statement("2.4", "Names of event attributes start with $")
    def test_dollar(self, service: Caller, repository: str) -> None:
        for item in events_of(service, repository).values():
            assert all(attribute["Name"].startswith("$") for attribute in item["EventAttributes"] or ())

    @statement("2.4", "Event attributes are not part of the repository's schema in $metadata")
    def test_not_in_metadata(self, service: Caller, schema: ElementTree.Element, repository: str) -> None:
        entity_set = schema.find(f".//{EDM}EntitySet[@Name='{repository.replace('.', '_')}']")
        assert entity_set is not None
        name = entity_set.attrib["EntityType"].removeprefix("Erp.")
        names = {child.get("Name") for child in schema.iterfind(f".//{EDM}EntityType[@Name='{name}']/*")}
        assert len(names) > 5
        for item in events_of(service, repository).values():
            for attribute in item["EventAttributes"] or ():
                assert not {attribute["Name"], attribute["Name"].lstrip("$")} & names


class TestEventTypes:
    @statement("2.4", "CREATENEW: no parameter, layer Common, no attributes")
    def test_createnew(self, service: Caller) -> None:
        found = events_of(service, PRODUCT_EVENTS)["CREATENEW"]
        assert (found["Layer"], found["RequiresEventParameter"], found["EventAttributes"]) == ("Common", False, None)

    @statement("2.4", "A CREATENEW rule fills custom default values when an object is created")
    def test_createnew_fills_defaults(self, make: Maker) -> None:
        default = {
            "ActionNo": 10,
            "ActionType": "SETVALUE",
            "Parameter1Type": "Attribute",
            "Parameter1Value": "Notes",
            "Parameter2Type": "Constant",
            "Parameter2Value": f"default {make.mark}",
        }
        make.rule(GROUP_EVENTS, "CREATENEW", default, Layer="Common")
        assert make.caller.read(make.group())["Notes"] == f"default {make.mark}"

    @statement("2.4", "STATECHANGING: layer BackEnd, a document state as parameter")
    def test_statechanging(self, service: Caller) -> None:
        found = events_of(service, ORDER_EVENTS)["STATECHANGING"]
        assert (found["Layer"], found["RequiresEventParameter"]) == ("BackEnd", True)
        assert all(text in found["EventParameterDescription"] for text in ("10", "50", *STATE_NAMES))

    @statement("2.4", "STATECHANGING has $FromState, $ToState, $FromUserStatusId and $ToUserStatusId")
    def test_statechanging_attributes(self, service: Caller) -> None:
        found = events_of(service, ORDER_EVENTS)["STATECHANGING"]["EventAttributes"]
        expected = ["$FromState", "$ToState", "$FromUserStatusId", "$ToUserStatusId"]
        assert [attribute["Name"] for attribute in found] == expected

    @pytest.mark.parametrize("parameter", ["10", "20", "30", "40", "50", *STATE_NAMES])
    @statement("2.4", "STATECHANGING and STATECHANGED take a state number 10 to 50, or its name: {parameter}")
    def test_state_parameter(self, make: Maker, parameter: str) -> None:
        for number, event in enumerate(("STATECHANGING", "STATECHANGED")):
            rule = make.rule(ORDER_EVENTS, event, fail("x"), parameter=parameter, suffix=str(number), IsActive=False)
            (stored,) = make.caller.rows(f"{rule['@odata.id']}/Events")
            assert stored["EventParameter"] == parameter

    @pytest.mark.parametrize("parameter", ["0", "5", "60", "DRAFT", ""])
    @statement("2.4", "STATECHANGING refuses what is no state from 10 to 50: '{parameter}'")
    def test_wrong_state_parameter(self, service: Caller, mark: str, parameter: str) -> None:
        body = rule_body(mark, Events=[{"EventType": "STATECHANGING", "EventParameter": parameter}], Conditions=[])
        error_of(service.post(RULES, body), 500)

    @statement("2.4", "STATECHANGED needs a document state as parameter")
    def test_statechanged(self, service: Caller) -> None:
        found = events_of(service, ORDER_EVENTS)["STATECHANGED"]
        assert found["RequiresEventParameter"] is True
        assert "RELEASED" in found["EventParameterDescription"]

    @pytest.mark.parametrize("event", ["ATTRIBUTECHANGING", "ATTRIBUTECHANGED"])
    @statement("2.4", "{event} needs an attribute name as parameter")
    def test_attribute_events(self, service: Caller, event: str) -> None:
        found = events_of(service, LINE_EVENTS)[event]
        assert found["RequiresEventParameter"] is True
        assert "attribute" in found["EventParameterDescription"]

    @statement("2.4", "ATTRIBUTECHANGING has $NewValue, the pending value")
    def test_new_value(self, service: Caller) -> None:
        found = events_of(service, LINE_EVENTS)["ATTRIBUTECHANGING"]["EventAttributes"]
        assert "$NewValue" in [attribute["Name"] for attribute in found]

    @statement("2.4", "In ATTRIBUTECHANGING $NewValue is the pending value, and the attribute holds the old one")
    def test_pending_value(self, make: Maker) -> None:
        group = make.group(Notes="old")
        conditions = [condition("$NewValue", "Equals", "new"), condition("Notes", "Equals", "old", 20)]
        make.rule(GROUP_EVENTS, "ATTRIBUTECHANGING", fail("seen"), parameter="Notes", conditions=conditions)
        assert error_of(make.caller.patch(group, {"Notes": "new"}), 500)["message"] == "seen"
        assert make.caller.read(group)["Notes"] == "old"
        make.caller.change(group, {"Notes": "another"})

    @statement("2.4", "VOIDING is an event of documents and runs when one is made void")
    def test_voiding(self, make: Maker) -> None:
        order = make.order()
        conditions = [condition("DocumentNotes", "Equals", make.mark)]
        make.caller.change(order, {"DocumentNotes": make.mark})
        make.rule(ORDER_EVENTS, "VOIDING", fail("kept"), conditions=conditions)
        refused = make.caller.post(f"{order}/MakeVoid", {"reason": "test"})
        assert error_of(refused, 500)["message"] == "kept"

    @statement("2.4", "AGGREGATECLIENTCOMMIT takes no parameter")
    def test_aggregate_commit(self, service: Caller) -> None:
        found = events_of(service, ORDER_EVENTS)["AGGREGATECLIENTCOMMIT"]
        assert (found["RequiresEventParameter"], found["EventParameterDescription"]) == (False, None)

    @statement("2.4", "AGGREGATECLIENTCOMMIT runs on each commit of the root or of a child in its aggregate")
    def test_aggregate_tree(self, make: Maker) -> None:
        order = make.order()
        line = make.line_of(order)
        make.caller.change(order, {"DocumentNotes": make.mark})
        conditions = [condition("DocumentNotes", "Equals", make.mark)]
        make.rule(ORDER_EVENTS, "AGGREGATECLIENTCOMMIT", fail("aggregate"), conditions=conditions)
        for entity, body in ((order, {"ReferenceDocumentNo": "1"}), (line, {"Notes": "1"})):
            assert error_of(make.caller.patch(entity, body), 500)["message"] == "aggregate"

    @statement("2.4", "AGGREGATECLIENTCOMMIT runs on the commit of a ChangeState, too")
    def test_aggregate_commit_of_change_state(self, make: Maker) -> None:
        order = make.order(DocumentNotes=make.mark)
        conditions = [condition("DocumentNotes", "Equals", make.mark)]
        make.rule(ORDER_EVENTS, "AGGREGATECLIENTCOMMIT", fail("aggregate"), conditions=conditions)
        refused = make.caller.post(f"{order}/ChangeState", {"newState": "Planned"})
        assert error_of(refused, 500)["message"] == "aggregate"
        assert state_of(make.caller, order) == "New"

    @statement("2.4", "Document headers offer STATECHANGING, STATECHANGED and VOIDING")
    def test_headers(self, service: Caller) -> None:
        for repository in (ORDER_EVENTS, "Crm.Presales.Offers", "Crm.Invoicing.Invoices"):
            assert {"STATECHANGING", "STATECHANGED", "VOIDING"} <= set(events_of(service, repository))

    @statement("2.4", "Document lines offer attribute events and no events of the document's state")
    def test_lines(self, service: Caller) -> None:
        offered = set(events_of(service, LINE_EVENTS))
        assert {"ATTRIBUTECHANGING", "ATTRIBUTECHANGED"} <= offered
        assert not {"STATECHANGING", "STATECHANGED", "VOIDING"} & offered

    @statement("2.4", "Repositories with editable attributes offer ATTRIBUTECHANGING and ATTRIBUTECHANGED")
    def test_editable(self, service: Caller) -> None:
        assert {"ATTRIBUTECHANGING", "ATTRIBUTECHANGED"} <= set(events_of(service, PRODUCT_EVENTS))

    @statement("2.4", "Header and line repositories do not support the same events")
    def test_header_and_line(self, service: Caller) -> None:
        assert set(events_of(service, ORDER_EVENTS)) != set(events_of(service, LINE_EVENTS))

    @statement("2.4", "A rule is refused for an event that its repository does not offer")
    def test_authoritative_events(self, service: Caller, mark: str) -> None:
        body = rule_body(mark, RepositoryName=LINE_EVENTS, Conditions=[])
        assert "STATECHANGING" in error_of(service.post(RULES, body), 500)["message"]

    @statement("2.4", "The returned attribute names are authoritative: a rule is refused for any other")
    def test_authoritative_attributes(self, service: Caller, mark: str) -> None:
        body = rule_body(mark, Conditions=[condition("$NewValue", "IsNull")])
        assert "$NewValue" in error_of(service.post(RULES, body), 500)["message"]


def rule_body(mark: str, **values: Any) -> dict[str, Any]:
    """One event, two conditions and one action, as the interface shows them."""
    return {
        "Code": f"R-{mark}",
        "Name": {"EN": f"Rule {mark}"},
        "RepositoryName": ORDER_EVENTS,
        "Layer": "BackEnd",
        "IsActive": True,
        "Events": [
            {
                "EventType": "STATECHANGING",
                "EventParameter": "RELEASED",
                "ExecutionPriority": "Normal",
                "Layer": "BackEnd",
            }
        ],
        "Conditions": [
            condition("DocumentNotes", "Equals", mark, 10),
            condition("ReferenceDocumentNo", "IsNull", number=20),
        ],
        "Actions": [fail("refused")],
        **values,
    }


class TestRule:
    @pytest.fixture
    def rule(self, make: Maker) -> dict[str, Any]:
        made = make.new(RULES, rule_body(make.mark))
        found: dict[str, Any] = make.caller.read(f"{made['@odata.id']}?$expand=Events,Conditions,Actions")
        return found

    @statement("2.5", "One POST creates a rule with its events, conditions and actions: one, one, two and one record")
    def test_one_post(self, make: Maker) -> None:
        counted = {"": RULES} | {
            name: f"Systems_Bpm_UserBusinessRule{name}" for name in ("Events", "Conditions", "Actions")
        }
        before = {name: make.caller.count(path) for name, path in counted.items()}
        make.new(RULES, rule_body(make.mark))
        added = {name: make.caller.count(path) - before[name] for name, path in counted.items()}
        assert added == {"": 1, "Events": 1, "Conditions": 2, "Actions": 1}

    @statement("2.5", "Code and RepositoryName of a rule are strings, Name a map of language codes to texts")
    def test_fields(self, rule: dict[str, Any]) -> None:
        assert rule["Code"].startswith("R-")
        assert rule["RepositoryName"] == ORDER_EVENTS
        assert list(rule["Name"]) == ["EN"]

    @statement("2.5", "Layer of a rule is BackEnd or FrontEnd, IsActive a boolean")
    def test_layer(self, rule: dict[str, Any], make: Maker) -> None:
        assert rule["Layer"] == "BackEnd"
        assert rule["IsActive"] is True
        make.caller.change(rule["@odata.id"], {"IsActive": False})
        assert make.caller.read(rule["@odata.id"])["IsActive"] is False

    @pytest.mark.parametrize("layer", ["BackEnd", "FrontEnd", "Common"])
    @statement("2.5", "A rule and its event take the layer that the event's metadata names: {layer}")
    def test_layers(self, make: Maker, layer: str) -> None:
        event, parameter = {
            "BackEnd": ("COMMIT", None),
            "FrontEnd": ("ATTRIBUTECHANGING", "Notes"),
            "Common": ("CREATENEW", None),
        }[layer]
        given = {"EventType": event, "Layer": layer} | ({"EventParameter": parameter} if parameter else {})
        rule = make.rule(GROUP_EVENTS, given, fail("x"), Layer=layer, IsActive=False)
        assert rule["Layer"] == layer
        assert make.caller.rows(f"{rule['@odata.id']}/Events")[0]["Layer"] == layer

    @statement("2.5", "Events are records of Systems.Bpm.UserBusinessRuleEvents: EventType, EventParameter, "
               "ExecutionPriority and Layer, strings")  # fmt: skip
    def test_events(self, rule: dict[str, Any], service: Caller) -> None:
        (event,) = rule["Events"]
        assert event["@odata.id"].startswith("Systems_Bpm_UserBusinessRuleEvents(")
        names = ("EventType", "EventParameter", "ExecutionPriority", "Layer")
        assert [event[name] for name in names] == ["STATECHANGING", "RELEASED", "Normal", "BackEnd"]
        assert service.read(event["@odata.id"])["EventType"] == "STATECHANGING"

    @statement("2.5", "EventParameter may be absent when the event needs none")
    def test_no_parameter(self, make: Maker) -> None:
        rule = make.rule(GROUP_EVENTS, "COMMIT", fail("x"), IsActive=False)
        assert make.caller.rows(f"{rule['@odata.id']}/Events")[0]["EventParameter"] is None

    @statement("2.5", "EventParameter must be there when the event needs one")
    def test_missing_parameter(self, service: Caller, mark: str) -> None:
        body = rule_body(mark, Events=[{"EventType": "STATECHANGING"}])
        error_of(service.post(RULES, body), 500)

    @statement("2.5", "Conditions are records of Systems.Bpm.UserBusinessRuleConditions: ConditionNo an integer; "
               "AttributeName, ComparisonType and Value strings")  # fmt: skip
    def test_conditions(self, rule: dict[str, Any]) -> None:
        first, second = sorted(rule["Conditions"], key=lambda found: found["ConditionNo"])
        assert first["@odata.id"].startswith("Systems_Bpm_UserBusinessRuleConditions(")
        assert [type(found["ConditionNo"]) for found in (first, second)] == [int, int]
        names = ("ConditionNo", "AttributeName", "ComparisonType")
        assert [first[name] for name in names] == [10, "DocumentNotes", "Equals"]
        assert [second[name] for name in names] == [20, "ReferenceDocumentNo", "IsNull"]
        assert isinstance(first["Value"], str)

    @statement("2.5", "Value of a condition is absent for IsNull")
    def test_no_value(self, rule: dict[str, Any]) -> None:
        assert [found["Value"] for found in rule["Conditions"] if found["ComparisonType"] == "IsNull"] == [None]

    @statement("2.5", "A condition names an event attribute or a custom property, @code")
    def test_attribute_names(self, make: Maker) -> None:
        code = make.text_property(ORDERS)
        conditions = [
            condition("$ToUserStatusId", "Equals", "0187d2a0-001a-7000-8000-000000000001"),
            condition(f"@{code}", "IsNull", number=20),
        ]
        rule = make.new(RULES, rule_body(make.mark, Conditions=conditions))
        found = make.caller.rows(f"{rule['@odata.id']}/Conditions?$orderby=ConditionNo")
        assert [item["AttributeName"] for item in found] == ["$ToUserStatusId", f"@{code}"]

    @statement("2.5", "ComparisonType may be Equals, IsNull and Greater_Than; a decimal value is written as text")
    def test_comparisons(self, make: Maker) -> None:
        conditions = [
            condition("LineCustomDiscountPercent", "Greater_Than", "0.25", 10),
            condition("Notes", "IsNull", number=20),
            condition("Quantity", "Equals", "3", 30),
        ]
        rule = make.rule(LINE_EVENTS, "COMMIT", fail("x"), conditions=conditions, IsActive=False)
        found = make.caller.rows(f"{rule['@odata.id']}/Conditions?$orderby=ConditionNo")
        assert [item["ComparisonType"] for item in found] == ["Greater_Than", "IsNull", "Equals"]
        assert found[0]["Value"] == "0.25"

    @statement("2.5", "Actions are records of Systems.Bpm.UserBusinessRuleActions: ActionNo an integer; ActionType, "
               "Parameter1Type and Parameter1Value strings")  # fmt: skip
    def test_actions(self, rule: dict[str, Any]) -> None:
        (action,) = rule["Actions"]
        assert action["@odata.id"].startswith("Systems_Bpm_UserBusinessRuleActions(")
        names = ("ActionNo", "ActionType", "Parameter1Type", "Parameter1Value")
        assert [action[name] for name in names] == [10, "FAIL", "Constant", "refused"]
        assert type(action["ActionNo"]) is int

    @statement("2.5", "The value of a FAIL action is the error message that cancels the operation")
    def test_fail(self, rule: dict[str, Any], make: Maker) -> None:
        order = make.order(DocumentNotes=make.mark)
        refused = make.caller.post(f"{order}/ChangeState", {"newState": "Released"})
        assert error_of(refused, 500)["message"] == "refused"
        assert state_of(make.caller, order) == "New"

    @statement("2.5", "The value of a WEBHOOK action is the code of a template that exists")
    def test_webhook(self, service: Caller, mark: str) -> None:
        body = rule_body(mark, Actions=[webhook(f"NONE-{mark}")])
        assert f"NONE-{mark}" in error_of(service.post(RULES, body), 500)["message"]

    @statement("2.5", "A rule's RepositoryName must equal that of a webhook template that it triggers")
    def test_same_repository(self, make: Maker) -> None:
        code = make.webhook("General.Products.Products", "https://example.com/")
        error_of(make.caller.post(RULES, rule_body(make.mark, Actions=[webhook(code)])), 500)


class TestWebhookTemplate:
    VALUES = {
        "Headers": "X-Token: constant\nContent-Type: application/json",
        "Body": '{{"Id": "{Id}", "Number": "{DocumentNo}"}}',
        "RetryLogic": "Retry",
        "Notes": "kept",
    }

    @statement("2.6", "A webhook template has Code, Name, repository name, URL, body, headers, retry logic and notes")
    def test_fields(self, make: Maker) -> None:
        code = make.webhook(ORDER_EVENTS, "https://example.com/{DocumentNo}", **self.VALUES)
        (found,) = make.caller.rows(f"{WEBHOOKS}?$filter=Code eq '{code}'")
        assert found["Name"] == {"EN": f"Webhook {make.mark}"}
        assert found["RepositoryName"] == ORDER_EVENTS
        assert found["URL"] == "https://example.com/{DocumentNo}"
        assert {name: found[name] for name in self.VALUES} == self.VALUES

    @statement("2.6", "Code of a webhook template is unique: actions refer to it")
    def test_code(self, make: Maker) -> None:
        code = make.webhook(ORDER_EVENTS, "https://example.com/")
        body = {"Code": code, "Name": {"EN": "x"}, "RepositoryName": ORDER_EVENTS, "URL": "https://example.com/"}
        assert error_of(make.caller.post(WEBHOOKS, body), 500)["code"] == 2129

    @statement("2.6", "URL and body are interpolated with the entity's values; doubled braces are literal ones")
    def test_interpolation(self, make: Maker, hooks: Hooks) -> None:
        path = f"/interpolated/{make.mark}"
        code = make.webhook(
            ORDER_EVENTS,
            f"{hooks.url}{path}/{{EntityName}}/{{Id}}?n={{DocumentNo}}",
            Headers="Content-Type: application/json",
            Body='{{"number": "{DocumentNo}", "date": "{DocumentDate}", "notes": "{DocumentNotes}", "in": "{State}"}}',
        )
        conditions = [condition("DocumentNotes", "Equals", make.mark)]
        make.rule(ORDER_EVENTS, "AGGREGATECLIENTCOMMIT", webhook(code), conditions=conditions)
        order = make.caller.read(f"{make.order(DocumentNotes=make.mark)}?$select=DocumentNo,DocumentDate")
        (request,) = hooks.wait(path)
        expected = rf"{path}/Crm[._]Sales[._]\w+/{id_of(order)}\?n={order['DocumentNo']}"
        assert re.fullmatch(expected, request.path), request.path
        assert request.json() == {
            "number": order["DocumentNo"],
            "date": order["DocumentDate"],
            "notes": make.mark,
            "in": "New",
        }

    @statement("2.6", "Headers are lines of name and value, such as a constant token and application/json")
    def test_headers(self, make: Maker, hooks: Hooks) -> None:
        path = f"/headers/{make.mark}"
        headers = f"X-Token: constant {make.mark}\nContent-Type: application/json"
        code = make.webhook(GROUP_EVENTS, hooks.url + path, Headers=headers, Body='{{"a": 1}}')
        make.rule(GROUP_EVENTS, "AGGREGATECLIENTCOMMIT", webhook(code))
        make.group()
        (request,) = hooks.wait(path)
        assert request.headers["X-Token"] == f"constant {make.mark}"
        assert request.headers["Content-Type"] == "application/json"

    @statement("2.6", "Retry logic is a retry count: up to 3 times after the first attempt")
    def test_retries(self, make: Maker, hooks: Hooks) -> None:
        path = f"/retries/{make.mark}"
        hooks.answer(path, [500] * 9)
        code = make.webhook(GROUP_EVENTS, hooks.url + path, RetryLogic="Retry")
        make.rule(GROUP_EVENTS, "AGGREGATECLIENTCOMMIT", webhook(code))
        make.group()
        assert len(hooks.wait(path, 4)) == 4

    @statement("2.6", "A template without retries sends once")
    def test_no_retry(self, make: Maker) -> None:
        code = make.webhook(GROUP_EVENTS, "https://example.com/", RetryLogic="NoRetry")
        assert make.caller.rows(f"{WEBHOOKS}?$filter=Code eq '{code}'")[0]["RetryLogic"] == "NoRetry"


class TestManagedScript:
    @statement("2.7", "A managed script holds JavaScript source, an optional parameter schema and an active state")
    def test_fields(self, make: Maker) -> None:
        script = make.caller.read(make.script("return 1;"))
        assert script["@odata.id"].startswith("Systems_Core_Scripts(")
        assert (script["ScriptText"], script["ParameterSchema"], script["IsActive"]) == ("return 1;", None, True)

    @statement("2.7", "The parameter schema is JSON of Input, Output and InputOutput parameters, with defaults")
    def test_schema(self, make: Maker) -> None:
        schema = {
            "a": {"type": "integer", "direction": "Input", "default": 3},
            "b": {"type": "integer", "direction": "Output"},
            "c": {"type": "integer", "direction": "InputOutput"},
        }
        script = make.script("parameters.b = parameters.a + 1; parameters.c += 1;", schema)
        answer = answered(make.caller.post(f"{script}/Execute", {"arguments": {"c": 7}}), 200).json()
        assert answer["parameters"] == {"b": 4, "c": 8}

    @statement("2.7", "A schema that is not JSON, or names another direction, is refused when saved")
    def test_wrong_schema(self, service: Caller, mark: str) -> None:
        for schema in ("{", '{"a": {"type": "integer", "direction": "Sideways"}}'):
            body = {"Code": f"S-{mark}", "Name": {"EN": "x"}, "Language": "JavaScript", "ParameterSchema": schema}
            error_of(service.post("Systems_Core_Scripts", body), 500)

    @pytest.mark.parametrize(
        "what, values",
        [
            ("inactive", {"IsActive": False}),
            ("without source", {"ScriptText": ""}),
            ("of blank source", {"ScriptText": " \n"}),
            ("in another language", {"Language": "Python"}),
        ],
    )
    @statement("2.7", "A script {what} is not executable")
    def test_not_executable(self, make: Maker, what: str, values: dict[str, Any]) -> None:
        script = make.script("return 1;", **values)
        error_of(make.caller.post(f"{script}/Execute", {}), 500)


@statement("2.8", "The body of an error is an object with the one property error")
def test_error_body(service: Caller) -> None:
    refused = service.get("Nonsense")
    assert list(refused.json()) == ["error"]
    error_of(refused, 400)
