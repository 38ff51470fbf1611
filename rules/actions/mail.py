"""SENDMAIL: a message by Django's mail backend, sent by a worker after the commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from django_q.tasks import async_task

from rules.actions.base import MESSAGE, VALUE, ActionType, BoundAction, ParameterRule, action_types
from rules.scope import Finding, RuleScope, found
from rules.specs import ActionSpec

if TYPE_CHECKING:
    from rules.firing import Firing

_SEPARATOR = re.compile(r"[,;\s]+")


def addresses_in(text: str) -> list[str]:
    """The addresses of a list separated by commas, semicolons or spaces."""
    return [part for part in _SEPARATOR.split(text) if part]


def is_address(text: str) -> bool:
    """Whether mail could go there."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


@action_types.register
class SendMail(ActionType):
    """To whom, subject, body. Written at the event, sent once its changes are committed and never before."""

    name = "SENDMAIL"
    description = _("Sends a message by e-mail once the change is saved.")
    parameters = (
        ParameterRule(_("recipients"), VALUE),
        ParameterRule(_("subject"), MESSAGE),
        ParameterRule(_("text"), MESSAGE, required=False),
    )

    def check(self, action: ActionSpec, rule: RuleScope) -> Iterator[Finding]:
        """Recipients that are written down must be addresses."""
        yield from super().check(action, rule)
        recipients = action.parameters[0]
        if recipients.type in (None, "Constant") and recipients.value:
            for address in addresses_in(recipients.value):
                if not is_address(address):
                    yield found("Parameter1Value", _("'{0}' is not an e-mail address."), address)

    def run(self, action: BoundAction, firing: Firing) -> None:
        """Leave the message to the commit; a recipient that is no address becomes a warning."""
        recipients = []
        for address in addresses_in(action.text(0, firing)):
            if is_address(address):
                recipients.append(address)
            else:
                firing.dataset.warnings.append(gettext("'{0}' is not an e-mail address.").replace("{0}", address))
        if not recipients:
            return
        subject = action.text(1, firing, escape="header")
        body = action.text(2, firing)
        enqueue = partial(enqueue_mail, recipients, subject, body)
        # The queue is told after the commit; robust, because by then the change cannot be refused any more.
        firing.dataset.defer_write(
            firing.key("SENDMAIL", action.spec.index), lambda: transaction.on_commit(enqueue, robust=True)
        )


def enqueue_mail(recipients: list[str], subject: str, body: str) -> None:
    """Hand the message to a worker."""
    async_task("rules.actions.mail.send_mail_now", recipients, subject, body, task_name=f"mail: {subject[:60]}")


def send_mail_now(recipients: list[str], subject: str, body: str) -> int:
    """Send it; how many messages went out. Runs in a worker."""
    return EmailMessage(subject=" ".join(subject.splitlines()), body=body, to=recipients).send()
