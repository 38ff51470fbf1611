"""Mails to users about changes of their passwords and second factors; the worker sends them."""

from __future__ import annotations

import logging

from django.core.mail import send_mail
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django_q.tasks import async_task

from audit.actors import Actor
from audit.record import record
from identity.audit_actors import user_subject
from identity.audit_kinds import CredentialsChanged
from identity.mailed_links import language_of, mail_is_configured
from identity.models import User

logger = logging.getLogger(__name__)

PASSWORD_CHANGED = gettext_noop("The password of your account was changed.")
PASSKEY_ADDED = gettext_noop("A passkey was added to your account.")
PASSKEY_REMOVED = gettext_noop("A passkey was removed from your account.")
APP_ADDED = gettext_noop("An authenticator app was set up for your account.")
APP_REMOVED = gettext_noop("The authenticator app was removed from your account.")
CODES_MADE = gettext_noop("New recovery codes were made for your account; the ones before are no longer valid.")
CODE_USED = gettext_noop("A recovery code was used to sign in to your account.")
APP_BLOCKED = gettext_noop(
    "Somebody who knows your password has tried many codes of your authenticator app. It accepts no codes until you "
    "sign in with a passkey or a recovery code. Change your password."
)
REMOVED_BY_ADMINISTRATOR = gettext_noop("An administrator removed second factors from your account.")


def user_notify(user: User, text: str, *, by: Actor) -> None:
    """Record one of the texts above in the audit chain, and enqueue a mail with it.

    No mail if mail is not configured or the user has no address.
    """
    record(CredentialsChanged, by=by, subject=user_subject(user), change=text)
    if not mail_is_configured() or not user.email:
        return
    try:
        async_task("identity.factors.notices.send", str(user.pk), text)
    except Exception:
        # The change itself has been made; the operator reads the log.
        logger.exception("a notice about how somebody signs in could not be enqueued")


def send(user_id: str, text: str) -> int:
    """Send the mail; returns the number of sent messages. Runs in the worker."""
    user = User.objects.filter(pk=user_id).first()
    if user is None or not user.email:
        return 0
    with language_of(user):
        end = _("Account: %(login)s. If it was not you, tell an administrator.") % {"login": user.login}
        return send_mail(_("How you sign in has changed"), f"{_(text)}\n\n{end}", None, [str(user.email)])
