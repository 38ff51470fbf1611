"""Calculated attributes in JavaScript (spec 10.1)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from prometheus_client import REGISTRY

from domain.dataset.lookups.name_binding import bind, paths_of
from domain.dataset.templates.record_template import compile_template
from domain.model.registry import repositories
from tests.domain.calculations.conftest import FAILED, ORDER_SET, SET, Orders, by_record, refused
from tests.domain.calculations.test_operators import plain
from tests.domain.calculations.test_rights import NO_CUSTOMERS, NO_LINES, read
from tests.domain.calculations.test_uses import rule, run
from tests.rules.cast import ORDERS, World, dataset, new_order

TOTAL = "return subject.Lines.reduce((sum, line) => sum + line.Quantity.Value * line.UnitPrice.Value, 0);"


def script(source: str, *, name: str = "X", repository: str = ORDERS, **values: Any) -> dict[str, Any]:
    """The POST body of a definition."""
    return {
        "Name": name,
        "Caption": {"EN": name},
        "RepositoryName": repository,
        "IsActive": True,
        "ScriptLanguage": "JavaScript",
        "ScriptText": source,
        **values,
    }


def define(orders: Orders, source: str, **values: Any) -> str:
    """Define an attribute and return its API name."""
    return "CalculatedAttribute_" + str(orders.api.create(SET, script(source, **values))["Name"])


def runs() -> float:
    """How many scripts have had a worker so far."""
    return REGISTRY.get_sample_value("platform_script_wait_seconds_count") or 0.0


#: type, source, value of the order with lines, value of the empty order
VALUES: tuple[tuple[str | None, str, Any, Any], ...] = (
    (None, "return subject.DocumentNo", "A-009", "none"),
    (None, "", None, None),
    (None, "return null", None, None),
    (None, "return subject.DocumentNotes", "Hello World", None),
    (None, "return subject.Lines.length", "3", "0"),
    (None, "return subject.DocumentNo === 'none'", "false", "true"),
    (None, "return subject.DocumentDate", "2024-02-29T00:00:00.000Z", "2023-12-31T00:00:00.000Z"),
    (None, "return subject.Customer.Number", "C1", "C1"),
    (None, "return {lines: subject.Lines.map(l => l.Notes)}", '{"lines":["b","a",null]}', '{"lines":[]}'),
    (None, "return 12345678901234567890n", "12345678901234567890", "12345678901234567890"),
    ("String", "return subject.Lines.length ? subject.Lines[0].UnitPrice : ''", "10.5 EUR", ""),
    ("Decimal", TOTAL, 121, 0),
    ("Decimal", "return 1 / 3", 0.333333333333, 0.333333333333),
    ("Decimal", "return subject.Lines.length ? subject.Lines[0].UnitPrice : null", 10.5, None),
    ("Decimal", "return 'x'", FAILED, FAILED),
    ("Decimal", "return 1 / subject.Lines.length", 0.333333333333, FAILED),
    ("Int32", "return subject.Lines.length", 3, 0),
    ("Int32", "return 2.5", FAILED, FAILED),
    ("Int32", "return 3e9", FAILED, FAILED),
    ("Int32", "return true", FAILED, FAILED),
    ("Boolean", "return subject.Lines.length > 1", True, False),
    ("Boolean", "return 1", FAILED, FAILED),
    ("Date", "return subject.DocumentDate", "2024-02-29", "2023-12-31"),
    ("Date", "return '31.12.2024'", FAILED, FAILED),
    ("DateTime", "return '2024-05-06T10:00:00+02:00'", "2024-05-06T08:00:00Z", "2024-05-06T08:00:00Z"),
    ("Guid", "return subject.Lines.length ? '00000000-0000-7000-8000-00000000000A' : null",
     "00000000-0000-7000-8000-00000000000a", None),
    ("Guid", "return 'x'", FAILED, FAILED),
    (None, "return Promise.resolve(1)", FAILED, FAILED),
    (None, "return () => 1", FAILED, FAILED),
    (None, "return subject.Nothing", FAILED, FAILED),
    (None, "throw 'x'", FAILED, FAILED),
    (None, "return subject.Lines[0].Notes", "b", FAILED),
)  # fmt: skip


def test_pages_and_records_give_the_same(orders: Orders, world: World) -> None:
    named = {
        define(orders, source or " // nothing is returned", name=f"X{number}", ValueType=value_type): number
        for number, (value_type, source, _, _) in enumerate(VALUES)
    }
    ds = dataset(world.context)
    for order, place in ((orders.full, 2), (orders.empty, 3)):
        row = orders.api.read(f"{ORDER_SET}?$filter=Id eq {order}&$select={','.join(named)}")["value"][0]
        for name, number in named.items():
            value = pytest.approx(given) if isinstance(given := VALUES[number][place], float) else given
            shown = FAILED if f"{name}@erpnet.warning" in row else row[name]
            assert shown == value, VALUES[number]
            assert plain(by_record(ds, order, name)) == value, VALUES[number]


def test_a_page_is_one_run_with_the_errors_of_single_rows(orders: Orders) -> None:
    name = define(orders, "const lines = subject.Lines;\nreturn lines[0].Notes;")
    before = runs()
    rows = {row["DocumentNo"]: row for row in orders.api.read(f"{ORDER_SET}?$select=DocumentNo,{name}")["value"]}
    assert runs() == before + 1
    assert rows["A-009"][name] == "b"
    assert rows["none"][name] is None
    warning = rows["none"][f"{name}@erpnet.warning"]
    assert warning["line"] == 2
    assert warning["message"].startswith("TypeError: cannot read property 'Notes' of undefined")
    error = refused(orders.api.get(f"{ORDER_SET}({orders.empty})/{name}"), 500)
    assert error["type"] == "CalculationThrew"
    assert "(line 2)" in error["message"]
    assert orders.api.read(f"{ORDER_SET}({orders.full})/{name}")["value"] == "b"


def test_it_cannot_be_queried(orders: Orders) -> None:
    name = define(orders, "return 1", ValueType="Int32")
    for options in ("$filter={0} eq 1", "$orderby={0}", "$apply=groupby(({0}))", "$compute={0} add 1 as L"):
        error = refused(orders.api.get(f"{ORDER_SET}?{options.format(name)}"), 400)
        assert error["type"] == "CalculatedAttributeNotQueryable"
        assert "JavaScript" in error["message"]
        assert name in error["message"]


REFUSED: tuple[tuple[str, dict[str, Any], str | None, str], ...] = (
    ("return (;", {}, "ScriptText", "unexpected token"),
    (" ", {}, "ScriptText", "it needs the body of a function"),
    ("return 1", {"Name": "DocumentNo"}, "Name", "DocumentNo already"),
    ("return 1", {"ScriptLanguage": "Integrated"}, "ScriptText", "belongs to scripts"),
    ("return 1", {"Expressions": [{"ExpressionNo": 10, "Operator": "TODAY"}]}, None, "it has rows beside its script"),
)


def test_it_is_checked_when_it_is_saved(orders: Orders) -> None:
    for source, values, target, reason in REFUSED:
        error = refused(orders.api.post(SET, script(source, **values)), 500)
        assert error["type"] == "CalculatedAttributeInvalid"
        assert reason in error["message"]
        assert error.get("target") == target


WRITING = (
    "subject.DocumentNotes = 'changed'",
    "subject.Lines[0].Delete()",
    "subject.Lines.createNew({})",
    "subject.CustomProperties.x = 1",
    "Domain.Crm.Sales.SalesOrdersRepository.createNew({})",
    "Transaction.commit()",
    "subject.ChangeState('Released')",
    "Action.http.get('https://example.org')",
    "Action.cancel('no')",
)


def test_it_only_reads(orders: Orders, world: World) -> None:
    named = {define(orders, f"{each}; return 'done'", name=f"X{at}"): each for at, each in enumerate(WRITING)}
    row = orders.api.read(f"{ORDER_SET}({orders.full})?$select=default,{','.join(named)}")
    for name, statement in named.items():
        assert row[name] is None, statement
        assert "only reads" in row[f"{name}@erpnet.warning"]["message"], statement
    assert row["DocumentNotes"] == "Hello World"
    ds = dataset(world.context)
    assert {by_record(ds, orders.full, name) for name in named} == {FAILED}
    assert not ds.changed()


def test_what_is_hidden_from_the_caller_stays_hidden(orders: Orders) -> None:
    number = define(orders, "return subject.Customer === null ? 'hidden' : subject.Customer.Number", name="Number")
    listed = define(orders, "return Domain.Crm.CustomersRepository.query({}).length", name="Listed")
    (row,) = read(NO_CUSTOMERS, f"$select={number},{listed}&$filter=DocumentNo eq 'A-009'")
    assert "C1" not in str(row)
    assert row[listed] is None
    lines = define(orders, "return subject.Lines.length", name="Length")
    (row,) = read(NO_LINES, f"$select={lines}&$filter=DocumentNo eq 'A-009'")
    assert row[lines] is None


def test_metadata_has_it(orders: Orders) -> None:
    name = define(orders, TOTAL, name="Total", ValueType="Decimal", Caption={"EN": "Total value"})
    xml = orders.api.get("$metadata").content.decode()
    assert 'Type="Edm.Decimal"' in xml[xml.index(f'Name="{name}"') :][:400]
    headers = {"Authorization": f"Bearer {orders.api.token}"}
    shown = json.loads(
        orders.api.client.get(f"/api/domain/currentmodel/{ORDER_SET}?details=true", headers=headers).content
    )
    members = shown["Attributes"] if isinstance(shown, dict) else shown[0]["Attributes"]
    (member,) = [each for each in members if each["Name"] == name]
    assert (member["Type"], member["IsCalculatedDataAttribute"]) == ("Edm.Decimal", True)
    assert name.encode() in orders.api.client.get("/api/openapi.json", headers=headers).content


def test_rules_and_templates_see_the_pending_value(orders: Orders, world: World) -> None:
    define(orders, TOTAL, name="Total", ValueType="Decimal")
    fail = {"ActionType": "FAIL", "Parameter1Type": "Interpolate", "Parameter1Value": "Total is {#Total:N1}"}
    condition = {"AttributeName": "#Total", "ComparisonType": "Greater_Than", "Value": "200"}
    orders.api.create("Systems_Bpm_UserBusinessRules", rule(condition, action=fail))
    assert orders.api.patch(f"{ORDER_SET}({orders.full})", {"DocumentNotes": "x"}).status_code == 204
    line = orders.api.read(f"{ORDER_SET}({orders.full})/Lines?$orderby=LineNo&$top=1")["value"][0]["@odata.id"]
    change = {"Lines": [{"@odata.id": line, "UnitPrice": {"Value": 100, "Currency": "EUR"}}], "DocumentNotes": "y"}
    assert refused(orders.api.patch(f"{ORDER_SET}({orders.full})", change), 500)["message"] == "Total is 300.0"
    ds = dataset(world.context)
    order = ds.load(ORDERS, orders.full)
    assert order is not None
    template = compile_template(repositories[ORDERS], "{Total:N2}")
    assert template.render(order) == "121.00"
    ds.set(order.children("Lines")[0], "UnitPrice", Decimal(0))
    assert template.render(order) == "100.00"


def test_the_author_of_a_rule_must_be_allowed_to_read_everything(orders: Orders) -> None:
    define(orders, "return 1", name="One")
    orders.define("10: CONCAT ATTRIB:#One CONST:'!'", name="Two")
    for name in ("#One", "#Two"):
        paths = paths_of(bind(repositories[ORDERS], name))
        assert {hop.target for path in paths for hop in path} >= {each.name for each in repositories}


def test_other_attributes_and_scripts_read_it(orders: Orders) -> None:
    define(orders, TOTAL, name="Total", ValueType="Decimal")
    double = orders.define("10: MULTIPLY ATTRIB:#Total CONST:2", name="Double")
    assert orders.read(double, orders.full) == 242
    triple = define(orders, "return subject.Double * 1.5", name="Triple", ValueType="Decimal")
    before = runs()
    rows = orders.api.read(f"{ORDER_SET}?$select={triple}&$orderby=DocumentNo")["value"]
    assert [row[triple] for row in rows] == [363, 0]
    # One run for the page, and within it one for the values that it reads.
    assert runs() == before + 2
    find = "const o = Domain.Crm.Sales.SalesOrdersRepository.query({}, {orderBy: 'DocumentNo'});"
    assert run(orders, f"{find} console.log(o[0].Triple, o[1].Total)") == "363 0"


def test_a_failure_reaches_the_attributes_that_use_it(orders: Orders) -> None:
    define(orders, "return 1 / subject.Lines.length", name="Share", ValueType="Decimal")
    name = orders.define("10: ADD EXP:20 CONST:1\n20: GETVALUE ATTRIB:#Share", name="More")
    assert orders.read(name, orders.full) == pytest.approx(1.333333333333)
    row = orders.api.read(f"{ORDER_SET}({orders.empty})?$select={name}")
    assert row[f"{name}@erpnet.warning"]["row"] == 20
    safe = orders.define("10: IFERROR ATTRIB:#Share CONST:-1", name="Safe")
    assert orders.read(safe, orders.empty) == -1
    error = refused(orders.api.get(f"{ORDER_SET}?$filter={safe} eq 1"), 400)
    assert error["type"] == "CalculatedAttributeNotQueryable"


def test_attributes_that_read_each_other_end(orders: Orders) -> None:
    first = define(orders, "return subject.B", name="A")
    define(orders, "return subject.A", name="B")
    row = orders.api.read(f"{ORDER_SET}({orders.full})?$select={first}")
    assert row[first] is None
    assert "scripts within scripts" in row[f"{first}@erpnet.warning"]["message"]


def test_a_limit_ends_it_for_the_whole_page(orders: Orders, settings: Any) -> None:
    settings.SCRIPT_WALL_SECONDS = 0.2
    name = define(orders, "for (;;);")
    rows = orders.api.read(f"{ORDER_SET}?$select={name}")["value"]
    assert all("wall" in row[f"{name}@erpnet.warning"]["message"] for row in rows)


def queries(orders: Orders, source: str) -> int:
    """How many SELECTs a script runs that has run before."""
    run(orders, source)
    with CaptureQueriesContext(connection) as captured:
        run(orders, source)
    return len([each for each in captured if each["sql"].lstrip().startswith("SELECT")])


@pytest.mark.parametrize("change", ["", "each.DocumentNotes = 'x';"], ids=["only reading", "with changes"])
def test_scripts_read_it_for_all_rows_of_a_result_at_once(orders: Orders, world: World, change: str) -> None:
    orders.define("10: SUM CHILD:Lines EXP:20\n20: MULTIPLY ATTRIB:QuantityValue ATTRIB:UnitPriceValue", name="Total")
    loop = "for (const each of Domain.Crm.Sales.SalesOrdersRepository.query()) {{ each.{0}; {1} }}"
    few = queries(orders, loop.format("Total", change))
    ds = dataset(world.context)
    for number in range(5):
        new_order(ds, world, DocumentNo=f"more {number}")
    ds.commit()
    assert queries(orders, loop.format("Total", change)) == few
