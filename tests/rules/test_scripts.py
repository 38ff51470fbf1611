"""Spec 05, 5.2: JavaScript rules, run by the real script runner."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from foundation import errors
from foundation.egress import policy
from scripts import services
from tests.rules.cast import (
    LINES,
    ORDERS,
    PRODUCTS,
    World,
    dataset,
    make_world,
    new_line,
    new_order,
    new_product,
    set_value,
    write_rule,
)
from tests.scripts.cast import make_script
from tests.support.api import Api, error_of
from tests.support.receiver import Answer, LoopbackReceiver


def script_rule(world: World, source: str, event: str | tuple[str, str] = "COMMIT") -> str:
    return write_rule(
        world, PRODUCTS, [event], code="JS", ScriptLanguage="JavaScript", ScriptText=source, Layer="Common"
    )


def test_an_action_and_a_script_that_undo_each_other_are_a_loop(world: World) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], actions=[set_value("CatalogDescriptionHtml", "{PartNumber}", "Interpolate")],
        ScriptLanguage="JavaScript",
        ScriptText="if (!subject.CatalogDescriptionHtml.endsWith('!')) subject.CatalogDescriptionHtml += '!';",
    )  # fmt: skip
    ds = dataset(world.context)
    record = new_product(ds, world, CatalogDescriptionHtml="P2!")
    script_rule(world, "if (subject.ScrapRate == 0) subject.ScrapRate = 0.5;")
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    # The action writes P2 and the script P2!, again and again: that is a loop, and it is told as one.
    assert caught.value.code is errors.RULE_LOOP
    assert record.values["ScrapRate"] == Decimal(0)


def test_a_rule_that_changes_a_part_lets_the_rules_of_its_aggregate_see_it(world: World) -> None:
    write_rule(world, LINES, ["COMMIT"], conditions=[("Notes", "IsNull")], actions=[set_value("Notes", "by rule")])
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], ScriptLanguage="JavaScript", ScriptText=(
        "for (const line of subject.Lines) if (line.Notes === 'by rule') Action.cancel('a line has notes by rule');"
    ))  # fmt: skip
    ds = dataset(world.context)
    new_line(ds, world, new_order(ds, world))
    with pytest.raises(errors.Refused, match="a line has notes by rule"):
        ds.commit()


def test_a_script_changes_what_is_saved(world: World) -> None:
    script_rule(world, "if (subject.ScrapRate == 0) subject.ScrapRate = 0.5;")
    ds = dataset(world.context)
    record = new_product(ds, world)
    ds.commit()
    stored = dataset(world.context).load(PRODUCTS, record.id)
    assert stored is not None
    assert stored.values["ScrapRate"] == Decimal("0.5")


@pytest.mark.django_db(transaction=True)
def test_a_script_continues_after_rules_of_its_commit_have_changed_its_entities() -> None:
    """Spec 03, 3.3: after a commit the dataset starts clean. Nobody else was there, so nothing is a conflict."""
    world = make_world()
    write_rule(
        world, PRODUCTS, ["COMMITTED"], conditions=[("ExpiryPeriodDays", "Equals", "3")],
        actions=[set_value("GuaranteePeriodDays", "30")],
    )  # fmt: skip
    source = f"""
        const p = Domain.General.Products.ProductsRepository.getById('{world.product}');
        p.ExpiryPeriodDays = 3;
        Transaction.commit();
        const seen = p.GuaranteePeriodDays;
        p.PlanningHorizonDays = 9;
        Transaction.commit();
        console.log(seen, p.GuaranteePeriodDays, p.PlanningHorizonDays);
    """
    assert services.script_run(source, dataset(world.context), kind="ExecuteScript").console == "30 30 9"


def test_a_failed_commit_brings_back_what_its_rule_has_deleted(world: World) -> None:
    script_rule(world, "if (subject.ExpiryPeriodDays === 1) { subject.delete(); throw new Error('refused'); }")
    ds = dataset(world.context)
    record = new_product(ds, world, ExpiryPeriodDays=1)
    with pytest.raises(errors.Refused):
        ds.commit()
    ds.set(record, "ExpiryPeriodDays", 2)
    ds.commit()
    assert [found.expiry_period_days for found in dataset(world.context).find_all(PRODUCTS, part_number="P2")] == [2]


def test_a_script_cancels_the_operation(world: World) -> None:
    script_rule(world, "if (subject.PartNumber === 'P2') Action.cancel('Not ' + subject.PartNumber);")
    ds = dataset(world.context)
    record = new_product(ds, world)
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.code is errors.SCRIPT_CANCELLED
    assert caught.value.message == "Not P2"
    assert dataset(world.context).load(PRODUCTS, record.id) is None


@pytest.mark.parametrize(
    "source, message",
    [
        ("(async () => {\n  await null;\n  throw new Error('lost')\n})()", "lost"),
        ("Promise.reject(new Error('lost')); subject.ScrapRate = 0.5;", "lost"),
        ("throw new Error('half \\ud800')", "half \ufffd"),
    ],
)
def test_a_script_that_fails_in_a_promise_refuses_the_operation(world: World, source: str, message: str) -> None:
    script_rule(world, source)
    ds = dataset(world.context)
    record = new_product(ds, world)
    with pytest.raises(errors.PlatformError) as caught:
        ds.commit()
    assert message in caught.value.message
    assert dataset(world.context).load(PRODUCTS, record.id) is None


def test_a_script_sees_the_event_s_attributes(world: World) -> None:
    source = "if (event.NewValue > 0.25) Action.cancel(event.OldValue + ' to ' + event.NewValue);"
    script_rule(world, source, ("ATTRIBUTECHANGING", "ScrapRate"))
    ds = dataset(world.context, "frontend")
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, "ScrapRate", Decimal("0.25"))
    with pytest.raises(errors.Refused) as caught:
        ds.set(record, "ScrapRate", Decimal("0.5"))
    assert caught.value.message == "0.25 to 0.5"


def test_a_script_that_throws_refuses_and_leaves_nothing(world: World) -> None:
    script_rule(world, "subject.NoSuchThing.x;")
    ds = dataset(world.context)
    record = new_product(ds, world)
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.code is errors.SCRIPT_THREW
    assert dataset(world.context).load(PRODUCTS, record.id) is None


def test_a_script_that_does_not_compile_is_refused_when_saved(world: World) -> None:
    with pytest.raises(errors.Refused) as caught:
        script_rule(world, "if (subject.PartNumber {")
    assert caught.value.code is errors.RULE_INVALID
    assert caught.value.target == "ScriptText"


def test_a_script_reads_paths_and_collections_and_changes_what_belongs_to_its_subject(world: World) -> None:
    source = """
        for (const line of subject.Lines) line.Notes = subject.Customer.Number + '/' + line.LineNo;
        subject.DocumentNotes = subject.Lines.length + ' lines';
    """
    write_rule(
        world,
        ORDERS,
        ["COMMIT"],
        ScriptLanguage="JavaScript",
        ScriptText=source,
        conditions=[("DocumentNotes", "IsNull")],
    )
    ds = dataset(world.context)
    order = new_order(ds, world)
    for number in (1, 2):
        new_line(ds, world, order, LineNo=number)
    ds.commit()
    stored = dataset(world.context)
    again = stored.load(ORDERS, order.id)
    assert again is not None
    assert again.values["DocumentNotes"] == "2 lines"
    notes = {line.values["Notes"] for line in stored.children(again, "Lines")}
    assert notes == {"C1/1", "C1/2"}


def test_a_script_queries_what_is_stored_and_creates_in_the_same_commit(world: World) -> None:
    source = """
        const found = Domain.General.Currencies.CurrenciesRepository.query({CurrencySign: 'EUR'});
        if (!subject.PartNumber.endsWith('-' + found[0].CurrencySign)) {
            subject.PartNumber += '-' + found[0].CurrencySign;
            Domain.General.Currencies.CurrenciesRepository.createNew({CurrencySign: 'NEW', Name: subject.PartNumber});
        }
    """
    script_rule(world, source)
    ds = dataset(world.context)
    record = new_product(ds, world)
    ds.commit()
    stored = dataset(world.context)
    made = stored.find_one("General.Currencies.Currencies", currency_sign="NEW")
    assert made is not None
    assert record.values["PartNumber"] == "P2-EUR"
    assert made.values["Name"] == "P2-EUR"


def test_what_a_script_changes_is_no_client_s_change(world: World) -> None:
    write_rule(world, "General.Currencies.Currencies", ["CLIENTCOMMIT"], actions=[("FAIL", ("Constant", "client"))])
    script_rule(world, "Domain.General.Currencies.CurrenciesRepository.createNew({CurrencySign: 'NEW', Name: 'n'});")
    ds = dataset(world.context)
    new_product(ds, world)
    ds.commit()
    assert dataset(world.context).find_one("General.Currencies.Currencies", currency_sign="NEW") is not None


def test_a_script_sees_where_a_document_comes_from_and_goes_to(world: World) -> None:
    source = "if (event.ToState === 'Released') Action.cancel(event.FromState + ' → ' + event.ToState);"
    write_rule(world, ORDERS, [("STATECHANGING", "30")], ScriptLanguage="JavaScript", ScriptText=source)
    ds = dataset(world.context)
    order = new_order(ds, world)
    with pytest.raises(errors.Refused) as caught:
        ds.raise_event(order, "STATECHANGING", "Released", FromState="New", ToState="Released",
                       FromUserStatusId=None, ToUserStatusId=None)  # fmt: skip
    assert caught.value.message == "New → Released"


def test_a_script_asks_another_server_under_the_egress_rules(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
        const answer = Action.http.get('%s/rate?of=' + subject.PartNumber);
        subject.CatalogDescriptionHtml = answer.isSuccess ? answer.body : 'not allowed';
    """
    with LoopbackReceiver(default=Answer(body=b"1.95583")).running() as receiver:
        script_rule(world, source % receiver.url)
        ds = dataset(world.context)
        record = new_product(ds, world)
        ds.commit()
        assert record.values["CatalogDescriptionHtml"] == "not allowed"
        assert receiver.requests == []
        allowed = policy.EgressPolicy.parse(["127.0.0.1"])
        monkeypatch.setattr("foundation.egress.client.egress_policy", lambda: allowed)
        record = new_product(ds, world, "P3")
        ds.commit()
        assert record.values["CatalogDescriptionHtml"] == "1.95583"
        assert receiver.requests[0].path == "/rate?of=P3"


