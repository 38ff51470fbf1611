"""What tests make over the API and remove again. Each code carries the test's own mark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.caller import Caller, answered, id_of

ORDERS = "Crm_Sales_SalesOrders"
LINES = "Crm_Sales_SalesOrderLines"
PRODUCTS = "General_Products_Products"
GROUPS = "General_Products_ProductGroups"
RULES = "Systems_Bpm_UserBusinessRules"
WEBHOOKS = "Systems_Config_WebHooks"
SCRIPTS = "Systems_Core_Scripts"
APPLICATIONS = "Systems_Security_TrustedApplications"
USERS = "Systems_Security_Users"

# Of the demo data, which has the same identifiers everywhere.
ORDER_TYPE = "Systems_Documents_DocumentTypes(0187d2a0-0019-7000-8000-000000000000)"
COMPANY = "General_EnterpriseCompanies(0187d2a0-0014-7000-8000-000000000000)"
CUSTOMER = "Crm_Sales_Customers(0187d2a0-0036-7000-8000-000000000002)"
PRODUCT = "General_Products_Products(0187d2a0-0020-7000-8000-000000000000)"


def fail(message: str, number: int = 10) -> dict[str, Any]:
    """A FAIL action with a constant message."""
    return {"ActionNo": number, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": message}


def webhook(code: str, number: int = 10) -> dict[str, Any]:
    """A WEBHOOK action."""
    return {"ActionNo": number, "ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": code}


def condition(attribute: str, comparison: str, value: str | None = None, number: int = 10) -> dict[str, Any]:
    """A condition; without a value it has no property Value."""
    given = {} if value is None else {"Value": value}
    return {"ConditionNo": number, "AttributeName": attribute, "ComparisonType": comparison, **given}


@dataclass(slots=True)
class Maker:
    """Makes objects with an administrator's rights. What it made is removed when its block ends, the last first."""

    caller: Caller
    mark: str
    _cleanup: ExitStack = field(default_factory=ExitStack)

    @classmethod
    @contextmanager
    def of(cls, caller: Caller, mark: str) -> Iterator[Maker]:
        """A maker as long as the block lasts."""
        maker = cls(caller, mark)
        with maker._cleanup:
            yield maker

    def new(self, entity_set: str, body: Any, **headers: str) -> dict[str, Any]:
        """A new entity's representation."""
        made = self.caller.create(entity_set, body, **headers)
        self.remove_later(made["@odata.id"])
        return made

    def remove_later(self, entity: str) -> None:
        """Remove an entity that the test made by other means. One that is gone by then, or was released, is left."""
        self._cleanup.callback(self.caller.delete, entity)

    def product(self, **values: Any) -> str:
        """The reference of a new product."""
        units = self.caller.rows("General_Products_MeasurementUnits?$top=1&$filter=Code eq 'pcs'")
        body = {
            "PartNumber": f"P-{self.mark}",
            "Name": {"EN": f"Product {self.mark}"},
            "MeasurementUnit@odata.bind": units[0]["@odata.id"],
            **values,
        }
        return str(self.new(PRODUCTS, body)["@odata.id"])

    def group(self, **values: Any) -> str:
        """The reference of a new product group, the smallest entity that has a version."""
        body = {"Code": f"G-{self.mark}", "Name": {"EN": f"Group {self.mark}"}, **values}
        return str(self.new(GROUPS, body)["@odata.id"])

    def order(self, **values: Any) -> str:
        """The reference of a new sales order with one line."""
        return str(self.new(ORDERS, order(**values))["@odata.id"])

    def line_of(self, order: str) -> str:
        """The reference of an order's first line."""
        return str(self.caller.rows(f"{order}/Lines?$orderby=LineNo&$top=1")[0]["@odata.id"])

    def rule(
        self,
        repository: str,
        event: str | Mapping[str, Any],
        *actions: Mapping[str, Any],
        parameter: str | None = None,
        conditions: Sequence[Mapping[str, Any]] = (),
        suffix: str = "",
        **values: Any,
    ) -> dict[str, Any]:
        """A new active rule for one event."""
        given = {} if parameter is None else {"EventParameter": parameter}
        body = {
            "Code": f"R-{self.mark}{suffix}",
            "Name": {"EN": f"Rule {self.mark}"},
            "RepositoryName": repository,
            "IsActive": True,
            "Events": [{"EventType": event, **given} if isinstance(event, str) else event],
            "Conditions": list(conditions),
            "Actions": list(actions),
            **values,
        }
        return self.new(RULES, body)

    def webhook(self, repository: str, url: str, suffix: str = "", **values: Any) -> str:
        """The code of a new webhook template."""
        code = f"W-{self.mark}{suffix}"
        name = {"EN": f"Webhook {self.mark}"}
        self.new(WEBHOOKS, {"Code": code, "Name": name, "RepositoryName": repository, "URL": url, **values})
        return code

    def script(self, source: str, parameters: Mapping[str, Any] | None = None, suffix: str = "", **values: Any) -> str:
        """The reference of a new active managed script."""
        body = {
            "Code": f"S-{self.mark}{suffix}",
            "Name": {"EN": f"Script {self.mark}"},
            "Language": "JavaScript",
            "ScriptText": source,
            "IsActive": True,
            **({"ParameterSchema": json.dumps(parameters)} if parameters is not None else {}),
            **values,
        }
        return str(self.new(SCRIPTS, body)["@odata.id"])

    def text_property(self, entity: str) -> str:
        """The code of a new text property of an entity (its set's name)."""
        code = f"p{self.mark}"
        body = {"EntityName": entity, "Code": code, "Name": {"EN": f"Property {self.mark}"}, "PropertyType": "Text"}
        self.new("Systems_Bpm_CustomProperties", body)
        return code

    def user_status(self, state: str = "Released", **values: Any) -> str:
        """The id of a new user status of sales orders in a state."""
        body = {
            "DocumentType@odata.bind": ORDER_TYPE,
            "UserStatusName": {"EN": f"Status {self.mark}"},
            "State": state,
            "Active": True,
            **values,
        }
        return id_of(self.new("Systems_Documents_DocumentTypeUserStatuses", body))


def order(*, lines: int = 1, **values: Any) -> dict[str, Any]:
    """The body of a POST of a sales order."""
    line = {"Product@odata.bind": PRODUCT, "Quantity": {"Value": 1, "Unit": "pcs"}}
    return {
        "DocumentType@odata.bind": ORDER_TYPE,
        "EnterpriseCompany@odata.bind": COMPANY,
        "Customer@odata.bind": CUSTOMER,
        "Lines": [line] * lines,
        **values,
    }


def change_state(caller: Caller, order: str, state: str, **parameters: Any) -> None:
    """ChangeState that succeeds."""
    answered(caller.post(f"{order}/ChangeState", {"newState": state, **parameters}), 204)


def state_of(caller: Caller, order: str) -> str:
    """The state of a document."""
    return str(caller.read(f"{order}?$select=State")["State"])
