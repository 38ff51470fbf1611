"""Signs out at the upstream provider, too (OpenID Connect RP-Initiated Logout 1.0, 2)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from identity.account_pages import safe_page
from identity.federation.provider import FederationFailed, metadata
from identity.instance import link_base_url
from identity.models import IdentityProvider, User
from identity.oauth.responses import redirect_to

_SESSION = "federation"
_SALT = "federation.signed_out"
_SECONDS = 900


def upstream_remember(request: HttpRequest, provider: IdentityProvider, id_token: str, user: User) -> None:
    """Keep in the browser's session where the user has signed in."""
    kept = id_token if provider.signs_out else ""
    request.session[_SESSION] = {"provider": provider.code, "id_token": kept, "user": str(user.pk)}


@dataclass(frozen=True, slots=True)
class UpstreamSignOut:
    """The end of the upstream session of a browser. `endpoint` is the provider's, `back` the page here after it."""

    endpoint: str
    client_id: str
    id_token: str
    back: str

    def url(self, target: str) -> str:
        """Where the browser goes, to come back to `target`, or to a page that says so."""
        parameters = {
            "id_token_hint": self.id_token,
            "client_id": self.client_id,
            "post_logout_redirect_uri": self.back,
            "state": signing.dumps(target, salt=_SALT, compress=True),
        }
        return f"{self.endpoint}{'&' if '?' in self.endpoint else '?'}{urlencode(parameters)}"


def upstream_sign_out(request: HttpRequest) -> UpstreamSignOut | None:
    """How the browser's upstream session ends; None if it has none.

    Called before the session of this instance ends. A provider that cannot be reached does not hinder a sign-out.
    """
    kept = request.session.get(_SESSION) or {}
    # Another user may have gone no further than the second factor in this browser.
    if not kept.get("id_token") or request.user.pk not in (None, kept["user"]):
        return None
    provider = IdentityProvider.objects.filter(code=kept["provider"], is_active=True, signs_out=True).first()
    if provider is None:
        return None
    try:
        endpoint = metadata(provider).get("end_session_endpoint")
    except FederationFailed:
        return None
    back = link_base_url(request) + reverse("identity:federation_signed_out", args=[provider.code])
    return UpstreamSignOut(endpoint, provider.client_id, kept["id_token"], back) if endpoint else None


@safe_page
def signed_out(request: HttpRequest, code: str) -> HttpResponse:
    """The browser comes back from the provider: on to where the sign-out leads, else to a page that says so."""
    try:
        target: str = signing.loads(request.GET.get("state", ""), salt=_SALT, max_age=_SECONDS)
    except signing.BadSignature:
        target = ""
    if target:
        return redirect_to(target)
    return render(request, "identity/signed_out.html", {"frames": [], "target": None})
