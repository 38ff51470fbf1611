"""Scripts and rules.

What the reference's documents show of scripts, conditions and actions, over HTTP (spec 14, 14.1 and 14.5).
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from domain.dataset.records.record import Record
from domain.entities.systems_monitoring import InformationMessage
from foundation import errors
from foundation.egress import policy
from rules.actions import mail
from tests.domain.conftest import fresh_process
from tests.identity.conftest import forget_everything
from tests.rules.cast import (
    LINES,
    ORDERS,
    PRODUCTS,
    World,
    dataset,
    fail,
    make_property,
    new_line,
    new_order,
    new_product,
    prepared_world,
    set_value,
    write_rule,
)
from tests.scripts.cast import console, execute
from tests.support.api import Api, error_of, prepared_token
from tests.support.receiver import Answer, LoopbackReceiver

__all__ = ["fresh_process"]
SENDMAIL = ("SENDMAIL", ("Constant", "a@b.example"), ("Constant", "Saved"), ("Constant", "It was."))


@pytest.fixture
def world(db: None, fresh_process: None) -> World:
    return prepared_world()


@pytest.fixture
def api(world: World, client: Client) -> Api:
    forget_everything()
    return Api(client, prepared_token())


@pytest.fixture
def order(world: World) -> Record:
    ds = dataset(world.context)
    record = new_order(ds, world)
    new_line(ds, world, record, Quantity=Decimal("2.5"), UnitPrice=Decimal("10.5"), LineNo=10)
    ds.commit()
    return record


# --- Action.http --------------------------------------------------------------------------------------------------


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = policy.EgressPolicy.parse(["127.0.0.1"])
    monkeypatch.setattr("foundation.egress.client.egress_policy", lambda: allowed)


@pytest.mark.usefixtures("reached")
def test_http_headers_as_text_lines(api: Api) -> None:
    """Action.http.get and post with headers as lines of text"""
    with LoopbackReceiver().running() as receiver:
        source = f"""
            Action.http.post('{receiver.url}/a', "{{ 'value': 42 }}",
                             "Content-Type: application/json\\nAuthorization: Bearer a:b\\r\\n\\n X-Key :  k ");
            Action.http.get('{receiver.url}/b', "X-One: 1");
            Action.http.get('{receiver.url}/c', {{ "X-One": "2" }});
            Action.http.get('{receiver.url}/d', "");
        """
        console(api, source)
        first, second, third, fourth = receiver.requests
    assert (first.method, first.body) == ("POST", b"{ 'value': 42 }")
    wanted = {"content-type": "application/json", "authorization": "Bearer a:b", "x-key": "k"}
    assert {name: first.headers[name] for name in wanted} == wanted
    assert (second.method, second.headers["x-one"], third.headers["x-one"]) == ("GET", "1", "2")
    assert "x-one" not in fourth.headers


@pytest.mark.parametrize("headers", ["'no colon'", "': nameless'", "'A: b\\nnonsense'", "5", "[1]"])
def test_http_headers_that_are_none(api: Api, headers: str) -> None:
    error = error_of(execute(api, f"Action.http.get('http://127.0.0.1:1/', {headers})"))
    assert "'Name: value'" in error["message"] or headers == "[1]"
    assert error["type"] != "InternalError"


@pytest.mark.usefixtures("reached")
def test_the_response_reads_as_its_body(api: Api) -> None:
    """The response's members, and the response where text is wanted: JSON.parse, concatenation, template literals"""
    with LoopbackReceiver().running() as receiver:
        receiver.respond_with = lambda request: Answer(201, b'{"status": "APPROVED"}', {"X-Trace": "t1"})
        source = f"""
            const response = Action.http.get('{receiver.url}/');
            console.log(response.isSuccess, response.statusCode, response.body === '{{"status": "APPROVED"}}');
            console.log(response.headers['X-Trace'], response.headers['x-trace']);
            console.log(JSON.parse(response).status, '<' + response + '>', `${{response}}`, String(response));
            console.log(response == response.body, response.includes('APPROVED'), response.length);
            console.log(response.slice(2, 8));
            console.log(Object.keys(response).join(), JSON.parse(JSON.stringify(response)).statusCode);
            'use strict'; try {{ response.body = 'x' }} catch (e) {{}} console.log(response.body.length);
        """
        lines = console(api, source).split("\n")
    body = '{"status": "APPROVED"}'
    assert lines == [
        "true 201 true",
        "t1 t1",
        f"APPROVED <{body}> {body} {body}",
        "true true 22",
        "status",
        "isSuccess,statusCode,body,headers,errorMessage 201",
        "22",
    ]


def test_a_failed_request_reads_as_nothing(api: Api) -> None:
    source = "const r = Action.http.get('ftp://x'); console.log(`[${r}]`, r.isSuccess, r.statusCode, typeof r.headers)"
    assert console(api, source) == "[] false 0 object"


