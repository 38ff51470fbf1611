"""spec 02 The Domain API as OData: writing, operations"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.acceptance.caller import ODATA, Caller, answered, error_of, id_of
from tests.acceptance.objects import (
    COMPANY,
    CUSTOMER,
    GROUPS,
    LINES,
    ORDER_TYPE,
    ORDERS,
    PRODUCT,
    PRODUCTS,
    SCRIPTS,
    Maker,
    order,
    state_of,
)
from tests.acceptance.statements import statement


def group_body(mark: str, **values: Any) -> dict[str, Any]:
    """The body of a group."""
    return {"Code": f"G-{mark}", "Name": {"EN": f"Group {mark}"}, **values}


class TestAnswers:
    @statement("spec 2.3", "POST answers 201 with Location, OData-EntityId and the entity")
    def test_post(self, make: Maker) -> None:
        answer = answered(make.caller.post(GROUPS, group_body(make.mark)), 201)
        made = answer.json()
        make.remove_later(made["@odata.id"])
        assert answer.headers["Location"] == make.caller.url(made["@odata.id"])
        assert answer.headers["OData-EntityId"].endswith(made["@odata.id"])
        assert made["Code"] == f"G-{make.mark}"

    @statement("spec 2.3", "POST with Prefer: return=minimal answers 204 with Location, OData-EntityId, no body")
    def test_minimal(self, make: Maker) -> None:
        answer = answered(make.caller.post(GROUPS, group_body(make.mark), Prefer="return=minimal"), 204)
        make.remove_later(answer.headers["Location"].partition(ODATA)[2])
        assert answer.content == b""
        assert answer.headers["OData-EntityId"] == answer.headers["Location"]
        assert answer.headers["Preference-Applied"] == "return=minimal"

    @pytest.mark.parametrize("method", ["PATCH", "PUT"])
    @statement("spec 2.3", "{method} with Prefer: return=representation answers 200, the entity, Preference-Applied")
    def test_representation(self, make: Maker, method: str) -> None:
        group = make.group()
        body = group_body(make.mark, Notes="new")
        answer = answered(make.caller.send(method, group, body, Prefer="return=representation"), 200)
        assert answer.headers["Preference-Applied"] == "return=representation"
        assert (answer.json()["Notes"], answer.json()["@odata.id"]) == ("new", group)

    @statement("spec 2.3", "PATCH and DELETE answer 204 by default; what is deleted is gone")
    def test_no_content(self, make: Maker) -> None:
        group = make.group()
        assert answered(make.caller.patch(group, {"Notes": "n"}), 204).content == b""
        assert answered(make.caller.delete(group), 204).content == b""
        error_of(make.caller.get(group), 404)
        error_of(make.caller.delete(group), 404)

    @statement("spec 2.3", "PATCH leaves alone what it does not name; PUT gives it its default")
    def test_put(self, make: Maker) -> None:
        group = make.group(Notes="kept")
        make.caller.change(group, {"IsDefault": False})
        assert make.caller.read(group)["Notes"] == "kept"
        answered(make.caller.send("PUT", group, group_body(make.mark)), 200, 204)
        assert make.caller.read(group)["Notes"] is None

    @statement("spec 2.3", "PATCH to a key that the client gives creates the entity there")
    def test_upsert(self, make: Maker) -> None:
        group = f"{GROUPS}({uuid.uuid4()})"
        answered(make.caller.patch(group, group_body(make.mark)), 201)
        make.remove_later(group)
        assert make.caller.read(group)["Code"] == f"G-{make.mark}"

    @statement("spec 2.3", "PATCH to a new key with If-Match creates nothing")
    def test_no_upsert(self, make: Maker) -> None:
        group = f"{GROUPS}({uuid.uuid4()})"
        error_of(make.caller.patch(group, group_body(make.mark), If_Match="*"), 404, 412)

    @statement("spec 2.3", "An unknown property is a 400 that names it")
    def test_unknown(self, service: Caller, mark: str) -> None:
        error = error_of(service.post(GROUPS, group_body(mark, Nonsense=1)), 400)
        assert "Nonsense" in error["message"]
        assert service.rows(f"{GROUPS}?$filter=Code eq 'G-{mark}'") == []


class TestDeepWrites:
    @statement("spec 2.3", "POST Set is a deep insert: an order with its lines")
    def test_insert(self, make: Maker) -> None:
        made = make.new(ORDERS, order(lines=3))
        assert make.caller.count(f"{made['@odata.id']}/Lines") == 3

    @statement("spec 2.3", "A deep insert is all or nothing")
    def test_nothing(self, make: Maker) -> None:
        body = order(ReferenceDocumentNo=make.mark)
        body["Lines"] = [*body["Lines"], {"LineNo": 20}]
        assert make.caller.post(ORDERS, body).status_code >= 400
        assert make.caller.rows(f"{ORDERS}?$filter=ReferenceDocumentNo eq '{make.mark}'") == []

    @statement("spec 2.3", "POST Set(key)/Collection adds a member")
    def test_member(self, make: Maker) -> None:
        root = make.order()
        line = {"Product@odata.bind": PRODUCT, "Quantity": {"Value": 4, "Unit": "pcs"}}
        made = answered(make.caller.post(f"{root}/Lines", line), 201).json()
        assert made["LineNo"] == 20
        assert make.caller.count(f"{root}/Lines") == 2

    @statement("spec 2.3", "PATCH is a deep update: it changes the members that are named and adds those that are new")
    def test_update(self, make: Maker) -> None:
        root = make.order()
        first = make.line_of(root)
        line = {"Product@odata.bind": PRODUCT, "Quantity": {"Value": 7, "Unit": "pcs"}}
        make.caller.change(root, {"DocumentNotes": "deep", "Lines": [{"@odata.id": first, "Notes": "named"}, line]})
        found = make.caller.rows(f"{root}/Lines?$orderby=LineNo")
        assert [(row["Notes"], row["Quantity"]["Value"]) for row in found] == [("named", 1), (None, 7)]
        assert make.caller.read(root)["DocumentNotes"] == "deep"

    @statement("spec 2.3", "A nested delta payload changes, adds and removes members and leaves the others")
    def test_delta(self, make: Maker) -> None:
        root = make.order(Lines=order()["Lines"] * 3)
        one, two, three = (row["@odata.id"] for row in make.caller.rows(f"{root}/Lines?$orderby=LineNo"))
        delta = [
            {"@odata.id": one, "Notes": "changed"},
            {"@removed": {"reason": "deleted"}, "@odata.id": two},
            order()["Lines"][0],
        ]
        make.caller.change(root, {"Lines@delta": delta})
        found = make.caller.rows(f"{root}/Lines?$orderby=LineNo")
        assert [row["@odata.id"] for row in found[:2]] == [one, three]
        assert (found[0]["Notes"], len(found)) == ("changed", 3)

    @statement("spec 2.3", "DELETE of a root deletes its parts")
    def test_delete(self, make: Maker) -> None:
        root = make.order()
        line = make.line_of(root)
        answered(make.caller.delete(root), 204)
        error_of(make.caller.get(line), 404)
        assert make.caller.rows(f"{LINES}?$filter=Id eq {id_of({'@odata.id': line})}") == []

    @statement("spec 2.3", "PUT and DELETE of …/$ref set and clear a reference")
    def test_ref(self, make: Maker) -> None:
        parent = make.group()
        child = make.new(GROUPS, {"Code": f"C{make.mark}", "Name": {"EN": "c"}})["@odata.id"]
        answered(make.caller.send("PUT", f"{child}/ParentGroup/$ref", {"@odata.id": parent}), 204)
        assert make.caller.read(child)["ParentGroup"] == {"@odata.id": parent}
        answered(make.caller.delete(f"{child}/ParentGroup/$ref"), 204)
        assert make.caller.read(child)["ParentGroup"] is None

    @statement("spec 2.3", "PATCH …/Prop changes one property")
    def test_property(self, make: Maker) -> None:
        group = make.group()
        answered(make.caller.patch(f"{group}/Notes", {"value": "alone"}), 204)
        assert make.caller.read(group)["Notes"] == "alone"

    @statement("spec 2.3", "Properties are set in the order of the body")
    def test_order(self, make: Maker) -> None:
        # A product gives its line a description: one that is given before is overwritten, one given after stays.
        inside = make.caller.begin(model="frontend")
        lines = [
            {"Product@odata.bind": PRODUCT, "ProductDescription": {"EN": "mine"}},
            {"ProductDescription": {"EN": "mine"}, "Product@odata.bind": PRODUCT},
        ]
        made = inside.create(ORDERS, order(DocumentNo=f"N{make.mark}", Lines=lines))
        rows = inside.rows(f"{made['@odata.id']}/Lines?$orderby=LineNo")
        inside.end(commit=False)
        assert rows[0]["ProductDescription"] == {"EN": "mine"}
        assert rows[1]["ProductDescription"] != {"EN": "mine"}


class TestReferences:
    @pytest.mark.parametrize(
        "how, form",
        [
            ('"Nav@odata.bind": "Set(guid)"', ("Customer@odata.bind", "{path}")),
            ('"Nav@odata.bind" with the service root', ("Customer@odata.bind", ODATA + "{path}")),
            ('"Nav@odata.bind" with an absolute address', ("Customer@odata.bind", "{base}" + ODATA + "{path}")),
            ('"Nav@odata.bind" with a slash in front', ("Customer@odata.bind", "/{path}")),
            ('"Nav": {"@odata.id": "Set(guid)"}', ("Customer", {"@odata.id": "{path}"})),
            ('"Nav": {"@odata.id": an absolute address}', ("Customer", {"@odata.id": "{base}" + ODATA + "{path}"})),
            ('"Nav": {"@id": …}, as in OData 4.01', ("Customer", {"@id": "{path}"})),
            ('"Nav@bind", as in OData 4.01', ("Customer@bind", "{path}")),
        ],
    )
    @statement("spec 2.3", "A reference may be given as {how}")
    def test_forms(self, make: Maker, how: str, form: tuple[str, Any]) -> None:
        def filled(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: filled(each) for name, each in value.items()}
            return value.replace("{path}", CUSTOMER).replace("{base}", make.caller.base_url)

        body = {name: value for name, value in order().items() if name != "Customer@odata.bind"}
        made = make.new(ORDERS, {**body, form[0]: filled(form[1])})
        assert made["Customer"] == {"@odata.id": CUSTOMER}

    @pytest.mark.parametrize("name", ["ParentGroup", "ParentGroup@odata.bind"])
    @statement("spec 2.3", "null clears a reference: {name}")
    def test_null(self, make: Maker, name: str) -> None:
        parent = make.group()
        body = {"Code": f"C{make.mark}", "Name": {"EN": "c"}, "ParentGroup@odata.bind": parent}
        child = make.new(GROUPS, body)["@odata.id"]
        make.caller.change(child, {name: None})
        assert make.caller.read(child)["ParentGroup"] is None

    @statement("spec 2.3", "A reference to what is not there, or of another set, is refused with its name")
    def test_wrong(self, service: Caller) -> None:
        for bad in (f"Crm_Sales_Customers({uuid.uuid4()})", PRODUCT, "nonsense"):
            answer = service.post(ORDERS, {**order(), "Customer@odata.bind": bad})
            error = error_of(answer, 400, 404, 500)
            assert "Customer" in str(error)


ACTIONS_THERE = [
    ("create", 500),  # the code is taken
    ("update", 200),
    ("delete", 204),
    ("find", 200),
    ("findOrNull", 200),
    ("findOrCreate", 200),
    ("findSingle", 200),
    ("findSingleOrNull", 200),
    ("merge", 200),
]
ACTIONS_MISSING = [
    ("create", 201),
    ("update", 500),
    ("delete", 500),
    ("find", 500),
    ("findOrNull", 204),
    ("findOrCreate", 201),
    ("findSingle", 500),
    ("findSingleOrNull", 204),
    ("merge", 201),
]


class TestActions:
    @pytest.mark.parametrize("action, status", ACTIONS_THERE)
    @statement("spec 2.3", "@erpnet.action {action} on top level where the entity is there")
    def test_there(self, make: Maker, action: str, status: int) -> None:
        group = make.group(Notes="old")
        body = group_body(make.mark, **{"@erpnet.action": action})
        if action in ("update", "merge"):
            body["Notes"] = "new"
        answer = answered(make.caller.post(GROUPS, body), status)
        if status == 200:
            assert answer.json()["@odata.id"] == group
            assert answer.json()["Notes"] == ("new" if "Notes" in body else "old")
        assert make.caller.get(group).status_code == (404 if action == "delete" else 200)

    @pytest.mark.parametrize("action, status", ACTIONS_MISSING)
    @statement("spec 2.3", "@erpnet.action {action} on top level where there is no such entity")
    def test_missing(self, make: Maker, action: str, status: int) -> None:
        answer = answered(make.caller.post(GROUPS, group_body(make.mark, **{"@erpnet.action": action})), status)
        if status == 201:
            make.remove_later(answer.json()["@odata.id"])
        found = make.caller.rows(f"{GROUPS}?$filter=Code eq 'G-{make.mark}'")
        assert len(found) == (1 if status == 201 else 0)

    @pytest.mark.parametrize(
        "action, refers",
        [("find", True), ("findOrNull", True), ("findOrCreate", True), ("findSingle", True), ("merge", True)],
    )
    @statement("spec 2.3", "@erpnet.action {action} on a nested object that is there refers to it")
    def test_nested(self, make: Maker, action: str, refers: bool) -> None:
        parent = make.group()
        nested = {"@erpnet.action": action, "Code": f"G-{make.mark}"}
        child = make.new(GROUPS, {"Code": f"C{make.mark}", "Name": {"EN": "c"}, "ParentGroup": nested})
        assert child["ParentGroup"] == {"@odata.id": parent}

    @statement("spec 2.3", "A nested findOrNull and findSingleOrNull of what is not there give null, find an error")
    def test_nested_missing(self, make: Maker) -> None:
        def body(action: str) -> dict[str, Any]:
            nested = {"@erpnet.action": action, "Code": f"X{make.mark}"}
            return {"Code": f"{action[-6:]}{make.mark}{len(action)}", "Name": {"EN": "c"}, "ParentGroup": nested}

        for action in ("findOrNull", "findSingleOrNull"):
            assert make.new(GROUPS, body(action))["ParentGroup"] is None
        for action in ("find", "findSingle", "update"):
            error_of(make.caller.post(GROUPS, body(action)), 500)

    @statement("spec 2.3", "A nested object with search properties only is found by default, others are not made")
    def test_default_find(self, make: Maker) -> None:
        parent = make.group()
        found = make.new(
            GROUPS, {"Code": f"C{make.mark}", "Name": {"EN": "c"}, "ParentGroup": {"Code": f"G-{make.mark}"}}
        )
        assert found["ParentGroup"] == {"@odata.id": parent}
        missing = {"Code": f"D{make.mark}", "Name": {"EN": "d"}, "ParentGroup": {"Code": f"none{make.mark}"}}
        error_of(make.caller.post(GROUPS, missing), 500)

    @statement("spec 2.3", "A nested object with other properties is merged by default: changed, or made")
    def test_default_merge(self, make: Maker) -> None:
        parent = make.group()
        for code in (f"G-{make.mark}", f"N{make.mark}"):
            nested = {"Code": code, "Name": {"EN": "p"}, "Notes": "merged"}
            child = make.new(GROUPS, {"Code": f"C{code}"[:14], "Name": {"EN": "c"}, "ParentGroup": nested})
            make.remove_later(child["ParentGroup"]["@odata.id"])
            assert (child["ParentGroup"]["@odata.id"] == parent) == (code == f"G-{make.mark}")
            assert make.caller.read(child["ParentGroup"]["@odata.id"])["Notes"] == "merged"
            answered(make.caller.delete(child["@odata.id"]), 204)

    @pytest.mark.parametrize("name", ["ExternalId", "Id", "Code", "DisplayText"])
    @statement("spec 2.3", "An object is found by {name}")
    def test_find_by(self, make: Maker, name: str) -> None:
        external = {"ExternalId": make.mark, "ExternalSystem": "acceptance"}
        group = make.group(**external)
        values = {
            "ExternalId": external,
            "Id": {"Id": id_of({"@odata.id": group})},
            "Code": {"Code": f"G-{make.mark}"},
            "DisplayText": {"DisplayText": f"Group {make.mark}"},
        }
        found = answered(make.caller.post(GROUPS, {"@erpnet.action": "find", **values[name]}), 200).json()
        assert found["@odata.id"] == group

    @statement("spec 2.3", "Of several search properties the first present wins: ExternalId before Code")
    def test_precedence(self, make: Maker) -> None:
        external = {"ExternalId": make.mark, "ExternalSystem": "acceptance"}
        group = make.group(**external)
        body = {"@erpnet.action": "find", **external, "Code": "another"}
        assert answered(make.caller.post(GROUPS, body), 200).json()["@odata.id"] == group

    @statement("spec 2.3", "An unknown @erpnet.action is a 400 that names it and those that are known")
    def test_unknown(self, service: Caller) -> None:
        error = error_of(service.post(GROUPS, {"@erpnet.action": "nonsense", "Code": "x"}), 400)
        assert "nonsense" in error["message"]
        assert "findOrCreate" in error["message"]

    @statement("spec 2.3", "@odata.type picks a derived type where the declared one is abstract")
    def test_type(self, make: Maker) -> None:
        party = {"@odata.type": "Erp.General_Contacts_Company", "Name": {"EN": f"Company {make.mark}"}}
        made = make.new("General_Contacts_Parties", party)
        company = f"General_Contacts_Companies({id_of(made)})"
        assert make.caller.read(company)["Name"] == {"EN": f"Company {make.mark}"}
        error_of(make.caller.post("General_Contacts_Parties", {"Name": {"EN": "x"}}), 400, 500)


class TestMeasures:
    @statement("spec 2.3", "A unit's or currency's code in a value sets the sibling reference of the same entity")
    def test_sibling(self, make: Maker) -> None:
        line = {"Product@odata.bind": PRODUCT, "Quantity": {"Value": 2, "Unit": "dz"}}
        root = make.order(Lines=[line])
        found = make.caller.read(f"{make.line_of(root)}?$expand=QuantityUnit($select=Code)")
        assert found["QuantityUnit"]["Code"] == "dz"
        assert found["Quantity"] == {"Value": 2, "Unit": "dz"}

    @statement("spec 2.3", "Otherwise the code must be the effective one; the error names both")
    def test_mismatch(self, service: Caller) -> None:
        line = {"Product@odata.bind": PRODUCT, "UnitPrice": {"Value": 2, "Currency": "USD"}}
        body = {**order(Lines=[line]), "DocumentCurrency@odata.bind": f"General_Currencies_Currencies({EURO})"}
        error = error_of(service.post(ORDERS, body), 400, 500)
        assert "USD" in error["message"]
        assert "EUR" in error["message"]

    @pytest.mark.parametrize("quantity", [{"Value": 1, "Unit": "nonsense"}, {"Value": "x", "Unit": "pcs"}, "1 pcs"])
    @statement("spec 2.3", "A quantity that is none is refused: {quantity}")
    def test_wrong(self, service: Caller, quantity: Any) -> None:
        line = {"Product@odata.bind": PRODUCT, "Quantity": quantity}
        error_of(service.post(ORDERS, order(Lines=[line])), 400, 500)


EURO = "0187d2a0-0010-7000-8000-000000000000"


class TestOperations:
    @pytest.mark.parametrize("path", ["GetVersion", "GetVersion()", "Erp.GetVersion", "Erp.GetVersion()"])
    @statement("spec 2.4", "A function without parameters is called with and without () and namespace: {path}")
    def test_bare(self, service: Caller, path: str) -> None:
        assert service.read(path)["value"] == service.read("GetVersion()")["value"]

    @pytest.mark.parametrize(
        "path",
        [
            "GetRepositoryEvents(repositoryName='Crm.Sales.SalesOrders')",
            "Erp.GetRepositoryEvents(repositoryName='Crm.Sales.SalesOrders')",
            "GetRepositoryEvents(repositoryName=@p)?@p='Crm.Sales.SalesOrders'",
            "GetRepositoryEvents?repositoryName='Crm.Sales.SalesOrders'",
        ],
    )
    @statement("spec 2.4", "Parameters of functions stand in the URL, with aliases too: {path}")
    def test_parameters(self, service: Caller, path: str) -> None:
        assert service.read(path)["repositoryName"] == "Crm.Sales.SalesOrders"

    @pytest.mark.parametrize("name", ["ChangeState", "Erp.ChangeState"])
    @statement("spec 2.4", "Parameters of actions stand in the JSON body; {name} moves a document")
    def test_action(self, make: Maker, name: str) -> None:
        root = make.order()
        answered(make.caller.post(f"{root}/{name}", {"newState": "Planned"}), 204)
        assert state_of(make.caller, root) == "Planned"

    @statement("spec 2.4", "A missing, an unknown or a wrong parameter is a 400 that names it")
    def test_wrong_parameters(self, service: Caller, make: Maker) -> None:
        root = make.order()
        for body, named in (({}, "newState"), ({"newState": "x"}, "newState"), ({"newState": "New", "odd": 1}, "odd")):
            assert named in str(error_of(service.post(f"{root}/ChangeState", body), 400))

    @statement("spec 2.4", "CreateCopy of an entity makes another with the same values")
    def test_copy(self, make: Maker) -> None:
        group = make.group(Notes=make.mark)
        copy = answered(make.caller.post(f"{group}/CreateCopy", {}), 200, 201).json()
        make.remove_later(copy["@odata.id"])
        assert copy["@odata.id"] != group
        assert copy["Notes"] == make.mark

    @statement("spec 2.4", "CreateNotification of an entity tells a user of it")
    def test_notification(self, make: Maker) -> None:
        user = make.caller.rows("Systems_Security_Users?$filter=Login eq 'demo'&$select=Id")[0]
        body = {
            "user": {"@odata.id": user["@odata.id"]},
            "notificationClass": "Info",
            "subject": f"about {make.mark}",
            "priority": "Normal",
        }
        answered(make.caller.post(f"{make.group()}/CreateNotification", body), 200, 204)
        path = f"Systems_Core_Notifications?$filter=contains(Subject,'{make.mark}')"
        (found,) = make.caller.rows(path)
        make.remove_later(found["@odata.id"])

    @statement("spec 2.4", "GetAllowedCustomPropertyValues answers the allowed values of a custom property")
    def test_allowed_values(self, make: Maker) -> None:
        code = make.text_property(PRODUCTS)
        path = f"{PRODUCT}/GetAllowedCustomPropertyValues(customPropertyCode='{code}')"
        assert make.caller.rows(path) == []

    @statement("spec 2.4", "MakeVoid and Recalculate are actions of documents")
    def test_documents(self, make: Maker) -> None:
        root = make.order()
        answered(make.caller.post(f"{root}/Recalculate", {}), 204)
        answered(make.caller.post(f"{root}/MakeVoid", {"reason": "test", "voidType": "VoidDocument"}), 204)
        assert make.caller.read(root)["Void"] is True
        error_of(make.caller.post(f"{PRODUCT}/MakeVoid", {"reason": "test"}), 400, 404)

    @statement("spec 2.4", "Execute is an action of scripts")
    def test_execute(self, make: Maker) -> None:
        script = make.script("return 1 + 1;")
        assert script.startswith(SCRIPTS)
        answered(make.caller.post(f"{script}/Execute", {}), 200)


@statement("spec 2.3", "Names of references of the demo company and type are kept as they were given")
def test_given_references(make: Maker) -> None:
    made = make.new(ORDERS, order())
    assert made["EnterpriseCompany"] == {"@odata.id": COMPANY}
    assert made["DocumentType"] == {"@odata.id": ORDER_TYPE}
