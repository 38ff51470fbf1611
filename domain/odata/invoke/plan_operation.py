"""PlanChange: previews a change of a custom entity's definition (spec 10, 10.3)."""

from __future__ import annotations

from typing import Any

from domain.dataset.transactions.domain_transactions import TransactionDataset
from domain.entities.custom_entities.definitions import ENTITIES
from domain.entities.custom_entities.plans import Plan
from domain.entities.systems_custom_entities import plan_of
from domain.odata.message.json_body import invalid_body
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations
from domain.odata.write.payload import PayloadReader
from foundation.messages import TranslatableMessage as Message

_REMOVED = ("@removed", "@odata.removed")


@operations.register
class PlanChange(Operation):
    """Tell what a change of the definition would do to the entity's data, and change nothing."""

    name = "PlanChange"
    bound_to = ENTITIES
    scope = "update"
    commits = False
    parameters = (Parameter("change", "json", optional=True),)
    returns = "Erp.CustomEntityPlan"
    members = (
        Parameter("isPossible", "Edm.Boolean"),
        Parameter("losesData", "Edm.Boolean"),
        Parameter("token"),
        Parameter("seconds", "Edm.Decimal"),
        Parameter("steps", "json"),
    )
    description = (
        "Plans a change of the definition: its steps, their duration, what is lost, and the token for PlanToken."
    )

    def run(self, call: OperationCall) -> Result:
        """The plan. change: as the body of a PATCH; with `@removed` the entity is removed.

        In a Domain transaction without `change`: the plan of what its commit would do to the definition.
        """
        entity, change = call.bound, call.arguments["change"]
        if change is not None:
            if isinstance(call.dataset, TransactionDataset):
                raise invalid_body(Message("a Domain transaction has its own changes"), target="change")
            if not isinstance(change, dict):
                raise invalid_body(Message("{0} must be an object", "change"), target="change")
            if any(name in change for name in _REMOVED):
                call.dataset.delete(entity, by_client=True)
            else:
                PayloadReader(call.dataset).fill(entity, change)
        return Result(shown(plan_of(entity)), is_object=True)


def shown(plan: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    return {
        "isPossible": not any(step.refusal for step in plan.steps),
        "losesData": bool(plan.losses),
        "token": plan.token,
        "seconds": round(plan.seconds, 1),
        "steps": [
            {"text": step.text, "lost": step.lost, "seconds": round(step.seconds, 1), "refusal": step.refusal or None}
            for step in plan.steps
        ],
    }