# --- types --------------------------------------------------------------------------------------------------------


def test_quantities_and_amounts_of_entities(api: Api, world: World) -> None:
    """new Domain.Types.Quantity(1, unitEntity) takes the unit's code, Amount the currency's"""
    source = f"""
        const unit = Domain.General.Products.MeasurementUnitsRepository.getById('{world.unit}');
        const euro = Domain.General.Currencies.CurrenciesRepository.getById('{world.currency}');
        const {{ Quantity, Amount }} = Domain.Types;
        console.log(String(new Quantity(1, unit)), new Quantity(1, unit).Unit, String(new Amount(10, euro)));
        const ratio = Quantity.Divide(new Quantity(10, unit), new Quantity(5, unit));
        console.log(String(Amount.Multiply(new Amount(10, euro), 5)), ratio);
        console.log(Quantity.Equals(new Quantity(1, unit), new Quantity(1, 'pcs')), new Quantity(1, null).Unit);
    """
    assert console(api, source).split("\n") == ["1 pcs pcs 10 EUR", "50 EUR 2", "true null"]


# --- members by their parts ---------------------------------------------------------------------------------------


def test_values_and_ids_in_scripts(api: Api, order: Record, world: World) -> None:
    """QuantityValue and CustomerId of entities in scripts: read, set, created with, asked for"""
    line = order.children("Lines")[0].id
    source = f"""
        const line = Domain.Crm.Sales.SalesOrderLinesRepository.getById('{line}');
        const order = line.SalesOrder;
        console.log(line.QuantityValue, line.quantityvalue % 1, line.UnitPriceValue, 'QuantityValue' in line);
        console.log(order.CustomerId === '{world.customer}', order.SalesPersonId);
        console.log(order.customerId === order.Customer.Id);
        line.QuantityValue = 4; console.log(line.Quantity.Value, line.QuantityValue, line.Quantity.Unit);
        order.AssignedToUserId = '{world.user}'; console.log(order.AssignedToUser.Login, order.ObjectState);
        order.AssignedToUserId = null; console.log(order.AssignedToUser, order.AssignedToUserId);
        const lines = Domain.Crm.Sales.SalesOrderLinesRepository;
        const many = lines.query({{ QuantityValue: {{ greaterthanorequal: 5 }} }});
        console.log(lines.query({{ QuantityValue: 4, ProductId: '{world.product}' }}).length, many.length);
        const values = {{ ProductId: '{world.product}', QuantityUnitId: '{world.unit}', QuantityValue: 7 }};
        const made = order.Lines.createNew(values);
        console.log(made.Quantity.Value, made.ProductId === '{world.product}');
        try {{ line.NothingValue }} catch (e) {{ console.log(e.type) }}
        try {{ line.PersistLotId }} catch (e) {{ console.log(e.type) }}
    """
    assert console(api, source).split("\n") == [
        "2.5 0.5 10.5 true", "true null", "true", "4 4 pcs", "anna Modified", "null null", "1 0", "7 true",
        "UnknownProperty", "UnknownProperty",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "condition, fires",
    [
        (("QuantityValue", "Greater_Than", "2"), True),
        (("QuantityValue", "Greater_Than", "2.5"), False),
        (("quantityvalue", "Equals", "2.50"), True),
        (("UnitPriceValue", "Less_Than", "11"), True),
        (("SalesOrder.CustomerId", "IsNull"), False),
        (("ProductId", "Equals", "{product}"), True),
        (("ProductId", "Not_Equals", "{product}"), False),
    ],
)
def test_values_and_ids_in_conditions(world: World, api: Api, condition: tuple[str, ...], fires: bool) -> None:
    """QuantityValue and ProductId in conditions"""
    ds = dataset(world.context)
    order = new_order(ds, world)
    new_line(ds, world, order, Quantity=Decimal("2.5"), UnitPrice=Decimal("10.5"))
    ds.commit()
    filled = tuple(part.replace("{product}", world.product) for part in condition)
    write_rule(world, LINES, ["COMMIT"], conditions=[filled], actions=[fail("Seen.")])
    line = order.children("Lines")[0].id
    answer = api.patch(f"Crm_Sales_SalesOrderLines({line})", {"LineNo": 20})
    assert (answer.status_code == 500 and error_of(answer)["message"] == "Seen.") is fires


