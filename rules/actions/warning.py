"""WARNING: let the operation pass, and say something about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_noop as _

from rules.actions.base import MESSAGE, ActionType, BoundAction, ParameterRule, action_types

if TYPE_CHECKING:
    from rules.firing import Firing


@action_types.register
class Warn(ActionType):
    """The message goes back to the caller beside the answer (header X-Warnings, annotation @erpnet.warnings)."""

    name = "WARNING"
    description = _("Lets the operation pass and tells the caller a message.")
    parameters = (ParameterRule(_("message"), MESSAGE),)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Add the message, once: an event may settle twice in one commit."""
        message = action.text(0, firing)
        if message not in firing.dataset.warnings:
            firing.dataset.warnings.append(message)