@pytest.mark.parametrize(
    "source, limit, seconds",
    [
        ("while (true) {}", "wall (0.5 s)", 0.5),
        ("const kept = []; while (true) kept.push(new Uint8Array(1000000));", "memory", 5),
    ],
)
def test_a_script_over_a_limit_refuses_with_the_limit_and_leaves_nothing(
    world: World, settings: Any, source: str, limit: str, seconds: float
) -> None:
    services.pool()  # with the usual limits, which runs can only tighten
    settings.SCRIPT_WALL_SECONDS = seconds
    script_rule(world, source)
    ds = dataset(world.context)
    record = new_product(ds, world)
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.code is errors.SCRIPT_LIMIT
    assert limit in caught.value.message
    assert dataset(world.context).load(PRODUCTS, record.id) is None


def test_a_script_cannot_end_the_transaction_that_it_runs_in(world: World) -> None:
    script_rule(world, "Transaction.commit();")
    ds = dataset(world.context)
    record = new_product(ds, world)
    with pytest.raises(errors.Refused):
        ds.commit()
    assert dataset(world.context).load(PRODUCTS, record.id) is None


def test_a_line_s_script_reaches_its_order(world: World) -> None:
    source = "subject.SalesOrder.DocumentNotes = 'line ' + subject.LineNo;"
    write_rule(
        world, LINES, ["COMMIT"], ScriptLanguage="JavaScript", ScriptText=source,
        conditions=[("SalesOrder.DocumentNotes", "IsNull")],
    )  # fmt: skip
    ds = dataset(world.context)
    order = new_order(ds, world)
    new_line(ds, world, order, LineNo=7)
    ds.commit()
    assert order.values["DocumentNotes"] == "line 7"


@pytest.mark.parametrize("verb", ["commit", "rollback", "begin"])
def test_a_managed_script_of_a_rule_does_not_end_the_transaction_either(api: Api, world: World, verb: str) -> None:
    make_script(api, f"Transaction.{verb}();", Code="ENDS")
    script_rule(world, "Domain.Systems.Core.ScriptsRepository.query({ Code: 'ENDS' })[0].Execute({});")
    answer = api.patch(f"General_Products_Products({world.product})", {"PlanningHorizonDays": 3})
    assert answer.status_code == 500
    assert "cannot end the transaction" in error_of(answer)["message"]
    product = dataset(world.context).load(PRODUCTS, world.product)
    assert product is not None
    assert product.values["PlanningHorizonDays"] != 3
