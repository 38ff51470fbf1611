"""A password by a link: by e-mail for who forgot theirs, from an administrator for a new user (spec 01, 1.2).

The link is Django's: signed, bound to the old password and the last login, and good for PASSWORD_RESET_TIMEOUT. The
worker looks the user up and sends the message, so that the page takes as long for a login that does not exist.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import send_mail
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from foundation import errors
from foundation.guids import is_guid
from identity import rate_limits
from identity.forms import NewPasswordForm, ResetForm
from identity.instance import client_address, link_base_url
from identity.models import User
from identity.passwords import password_set

logger = logging.getLogger(__name__)
_REQUESTS_PER_MINUTE = 5
#: Key of the cookie session: the token of the link by which this browser came.
_KEPT_IN_SESSION = "password_reset_link"


def mail_is_configured() -> bool:
    """Whether a message could leave this instance: without that, the login page offers no reset."""
    chosen: bool = settings.is_overridden("EMAIL_HOST")  # type: ignore[misc]  # the plugin's settings lack it
    return chosen or not str(settings.EMAIL_BACKEND).endswith(".smtp.EmailBackend")


@never_cache
@csrf_protect
@require_http_methods(["GET", "POST"])
def request_page(request: HttpRequest) -> HttpResponse:
    """Ask for a link; the answer is the same whether or not there is such a user."""
    form = ResetForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        return render(request, "identity/reset.html", {"form": form})
    if limited := _one_more(f"reset:{client_address(request)}", _REQUESTS_PER_MINUTE):
        return _later(request, "identity/reset.html", form, limited)
    login = form.cleaned_data["login"]
    # Nobody fills somebody's mailbox from many addresses; who asks sees no difference.
    if not _one_more(f"reset-login:{rate_limits.login_key(login)}", _REQUESTS_PER_MINUTE):
        _enqueue(login, link_base_url(request))
    return render(request, "identity/reset_sent.html")


def _one_more(name: str, limit: int) -> errors.TooManyRequests | None:
    """Count; the refusal where there have been too many in this minute."""
    try:
        rate_limits.count(name, limit)
    except errors.TooManyRequests as limited:
        return limited
    return None


def _later(request: HttpRequest, template: str, form: Form, limited: errors.TooManyRequests) -> HttpResponse:
    form.add_error(None, _("Too many failed attempts. Try again in a minute."))
    response = render(request, template, {"form": form}, status=429)
    response.headers["Retry-After"] = str(limited.retry_after_seconds)
    return response


@never_cache
@require_safe
def link_page(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Keep the link's token in the session and go on to an address without it, as Django's own view does.

    A page at an address that holds a secret needs `Referrer-Policy: no-referrer`, and then browsers post its form with
    `Origin: null`, which the CSRF check refuses. This answer keeps the policy, since no form is posted from it.
    """
    if _user_by_link(uid, token) is None:
        return _link_refused(request, rate_limits.guess_refusal("password-link", client_address(request)))
    request.session[_KEPT_IN_SESSION] = token
    response = redirect("identity:reset_set", uid)
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


@sensitive_post_parameters()
@never_cache
@csrf_protect
@require_http_methods(["GET", "POST"])
def set_page(request: HttpRequest, uid: str) -> HttpResponse:
    """Set the new password, in the browser that came by a link which is still good."""
    user = _user_by_link(uid, request.session.get(_KEPT_IN_SESSION, ""))
    if user is None:
        return _link_refused(request)
    form = NewPasswordForm(user, request.POST or None)
    if request.method == "POST" and (limited := _one_more(f"reset-set:{user.pk}", _REQUESTS_PER_MINUTE * 2)):
        return _later(request, "identity/password.html", form, limited)
    if request.method == "POST" and form.is_valid():
        password_set(user, form.cleaned_data["new_password"], ends_access=True)
        del request.session[_KEPT_IN_SESSION]
        messages.success(request, _("Your password is set. Sign in with it."))
        return redirect("identity:login")
    return render(request, "identity/password.html", {"form": form})


def _link_refused(request: HttpRequest, limited: errors.TooManyRequests | None = None) -> HttpResponse:
    """The page for a link that is used, expired or not of this instance; which of them it is cannot always be told.

    `limited`: the address has tried too many links.
    """
    context = {"hours": settings.PASSWORD_RESET_TIMEOUT // 3600, "reset_offered": mail_is_configured()}
    response = render(request, "identity/reset_invalid.html", context, status=429 if limited else 400)
    if limited:
        response.headers["Retry-After"] = str(limited.retry_after_seconds)
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def send(login: str, base: str) -> int:
    """Send a link to the user with this login, if there is one who may have it; how many messages went out.

    Run by the worker. Raises OSError when the mail server does not take it, so that the worker tries again.
    """
    user = _user(login)
    if user is None:
        return 0
    language = user.default_language or "en"
    with translation.override(language if translation.check_for_language(language) else "en"):
        text = _("Choose a new password for %(login)s here:\n\n%(link)s\n\nIf you did not ask for it, do nothing.")
        subject = _("Your new password")
    return send_mail(subject, text % {"login": user.login, "link": link_make(user, base)}, None, [str(user.email)])


def link_make(user: User, base: str) -> str:
    """The address, below the instance's `base`, at which whoever has it chooses the user's password, once."""
    uid = urlsafe_base64_encode(user.pk.encode())
    return base + reverse("identity:reset_link", args=[uid, default_token_generator.make_token(user)])


def _enqueue(login: str, base: str) -> None:
    from django_q.tasks import async_task

    try:
        async_task("identity.password_reset.send", login, base)
    except Exception:
        # The person is told the same in any case; the operator reads the log.
        logger.exception("a message with a password link could not be enqueued")


def _user(login: str) -> User | None:
    """Who may have a link: somebody who can log in, and has an address."""
    try:
        user = User.objects.get_by_natural_key(login)
    except User.DoesNotExist:
        return None
    return user if user.active and user.email and user.user_type != "SystemUserNoLogin" else None


def _user_by_link(uid: str, token: str) -> User | None:
    """Whose password a link sets; None when it is used, expired or none of this instance."""
    try:
        user_id = urlsafe_base64_decode(uid).decode()
    except ValueError:
        return None
    user = User.objects.filter(pk=user_id, active=True).first() if is_guid(user_id) else None
    return user if user is not None and default_token_generator.check_token(user, token) else None
