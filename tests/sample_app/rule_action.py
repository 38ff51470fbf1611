"""An action type of rules."""

from django.utils.translation import gettext_noop as _

from rules.actions import MESSAGE, ActionType, BoundAction, ParameterRule, action_types
from rules.firing import Firing


@action_types.register
class Note(ActionType):
    """Writes a message into the notes of the object."""

    name = "NOTE"
    number = 1000
    description = _("Writes a message into the notes.")
    parameters = (ParameterRule(_("message"), MESSAGE),)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Set Notes."""
        firing.record.notes = action.text(0, firing)
