"""Lets users change their e-mail address by a link that is sent to the new address (spec 01, 1.6).

The address receives password links. So the page requires the current password, the link proves that the user receives
mail at the new address, and the old address gets a notice. The link is signed and bound to the user's version and
password, so it works once. Administrators can change an address without it.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from audit.record import record
from identity import rate_limits
from identity.account_pages import own_form_page, safe_page, user_of
from identity.audit_actors import actor_of, user_subject
from identity.audit_kinds import AccountChanged
from identity.changes import access_changed
from identity.forms import EmailForm
from identity.instance import link_base_url
from identity.limited_pages import limited_page
from identity.mailed_links import MailedLink, language_of, mail_is_configured
from identity.models import User

_SALT = "identity.email_change"
_REQUESTS_PER_MINUTE = 3


@own_form_page
def request_page(request: HttpRequest) -> HttpResponse:
    """Send a link to a new address; requires the current password."""
    user = user_of(request)
    if not mail_is_configured():
        return render(request, "identity/email.html", {"state": "unavailable"})
    form = EmailForm(request, user, request.POST or None)
    if request.method == "POST":
        form.limited = rate_limits.refusal(f"email:{user.pk}", _REQUESTS_PER_MINUTE)
    if request.method == "POST" and form.is_valid():
        _enqueue("send_link", str(user.pk), form.cleaned_data["email"], link_base_url(request))
        return render(request, "identity/email.html", {"state": "sent", "email": form.cleaned_data["email"]})
    return limited_page(request, "identity/email.html", {"state": "form", "form": form}, form.limited)


@safe_page
def link_page(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """The page at the link (identity.mailed_links)."""
    return _LINK.open(request, uid, token)


@own_form_page
def set_page(request: HttpRequest, uid: str) -> HttpResponse:
    """GET shows a form, POST sets the new address: mail programs open links, and must not change anything."""
    user = user_of(request)
    email = _email_by_link(user, _LINK.token(request))
    if email is None:
        return _LINK.refuse(request)
    if request.method == "GET":
        return render(request, "identity/email.html", {"state": "confirm", "email": email})
    old = user.email
    with transaction.atomic():
        # Users are entities of the API: the new version shows the change to API clients.
        User.objects.filter(pk=user.pk).update(email=email, object_version=F("object_version") + 1)
        access_changed(User)
        record(AccountChanged, by=actor_of(request), subject=user_subject(user), changed=["Email"])
    _LINK.forget(request)
    if old:
        old_address_notify(str(user.pk), old, email)
    messages.success(request, _("Your e-mail address has been changed."))
    return redirect("identity:profile")


def email_link_make(user: User, email: str, base: str) -> str:
    """A URL below `base` that sets the user's e-mail address, once."""
    return _LINK.address(user, signing.dumps({"to": email, **_bound_to(user)}, salt=_SALT), base)


def send_link(user_id: str, email: str, base: str) -> int:
    """Send the link to the new address; returns the number of sent messages. Runs in the worker."""
    user = User.objects.filter(pk=user_id, active=True).first()
    if user is None:
        return 0
    with language_of(user):
        text = _("Use this address for the account %(login)s by the link:\n\n%(link)s\n\nElse do nothing.")
        subject = _("Your new e-mail address")
    return send_mail(subject, text % {"login": user.login, "link": email_link_make(user, email, base)}, None, [email])


def old_address_notify(user_id: str, old: str, new: str) -> None:
    """Enqueue a notice to the user's old address; does nothing if mail is not configured."""
    if mail_is_configured():
        _enqueue("send_notice", user_id, old, new)


def send_notice(user_id: str, old: str, new: str) -> int:
    """Send the notice; returns the number of sent messages. Runs in the worker."""
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return 0
    with language_of(user):
        text = _(
            "The account %(login)s has the e-mail address %(email)s now. If it was not you, tell an administrator."
        )
        subject = _("Your e-mail address has been changed")
    return send_mail(subject, text % {"login": user.login, "email": new or _("(none)")}, None, [old])


def _is_ours(uid: str, token: str) -> bool:
    """Whether this instance signed the token and it has not expired; the user is checked after the login."""
    return _signed(token) is not None


#: Where a user confirms the new address.
_LINK = MailedLink("email-link", "identity:email_link", "identity:email_set", "identity/email.html", _is_ours)


def _bound_to(user: User) -> dict[str, Any]:
    return {"user": str(user.pk), "version": user.object_version, "hash": user.get_session_auth_hash()[:16]}


def _email_by_link(user: User, token: str) -> str | None:
    """The new address in the link's token; None if the token is used, expired or for another user."""
    result = _signed(token)
    if result is None:
        return None
    email = str(result.pop("to"))
    return email if result == _bound_to(user) else None


def _signed(token: str) -> dict[str, Any] | None:
    try:
        result: dict[str, Any] = signing.loads(token, salt=_SALT, max_age=settings.PASSWORD_RESET_TIMEOUT)
    except signing.BadSignature:
        return None
    return result


def _enqueue(what: str, *arguments: str) -> None:
    async_task(f"identity.email_change.{what}", *arguments)
