"""Pages of the sign-in at an upstream provider."""

from __future__ import annotations

import logging
import time
from urllib.parse import parse_qs, urlsplit

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from audit.record import failure
from foundation import errors
from foundation.messages import reason_of
from identity import rate_limits
from identity.account_pages import own_form_action, own_form_page, safe_page, user_of
from identity.audit_actors import anonymous_actor
from identity.audit_kinds import SignInFailed
from identity.factors.flow import PendingSignIn, sign_in_continue
from identity.factors.methods import external_amr
from identity.factors.registration_pages import fresh_user, login_again
from identity.federation import accounts
from identity.federation.logout import upstream_remember
from identity.federation.pending import Pending, pending_forget, pending_make, pending_store, pending_take
from identity.federation.provider import FederationFailed, Identity, authorization_url, exchange
from identity.instance import client_address, link_base_url
from identity.limited_pages import limited_page, limited_text
from identity.login_target import safe_next
from identity.models import IdentityProvider, User
from identity.oauth import logout
from identity.oauth.fresh_login import PARAMETER
from identity.oauth.sign_in import sign_in_stored

logger = logging.getLogger(__name__)
#: Sign-ins that one address may begin or end in a minute: each causes requests to the provider.
_PER_MINUTE = 30
# Tolerated clock difference between the servers.
_LEEWAY_SECONDS = 60


@safe_page
def start(request: HttpRequest, code: str) -> HttpResponse:
    """Redirect to the provider; `next` is a URL of this instance, `login_hint` is passed on."""
    target = safe_next(request)
    fresh = PARAMETER in parse_qs(urlsplit(target).query)
    return _begin(request, _provider(code), pending_make(code, target, fresh=fresh))


@own_form_page
def connect(request: HttpRequest, code: str) -> HttpResponse:
    """Confirm that an account, which can then sign in as this user, is connected; needs a fresh sign-in."""
    provider, user = _provider(code), fresh_user(request)
    if user is None:
        return login_again(request)
    if request.method == "POST":
        return _begin(request, provider, pending_make(code, "", fresh=True, user_id=str(user.pk)))
    response = render(request, "identity/connect.html", {"provider": provider})
    response.form_leads_away = True  # type: ignore[attr-defined]
    return response


@own_form_action
def disconnect(request: HttpRequest, code: str) -> HttpResponse:
    """Remove the user's account at the provider."""
    provider = IdentityProvider.objects.filter(code=code).first()
    try:
        if provider is None or not accounts.account_disconnect(user_of(request), provider):
            raise Http404
    except FederationFailed as refused:
        messages.error(request, reason_of(refused))
    else:
        messages.success(request, _("The account has been disconnected."))
    return redirect("identity:profile")


@safe_page
def callback(request: HttpRequest, code: str) -> HttpResponse:
    """The provider's response (OIDC Core, 3.1.2.5): sign the user in, or connect the account."""
    provider = _provider(code)
    attempt = pending_take(request, code, request.GET.get("state", ""))
    if attempt is None:
        limited = rate_limits.guess_refusal("federation", client_address(request))
        return _refused(request, provider, _("This sign-in was not begun in this browser, or too long ago."), limited)
    try:
        _count(request)
        identity = _identity(request, provider, attempt)
        response = (
            _connected(request, provider, identity, attempt)
            if attempt.user_id
            else _entered(request, provider, identity, attempt)
        )
    except errors.TooManyRequests as limited:
        return _refused(request, provider, limited_text(limited), limited)
    except FederationFailed as failed:
        response = _refused(request, provider, reason_of(failed))
    pending_forget(request, response, attempt)
    return response


def _begin(request: HttpRequest, provider: IdentityProvider, attempt: Pending) -> HttpResponse:
    try:
        _count(request)
        url = authorization_url(
            provider,
            redirect_uri=_redirect_uri(request, provider.code),
            state=attempt.state,
            nonce=attempt.nonce,
            verifier=attempt.verifier,
            fresh=attempt.fresh,
            login_hint=request.GET.get("login_hint", "")[:254],
        )
        response = HttpResponseRedirect(url)
        pending_store(request, response, attempt)
    except errors.TooManyRequests as limited:
        return _refused(request, provider, limited_text(limited), limited)
    except FederationFailed as failed:
        return _refused(request, provider, reason_of(failed))
    except ValueError:
        return _refused(request, provider, _("The request is too long."))
    return response


def _identity(request: HttpRequest, provider: IdentityProvider, attempt: Pending) -> Identity:
    """The identity of the upstream sign-in. Raises FederationFailed."""
    if error := request.GET.get("error"):
        raise FederationFailed(
            _("The sign-in at %(provider)s ended with: %(error)s") % {"provider": provider.name, "error": error[:100]}
        )
    identity = exchange(
        provider,
        redirect_uri=_redirect_uri(request, provider.code),
        code=request.GET.get("code", ""),
        nonce=attempt.nonce,
        verifier=attempt.verifier,
        issuer=request.GET.get("iss", ""),
    )
    if attempt.fresh and (identity.auth_time is None or identity.auth_time < attempt.at - _LEEWAY_SECONDS):
        raise FederationFailed(_("%(provider)s did not ask you to sign in again.") % {"provider": provider.name})
    return identity


def _entered(request: HttpRequest, provider: IdentityProvider, identity: Identity, attempt: Pending) -> HttpResponse:
    user = accounts.account_enter(provider, identity).user
    former = sign_in_stored(request)
    if former is not None and former.user != user:
        # Another user of this browser is signed out first; the session of the new one keeps what follows.
        logout.sign_out(request)
    upstream_remember(request, provider, identity.id_token, user)
    several = provider.trusts_factors and "mfa" in identity.values("amr")
    amr = external_amr(provider.code, identity.tenant, several=several)
    # A fresh sign-in was checked against this server's clock; the provider's has seconds only.
    auth_time = time.time() if attempt.fresh else min(time.time(), identity.auth_time or time.time())
    return sign_in_continue(request, PendingSignIn(user, amr, attempt.target, auth_time))


def _connected(request: HttpRequest, provider: IdentityProvider, identity: Identity, attempt: Pending) -> HttpResponse:
    if not isinstance(request.user, User) or str(request.user.pk) != attempt.user_id:
        raise FederationFailed(_("You have signed out meanwhile. Sign in and connect the account again."))
    accounts.account_connect(provider, identity, request.user)
    messages.success(request, _("Your account at %(provider)s is connected.") % {"provider": provider.name})
    return redirect("identity:profile")


def _refused(
    request: HttpRequest, provider: IdentityProvider, problem: str, limited: errors.TooManyRequests | None = None
) -> HttpResponse:
    logger.warning("a sign-in at %s failed: %s", provider.code, problem)
    failure(SignInFailed, by=anonymous_actor(request), reason="federation", provider=provider.code)
    context = {"provider": provider, "problem": problem}
    return limited_page(request, "identity/federation_refused.html", context, limited, status=403)


def _count(request: HttpRequest) -> None:
    rate_limits.count(f"federation:{rate_limits.counted_as(client_address(request))}", _PER_MINUTE)


def _redirect_uri(request: HttpRequest, code: str) -> str:
    return link_base_url(request) + reverse("identity:federation_callback", args=[code])


def _provider(code: str) -> IdentityProvider:
    provider = IdentityProvider.objects.filter(code=code, is_active=True).first()
    if provider is None:
        raise Http404
    return provider
