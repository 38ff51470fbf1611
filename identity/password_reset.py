"""Password links: by e-mail after a forgotten password, or from an administrator for a new user (spec 01, 1.2).

The link is Django's: signed, bound to the old password and the last login, and valid for PASSWORD_RESET_TIMEOUT. The
worker looks up the user and sends the mail, so that the response time does not reveal whether a login exists.
"""

from __future__ import annotations

import logging

from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import send_mail
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlsafe_base64_decode
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from foundation import errors
from foundation.guids import is_guid
from identity import rate_limits
from identity.account_pages import form_page, safe_page
from identity.audit_actors import anonymous_actor
from identity.forms import NewPasswordForm, ResetForm
from identity.instance import client_address, link_base_url
from identity.limited_pages import limited_page, limited_text
from identity.mailed_links import MailedLink, language_of
from identity.models import User
from identity.passwords import password_set

logger = logging.getLogger(__name__)
_REQUESTS_PER_MINUTE = 5


@form_page
def request_page(request: HttpRequest) -> HttpResponse:
    """Request a link; the response is the same whether or not the user exists."""
    form = ResetForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        return render(request, "identity/reset.html", {"form": form})
    if limited := rate_limits.refusal(f"reset:{rate_limits.counted_as(client_address(request))}", _REQUESTS_PER_MINUTE):
        return _refused_page(request, "identity/reset.html", form, limited)
    login = form.cleaned_data["login"]
    # Limits the mails to one mailbox; the response does not reveal it.
    if not rate_limits.refusal(f"reset-login:{rate_limits.login_key(login)}", _REQUESTS_PER_MINUTE):
        _enqueue(login, link_base_url(request))
    return render(request, "identity/reset_sent.html")


def _refused_page(request: HttpRequest, template: str, form: Form, limited: errors.TooManyRequests) -> HttpResponse:
    form.add_error(None, limited_text(limited))
    return limited_page(request, template, {"form": form}, limited)


@safe_page
def link_page(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """The page at the link (identity.mailed_links)."""
    return _LINK.open(request, uid, token)


@form_page
def set_page(request: HttpRequest, uid: str) -> HttpResponse:
    """Set the new password in the browser that opened a valid link."""
    user = _user_by_link(uid, _LINK.token(request))
    if user is None:
        return _LINK.refuse(request)
    form = NewPasswordForm(user, request.POST or None)
    if request.method == "POST" and (limited := rate_limits.refusal(f"reset-set:{user.pk}", _REQUESTS_PER_MINUTE * 2)):
        return _refused_page(request, "identity/password.html", form, limited)
    if request.method == "POST" and form.is_valid():
        password_set(user, form.cleaned_data["new_password"], ends_access=True, by=anonymous_actor(request))
        _LINK.forget(request)
        messages.success(request, _("Your password is set. Sign in with it."))
        return redirect("identity:login")
    return render(request, "identity/password.html", {"form": form})


def send(login: str, base: str) -> int:
    """Send a link to the user with this login, if the user may have one; returns the number of sent messages.

    The worker runs this. Raises OSError if the mail server fails, so that the worker tries again.
    """
    user = _user(login)
    if user is None:
        return 0
    with language_of(user):
        text = _("Choose a new password for %(login)s here:\n\n%(link)s\n\nIf you did not ask for it, do nothing.")
        subject = _("Your new password")
    return send_mail(
        subject, text % {"login": user.login, "link": password_link_make(user, base)}, None, [str(user.email)]
    )


def password_link_make(user: User, base: str) -> str:
    """A single-use URL below `base` that sets the user's password."""
    return _LINK.address(user, default_token_generator.make_token(user), base)


def _enqueue(login: str, base: str) -> None:
    try:
        async_task("identity.password_reset.send", login, base)
    except Exception:
        # The response is the same in any case; the operator reads the log.
        logger.exception("a message with a password link could not be enqueued")


def _user(login: str) -> User | None:
    """The user who may have a link: active, with a password login and an e-mail address."""
    try:
        user = User.objects.get_by_natural_key(login)
    except User.DoesNotExist:
        return None
    return user if user.active and user.email and user.user_type != "SystemUserNoLogin" else None


def _user_by_link(uid: str, token: str) -> User | None:
    """The user of a link; None if it is used, expired or not of this instance."""
    try:
        user_id = urlsafe_base64_decode(uid).decode()
    except ValueError:
        return None
    result = User.objects.filter(pk=user_id) if is_guid(user_id) else User.objects.none()
    user = result.filter(active=True).exclude(user_type="SystemUserNoLogin").first()
    return user if user is not None and default_token_generator.check_token(user, token) else None


#: Where a user chooses the new password.
_LINK = MailedLink(
    "password-link",
    "identity:reset_link",
    "identity:reset_set",
    "identity/reset_invalid.html",
    lambda uid, token: _user_by_link(uid, token) is not None,
)
