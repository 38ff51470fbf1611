"""The starting point of rules that send a webhook."""

from __future__ import annotations

from django.utils.translation import gettext_noop as _

from rules.starting_points import StartingPoint

WEBHOOK_ON_RELEASE = StartingPoint(
    "WEBHOOK-RELEASE",
    _("Send a webhook on release"),
    _("Sends a webhook, which you choose, once an order has been released."),
    "Crm.Sales.SalesOrders",
    {
        "Events": [{"event_type": "STATECHANGED", "event_parameter": "Released"}],
        "Actions": [{"action_type": "WEBHOOK"}],
    },
)
