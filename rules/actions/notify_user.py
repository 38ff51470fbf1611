"""NOTIFYUSER: creates a Systems.Core.Notifications entity for each of the listed users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.db.models.functions import Lower
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from foundation.guids import is_guid, parse_guid
from identity.models import User
from rules.actions.base import MESSAGE, VALUE, ActionType, BoundAction, ParameterRule, action_types, listed_in
from rules.scope import Finding, RuleScope, finding
from rules.specs import ActionSpec

if TYPE_CHECKING:
    from rules.firing import Firing

NOTIFICATIONS = "Systems.Core.Notifications"
#: Prefix of the default class of notifications: USR_BR_0005 of the rule 0005.
DEFAULT_CLASS = "USR_BR_"


def find_user(text: str) -> str | None:
    """The guid of the user with this id or login."""
    users = User.objects.order_by()
    if is_guid(text):
        rows = users.filter(pk=parse_guid(text))
    else:
        rows = users.annotate(login_lower=Lower("login")).filter(login_lower=text.lower())
    found_id = rows.values_list("pk", flat=True).first()
    return None if found_id is None else str(found_id)


@action_types.register
class NotifyUser(ActionType):
    """Parameters: users (ids or logins), subject, class of the notification."""

    name = "NOTIFYUSER"
    number = 4
    description = _("Leaves a notification for users.")
    phrase = _("notify")
    discloses_entity = True
    parameters = (
        ParameterRule(_("users"), VALUE, lead=_("the users")),
        ParameterRule(_("subject"), MESSAGE, lead=_("with the subject")),
        ParameterRule(_("notification class"), MESSAGE, required=False, lead=_("in the class")),
    )

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """Check that constant users exist."""
        yield from super().check(action, rule)
        users = action.parameters[0]
        if users.type in (None, "Constant") and users.value:
            for user in listed_in(users.value):
                if find_user(user) is None:
                    yield finding("Parameter1Value", _("There is no user '{0}'."), user)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Create the notifications, once per commit. An unknown user gives a warning."""
        subject = action.text(1, firing)[:256]
        notification_class = (action.text(2, firing) or DEFAULT_CLASS + firing.rule.code)[:64]
        notified = {
            (record.values["User"], record.values["Subject"], record.values["NotificationClass"])
            for record in firing.dataset.changed()
            if record.repository.name == NOTIFICATIONS and record.is_new
        }
        for user in listed_in(action.text(0, firing, escape="plain")):
            user_id = find_user(user)
            if user_id is None:
                firing.dataset.warnings.append(gettext("There is no user '{0}'.").replace("{0}", user))
            elif (user_id, subject, notification_class) not in notified:
                firing.dataset.create(
                    NOTIFICATIONS,
                    {"User": user_id, "Subject": subject, "NotificationClass": notification_class},
                )
