"""Demo configuration: rules, a webhook template, a managed script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.demo.items import Item, Kind, demo_guid

WEBHOOK_CODE = "DEMO-ORDER"
_ORDERS = "Crm.Sales.SalesOrders"
_SCRIPT = """\
// The order with the number, and how much of it is still to be delivered.
const order = Domain.Crm.Sales.SalesOrdersRepository.query({ documentNo: parameters.documentNo }, { fetch: 1 })[0];
if (!order) {
  throw new Error(`There is no order ${parameters.documentNo}.`);
}
parameters.total = order.TotalLineAmount === null ? 0 : Number(order.TotalLineAmount.Value);
return { id: order.Id, state: order.State, lines: order.Lines.length };
"""
_SCHEMA = """\
{
  "documentNo": {"type": "string", "direction": "Input", "required": true, "description": "Number of the order"},
  "total": {"type": "number", "direction": "Output", "description": "Sum of its lines"}
}
"""


def tools() -> Iterator[Item]:
    """The webhook template that rules can name, and the managed script."""
    yield Item(
        "Systems.Config.WebHooks",
        demo_guid(Kind.CONFIGURATION, 0),
        {
            "Code": WEBHOOK_CODE,
            "Name": {"EN": "Order saved", "BG": "Записана поръчка", "DE": "Auftrag gespeichert"},
            "RepositoryName": _ORDERS,
            "URL": "http://127.0.0.1:5081/orders/{Id}",
            "Headers": "Content-Type: application/json",
            "Body": '{{"order": "{DocumentNo}", "date": "{DocumentDate}", "customer": "{Customer.Party.PartyName}"}}',
            "RetryLogic": "Retry",
            "Notes": "Start a receiver on this address, activate the rule DEMO-TELL and save an order.",
        },
    )
    yield Item(
        "Systems.Core.Scripts",
        demo_guid(Kind.CONFIGURATION, 10),
        {
            "Code": "DEMO-ORDER-TOTAL",
            "Name": {"EN": "Total of an order", "BG": "Сума на поръчка", "DE": "Summe eines Auftrags"},
            "Language": "JavaScript",
            "ScriptText": _SCRIPT,
            "ParameterSchema": _SCHEMA,
            "Notes": "An example of a managed script with an argument, an output and a return value.",
        },
    )


def rules() -> Iterator[Item]:
    """Two rules, both inactive."""
    yield from _rule(
        1,
        {
            "Code": "DEMO-REFERENCE",
            "Name": {"EN": "No release without the customer's number", "BG": "Без номер от клиента няма пускане"},
            "RepositoryName": _ORDERS,
            "IsActive": False,
            "Notes": "Refuses to release an order that does not say the customer's own number.",
        },
        {"EventType": "STATECHANGING", "EventParameter": "RELEASED"},
        {"AttributeName": "ReferenceDocumentNo", "ComparisonType": "IsNull"},
        {
            "ActionType": "FAIL",
            "Parameter1Type": "Interpolate",
            "Parameter1Value": "Order {DocumentNo} needs the customer's number before it is released.",
        },
    )
    yield from _rule(
        5,
        {
            "Code": "DEMO-TELL",
            "Name": {"EN": "Tell about saved orders", "BG": "Съобщава за записани поръчки"},
            "RepositoryName": _ORDERS,
            "IsActive": False,
            "Notes": f"Sends the webhook {WEBHOOK_CODE} whenever an order is saved.",
        },
        {"EventType": "AGGREGATECLIENTCOMMIT"},
        None,
        {"ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": WEBHOOK_CODE},
    )


def _rule(
    number: int,
    rule: dict[str, Any],
    event: dict[str, Any],
    condition: dict[str, Any] | None,
    action: dict[str, Any],
) -> Iterator[Item]:
    id = demo_guid(Kind.CONFIGURATION, number)
    yield Item("Systems.Bpm.UserBusinessRules", id, rule)
    parts = (("Events", event), ("Conditions", condition), ("Actions", action))
    for index, (collection, values) in enumerate(parts, start=1):
        if values is not None:
            yield Item(
                f"Systems.Bpm.UserBusinessRule{collection}",
                demo_guid(Kind.CONFIGURATION, number + index),
                {"UserBusinessRule": id, **values},
            )