def test_values_and_ids_in_actions(world: World, order: Record) -> None:
    """SETVALUE of QuantityValue and AssignedToUserId, NOTIFYUSER to an id"""
    write_rule(
        world, LINES, ["COMMIT"], code="LINE",
        actions=[set_value("QuantityValue", "8"), set_value("UnitPriceValue", "QuantityValue", "Attribute"),
                 set_value("ProductId", f"General_Products_Products({world.product})")],
    )  # fmt: skip
    write_rule(
        world, ORDERS, ["COMMIT"], code="ORDER",
        actions=[set_value("AssignedToUserId", world.user),
                 ("NOTIFYUSER", ("Attribute", "AssignedToUserId"), ("Constant", "Yours"))],
    )  # fmt: skip
    ds = dataset(world.context)
    line = ds.load(LINES, order.children("Lines")[0].id)
    assert line is not None
    ds.set(line, "LineNo", 20)
    ds.set(line.sales_order, "DocumentNotes", "changed")
    ds.commit()
    assert (line.quantity, line.unit_price, line.sales_order.assigned_to_user_id) == (8, 8, world.user)
    (found,) = dataset(world.context).find_all("Systems.Core.Notifications")
    assert (found.user_id, found.subject, found.notification_class) == (world.user, "Yours", "USR_BR_ORDER")


def test_a_rule_s_script_reads_values(world: World, api: Api, order: Record) -> None:
    """The documented check for whole quantities, in both spellings"""
    script = """
        if (subject.Quantity.Value % 1 !== 0 && subject.QuantityValue % 1 !== 0)
            Action.cancel('Not whole: ' + subject.QuantityValue);
    """
    write_rule(world, LINES, ["COMMIT"], ScriptLanguage="JavaScript", ScriptText=script)
    line = order.children("Lines")[0].id
    answer = api.patch(f"Crm_Sales_SalesOrderLines({line})", {"LineNo": 20})
    assert error_of(answer)["message"] == "Not whole: 2.5"


# --- ObjectState --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["COMMITTED", "CLIENTCOMMITTED", "AGGREGATECLIENTCOMMITTED"])
def test_object_state_tells_what_the_commit_did(
    world: World, event: str, django_capture_on_commit_callbacks: Any
) -> None:
    """ObjectState in conditions, texts and scripts of COMMITTED rules: Added, Modified, Deleted"""
    for state in ("Added", "Modified", "Deleted"):
        write_rule(
            world, PRODUCTS, [event], code=state, conditions=[("ObjectState", "Equals", state)],
            actions=[("NOTIFYUSER", ("Constant", "anna"), ("Interpolate", "{PartNumber} {ObjectState}"))],
            ScriptLanguage="JavaScript",
            ScriptText="Action.notify.user(Action.user.id, 'script ' + subject.PartNumber + ' ' + subject.ObjectState)",
        )  # fmt: skip

    def told() -> list[str]:
        ds = dataset(world.context)
        found = ds.find_all("Systems.Core.Notifications")
        subjects = sorted(record.subject for record in found)
        for record in found:
            ds.delete(record)
        ds.commit()
        return subjects

    with django_capture_on_commit_callbacks(execute=True):
        ds = dataset(world.context)
        product = new_product(ds, world)
        ds.commit()
    assert told() == ["P2 Added", "script P2 Added"]
    with django_capture_on_commit_callbacks(execute=True):
        ds.set(product, "PartNumber", "P3")
        ds.commit()
    assert told() == ["P3 Modified", "script P3 Modified"]
    with django_capture_on_commit_callbacks(execute=True):
        ds.delete(product, by_client=True)
        ds.commit()
    assert told() == ["P3 Deleted", "script P3 Deleted"]
    assert ds.load(PRODUCTS, product.id) is None


def test_object_state_stays_what_the_commit_did(world: World, django_capture_on_commit_callbacks: Any) -> None:
    """A COMMITTED rule that changes the object itself still tells what the commit did"""
    write_rule(
        world, PRODUCTS, ["COMMITTED"],
        conditions=[("ObjectState", "Equals", "Added")],
        actions=[set_value("CatalogDescriptionHtml", "first"),
                 ("NOTIFYUSER", ("Constant", "anna"), ("Interpolate", "{ObjectState}"))],
    )  # fmt: skip
    with django_capture_on_commit_callbacks(execute=True):
        ds = dataset(world.context)
        product = new_product(ds, world)
        ds.commit()
    (found,) = dataset(world.context).find_all("Systems.Core.Notifications")
    assert found.subject == "Added"
    stored = dataset(world.context).load(PRODUCTS, product.id)
    assert stored is not None
    assert stored.catalog_description_html == "first"


def test_object_state_before_the_commit(world: World, api: Api) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], conditions=[("ObjectState", "Equals", "Modified")], actions=[fail("Fixed.")]
    )
    answer = api.patch(f"General_Products_Products({world.product})", {"PartNumber": "P9"})
    assert error_of(answer)["message"] == "Fixed."


