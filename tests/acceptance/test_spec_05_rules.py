"""spec 05 Events and rules"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered, error_of, id_of
from tests.acceptance.objects import (
    GROUPS,
    ORDERS,
    PRODUCTS,
    RULES,
    Maker,
    condition,
    fail,
    order,
    webhook,
)
from tests.acceptance.people import Browser, Person
from tests.acceptance.statements import statement

ORDER_RULES, LINE_RULES = "Crm.Sales.SalesOrders", "Crm.Sales.SalesOrderLines"
PRODUCT_RULES, GROUP_RULES = "General.Products.Products", "General.Products.ProductGroups"
ALL = ("CREATENEW", "COMMIT", "CLIENTCOMMIT", "COMMITTED", "CLIENTCOMMITTED")
ATTRIBUTE = ("ATTRIBUTECHANGING", "ATTRIBUTECHANGED")
ROOT = ("AGGREGATECLIENTCOMMIT", "AGGREGATECLIENTCOMMITTED")
DOCUMENT = ("STATECHANGING", "STATECHANGED", "VOIDING")
STATE_ATTRIBUTES = {"$FromState", "$ToState", "$FromUserStatusId", "$ToUserStatusId"}


def action(kind: str, *parameters: tuple[str, str], number: int = 10) -> dict[str, Any]:
    """An action with (type, value) of each parameter."""
    given = {f"Parameter{n}{part}": text for n, pair in enumerate(parameters, 1) for part, text in
             zip(("Type", "Value"), pair, strict=True)}  # fmt: skip
    return {"ActionNo": number, "ActionType": kind, **given}


def set_value(attribute: str, value: str, kind: str = "Constant", number: int = 10) -> dict[str, Any]:
    """A SETVALUE action."""
    return action("SETVALUE", ("Attribute", attribute), (kind, value), number=number)


def body(mark: str, **values: Any) -> dict[str, Any]:
    """A valid rule of product groups."""
    return {
        "Code": f"R-{mark}",
        "Name": {"EN": "x"},
        "RepositoryName": GROUP_RULES,
        "IsActive": True,
        "Events": [{"EventType": "COMMIT"}],
        "Conditions": [condition("Notes", "Equals", mark)],
        "Actions": [fail("x")],
        **values,
    }


class TestCatalogue:
    @pytest.mark.parametrize(
        "names, layer, parameter, attributes",
        [
            (("CREATENEW",), "Common", False, None),
            (ATTRIBUTE, "FrontEnd", True, {"$NewValue", "$OldValue"}),
            (("COMMIT", "CLIENTCOMMIT", "COMMITTED", "CLIENTCOMMITTED", *ROOT), "BackEnd", False, None),
            (DOCUMENT[:2], "BackEnd", True, STATE_ATTRIBUTES),
            (("VOIDING",), "BackEnd", False, {"$VoidReason"}),
            (("BEFORERECALCULATE",), "FrontEnd", False, None),
        ],
        ids=lambda value: value[0] if isinstance(value, tuple) else "",
    )
    @statement("spec 05", "{names} have the layer {layer}, a parameter: {parameter}, the attributes {attributes}")
    def test_event(self, service: Caller, names: tuple[str, ...], layer: str, parameter: bool, attributes: Any) -> None:
        events = _events(service, ORDER_RULES)
        for name in names:
            found = events[name]
            assert (found["Layer"], found["RequiresEventParameter"]) == (layer, parameter)
            assert isinstance(found["EventParameterDescription"], str if parameter else type(None))
            given = found["EventAttributes"]
            assert (None if given is None else {each["Name"] for each in given}) == attributes

    @pytest.mark.parametrize(
        "repository, events",
        [
            (ORDER_RULES, {*ALL, *ATTRIBUTE, *ROOT, *DOCUMENT, "BEFORERECALCULATE"}),
            (LINE_RULES, {*ALL, *ATTRIBUTE, "BEFORERECALCULATE"}),
            (PRODUCT_RULES, {*ALL, *ATTRIBUTE, *ROOT}),
        ],
    )
    @statement("spec 05", "{repository} has exactly the events that the catalogue gives its kind")
    def test_events_of(self, service: Caller, repository: str, events: set[str]) -> None:
        assert set(_events(service, repository)) == events

    @statement("spec 05", "The answer of GetRepositoryEvents has an OData context")
    def test_context(self, service: Caller) -> None:
        assert "@odata.context" in service.read(f"GetRepositoryEvents(repositoryName='{ORDER_RULES}')")

    @statement("spec 05", "For an unknown repository the error lists near names")
    def test_near(self, service: Caller) -> None:
        refused = service.get("GetRepositoryEvents(repositoryName='Crm.Sales.SalesOrder')")
        assert ORDER_RULES in error_of(refused, 400)["message"]

    @statement("spec 05", "Descriptions of events are localised")
    def test_localised(self, service: Caller) -> None:
        path = f"GetRepositoryEvents(repositoryName='{GROUP_RULES}')"
        texts = {service.read(path, Accept_Language=lang)["events"][0]["Description"] for lang in ("en", "de", "bg")}
        assert len(texts) == 3

    @pytest.mark.parametrize("parameter", ["RELEASED", "releasing", "30", "Released", "FIRM PLANNED", "FIRMPLANNING"])
    @statement("spec 05", "The state parameter {parameter} is stored as given and matched normalised")
    def test_states(self, make: Maker, parameter: str) -> None:
        conditions = [condition("DocumentNotes", "Equals", make.mark)]
        rule = make.rule(ORDER_RULES, "STATECHANGING", fail("held"), parameter=parameter, conditions=conditions)
        (event,) = make.caller.rows(f"{rule['@odata.id']}/Events?$select=EventParameter")
        assert event["EventParameter"] == parameter
        state = "FirmPlanned" if parameter.startswith("FIRM") else "Released"
        made = make.order(DocumentNotes=make.mark)
        assert error_of(make.caller.post(f"{made}/ChangeState", {"newState": state}), 500)["message"] == "held"

    @statement("spec 05", "VOIDING has $VoidReason, the reason that was given")
    def test_void_reason(self, make: Maker) -> None:
        conditions = [condition("$VoidReason", "Equals", make.mark)]
        make.rule(ORDER_RULES, "VOIDING", fail("held"), conditions=conditions)
        made = make.order()
        assert error_of(make.caller.post(f"{made}/MakeVoid", {"reason": make.mark}), 500)["message"] == "held"
        answered(make.caller.post(f"{made}/MakeVoid", {"reason": "another"}), 200, 204)

    @statement("spec 05", "COMMITTED runs after the object was saved")
    def test_committed(self, make: Maker) -> None:
        conditions = [condition("Notes", "Equals", make.mark)]
        make.rule(GROUP_RULES, "COMMITTED", set_value("Notes", "after"), conditions=conditions)
        group = make.group(Notes=make.mark)
        assert make.caller.read(group)["Notes"] == "after"

    @pytest.mark.parametrize("event, runs", [("COMMIT", True), ("CLIENTCOMMIT", False)])
    @statement("spec 05", "{event} runs for what a server-side rule changed: {runs}")
    def test_client(self, make: Maker, event: str, runs: bool) -> None:
        """The line is changed by the order's rule only; the line's rule listens."""
        make.rule(LINE_RULES, event, set_value("Notes", "seen"), conditions=[condition("Notes", "Equals", make.mark)])
        made = make.order()
        script = f"subject.Lines.forEach(line => {{ if (line.Notes === null) line.Notes = '{make.mark}'; }});"
        make.rule(
            ORDER_RULES,
            "COMMIT",
            conditions=[condition("DocumentNotes", "Equals", make.mark)],
            suffix="O",
            ScriptLanguage="JavaScript",
            ScriptText=script,
        )
        make.caller.change(made, {"DocumentNotes": make.mark})
        assert make.caller.rows(f"{made}/Lines?$select=Notes")[0]["Notes"] == ("seen" if runs else make.mark)


class TestValidation:
    @pytest.mark.parametrize(
        "what, values, named",
        [
            ("an unknown repository", {"RepositoryName": "Nothing.At.All"}, "Nothing.At.All"),
            ("an event of other repositories", {"Events": [{"EventType": "VOIDING"}]}, "VOIDING"),
            ("a missing parameter", {"Events": [{"EventType": "ATTRIBUTECHANGING"}]}, "ATTRIBUTECHANGING"),
            ("a needless parameter", {"Events": [{"EventType": "COMMIT", "EventParameter": "Notes"}]}, "COMMIT"),
            (
                "a parameter that is no attribute",
                {"Events": [{"EventType": "ATTRIBUTECHANGED", "EventParameter": "Nothing"}]},
                "Nothing",
            ),
            ("a layer that the event does not have", {"Events": [{"EventType": "COMMIT", "Layer": "FrontEnd"}]}, ""),
            ("an event attribute of other events", {"Conditions": [condition("$VoidReason", "IsNull")]}, "$VoidReason"),
            ("an unknown custom property", {"Conditions": [condition("@nothing", "IsNull")]}, "nothing"),
            ("an unknown path", {"Conditions": [condition("ParentGroup.Nothing", "IsNull")]}, "Nothing"),
            (
                "a value that is not of the attribute's type",
                {"Conditions": [condition("Active", "Equals", "maybe")]},
                "maybe",
            ),
            ("an action with an unknown attribute", {"Actions": [set_value("Nothing", "x")]}, "Nothing"),
            ("an action without its parameter", {"Actions": [action("FAIL")]}, "Parameter 1"),
            ("an unknown webhook", {"Actions": [webhook("NO-SUCH-HOOK")]}, "NO-SUCH-HOOK"),
            (
                "an unknown name in an interpolation",
                {"Actions": [action("FAIL", ("Interpolate", "{Nothing}"))]},
                "Nothing",
            ),
            ("a script that does not compile", {"ScriptLanguage": "JavaScript", "ScriptText": "let ("}, ""),
            ("an action AIVALIDATE", {"Actions": [action("AIVALIDATE")]}, "not available on this instance"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    @statement("spec 05", "Saving refuses a rule with {what}")
    def test_refused(self, service: Caller, mark: str, what: str, values: dict[str, Any], named: str) -> None:
        assert named in error_of(service.post(RULES, body(mark, **values)), 400, 500)["message"]

    @statement("spec 05", "The admin refuses the same: a rule with an unknown attribute")
    def test_admin(self, make: Maker, admin: Browser) -> None:
        rule = make.rule(GROUP_RULES, "COMMIT", fail("x"), conditions=[condition("Notes", "Equals", make.mark)])
        page = answered(admin.get(f"/admin/domain/userbusinessrule/{id_of(rule)}/change/"), 200)
        answer = answered(admin.submit(page, **{"Conditions-0-attribute_name": "NoSuchThing"}), 200)
        assert "NoSuchThing" in answer.text

    @pytest.mark.parametrize("path", ["Customer.Party.PartyName", "Customer.Number", "@property"])
    @statement("spec 05", "A condition may name {path}")
    def test_paths(self, make: Maker, path: str) -> None:
        name = f"@{make.text_property(ORDERS)}" if path.startswith("@") else path
        make.rule(ORDER_RULES, "COMMIT", fail("x"), conditions=[condition(name, "Equals", "no such")], IsActive=False)

    @pytest.mark.parametrize("priority", ["Early", "Normal", "Late"])
    @statement("spec 05", "ExecutionPriority may be {priority}")
    def test_priority(self, make: Maker, priority: str) -> None:
        rule = make.rule(GROUP_RULES, {"EventType": "COMMIT", "ExecutionPriority": priority}, fail("x"), IsActive=False)
        (event,) = make.caller.rows(f"{rule['@odata.id']}/Events?$select=ExecutionPriority")
        assert event["ExecutionPriority"] == priority

    @statement("spec 05", "Code of a rule has at most 16 characters and is unique")
    def test_code(self, make: Maker) -> None:
        make.rule(GROUP_RULES, "COMMIT", fail("x"), IsActive=False)
        assert error_of(make.caller.post(RULES, body(make.mark)), 500)["code"] == 2129
        error_of(make.caller.post(RULES, body(make.mark, Code="C" * 17)), 400, 500)

    @statement("spec 05", "A FAIL rule whose custom property was deleted later refuses the operation and is named")
    def test_broken(self, make: Maker) -> None:
        code = make.text_property(GROUPS)
        conditions = [condition("Notes", "Equals", make.mark), condition(f"@{code}", "IsNull", number=20)]
        make.rule(GROUP_RULES, "COMMIT", fail("x"), conditions=conditions)
        group = make.group()
        (found,) = make.caller.rows(f"Systems_Bpm_CustomProperties?$filter=Code eq '{code}'")
        answered(make.caller.delete(found["@odata.id"]), 204)
        refused = error_of(make.caller.patch(group, {"Notes": make.mark}), 500)
        assert f"R-{make.mark}" in refused["message"]
        assert refused["type"] == "RuleBroken"
        # The rule goes first: it holds every group until then.
        (rule,) = make.caller.rows(f"{RULES}?$filter=Code eq 'R-{make.mark}'")
        answered(make.caller.delete(rule["@odata.id"]), 204)


#: (attribute, comparison, value, whether it holds for the product of TestConditions).
COMPARISONS: list[tuple[str, str, str | None, bool]] = [
    ("PartNumber", "Equals", "P-{mark}", True),
    ("PartNumber", "Equals", "P-", False),
    ("PartNumber", "Not_Equals", "P-", True),
    ("PartNumber", "Like", "p-*", True),
    ("PartNumber", "Like", "%{mark}", True),
    ("PartNumber", "Like", "?_{mark}", True),
    ("PartNumber", "Like", "P", False),
    ("ShortName", "IsNull", None, True),
    ("ShortName", "Not_IsNull", None, False),
    ("PartNumber", "IsNull", None, False),
    ("PartNumber", "Not_IsNull", None, True),
    ("ScrapRate", "Greater_Than", "0.25", False),
    ("ScrapRate", "Greater_Than", "0.03", True),
    ("ScrapRate", "Less_Than", "0.25", False),
    ("ScrapRate", "Less_Than", "0.3", True),
    ("ScrapRate", "Greater_Than_Or_Equal", "0.25", True),
    ("ScrapRate", "Greater_Than_Or_Equal", "0.26", False),
    ("ScrapRate", "Less_Than_Or_Equal", "0.25", True),
    ("ScrapRate", "Less_Than_Or_Equal", "0.1", False),
    ("ScrapRate", "Equals", "0.2500", True),
    ("ExpiryPeriodDays", "Greater_Than", "9", True),
    ("StandardPricePerLot", "Greater_Than", "9.5", True),
    ("StandardPricePerLot", "Equals", "10.00", True),
    ("Name", "Equals", "Grüner Tee", True),
    ("Name", "Like", "green*", True),
    ("ABCClass", "Equals", "B", True),
    ("ABCClass", "Equals", "A", False),
    ("Active", "Equals", "true", True),
    ("MeasurementUnit.Code", "Equals", "pcs", True),
    ("MeasurementUnit", "Equals", "{unit}", True),
    ("MeasurementUnit", "Equals", "00000000-0000-0000-0000-000000000001", False),
]


class TestConditions:
    """A WARNING rule for each comparison, and one product: the warnings tell which hold."""

    @pytest.fixture(scope="class")
    @classmethod
    def held(cls, service: Caller) -> Iterator[set[str]]:
        mark = secrets.token_hex(4).upper()
        (unit,) = service.rows("General_Products_MeasurementUnits?$top=1&$filter=Code eq 'pcs'")
        with Maker.of(service, mark) as make:
            for number, (attribute, comparison, value, _holds) in enumerate(COMPARISONS):
                written = value and value.replace("{mark}", mark).replace("{unit}", id_of(unit))
                make.rule(
                    PRODUCT_RULES,
                    "COMMIT",
                    action("WARNING", ("Constant", f"{number}")),
                    conditions=[
                        condition("CatalogDescriptionHtml", "Equals", mark),
                        condition(attribute, comparison, written, 20),
                    ],
                    suffix=f"-{number}",
                )
            values = {
                "PartNumber": f"P-{mark}",
                "Name": {"EN": "Green Tea", "DE": "Grüner Tee"},
                "MeasurementUnit@odata.bind": unit["@odata.id"],
                "CatalogDescriptionHtml": mark,
                "ScrapRate": 0.25,
                "ExpiryPeriodDays": 10,
                "ABCClass": "B",
                "StandardPricePerLot": {"Value": 10, "Currency": "EUR"},
            }
            yield set(make.new(PRODUCTS, values).get("@erpnet.warnings", []))

    @pytest.mark.parametrize("compared", COMPARISONS, ids=lambda compared: f"{compared[0]}-{compared[1]}-{compared[2]}")
    @statement("spec 05", "{compared[0]} {compared[1]} {compared[2]}, of the example product: {compared[3]}")
    def test_comparison(self, held: set[str], compared: tuple[str, str, str | None, bool]) -> None:
        assert (str(COMPARISONS.index(compared)) in held) == compared[3]

    @pytest.mark.parametrize(
        "attribute, comparison, value, holds",
        [
            ("DocumentDate", "Greater_Than", "2026-02-28", True),
            ("DocumentDate", "Equals", "2026-03-01", True),
            ("State", "Less_Than", "30", True),
            ("State", "Equals", "Released", False),
            ("Customer.Party.PartyName", "Not_IsNull", None, True),
        ],
    )
    @statement("spec 05", "An order of 2026-03-01 in state New: {attribute} {comparison} {value} holds: {holds}")
    def test_order(self, make: Maker, attribute: str, comparison: str, value: str | None, holds: bool) -> None:
        conditions = [condition("DocumentNotes", "Equals", make.mark), condition(attribute, comparison, value, 20)]
        make.rule(ORDER_RULES, "COMMIT", action("WARNING", ("Constant", "holds")), conditions=conditions)
        made = make.new(ORDERS, order(DocumentNotes=make.mark, DocumentDate="2026-03-01"))
        assert made.get("@erpnet.warnings") == (["holds"] if holds else None)

    @statement("spec 05", "All conditions of a rule must hold")
    def test_and(self, make: Maker) -> None:
        conditions = [condition("Notes", "Equals", make.mark), condition("Active", "Equals", "false", 20)]
        make.rule(GROUP_RULES, "COMMIT", fail("held"), conditions=conditions)
        group = make.group(Notes=make.mark)
        assert error_of(make.caller.patch(group, {"Active": False}), 500)["message"] == "held"


class TestOrder:
    @statement("spec 05", "Rules of an event run by priority (Early, Normal, Late), then by Code")
    def test_rules(self, make: Maker) -> None:
        for suffix, priority in (("1", "Late"), ("2", "Normal"), ("4", "Early"), ("3", "Early")):
            event = {"EventType": "COMMIT", "ExecutionPriority": priority}
            conditions = [condition("Notes", "Equals", make.mark)]
            warn = action("WARNING", ("Constant", suffix))
            make.rule(GROUP_RULES, event, warn, conditions=conditions, suffix=suffix)
        made = make.new(GROUPS, {"Code": f"G-{make.mark}", "Name": {"EN": "x"}, "Notes": make.mark})
        assert made["@erpnet.warnings"] == ["3", "4", "2", "1"]

    @statement("spec 05", "Actions of a rule run by ActionNo, then the script, which has subject and event")
    def test_actions(self, make: Maker) -> None:
        make.rule(
            GROUP_RULES,
            "ATTRIBUTECHANGING",
            set_value("NextSerialNumber", "second", number=20),
            set_value("NextSerialNumber", "first", number=10),
            parameter="Notes",
            conditions=[condition("$NewValue", "Equals", make.mark)],
            ScriptLanguage="JavaScript",
            ScriptText="subject.NextSerialNumber += ` ${event.NewValue} ${event.OldValue}`;",
        )
        group = make.group(Notes="before")
        make.caller.change(group, {"Notes": make.mark})
        assert make.caller.read(group)["NextSerialNumber"] == f"second {make.mark} before"


class TestActions:
    @pytest.mark.parametrize(
        "kind, value, message",
        [
            ("Constant", "no {Code}", "no {Code}"),
            ("Interpolate", "no {Code} of {Name:EN}", "no G-{mark} of Group {mark}"),
            ("FormattedString", "no {Code}", "no G-{mark}"),
        ],
    )
    @statement("spec 05", "The message of FAIL may be {kind}")
    def test_fail(self, make: Maker, kind: str, value: str, message: str) -> None:
        conditions = [condition("Notes", "Equals", make.mark)]
        make.rule(GROUP_RULES, "COMMIT", action("FAIL", (kind, value)), conditions=conditions)
        refused = error_of(make.caller.patch(make.group(), {"Notes": make.mark}), 500)
        assert refused["message"] == message.replace("{mark}", make.mark)

    @pytest.mark.parametrize(
        "kind, value, stored",
        [
            ("Constant", "fixed", "fixed"),
            ("Attribute", "Code", "G-{mark}"),
            ("Interpolate", "{Code} in {EntityName}", "G-{mark} in Gen_Product_Groups"),
            ("Interpolate", "{{{Code}}}", "{G-{mark}}"),
        ],
    )
    @statement("spec 05", "SETVALUE sets an attribute from {kind} {value}")
    def test_set_value(self, make: Maker, kind: str, value: str, stored: str) -> None:
        conditions = [condition("NextPartNumber", "Equals", make.mark)]
        make.rule(GROUP_RULES, "COMMIT", set_value("Notes", value, kind), conditions=conditions)
        group = make.group(NextPartNumber=make.mark)
        assert make.caller.read(group)["Notes"] == stored.replace("{mark}", make.mark)

    @statement("spec 05", "SETVALUE sets a custom property, @code")
    def test_set_property(self, make: Maker) -> None:
        code = make.text_property(GROUPS)
        conditions = [condition("Notes", "Equals", make.mark)]
        make.rule(GROUP_RULES, "COMMIT", set_value(f"@{code}", "given"), conditions=conditions)
        name = f"CustomProperty_{code}"
        assert make.caller.read(f"{make.group(Notes=make.mark)}?$select={name}")[name]["Value"] == "given"

    @statement("spec 05", "WARNING is collected and returned: header X-Warnings and annotation @erpnet.warnings")
    def test_warning(self, make: Maker) -> None:
        conditions = [condition("Notes", "Equals", make.mark)]
        make.rule(GROUP_RULES, "COMMIT", action("WARNING", ("Constant", "careful")), conditions=conditions)
        answer = make.caller.patch(make.group(), {"Notes": make.mark}, Prefer="return=representation")
        assert answered(answer, 200).headers["X-Warnings"] == "careful"
        assert answer.json()["@erpnet.warnings"] == ["careful"]

    @statement("spec 05", "NOTIFYUSER takes ids or logins, a subject and a class, and makes a notification for each")
    def test_notify(self, make: Maker) -> None:
        (admin,) = make.caller.rows("Systems_Security_Users?$filter=Login eq 'admin'&$select=Id,Login")
        users = f"demo,{id_of(admin)}"
        kind = action("NOTIFYUSER", ("Constant", users), ("Interpolate", "Look at {Code}"), ("Constant", make.mark))
        make.rule(GROUP_RULES, "COMMIT", kind, conditions=[condition("Notes", "Equals", make.mark)])
        make.group(Notes=make.mark)
        path = f"Systems_Core_Notifications?$filter=NotificationClass eq '{make.mark}'&$expand=User($select=Login)"
        found = make.caller.rows(path)
        assert {row["User"]["Login"] for row in found} == {"demo", "admin"}
        assert {row["Subject"] for row in found} == {f"Look at G-{make.mark}"}

    @statement("spec 05", "Rules that keep triggering each other stop with an error that shows the chain")
    def test_loop(self, make: Maker) -> None:
        conditions = [condition("NextPartNumber", "Equals", make.mark)]
        step = set_value("Notes", "{Notes}x", "Interpolate")
        make.rule(GROUP_RULES, "COMMIT", step, conditions=conditions)
        refused = error_of(make.caller.post(GROUPS, _looping(make.mark)), 500)
        assert refused["type"] == "RuleLoop"
        assert f"R-{make.mark}" in refused["message"]


class TestWherever:
    """Attribute events and CREATENEW are raised wherever a caller sets attributes or creates."""

    @pytest.fixture
    def line(self, make: Maker) -> str:
        """A line that a FAIL rule keeps from having the mark as its notes, and the rule."""
        conditions = [condition("$NewValue", "Equals", make.mark)]
        line = make.line_of(make.order())
        make.rule(LINE_RULES, "ATTRIBUTECHANGING", fail("held"), parameter="Notes", conditions=conditions)
        return line

    @pytest.mark.parametrize("model", ["common", "frontend"])
    @statement("spec 05", "In a Domain transaction of the model {model} an attribute's rule holds before the commit")
    def test_transaction(self, make: Maker, line: str, model: str) -> None:
        inside = make.caller.begin(model=model)
        assert error_of(inside.patch(line, {"Notes": make.mark}), 500)["message"] == "held"
        inside.end(commit=False)

    @statement("spec 05", "An attribute's rule holds in a batch, in an Import and in a script")
    def test_others(self, make: Maker, line: str) -> None:
        headers = {"Content-Type": "application/json"}
        part = {"id": "1", "method": "PATCH", "url": line, "headers": headers, "body": {"Notes": make.mark}}
        (answer,) = answered(make.caller.post("$batch", {"requests": [part]}), 200).json()["responses"]
        assert (answer["status"], answer["body"]["error"]["message"]) == (500, "held")
        found = f"Domain.Crm.Sales.SalesOrderLinesRepository.getById('{line[-37:-1]}')"
        assert "held" in error_of(make.caller.script(f"{found}.Notes = '{make.mark}';"), 500)["message"]
        given = {
            "@odata.type": "Erp.Crm_Sales_SalesOrderLine",
            "@erpnet.action": "update",
            "@odata.id": line,
            "@erpnet.findBy": {"Id": line[-37:-1]},
            "Notes": make.mark,
        }
        assert "held" in str(answered(make.caller.post("Import", {"objects": [given]}), 200).json())

    @statement("spec 05", "Attributes are set in body order: an event sees what came before it and not what follows")
    def test_body_order(self, make: Maker) -> None:
        conditions = [
            condition("NextPartNumber", "Equals", make.mark),
            condition("$NewValue", "Equals", "second", 20),
        ]
        make.rule(GROUP_RULES, "ATTRIBUTECHANGING", fail("held"), parameter="Notes", conditions=conditions)
        group = make.group()
        refused = make.caller.patch(group, {"NextPartNumber": make.mark, "Notes": "second"})
        assert error_of(refused, 500)["message"] == "held"
        make.caller.change(group, {"Notes": "second", "NextPartNumber": make.mark})

    @pytest.mark.parametrize("layer", ["BackEnd", "FrontEnd", "Common"])
    @statement("spec 05", "An attribute's rule saved with the layer {layer} holds for a plain API write")
    def test_layers(self, make: Maker, layer: str) -> None:
        event = {"EventType": "ATTRIBUTECHANGED", "EventParameter": "Notes", "Layer": layer}
        conditions = [condition("$NewValue", "Equals", make.mark)]
        make.rule(GROUP_RULES, event, fail("held"), conditions=conditions, Layer=layer)
        assert error_of(make.caller.patch(make.group(), {"Notes": make.mark}), 500)["message"] == "held"


class TestTrace:
    @statement("spec 05", "Prefer: erpnet.trace-rules tells of each fired rule the event, conditions, actions and time")
    def test_trace(self, make: Maker) -> None:
        conditions = [condition("Notes", "Equals", make.mark)]
        make.rule(GROUP_RULES, "COMMIT", action("WARNING", ("Constant", "seen")), conditions=conditions)
        preference = "erpnet.trace-rules,return=representation"
        answer = answered(make.caller.patch(make.group(), {"Notes": make.mark}, Prefer=preference), 200)
        (trace,) = answer.json()["@erpnet.trace"]
        assert (trace["Rule"], trace["Event"]) == (f"R-{make.mark}", "COMMIT")
        (compared,) = trace["Conditions"]
        assert (compared["Actual"], compared["Value"], compared["Holds"]) == (make.mark, make.mark, True)
        assert trace["Actions"] == ["WARNING seen"]
        assert trace["Milliseconds"] > 0

    @statement("spec 05", "Traces are for administrators only")
    def test_others(self, demo: Person, make: Maker) -> None:
        answer = demo.api.patch(make.order(), {"DocumentNotes": "x"}, Prefer="erpnet.trace-rules")
        assert "X-Rule-Trace" not in answer.headers
        assert "trace" not in answer.headers.get("Preference-Applied", "")

    @statement("spec 05", "The admin's list shows each rule's last firing, counts, failures and average time")
    def test_admin(self, admin: Browser) -> None:
        page = answered(admin.get("/admin/domain/userbusinessrule/"), 200).text
        for column in ("last_fired", "fired", "fail", "average"):
            assert f"column-{column}" in page or column in page.lower(), column

    @statement("spec 05", "The page Try runs a rule against a chosen entity and changes nothing")
    def test_try(self, make: Maker, admin: Browser) -> None:
        group = make.group(NextPartNumber=make.mark)
        conditions = [condition("NextPartNumber", "Equals", make.mark)]
        rule = make.rule(GROUP_RULES, "COMMIT", set_value("Notes", "tried"), conditions=conditions)
        page = answered(admin.get(f"/admin/domain/userbusinessrule/{id_of(rule)}/try/"), 200)
        shown = answered(admin.submit(page, entity=group[-37:-1]), 200).text
        assert "tried" in shown
        assert make.caller.read(group)["Notes"] is None


@pytest.fixture(scope="module")
def admin(anyone: Caller) -> Browser:
    """A signed-in administrator."""
    browser = Browser(anyone)
    answered(browser.log_in("admin"), 302)
    return browser


def _events(service: Caller, repository: str) -> dict[str, dict[str, Any]]:
    found = service.read(f"GetRepositoryEvents(repositoryName='{repository}')")["events"]
    return {event["EventType"]: event for event in found}


def _looping(mark: str) -> dict[str, Any]:
    return {"Code": f"G-{mark}", "Name": {"EN": "x"}, "Notes": "x", "NextPartNumber": mark}
