"""Starting points of new rules: filled-in sentences to edit and save (spec 05, 5.5).

    starting_points.add("check-a-value", StartingPoint(…))

Apps above this one add their own in AppConfig.ready (webhooks: a webhook on release).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.entities.systems_bpm import UserBusinessRule
from foundation.catalogue import Catalogue

#: GET parameter of the page of a new rule: the name of a starting point.
START = "start"
#: Placeholder in a value for the user's login.
ME = "{me}"
_CODE_LENGTH = 16

RowValues = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """A prefilled rule: its code, title, and collection → rows, by the names of the page's fields."""

    code: str
    title: str
    description: str
    repository: str
    rows: Mapping[str, Sequence[RowValues]]


starting_points: Catalogue[StartingPoint] = Catalogue("starting point", pattern=r"[a-z]+(-[a-z]+)*")

#: Rows of a new rule without a starting point: an event and an action to choose.
_EMPTY_ROWS: Mapping[str, Sequence[RowValues]] = {"Events": ({},), "Actions": ({},)}


def chosen_start(request: HttpRequest) -> StartingPoint | None:
    """The starting point in the URL."""
    return starting_points.get(request.GET.get(START, ""))


def initial_rows(request: HttpRequest, collection: str) -> list[dict[str, str]]:
    """The rows of a new rule's collection."""
    start, login = chosen_start(request), str(getattr(request.user, "login", ""))
    rows = (_EMPTY_ROWS if start is None else start.rows).get(collection, ())
    return [{name: _filled(value, login) for name, value in row.items()} for row in rows]


def _filled(value: str, login: str) -> str:
    return login if value == ME else gettext(value) if " " in value else value


def free_code(preferred: str) -> str:
    """The code, or the first of CODE-2, CODE-3 … that no rule has."""
    base = preferred[: _CODE_LENGTH - 4]
    taken = {
        code.upper() for code in UserBusinessRule.objects.filter(code__istartswith=base).values_list("code", flat=True)
    }
    if preferred.upper() not in taken:
        return preferred
    number = 2
    while f"{base}-{number}".upper() in taken:
        number += 1
    return f"{base}-{number}"


starting_points.add(
    "check-a-value",
    StartingPoint(
        "CHECK-VALUE",
        _("Check a value"),
        _("Refuses a discount of more than 25 %, wherever it is entered."),
        "Crm.Sales.SalesOrderLines",
        {
            "Events": [{"event_type": "ATTRIBUTECHANGING", "event_parameter": "LineCustomDiscountPercent"}],
            "Conditions": [{"attribute_name": "$NewValue", "comparison_type": "Greater_Than", "value": "0.25"}],
            "Actions": [
                {
                    "action_type": "FAIL",
                    "parameter_1_type": "Interpolate",
                    "parameter_1_value": _("Line {LineNo}: a discount of {$NewValue:N2} is above 25 %."),
                }
            ],
        },
    ),
)
starting_points.add(
    "require-a-value",
    StartingPoint(
        "REQUIRE-VALUE",
        _("Require a value"),
        _("Releases an order only with the customer's order number."),
        "Crm.Sales.SalesOrders",
        {
            "Events": [{"event_type": "STATECHANGING", "event_parameter": "Released"}],
            "Conditions": [{"attribute_name": "ReferenceDocumentNo", "comparison_type": "IsNull"}],
            "Actions": [
                {
                    "action_type": "FAIL",
                    "parameter_1_type": "Interpolate",
                    "parameter_1_value": _("Order {DocumentNo} needs the customer's order number."),
                }
            ],
        },
    ),
)
starting_points.add(
    "set-a-default",
    StartingPoint(
        "SET-DEFAULT",
        _("Set a default"),
        _("Gives a product without a short name one made of its part number."),
        "General.Products.Products",
        {
            "Events": [{"event_type": "CLIENTCOMMIT", "execution_priority": "Early"}],
            "Conditions": [{"attribute_name": "ShortName", "comparison_type": "IsNull"}],
            "Actions": [
                {
                    "action_type": "SETVALUE",
                    "parameter_1_type": "Attribute",
                    "parameter_1_value": "ShortName",
                    "parameter_2_type": "Interpolate",
                    "parameter_2_value": "{PartNumber}",
                }
            ],
        },
    ),
)
starting_points.add(
    "notify-on-failure",
    StartingPoint(
        "NOTIFY-FAILURE",
        _("Notify on failure"),
        _("Notifies you of failures that no caller sees: of rules, mails and tasks."),
        "Systems.Monitoring.InformationMessages",
        {
            "Events": [{"event_type": "COMMITTED"}],
            "Conditions": [{"attribute_name": "InformationMessageType", "comparison_type": "Equals", "value": "Error"}],
            "Actions": [
                {
                    "action_type": "NOTIFYUSER",
                    "parameter_1_type": "Constant",
                    "parameter_1_value": ME,
                    "parameter_2_type": "Interpolate",
                    "parameter_2_value": _("Failure: {ProcessDescription}"),
                }
            ],
        },
    ),
)