@pytest.mark.parametrize(
    "condition, action, words",
    [
        (("ObjectState", "Equals", "Gone"), fail(), "Unchanged | Added | Modified | Deleted"),
        (("Name", "IsNull"), set_value("ObjectState", "Added"), "not an attribute of the object itself"),
        (("NothingValue", "Equals", "1"), fail(), "has no attribute 'NothingValue'"),
        (("NameValue", "Equals", "1"), fail(), "has no attribute 'NameValue'"),
        (("PartNumberId", "Equals", "1"), fail(), "has no attribute 'PartNumberId'"),
        (("MeasurementUnitId", "Equals", "pcs"), fail(), "not a valid"),
    ],
)
def test_names_that_are_none(world: World, condition: tuple[str, ...], action: Any, words: str) -> None:
    with pytest.raises(errors.Refused) as caught:
        write_rule(world, PRODUCTS, ["COMMIT"], conditions=[condition], actions=[action])
    assert words in str(caught.value)


# --- SETVALUE of custom properties --------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["Attribute", "Interpolate"])
def test_setvalue_copies_a_custom_property(world: World, source: str) -> None:
    """SETVALUE @A from @B copies value, description and the id of the value; a text only sets the value"""
    make_property(world, "a")
    make_property(world, "b")
    value = {"Value": "red", "Description": {"EN": "Warm"}, "ValueId": "0189d2a0-0000-7000-8000-00000000beef"}
    written = "@b" if source == "Attribute" else "{@b}"
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[set_value("@a", written, source)])
    ds = dataset(world.context)
    product = new_product(ds, world)
    ds.assign_custom(product, "b", value)
    ds.commit()
    only_value = {"Value": "red", "Description": None, "ValueId": None}
    assert product.custom["a"] == (value if source == "Attribute" else only_value)


def test_setvalue_copies_nothing_from_nothing(world: World) -> None:
    make_property(world, "a")
    make_property(world, "b")
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[set_value("@a", "@b", "Attribute")])
    ds = dataset(world.context)
    product = new_product(ds, world)
    ds.assign_custom(product, "a", {"Value": "x", "Description": None, "ValueId": None})
    ds.commit()
    assert product.custom.get("a") is None


# --- SENDMAIL -----------------------------------------------------------------------------------------------------


@pytest.fixture
def without_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "EMAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")


def sendmail_rule() -> dict[str, Any]:
    parameters = {f"Parameter{n}Type": "Constant" for n in (1, 2)}
    return {
        "Code": "MAIL", "Name": {"EN": "Mail"}, "RepositoryName": PRODUCTS, "IsActive": True,
        "Events": [{"EventType": "COMMIT"}],
        "Actions": [{"ActionNo": 10, "ActionType": "SENDMAIL", **parameters,
                     "Parameter1Value": "a@b.example", "Parameter2Value": "Saved"}],
    }  # fmt: skip


def test_sendmail_is_refused_without_a_mail_server(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """SENDMAIL without a mail server is refused when the rule is saved"""
    with monkeypatch.context() as patch:
        patch.setattr(settings, "EMAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")
        error = error_of(api.post("Systems_Bpm_UserBusinessRules", sendmail_rule()))
        assert "no mail server (EMAIL_URL)" in error["message"]
        assert error["details"][0]["target"] == "Actions/0/ActionType"
    assert api.post("Systems_Bpm_UserBusinessRules", sendmail_rule()).status_code == 201


def test_sendmail_is_recorded_as_not_sent(
    world: World,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    """A mail server that is gone at run time leaves a message that it was not sent, and no traceback"""
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[SENDMAIL])
    monkeypatch.setattr(settings, "EMAIL_BACKEND", "django.core.mail.backends.smtp.EmailBackend")
    with django_capture_on_commit_callbacks(execute=True):
        ds = dataset(world.context)
        new_product(ds, world)
        ds.commit()
    with django_capture_on_commit_callbacks(execute=True):
        assert mail.send_mail_now(["w@b.example"], "Late", "") == 0
    rows = InformationMessage.objects.order_by("process_description").values_list("process_description", "message")
    assert [tuple(row) for row in rows] == [
        ("SENDMAIL to a@b.example", "'Saved' was not sent: this instance has no mail server. Set EMAIL_URL."),
        ("SENDMAIL to w@b.example", "'Late' was not sent: this instance has no mail server. Set EMAIL_URL."),
    ]
    assert "Traceback" not in caplog.text


def test_a_webhook_renders_its_body_by_the_culture_of_machines(api: Api) -> None:
    """A JSON body with formats is checked as it will be sent"""
    hook = {
        "Code": "H", "Name": {"EN": "H"}, "RepositoryName": LINES, "URL": "https://example.com/{LineNo:D4}",
        "Body": json.dumps({"q": "{Quantity:Q}"}).replace('"{Quantity:Q}"', "{Quantity:Q}") ,
    }  # fmt: skip
    answer = api.post("Systems_Config_WebHooks", hook)
    assert answer.status_code == 201, answer.content
    assert "valid JSON" not in answer.headers.get("X-Warnings", "")
