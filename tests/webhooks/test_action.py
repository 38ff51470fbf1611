"""The WEBHOOK action: from an event to a row in the outbox, or to none (spec 05, 5.3; spec 06, 6.2)."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import ModelName, Record
from domain.dataset.tables.models import PendingWrite
from domain.dataset.transactions import domain_transactions
from domain.entities.document_states import document_change_state, document_make_void
from foundation import cache_versions, errors
from foundation.guids import new_guid
from tests.rules.cast import (
    LINES,
    ORDERS,
    PRODUCTS,
    World,
    fail,
    make_property,
    new_line,
    new_order,
    new_product,
    prepared_world,
    remove_property,
    write_rule,
)
from tests.rules.conftest import forget_rules  # noqa: F401
from tests.support.database_steps import sqlite_steps
from tests.support.receiver import LoopbackReceiver
from tests.webhooks.cast import PLATFORM, deliver_due, new_currency, new_delivery, new_web_hook
from webhooks.lease import deliveries_lease
from webhooks.models import WebHookDelivery
from webhooks.outbox import _WakeUp

pytestmark = pytest.mark.django_db

HOOK = ("WEBHOOK", ("Constant", "HOOK"))


@pytest.fixture
def world(db: None) -> World:
    """A company, a customer, a product."""
    return prepared_world()


def order_hook(**values: Any) -> None:
    new_web_hook(
        "http://127.0.0.1:9/{DocumentNo}",
        RepositoryName=ORDERS,
        Body='{"no": "{DocumentNo}", "customer": "{Customer.Party.PartyName:EN}", "state": "{State}"}',
        **values,
    )


def test_a_committed_event_leaves_one_row_rendered_at_the_event(world: World) -> None:
    order_hook()
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], actions=[HOOK], code="TELL")
    dataset = Dataset(world.context)
    order = new_order(dataset, world)
    new_line(dataset, world, order)
    assert not WebHookDelivery.objects.exists()
    dataset.commit()
    row = WebHookDelivery.objects.get()
    assert row.request_url == f"http://127.0.0.1:9/{order.document_no}"
    assert json.loads(row.request_body)["customer"] == "Buyers & Sons"
    assert (row.event_type, row.rule_code, row.entity_id, row.state) == (
        "AGGREGATECLIENTCOMMIT",
        "TELL",
        order.id,
        "Pending",
    )


def test_a_change_that_settles_in_rounds_is_told_once_with_its_last_content(world: World) -> None:
    new_web_hook("http://127.0.0.1:9/", RepositoryName=PRODUCTS, Body='{"n": "{PartNumber}"}')
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[HOOK], code="A")
    write_rule(
        world, PRODUCTS, ["COMMIT"], code="B", actions=[("SETVALUE", ("Attribute", "PartNumber"), ("Constant", "LAST"))]
    )
    dataset = Dataset(world.context)
    new_product(dataset, world)
    dataset.commit()
    assert json.loads(WebHookDelivery.objects.get().request_body) == {"n": "LAST"}


def test_a_refused_commit_sends_nothing(world: World) -> None:
    order_hook()
    write_rule(world, ORDERS, ["COMMIT"], actions=[HOOK], code="A")
    write_rule(world, ORDERS, ["COMMIT"], actions=[fail()], code="B")
    dataset = Dataset(world.context)
    new_order(dataset, world)
    with pytest.raises(errors.Refused):
        dataset.commit()
    assert not WebHookDelivery.objects.exists()


def test_a_discarded_dataset_sends_nothing(world: World) -> None:
    order_hook()
    write_rule(world, ORDERS, ["CREATENEW"], actions=[HOOK])
    dataset = Dataset(world.context)
    new_order(dataset, world, DocumentNo="1")
    dataset.discard()
    assert not WebHookDelivery.objects.exists()


def test_an_outer_rollback_takes_the_row_and_the_wake_up(world: World) -> None:
    order_hook()
    write_rule(world, ORDERS, ["COMMIT"], actions=[HOOK])

    with transaction.atomic():
        dataset = Dataset(world.context)
        new_order(dataset, world)
        dataset.commit()
        assert WebHookDelivery.objects.count() == 1
        transaction.set_rollback(True)
    assert not WebHookDelivery.objects.exists()
    assert not any(isinstance(entry[1], _WakeUp) for entry in connection.run_on_commit)


def test_the_event_after_the_commit_is_told_too(
    world: World, django_capture_on_commit_callbacks: pytest.FixtureRequest
) -> None:
    order_hook()
    write_rule(world, ORDERS, ["COMMITTED"], actions=[HOOK])
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        dataset = Dataset(world.context)
        new_order(dataset, world)
        dataset.commit()
    assert WebHookDelivery.objects.get().event_type == "COMMITTED"


def test_one_wake_up_for_a_commit_of_many(world: World) -> None:
    new_web_hook("http://127.0.0.1:9/", RepositoryName=PRODUCTS)
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[HOOK])
    before = len(connection.run_on_commit)
    dataset = Dataset(world.context)
    for number in range(5):
        new_product(dataset, world, f"N{number}")
    dataset.commit()
    wake_ups = [entry[1] for entry in connection.run_on_commit[before:] if isinstance(entry[1], _WakeUp)]
    assert [len(wake_up.ids) for wake_up in wake_ups] == [5]


def outbox_statements(queries: CaptureQueriesContext) -> list[str]:
    """Those that concern deliveries, of what ran meanwhile."""
    return [query["sql"] for query in queries if WebHookDelivery._meta.db_table in query["sql"]]


@pytest.mark.parametrize("count", [1, 5])
def test_a_commit_with_webhooks_makes_one_statement_more_however_many_they_are(world: World, count: int) -> None:
    new_web_hook(
        "http://127.0.0.1:9/{PartNumber}",
        RepositoryName=PRODUCTS,
        Headers="X-Name: {Name:BG}",
        Body='{"name": "{Name}", "group": "{ProductGroup.Code}", "at": "{$now}"}',
    )
    numbers = iter(range(100))

    def commit() -> CaptureQueriesContext:
        dataset = Dataset(world.context)
        for _ in range(count):
            new_product(dataset, world, f"N{next(numbers)}")
        with CaptureQueriesContext(connection) as queries:
            dataset.commit()
        return queries

    commit()  # what is loaded once for all
    without = commit()
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[HOOK])
    commit()
    with_ = commit()
    assert len(outbox_statements(without)) == 0
    (statement,) = outbox_statements(with_)
    assert "INSERT" in statement
    assert len(with_) == len(without) + 1
    assert WebHookDelivery.objects.count() == 2 * count


def test_what_a_domain_transaction_kept_is_inserted_by_one_statement_too(world: World) -> None:
    new_web_hook("http://127.0.0.1:9/{PartNumber}", RepositoryName=PRODUCTS)
    write_rule(world, PRODUCTS, [("ATTRIBUTECHANGED", "PartNumber")], actions=[HOOK], Layer="FrontEnd")
    id = domain_transactions.transaction_begin(world.context, model="frontend")
    for number in range(3):
        with domain_transactions.opened(world.context, id) as dataset:
            new_product(dataset, world, f"N{number}")
    with domain_transactions.opened(world.context, id) as dataset, CaptureQueriesContext(connection) as queries:
        dataset.end(commit=True)
    assert [sql.count("INSERT") for sql in outbox_statements(queries)] == [1]
    sent = WebHookDelivery.objects.order_by("pk").values_list("request_url", flat=True)
    assert list(sent) == [f"http://127.0.0.1:9/N{number}" for number in range(3)]


def test_a_template_that_names_what_is_gone_sends_nothing_and_stops_nobody(world: World) -> None:
    color = make_property(world, "color")
    new_web_hook("http://127.0.0.1:9/", RepositoryName=PRODUCTS, Body='{"color": "{@color}"}')
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[HOOK])
    dataset = Dataset(world.context)
    new_product(dataset, world, "N1")
    dataset.commit()
    assert WebHookDelivery.objects.count() == 1

    remove_property(world, color)
    dataset = Dataset(world.context)
    new_product(dataset, world, "N2")
    dataset.commit()
    (warning,) = dataset.warnings
    assert "custom property 'color'" in warning
    assert WebHookDelivery.objects.count() == 1


def edited_hook(hook: Record, **values: Any) -> None:
    dataset = Dataset(PLATFORM)
    stored = dataset.open(hook.repository, hook.id, "update")
    for name, value in values.items():
        dataset.set(stored, name, value)
    dataset.commit()
    cache_versions.expire()


def test_an_edited_template_that_the_event_cannot_fill_stops_only_a_rule_that_refuses(world: World) -> None:
    hook = new_web_hook("http://127.0.0.1:9/", RepositoryName=PRODUCTS)
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[HOOK])
    edited_hook(hook, Body='{"new": "{$NewValue}"}')
    dataset = Dataset(world.context)
    new_product(dataset, world, "N1")
    dataset.commit()
    (warning,) = dataset.warnings
    assert "$NewValue" in warning
    assert not WebHookDelivery.objects.exists()

    condition = ("PartNumber", "Equals", "NONE")
    edited_hook(hook, Body="{}")
    write_rule(world, PRODUCTS, ["COMMIT"], conditions=[condition], actions=[HOOK, fail()])
    edited_hook(hook, Body='{"new": "{$NewValue}"}')
    dataset = Dataset(world.context)
    new_product(dataset, world, "NONE")
    with pytest.raises(errors.Refused, match="NewValue"):
        dataset.commit()


def test_a_template_that_is_edited_before_the_commit_of_a_new_entity_stops_nobody(world: World) -> None:
    hook = new_web_hook("http://127.0.0.1:9/", RepositoryName=ORDERS, Body='{"to": "{State}"}')
    write_rule(world, ORDERS, [("STATECHANGED", "PLANNED")], actions=[HOOK])
    dataset = Dataset(world.context)
    order = new_order(dataset, world)
    document_change_state(order, "Planned")
    edited_hook(hook, Body='{"new": "{$NewValue}"}')
    dataset.commit()
    assert not WebHookDelivery.objects.exists()


def test_events_of_one_entity_are_numbered(world: World) -> None:
    new_web_hook("http://127.0.0.1:9/")
    record, other = new_currency("AAA"), new_currency("BBB")
    rows = [new_delivery("HOOK", entity) for entity in (record, other, record)]
    assert [WebHookDelivery.objects.get(pk=row.pk).sequence for row in rows] == [1, 1, 2]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="counts SQLite's steps")
def test_a_commit_costs_the_same_however_much_its_template_has_delivered(world: World) -> None:
    """A number that was looked for among all deliveries of the template took 7 ms beside 100,000."""
    hook = new_web_hook("http://127.0.0.1:9/")
    record = new_currency("AAA")
    new_delivery("HOOK", record)
    few = sqlite_steps(lambda: new_delivery("HOOK", record))
    delivered = {"web_hook_id": hook.id, "web_hook_code": "HOOK", "state": "Delivered", "sequence": 1, "headers": []}
    WebHookDelivery.objects.bulk_create(
        [WebHookDelivery(entity_id=new_guid(), destination="127.0.0.1:9", **delivered) for _ in range(1000)]
    )
    assert sqlite_steps(lambda: new_delivery("HOOK", record)) < 1.2 * few


def test_an_inactive_template_sends_nothing(world: World) -> None:
    order_hook(IsActive=False)
    write_rule(world, ORDERS, ["COMMIT"], actions=[HOOK])
    dataset = Dataset(world.context)
    new_order(dataset, world)
    dataset.commit()
    assert not WebHookDelivery.objects.exists()


def test_from_a_rule_to_the_receiver(world: World, loopback_receiver: LoopbackReceiver) -> None:
    new_web_hook(
        f"{loopback_receiver.url}/{{PartNumber}}",
        RepositoryName=PRODUCTS,
        Body='{"name": "{Name:BG}", "new": "{$date}"}',
    )
    write_rule(world, PRODUCTS, ["CLIENTCOMMIT"], actions=[HOOK])
    dataset = Dataset(world.context)
    new_product(dataset, world, 'N/1 "x"', Name={"EN": "Chair", "BG": 'Стол "А"'})
    dataset.commit()
    deliver_due()
    (request,) = loopback_receiver.requests
    assert request.path == "/N%2F1%20%22x%22"
    assert request.json()["name"] == 'Стол "А"'


@pytest.mark.parametrize("change", ["RepositoryName", "Code", "deleted"])
def test_a_template_that_fits_its_rule_no_more_is_not_sent_and_stops_nobody(world: World, change: str) -> None:
    hook = new_web_hook("http://127.0.0.1:9/", RepositoryName=PRODUCTS)
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[HOOK])
    dataset = Dataset(PLATFORM)
    stored = dataset.open(hook.repository, hook.id, "update")
    if change == "deleted":
        dataset.delete(stored)
    else:
        dataset.set(stored, change, {"RepositoryName": ORDERS, "Code": "ANOTHER"}[change])
    dataset.commit()
    cache_versions.expire()
    dataset = Dataset(world.context)
    new_product(dataset, world)
    dataset.commit()
    (warning,) = dataset.warnings
    assert ("is for" if change == "RepositoryName" else "There is no webhook 'HOOK'") in warning
    assert not WebHookDelivery.objects.exists()


# --- when the rule is saved ---------------------------------------------------------------------------------------


def test_the_template_must_exist(world: World) -> None:
    with pytest.raises(errors.Refused, match="There is no webhook 'HOOK'"):
        write_rule(world, ORDERS, ["COMMIT"], actions=[HOOK])


def test_the_template_must_be_of_the_rules_repository(world: World) -> None:
    order_hook()
    with pytest.raises(errors.Refused, match=r"Crm\.Sales\.SalesOrders"):
        write_rule(world, PRODUCTS, ["COMMIT"], actions=[HOOK])


def test_the_event_must_tell_what_the_template_needs(world: World) -> None:
    new_web_hook("http://127.0.0.1:9/", RepositoryName=ORDERS, Body="{$ToState}")
    write_rule(world, ORDERS, [("STATECHANGING", "RELEASED")], actions=[HOOK])
    with pytest.raises(errors.Refused, match=r"needs \$ToState"):
        write_rule(world, ORDERS, ["COMMIT"], actions=[HOOK])


def test_the_template_may_be_named_by_id(world: World) -> None:
    hook = new_web_hook("http://127.0.0.1:9/", RepositoryName=PRODUCTS)
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[("WEBHOOK", ("Constant", hook.id))])
    dataset = Dataset(world.context)
    new_product(dataset, world)
    dataset.commit()
    assert WebHookDelivery.objects.count() == 1


# --- Domain transactions, whose commit comes with another request ------------------------------------------------


@pytest.mark.parametrize("commit, expected", [(True, 1), (False, 0)])
def test_an_event_of_an_earlier_request_is_told_when_its_transaction_commits(
    world: World, commit: bool, expected: int
) -> None:
    new_web_hook("http://127.0.0.1:9/{PartNumber}", RepositoryName=PRODUCTS, Body='{"at": "{$now}"}')
    write_rule(world, PRODUCTS, [("ATTRIBUTECHANGED", "PartNumber")], actions=[HOOK], code="EARLY", Layer="FrontEnd")
    id = domain_transactions.transaction_begin(world.context, model="frontend")
    with domain_transactions.opened(world.context, id) as dataset:
        product = new_product(dataset, world, "FIRST")
    assert not WebHookDelivery.objects.exists()
    with domain_transactions.opened(world.context, id) as dataset:
        dataset.end(commit=commit)
    rows = list(WebHookDelivery.objects.filter(rule_code="EARLY"))
    assert len(rows) == expected
    if commit:
        assert (rows[0].request_url, rows[0].entity_id) == ("http://127.0.0.1:9/FIRST", product.id)
        assert deliveries_lease(5)
    assert not PendingWrite.objects.exists()


# --- entities that are new in their dataset -----------------------------------------------------------------------

STATED = ("STATECHANGED", "RELEASED")


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_the_number_of_a_new_document_is_in_the_request(world: World, model: ModelName) -> None:
    """Spec 05, 5.4: never an empty string. The number comes with the commit, all other values of the event stay."""
    order_hook()
    write_rule(world, ORDERS, [STATED], actions=[HOOK])
    dataset = Dataset(world.context, model=model)
    order = new_order(dataset, world)
    dataset.complete(order)
    document_change_state(order, "Released")
    document_change_state(order, "Completed")
    dataset.commit()
    (delivery,) = WebHookDelivery.objects.all()
    told = {"no": order.document_no, "customer": "Buyers & Sons", "state": "Released"}
    assert (delivery.request_url, json.loads(delivery.request_body)) == (
        f"http://127.0.0.1:9/{order.document_no}",
        told,
    )
    assert order.document_no


def test_the_number_comes_with_the_commit_of_a_transaction(world: World) -> None:
    new_web_hook(
        "http://127.0.0.1:9/{DocumentNo}",
        RepositoryName=ORDERS,
        Body='{"no": "{DocumentNo}", "state": "{State}", "reason": "{$VoidReason}", "total": "{TotalLineAmount:V}"}',
    )
    write_rule(world, ORDERS, ["VOIDING"], actions=[HOOK])
    transaction_id = domain_transactions.transaction_begin(world.context)
    with domain_transactions.opened(world.context, transaction_id) as dataset:
        order = new_order(dataset, world)
        new_line(dataset, world, order, Quantity=Decimal(2), UnitPrice=Decimal(3))
        key = order.id
    with domain_transactions.opened(world.context, transaction_id) as dataset:
        loaded = dataset.load(ORDERS, key)
        assert loaded is not None
        dataset.complete(loaded)
        document_make_void(loaded, "wrong")
        assert not WebHookDelivery.objects.exists()
    with domain_transactions.opened(world.context, transaction_id) as dataset:
        dataset.end(commit=True)
    (delivery,) = WebHookDelivery.objects.all()
    told = json.loads(delivery.request_body)
    assert (told.pop("reason"), told.pop("state"), told.pop("total")) == ("wrong", "New", "6.00")
    assert told["no"]
    assert delivery.request_url.endswith(f"/{told['no']}")


@pytest.mark.parametrize("value", [Decimal("0.5"), datetime.date(2030, 1, 2)])
def test_values_of_an_event_wait_in_a_transaction(world: World, value: Any) -> None:
    name = "LineCustomDiscountPercent" if isinstance(value, Decimal) else "RequiredDeliveryDate"
    new_web_hook("http://127.0.0.1:9/", RepositoryName=LINES, Body='{"no": {LineNo}, "new": "{$NewValue}"}')
    write_rule(world, LINES, [("ATTRIBUTECHANGED", name)], actions=[HOOK])
    transaction_id = domain_transactions.transaction_begin(world.context)
    with domain_transactions.opened(world.context, transaction_id) as dataset:
        new_line(dataset, world, new_order(dataset, world), **{name: value})
    with domain_transactions.opened(world.context, transaction_id) as dataset:
        dataset.end(commit=True)
    (delivery,) = WebHookDelivery.objects.all()
    assert json.loads(delivery.request_body) == {"no": 10, "new": str(value)}


def test_a_new_entity_that_is_deleted_again_is_not_told(world: World) -> None:
    order_hook()
    write_rule(world, ORDERS, ["CREATENEW"], actions=[HOOK])
    dataset = Dataset(world.context)
    dataset.delete(new_order(dataset, world))
    new_order(dataset, world)
    dataset.commit()
    assert WebHookDelivery.objects.count() == 1
