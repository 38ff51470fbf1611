"""A password by a link: by e-mail for who forgot theirs, from an administrator for a new user (spec 01, 1.2).

The link is Django's: signed, bound to the old password and the last login, and good for PASSWORD_RESET_TIMEOUT. The
worker looks the user up and sends the message, so that the page takes as long for a login that does not exist.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import send_mail
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from foundation import errors
from foundation.guids import is_guid
from identity import rate_limits
from identity.forms import NewPasswordForm, ResetForm
from identity.instance import base_url, client_address
from identity.models import User

logger = logging.getLogger(__name__)
_REQUESTS_PER_MINUTE = 5


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
    try:
        rate_limits.count(f"reset:{client_address(request)}", _REQUESTS_PER_MINUTE)
    except errors.TooManyRequests as limited:
        form.add_error(None, _("Too many failed attempts. Try again in a minute."))
        response = render(request, "identity/reset.html", {"form": form}, status=429)
        response.headers["Retry-After"] = str(limited.retry_after_seconds)
        return response
    _enqueue(form.cleaned_data["login"], base_url(request))
    return render(request, "identity/reset_sent.html")


@sensitive_post_parameters()
@never_cache
@csrf_protect
@require_http_methods(["GET", "POST"])
def set_page(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Set the new password by a link that is still good."""
    user = _user_of(uid)
    if user is None or not default_token_generator.check_token(user, token):
        return render(request, "identity/reset_invalid.html", status=400)
    form = NewPasswordForm(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        user.set_password(form.cleaned_data["new_password"])
        user.save(update_fields=["password"])
        return redirect("identity:login")
    response = render(request, "identity/password.html", {"form": form})
    # The address of this page is a secret.
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
    return base + reverse("identity:reset_set", args=[uid, default_token_generator.make_token(user)])


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


def _user_of(uid: str) -> User | None:
    try:
        user_id = urlsafe_base64_decode(uid).decode()
    except ValueError:
        return None
    return User.objects.filter(pk=user_id, active=True).first() if is_guid(user_id) else None
