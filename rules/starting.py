"""Rules that users start on an entity: UserStartable and StartRule (spec 10.4).

A started rule runs as on an event, without event attributes: its conditions are evaluated, then its actions and its
script run. The caller needs the right to change the entity.
"""

from __future__ import annotations

from domain.dataset.records.dispatch import Occurrence
from domain.dataset.records.record import Record
from domain.odata.operations.catalogue import EVERY_ENTITY, Operation, OperationCall, Parameter, Result, operations
from foundation import errors
from foundation.guids import is_guid, parse_guid
from foundation.messages import TranslatableMessage as Message
from rules.compiling import STARTED, CompiledRule
from rules.engine import run_rule, unreadable
from rules.index import rule_index


def startable_rules(repository: str) -> tuple[CompiledRule, ...]:
    """The active rules that users start on entities of the repository, by code."""
    return rule_index().startable.get(repository, ())


def rule_start(record: Record, rule: str) -> bool:
    """Run the rule with this code or id on the entity; returns whether its conditions held. Nothing is committed.

    Raises Refused: RULE_NOT_STARTABLE, or the rule's refusal.
    """
    id = parse_guid(rule) if is_guid(rule) else ""
    found = [each for each in startable_rules(record.repository.name) if rule == each.spec.code or id == each.spec.id]
    if not found:
        reason = Message("{0} has no active rule of that code or id that users start.", record.repository.name)
        raise errors.Refused(errors.RULE_NOT_STARTABLE, rule, reason, target="rule")
    occurrence = Occurrence(STARTED, record, record.dataset)
    if why := found[0].broken or unreadable(found[0], occurrence):
        raise errors.Refused(errors.RULE_NOT_STARTABLE, found[0].spec.code, why, target="rule")
    return run_rule(found[0], occurrence)


@operations.register
class StartRule(Operation):
    """Run a startable rule on the entity."""

    name = "StartRule"
    bound_to = EVERY_ENTITY
    scope = "update"
    parameters = (Parameter("rule"),)
    returns = "Erp.StartRuleResult"
    members = (Parameter("rule"), Parameter("fired", "Edm.Boolean"))
    description = "Runs an active rule with UserStartable, by its code or id, on the entity."

    def run(self, call: OperationCall) -> Result:
        """{"rule", "fired"}: whether the rule's conditions held. The response has its warnings."""
        rule = call.arguments["rule"]
        return Result({"rule": rule, "fired": rule_start(call.bound, rule)}, is_object=True)
