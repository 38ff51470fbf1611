"""Spec 05, 5.3: what each action does, and when what it does leaves the process."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail

from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import compile_template
from domain.dataset.transactions import domain_transactions
from foundation import cache_versions, errors
from identity.models import User
from rules.actions import ActionType, BoundAction, ParameterRule, action_types
from rules.actions import mail as mail_action
from rules.firing import Firing
from tests.rules.cast import (
    LINES,
    ORDERS,
    PRODUCTS,
    World,
    dataset,
    fail,
    new_line,
    new_order,
    new_product,
    set_value,
    warn,
    write_rule,
)


def saved(world: World, model: str = "common", **values: Any) -> Record:
    """A product, created and saved by a caller."""
    ds = dataset(world.context, model)  # type: ignore[arg-type]
    record = new_product(ds, world, **values)
    ds.commit()
    return record


def define(world: World, code: str, property_type: str) -> None:
    ds = dataset(world.context)
    ds.create(
        "Systems.Bpm.CustomProperties",
        {"Code": code, "Name": {"EN": code}, "EntityName": PRODUCTS, "PropertyType": property_type},
    )
    ds.commit()
    cache_versions.expire()


# --- SETVALUE -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attribute, kind, value, expected",
    [
        ("CatalogDescriptionHtml", "Constant", "text {x}", "text {x}"),
        ("CatalogDescriptionHtml", "Interpolate", "{PartNumber}/{ProductGroup.Code}", "P2/G1"),
        ("CatalogDescriptionHtml", "FormattedString", "{ScrapRate:N2}", "0.50"),
        ("CatalogDescriptionHtml", "Attribute", "ScrapRate", "0.5"),
        ("CatalogDescriptionHtml", "Attribute", "ProductGroup.Code", "G1"),
        ("CatalogDescriptionHtml", "Attribute", "Name", "Product P2"),
        ("CatalogDescriptionHtml", "Constant", None, None),
        ("ScrapRate", "Constant", "0.25", Decimal("0.25")),
        ("ScrapRate", "Interpolate", "{ScrapRate:N1}", Decimal("0.5")),
        ("StandardPricePerLot", "Attribute", "ScrapRate", Decimal("0.5")),
        ("Active", "Constant", "false", False),
        ("UseLots", "Constant", "required", "Required"),
        ("Name", "Constant", "New", {"EN": "New"}),
        ("ShowInCatalog", "Attribute", "Active", True),
    ],
)
def test_set_value_takes_constants_attributes_and_templates(
    world: World, attribute: str, kind: str, value: str | None, expected: Any
) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[set_value(attribute, value, kind)])
    record = saved(world, CatalogDescriptionHtml="before", ScrapRate=Decimal("0.5"), Active=kind == "Attribute")
    assert record.values[attribute] == expected
    stored = dataset(world.context).load(PRODUCTS, record.id)
    assert stored is not None
    assert stored.values[attribute] == expected


def test_set_value_copies_references_and_dates(world: World) -> None:
    write_rule(
        world,
        ORDERS,
        ["COMMIT"],
        actions=[
            set_value("ToParty", "FromParty", "Reference"),
            set_value("ReferenceDate", "DocumentDate", "Attribute"),
            set_value("FromDate", "{DocumentDate:yyyy}-12-31", "Interpolate"),
            set_value("CustomerPurchaseOrderDate", "{DocumentDate}", "Interpolate"),
            set_value("ShipToCustomer", f"Crm_Sales_Customers({world.customer})"),
            set_value("EndCustomerParty", world.party, "Reference"),
        ],
    )
    ds = dataset(world.context.with_(language="de"))
    order = new_order(ds, world, DocumentDate=datetime.date(2026, 3, 9))
    ds.commit()
    assert order.values["ToParty"] == order.values["FromParty"]
    assert order.values["ReferenceDate"] == datetime.datetime(2026, 3, 9, tzinfo=datetime.UTC)
    assert order.values["FromDate"] == datetime.date(2026, 12, 31)
    # The caller reads dates the German way; what is parsed again is written for machines all the same.
    assert order.values["CustomerPurchaseOrderDate"] == datetime.date(2026, 3, 9)
    assert order.values["ShipToCustomer"] == world.customer
    assert order.values["EndCustomerParty"] == world.party


@pytest.mark.parametrize(
    "property_type, kind, value, expected",
    [
        ("Text", "Constant", "red", "red"),
        ("Text", "Interpolate", "{PartNumber}", "P2"),
        ("Number", "Constant", "1.50", "1.5"),
        ("Number", "Attribute", "ScrapRate", "0.5"),
        ("Date", "Constant", "2026-03-09", "2026-03-09"),
    ],
)
def test_set_value_sets_custom_properties(
    world: World, property_type: str, kind: str, value: str, expected: str
) -> None:
    define(world, "p", property_type)
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[set_value("@p", value, kind)])
    record = saved(world, ScrapRate=Decimal("0.5"))
    assert record.custom["p"]["Value"] == expected
    stored = dataset(world.context).load(PRODUCTS, record.id)
    assert stored is not None
    assert stored.custom["p"]["Value"] == expected


def test_custom_properties_compare_by_their_type(world: World) -> None:
    define(world, "n", "Number")
    define(world, "d", "Date")
    write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("@n", "Greater_Than", "9")], actions=[warn("n")])
    write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("@d", "Less_Than", "2026-02-01")], actions=[warn("d")])
    write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("@n", "IsNull")], actions=[warn("none")])
    ds = dataset(world.context)
    record = new_product(ds, world)
    ds.set_custom(record, "n", {"Value": "10"})
    ds.set_custom(record, "d", {"Value": "2026-01-31"})
    ds.commit()
    assert ds.warnings == ["n", "d"]
    ds.set_custom(record, "n", None)
    ds.set_custom(record, "d", {"Value": "2026-03-31"})
    ds.warnings.clear()
    ds.commit()
    assert ds.warnings == ["none"]


def test_set_value_in_a_frontend_dataset_lets_dependents_follow(world: World) -> None:
    write_rule(
        world, LINES, [("ATTRIBUTECHANGED", "Quantity")], Layer="FrontEnd", actions=[set_value("UnitPrice", "3")]
    )
    ds = dataset(world.context, "frontend")
    line = new_line(ds, world, new_order(ds, world))
    ds.set(line, "Quantity", Decimal(4))
    assert line.values["UnitPrice"] == Decimal(3)
    assert line.values["LineAmount"] == Decimal(12)


def test_an_object_that_is_being_deleted_keeps_its_values(world: World) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], actions=[set_value("CatalogDescriptionHtml", "{PartNumber}", "Interpolate")]
    )
    record = saved(world)
    record.dataset.delete(record, by_client=True)
    record.dataset.commit()
    assert dataset(world.context).load(PRODUCTS, record.id) is None


# --- WARNING ------------------------------------------------------------------------------------------------------


def test_warnings_are_collected_once_and_the_operation_passes(world: World) -> None:
    write_rule(world, PRODUCTS, ["COMMIT", "CLIENTCOMMIT"], actions=[warn("Look at {PartNumber}.")])
    record = saved(world)
    assert record.dataset.warnings == ["Look at P2."]
    assert record.state == "Unchanged"


# --- NOTIFYUSER ---------------------------------------------------------------------------------------------------


def test_notify_user_leaves_a_notification_for_each_user(world: World) -> None:
    bert = User.objects.create(login="bert", name={"EN": "Bert"})  # type: ignore[misc]
    write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        actions=[
            (
                "NOTIFYUSER",
                ("Constant", f"Anna; {bert.id}"),
                ("Interpolate", "{PartNumber} saved"),
                ("Constant", "Stock"),
            ),
            set_value("CatalogDescriptionHtml", "so that the event settles twice"),
        ],
    )
    saved(world)
    found = dataset(world.context).find_all("Systems.Core.Notifications")
    assert {(n.user_id, n.subject, n.notification_class) for n in found} == {
        (world.user, "P2 saved", "Stock"),
        (bert.id, "P2 saved", "Stock"),
    }
    assert len(found) == 2
    assert not any(record.is_read for record in found)


def test_notify_user_takes_users_from_attributes(world: World) -> None:
    write_rule(
        world, ORDERS, ["COMMIT"], code="NOTIFY",
        actions=[("NOTIFYUSER", ("Reference", "AssignedToUser"), ("Constant", "Yours"))],
    )  # fmt: skip
    ds = dataset(world.context)
    new_order(ds, world)
    ds.commit()
    assert dataset(world.context).find_all("Systems.Core.Notifications") == []
    ds = dataset(world.context)
    new_order(ds, world, AssignedToUser=world.user)
    ds.commit()
    (found,) = dataset(world.context).find_all("Systems.Core.Notifications")
    assert (found.user_id, found.notification_class) == (world.user, "USR_BR_NOTIFY")


def test_a_user_who_is_gone_becomes_a_warning(world: World) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], actions=[("NOTIFYUSER", ("Interpolate", "{PartNumber}"), ("Constant", "s"))]
    )
    assert saved(world).dataset.warnings == ["There is no user 'P2'."]


# --- SENDMAIL -----------------------------------------------------------------------------------------------------


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str, str]]:
    found: list[tuple[list[str], str, str]] = []
    monkeypatch.setattr(mail_action, "enqueue_mail", lambda *message: found.append(message))
    return found


def test_mail_is_queued_once_and_only_after_the_commit(
    world: World, queued: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        actions=[
            ("SENDMAIL", ("Constant", "a@example.com, b@example.com"), ("Interpolate", "New: {Name}"),
             ("Interpolate", "{PartNumber}\nby {$user.Name}")),
            set_value("CatalogDescriptionHtml", "so that the event settles twice"),
        ],
    )  # fmt: skip
    with django_capture_on_commit_callbacks() as callbacks:
        saved(world, Name={"EN": "a\r\nBcc: x@example.com"})
        assert queued == []
    for callback in callbacks:
        callback()
    assert queued == [(["a@example.com", "b@example.com"], "New: a Bcc: x@example.com", "P2\nby Anna")]


def test_mail_of_a_refused_commit_is_never_sent(
    world: World, queued: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], code="A", actions=[("SENDMAIL", ("Constant", "a@b.example"), ("Constant", "s"))]
    )
    write_rule(world, PRODUCTS, ["COMMIT"], code="B", actions=[fail()])
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(errors.Refused):
        saved(world)
    assert queued == []


def test_mail_of_an_earlier_event_survives_a_failed_commit(
    world: World, queued: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    write_rule(
        world,
        PRODUCTS,
        [("ATTRIBUTECHANGED", "ScrapRate")],
        Layer="FrontEnd",
        actions=[("SENDMAIL", ("Constant", "a@b.example"), ("Constant", "s"))],
    )
    write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("CatalogDescriptionHtml", "IsNull")], actions=[fail()])
    ds = dataset(world.context, "frontend")
    record = new_product(ds, world)
    ds.set(record, "ScrapRate", Decimal("0.1"))
    with django_capture_on_commit_callbacks(execute=True):
        with pytest.raises(errors.Refused):
            ds.commit()
        ds.set(record, "CatalogDescriptionHtml", "mended")
        ds.commit()
    assert len(queued) == 1


@pytest.mark.parametrize("commit", [True, False])
def test_mail_of_an_earlier_request_is_sent_when_its_transaction_commits(
    world: World, queued: list[Any], commit: bool, django_capture_on_commit_callbacks: Any
) -> None:
    write_rule(
        world,
        PRODUCTS,
        [("ATTRIBUTECHANGED", "ScrapRate")],
        Layer="FrontEnd",
        actions=[("SENDMAIL", ("Constant", "a@b.example"), ("Constant", "s"))],
    )
    id = domain_transactions.transaction_begin(world.context, model="frontend")
    with django_capture_on_commit_callbacks(execute=True):
        with domain_transactions.opened(world.context, id) as first:
            first.set(new_product(first, world), "ScrapRate", Decimal("0.1"))
        assert queued == []
        with domain_transactions.opened(world.context, id) as second:
            second.end(commit=commit)
    assert queued == ([(["a@b.example"], "s", "")] if commit else [])


def test_an_event_that_is_repeated_after_a_failed_commit_sends_one_mail(
    world: World, queued: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGED", "ScrapRate")], Layer="FrontEnd",
        actions=[("SENDMAIL", ("Constant", "a@b.example"), ("Interpolate", "{CatalogDescriptionHtml}"))],
    )  # fmt: skip
    write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("CatalogDescriptionHtml", "Equals", "one")], actions=[fail()])
    id = domain_transactions.transaction_begin(world.context, model="frontend")
    with django_capture_on_commit_callbacks(execute=True):
        with domain_transactions.opened(world.context, id) as first:
            record = new_product(first, world, CatalogDescriptionHtml="one")
            first.set(record, "ScrapRate", Decimal("0.1"))
        with domain_transactions.opened(world.context, id) as second:
            with pytest.raises(errors.Refused):
                second.commit_and_continue()
            known = second.open(record.repository, record.id)
            second.set(known, "CatalogDescriptionHtml", "two")
            second.set(known, "ScrapRate", Decimal("0.2"))
            second.commit_and_continue()
    assert [subject for _, subject, _ in queued] == ["two"]


@pytest.mark.parametrize("in_later_request", [False, True])
def test_no_mail_tells_of_a_new_entity_that_is_deleted_before_the_commit(
    world: World, queued: list[Any], in_later_request: bool, django_capture_on_commit_callbacks: Any
) -> None:
    write_rule(world, PRODUCTS, ["CREATENEW"], actions=[("SENDMAIL", ("Constant", "a@b.example"), ("Constant", "s"))])
    id = domain_transactions.transaction_begin(world.context)
    with django_capture_on_commit_callbacks(execute=True):
        with domain_transactions.opened(world.context, id) as first:
            new_product(first, world, "P3")
            record = new_product(first, world)
            if not in_later_request:
                first.delete(record, by_client=True)
        with domain_transactions.opened(world.context, id) as second:
            if in_later_request:
                second.delete(second.open(record.repository, record.id), by_client=True)
            second.end(commit=True)
    assert len(queued) == 1


def test_the_worker_sends_by_django_s_mail_backend() -> None:
    assert mail_action.send_mail_now(["a@example.com"], "Subject\nX: y", "Body") == 1
    assert (mail.outbox[0].to, mail.outbox[0].subject, mail.outbox[0].body) == (
        ["a@example.com"],
        "Subject X: y",
        "Body",
    )


# --- the catalogue ------------------------------------------------------------------------------------------------


def test_every_action_type_of_the_model_is_known_but_for_webhooks_own() -> None:
    from domain.model.rule_enums import USER_BUSINESS_RULE_ACTION_TYPE as stored

    assert set(stored.members) - {"WEBHOOK"} <= {action.name for action in action_types}


def test_registration_fails_loudly() -> None:
    class Nameless(ActionType):
        pass

    class Twice(ActionType):
        name = "FAIL"

    class TooMany(ActionType):
        name = "TOOMANY"
        parameters = (ParameterRule("p", ("Constant",)),) * 4

    for declaration in (Nameless, Twice, TooMany):
        with pytest.raises(ValueError, match="action type"):
            action_types.register(declaration)


def test_another_app_can_add_an_action(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Remember(ActionType):
        name = "WEBHOOK"
        parameters = (ParameterRule("template", ("Constant",)),)

        def run(self, action: BoundAction, firing: Firing) -> None:
            template = compile_template(firing.record.repository, '{{"no": "{PartNumber}"}}')
            body = firing.render(template, "json")
            firing.dataset.defer_write(
                firing.key(action.spec.index), lambda: seen.append(action.text(0, firing) + body)
            )

    monkeypatch.setitem(action_types._items, "WEBHOOK", Remember())
    write_rule(world, PRODUCTS, ["AGGREGATECLIENTCOMMIT"], actions=[("WEBHOOK", ("Constant", "T1"))])
    saved(world)
    assert seen == ['T1{"no": "P2"}']


# --- scripts ------------------------------------------------------------------------------------------------------


def test_the_script_runs_after_the_actions_with_what_the_event_tells(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rules import scripting

    calls: list[Any] = []

    def script_run(source: str, ds: Any, *, kind: str, name: str, subject: Record, event: dict[str, Any]) -> None:
        calls.append((subject.values["CatalogDescriptionHtml"], event, source, name))

    monkeypatch.setattr(scripting, "script_run", script_run)
    write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGED", "ScrapRate")], code="JS", Layer="Common", ScriptLanguage="JavaScript",
        ScriptText="subject.Notes = 1", actions=[set_value("CatalogDescriptionHtml", "by the action")],
    )  # fmt: skip
    ds = dataset(world.context, "frontend")
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, "ScrapRate", Decimal("0.1"))
    event = {"$OldValue": Decimal(0), "$NewValue": Decimal("0.1")}
    assert calls == [("by the action", event, "subject.Notes = 1", "JS")]


def test_custom_properties_of_what_references_lead_to(world: World) -> None:
    define(world, "n", "Number")
    ds = dataset(world.context)
    product = ds.load(PRODUCTS, world.product)
    assert product is not None
    ds.set_custom(product, "n", {"Value": "10"})
    ds.commit()
    write_rule(
        world, LINES, ["COMMIT"], conditions=[("Product.@n", "Greater_Than", "9")],
        actions=[warn("many"), set_value("Quantity", "Product.@n", "Attribute")],
    )  # fmt: skip
    line = new_line(ds, world, new_order(ds, world))
    ds.commit()
    assert ds.warnings == ["many"]
    assert line.values["Quantity"] == Decimal(10)
    for wrong, words in (("Product.@colour", "no custom property"), ("Quantity.@n", "is not a reference")):
        with pytest.raises(errors.Refused) as caught:
            write_rule(world, LINES, ["COMMIT"], conditions=[(wrong, "IsNull")], actions=[warn("w")])
        assert words in caught.value.message
    with pytest.raises(errors.Refused) as caught:
        write_rule(world, LINES, ["COMMIT"], actions=[set_value("Product.@n", "5")])
    assert "not an attribute of the object itself" in caught.value.message
