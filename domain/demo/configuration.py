"""Demo configuration: rules, a webhook template, a managed script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from domain.demo.items import Item, Kind, demo_guid

#: Codes of the rules that are active from the beginning.
ACTIVE = ("DEMO-DISCOUNT", "DEMO-OFFER")

WEBHOOK_CODE, OFFER_WEBHOOK = "DEMO-ORDER", "DEMO-OFFER"
_OFFERS = "Crm.Presales.Offers"
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
        "Systems.Config.WebHooks",
        demo_guid(Kind.CONFIGURATION, 100),
        {
            "Code": OFFER_WEBHOOK,
            "Name": {"EN": "Offer sent", "BG": "Изпратена оферта", "DE": "Angebot verschickt"},
            "RepositoryName": _OFFERS,
            "URL": "http://demo-receiver.invalid/offers/{Id}",
            "Headers": "Content-Type: application/json",
            "Body": '{{"offer": "{DocumentNo}", "date": "{DocumentDate}", "customer": "{Customer.Party.PartyName}"}}',
            "RetryLogic": "Retry",
            "Notes": "Sent by the rule DEMO-OFFER. In demo mode the instance receives it itself: see Demo receiver.",
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
    """Two inactive rules on orders, for users to activate."""
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


def active_rules() -> Iterator[Item]:
    """The active rules. They are on offers, so that responses about orders contain no effects of rules."""
    yield from _rule(
        110,
        {
            "Code": "DEMO-DISCOUNT",
            "Name": {"EN": "High discounts", "BG": "Високи отстъпки", "DE": "Hohe Rabatte"},
            "RepositoryName": "Crm.Presales.OfferLines",
            "IsActive": True,
            "Notes": "Warns when an offer's line gets a discount of more than 15 %.",
        },
        {"EventType": "ATTRIBUTECHANGED", "EventParameter": "LineCustomDiscountPercent"},
        {"AttributeName": "LineCustomDiscountPercent", "ComparisonType": "Greater_Than", "Value": "0.15"},
        {
            "ActionType": "WARNING",
            "Parameter1Type": "Constant",
            "Parameter1Value": "A discount of more than 15 % needs the sales manager's approval.",
        },
    )
    yield from _rule(
        120,
        {
            "Code": "DEMO-OFFER",
            "Name": {"EN": "Tell about sent offers", "BG": "Съобщава за изпратени оферти", "DE": "Angebote melden"},
            "RepositoryName": _OFFERS,
            "IsActive": True,
            "Notes": f"Sends the webhook {OFFER_WEBHOOK} when an offer is released.",
        },
        {"EventType": "STATECHANGED", "EventParameter": "RELEASED"},
        None,
        {"ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": OFFER_WEBHOOK},
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
