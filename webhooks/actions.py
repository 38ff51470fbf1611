"""WEBHOOK: the action of a rule that tells another system (spec 05, 5.3; spec 06, 6.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from foundation import errors
from rules.actions import ActionType, BoundAction, ParameterRule
from rules.scope import Finding, RuleScope, found
from rules.specs import ActionSpec
from webhooks.headers import InvalidHeader
from webhooks.outbox import delivery_prepare
from webhooks.render import InvalidTemplate, event_names_used
from webhooks.templates import WebHookTemplate, web_hook_get

if TYPE_CHECKING:
    from rules.firing import Firing

#: Events that are told again while a commit settles: the last telling is the one that counts.
_SETTLING = frozenset({"COMMIT", "CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT"})


class WebHookAction(ActionType):
    """Parameter 1 names the template by code or id. Rendered at the event, sent once that is committed."""

    name = "WEBHOOK"
    description = _("Sends a request to another system once the change is saved.")
    parameters = (ParameterRule(_("webhook"), ("Constant", "Reference")),)

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """The template exists, is of the rule's repository, and needs no value that the rule's event does not tell."""
        wrong = list(super().check(action, rule))
        yield from wrong
        reference = action.parameters[0].value
        if wrong or not reference:
            return
        template = web_hook_get(reference)
        if template is None:
            yield found("Parameter1Value", _("There is no webhook '{0}'."), reference)
        elif template.repository_name != rule.repository.name:
            yield found(
                "Parameter1Value",
                _("The webhook {0} is for {1}, and the rule for {2}."),
                template.code,
                template.repository_name,
                rule.repository.name,
            )
        else:
            yield from _check_events(template, rule)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Render, and leave the outbox row to the commit. An inactive template sends nothing."""
        reference = action.text(0, firing)
        template = web_hook_get(reference)
        if template is None:
            raise errors.Refused(
                errors.RULE_BROKEN,
                firing.rule.title(firing.dataset.context.language),
                gettext("There is no webhook '{0}'.").replace("{0}", reference),
            )
        if not template.is_active:
            return
        delivery = delivery_prepare(
            template,
            firing.record,
            event_type=firing.occurrence.type,
            rule_code=firing.rule.code,
            events=firing.events,
        )
        once = () if firing.occurrence.type in _SETTLING else (delivery.id,)
        firing.dataset.defer_write(firing.key("WEBHOOK", action.spec.index, *once), delivery)


def _check_events(template: WebHookTemplate, rule: RuleScope) -> Iterator[Finding]:
    try:
        needed = event_names_used(template.compiled)
    except (InvalidTemplate, InvalidHeader) as exc:
        yield found("Parameter1Value", _("The webhook {0} cannot be filled in: {1}"), template.code, exc)
        return
    for name in sorted(needed - {event.name for event in rule.events}):
        yield found(
            "Parameter1Value",
            _("The webhook {0} needs {1}, which the rule's event does not tell."),
            template.code,
            name,
        )
