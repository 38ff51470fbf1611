"""FAIL: refuse the operation that raised the event."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_noop as _

from foundation import errors
from rules.actions.base import MESSAGE, ActionType, BoundAction, ParameterRule, action_types

if TYPE_CHECKING:
    from rules.firing import Firing


@action_types.register
class Fail(ActionType):
    """End the operation with the message as its error; all of its changes are rolled back."""

    name = "FAIL"
    number = 1
    description = _("Refuses the operation with a message.")
    phrase = _("refuse it")
    parameters = (ParameterRule(_("message"), MESSAGE, lead=_("with the message")),)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Raise Refused(RULE_FAILED) with the message; its target is the attribute that was about to change."""
        occurrence = firing.occurrence
        target = occurrence.parameter if occurrence.type.startswith("ATTRIBUTE") else None
        raise errors.Refused(errors.RULE_FAILED, action.text(0, firing), target=target)
