"""WEBHOOK: the action of a rule that sends an event to another system (spec 05, 5.3; spec 06, 6.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from domain.dataset.lookups.name_binding import ReferencePath
from domain.model.registry import repositories
from domain.model.values import in_language
from domain.query import select_rows
from foundation import errors
from rules.actions import ActionType, BoundAction, Choice, ParameterRule
from rules.firing import report_broken
from rules.read_access import REASON, unreadable
from rules.scope import Finding, RuleScope, finding
from rules.specs import ActionSpec
from webhooks.deferred_rendering import DeferredDelivery, copied
from webhooks.headers import InvalidHeader
from webhooks.outbox import delivery_prepare
from webhooks.render import InvalidTemplate, event_names_used
from webhooks.templates import WebHookTemplate, web_hook_get

if TYPE_CHECKING:
    from domain.model.repository import Repository
    from identity.context import CallContext
    from rules.firing import Firing

#: Maximum number of webhooks in a drop-down.
_OFFERED = 500
#: Events that a commit may raise repeatedly: only the last occurrence is sent.
_COALESCED_EVENTS = frozenset({"COMMIT", "CLIENTCOMMIT", "AGGREGATECLIENTCOMMIT"})


WEBHOOK_REASON = _("the author of its webhook may not read {0}")


class WebHookAction(ActionType):
    """Parameter 1 names the template by code or id. Rendered at the event, sent after the commit.

    A new entity gets its number with the commit, and so the request is rendered there (webhooks.deferred_rendering).
    """

    name = "WEBHOOK"
    number = 5
    description = _("Sends a request to another system once the change is saved.")
    phrase = _("send the webhook")
    parameters = (ParameterRule(_("webhook"), ("Constant", "Reference")),)

    def choices(self, index: int, repository: Repository[Any], context: CallContext) -> Sequence[Choice] | None:
        """The templates of the repository that the caller may read."""
        try:
            rows = select_rows(
                repositories["Systems.Config.WebHooks"],
                ("Code", "Name"),
                ctx=context,
                filter=f"RepositoryName eq '{repository.name}'",
                orderby="Code",
                limit=_OFFERED,
            )
        except errors.Forbidden:
            return []
        return [(code, f"{code} – {in_language(name, context.language)}") for code, name in rows]

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """Check that the template exists, belongs to the rule's repository, and uses only values of its events."""
        wrong = list(super().check(action, rule))
        yield from wrong
        reference = action.parameters[0].value
        if wrong or not reference:
            return
        template = web_hook_get(reference)
        if mismatch := _mismatch(template, reference, rule.repository.name):
            yield finding("Parameter1Value", mismatch[0], *mismatch[1])
        elif template is not None:
            yield from _check_events(template, rule)

    def paths(self, action: BoundAction) -> Iterator[tuple[int, ReferencePath]]:
        """The reference paths that the template reads."""
        template = web_hook_get(action.parameters[0].constant or "")
        return ((0, path) for path in (template.reads.paths if template is not None else ()))

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Render the request and defer its outbox row to the commit. An inactive template sends nothing."""
        reference = action.text(0, firing)
        template = web_hook_get(reference)
        # The template may have been changed or deleted since the rule was saved.
        if wrong := _mismatch(template, reference, firing.rule.repository):
            report_broken(firing.rule, firing.dataset, errors.format_message(gettext(wrong[0]), wrong[1]))
            return
        assert template is not None
        if not template.is_active:
            return
        try:
            delivery = delivery_prepare(
                template,
                firing.record,
                event_type=firing.occurrence.type,
                rule_code=firing.rule.code,
                events=firing.events,
            )
        except errors.Refused as exc:
            if exc.code is not errors.INTERPOLATION_FAILED:
                raise
            report_broken(firing.rule, firing.dataset, exc)
            return
        # The template and the rights of both authors may have changed since the rule was saved.
        hidden = unreadable(firing.rule.author, template.reads, firing.record, firing.events)
        if name := hidden or template.hidden_from_author(firing.record, firing.events):
            why = REASON if hidden else WEBHOOK_REASON
            report_broken(firing.rule, firing.dataset, errors.format_message(why, [name]))
            return
        if firing.record.is_new and not firing.dataset.is_committing:
            late = DeferredDelivery(
                template=template.id,
                author=firing.rule.author,
                event_type=firing.occurrence.type,
                rule_code=firing.rule.code,
                at_event=copied(firing.record),
                events=firing.events,
            )
            firing.dataset.defer_write(firing.key("WEBHOOK", action.spec.index, delivery.id), late)
            return
        once = () if firing.occurrence.type in _COALESCED_EVENTS else (delivery.id,)
        firing.dataset.defer_write(firing.key("WEBHOOK", action.spec.index, *once), delivery)


def _mismatch(template: WebHookTemplate | None, reference: str, repository: str) -> tuple[str, list[str]] | None:
    """Why a rule for the repository cannot send the template: a message and its parameters."""
    if template is None:
        return _("There is no webhook '{0}'."), [reference]
    if template.repository_name != repository:
        names = [template.code, template.repository_name, repository]
        return _("The webhook {0} is for {1}, and the rule for {2}."), names
    return None


def _check_events(template: WebHookTemplate, rule: RuleScope) -> Iterator[Finding]:
    try:
        needed = event_names_used(template.compiled)
    except (InvalidTemplate, InvalidHeader) as exc:
        yield finding("Parameter1Value", _("The webhook {0} cannot be filled in: {1}"), template.code, exc)
        return
    for name in sorted(needed - {event.name for event in rule.events}):
        yield finding(
            "Parameter1Value",
            _("The webhook {0} needs {1}, which the rule's event does not tell."),
            template.code,
            name,
        )
