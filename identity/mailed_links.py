"""Links that users receive by e-mail, for a new password and a new e-mail address (spec 01, 1.6).

The page at a link stores the link's token in the session and redirects to a URL without it, as Django's own view does.
A page whose URL has a secret needs `Referrer-Policy: no-referrer`, and then browsers post its form with `Origin: null`,
which the CSRF check refuses. The redirects here contain no form, so they have that policy.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import translation
from django.utils.http import urlsafe_base64_encode

from foundation import errors
from identity.instance import client_address
from identity.limited_pages import limited_page
from identity.models import User
from identity.rate_limits import guess_refusal


@dataclass(frozen=True, slots=True)
class MailedLink:
    """One kind of link.

    name         counter of guesses, and key of the token in the session
    open_view    name of the view at the link, with the arguments uid and token
    use_view     name of the view that uses the token, with the argument uid
    invalid_page template of the page for a link that is used, expired or for another user
    is_good      function: whether (uid, token) may be used
    """

    name: str
    open_view: str
    use_view: str
    invalid_page: str
    is_good: Callable[[str, str], bool]

    def address(self, user: User, token: str, base: str) -> str:
        """The URL of the link, below `base`."""
        return base + reverse(self.open_view, args=[urlsafe_base64_encode(str(user.pk).encode()), token])

    def open(self, request: HttpRequest, uid: str, token: str) -> HttpResponse:
        """Store the token and redirect; an invalid token stores nothing, because the URL is public."""
        if not self.is_good(uid, token):
            return self.refuse(request, guess_refusal(self.name, client_address(request)))
        request.session[self.name] = token
        return _without_referrer(redirect(self.use_view, uid))

    def token(self, request: HttpRequest) -> str:
        """The token of the link that this browser opened; "" if it opened none."""
        return str(request.session.get(self.name, ""))

    def forget(self, request: HttpRequest) -> None:
        """Remove the token after its use."""
        del request.session[self.name]

    def refuse(self, request: HttpRequest, limited: errors.TooManyRequests | None = None) -> HttpResponse:
        """The page for an invalid link; `limited`: the refusal of an address with too many attempts."""
        context = {"hours": settings.PASSWORD_RESET_TIMEOUT // 3600, "reset_offered": mail_is_configured()}
        return _without_referrer(limited_page(request, self.invalid_page, context, limited, status=400))


def mail_is_configured() -> bool:
    """Whether the instance can send mail; if not, the login page offers no reset."""
    chosen: bool = settings.is_overridden("EMAIL_HOST")  # type: ignore[misc]  # the plugin's settings lack it
    return chosen or not str(settings.EMAIL_BACKEND).endswith(".smtp.EmailBackend")


def language_of(user: User) -> AbstractContextManager[None]:
    """Activate the user's language within the block."""
    language = user.default_language or "en"
    return translation.override(language if translation.check_for_language(language) else "en")


def _without_referrer(response: HttpResponse) -> HttpResponse:
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
