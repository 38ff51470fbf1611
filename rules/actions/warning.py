"""WARNING: lets the operation pass and returns a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_noop as _

from rules.actions.base import MESSAGE, ActionType, BoundAction, ParameterRule, action_types

if TYPE_CHECKING:
    from rules.firing import Firing


@action_types.register
class Warn(ActionType):
    """Return the message with the response (header X-Warnings, annotation @erpnet.warnings)."""

    name = "WARNING"
    number = 3
    description = _("Lets the operation pass and tells the caller a message.")
    phrase = _("let it pass")
    parameters = (ParameterRule(_("message"), MESSAGE, lead=_("with the warning")),)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Add the message, once: an event may be raised twice in one commit."""
        message = action.text(0, firing)
        if message not in firing.dataset.warnings:
            firing.dataset.warnings.append(message)
