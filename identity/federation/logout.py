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
    """Store the upstream sign-in in the browser's session."""
    kept = id_token if provider.signs_out else ""
    request.session[_SESSION] = {"provider": provider.code, "id_token": kept, "user": str(user.pk)}


@dataclass(frozen=True, slots=True)
class UpstreamSignOut:
    """The logout of a browser's upstream session: the provider's `endpoint`, and the page of this instance after it."""

    endpoint: str
    client_id: str
    id_token: str
    back: str

    def url(self, target: str) -> str:
        """The URL of the provider's logout, which returns to `target`, or to a page that confirms the sign-out."""
        parameters = {
            "id_token_hint": self.id_token,
            "client_id": self.client_id,
            "post_logout_redirect_uri": self.back,
            "state": signing.dumps(target, salt=_SALT, compress=True),
        }
        return f"{self.endpoint}{'&' if '?' in self.endpoint else '?'}{urlencode(parameters)}"


def upstream_sign_out(request: HttpRequest) -> UpstreamSignOut | None:
    """The logout of the browser's upstream session; None if it has none.

    Called before the session of this instance ends. An unreachable provider does not prevent the sign-out.
    """
    kept = request.session.get(_SESSION) or {}
    # Another user may have begun a sign-in in this browser, up to the second factor.
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
    """The browser's return from the provider: redirect to the target of the sign-out, else a page that confirms it."""
    try:
        target: str = signing.loads(request.GET.get("state", ""), salt=_SALT, max_age=_SECONDS)
    except signing.BadSignature:
        target = ""
    if target:
        return redirect_to(target)
    return render(request, "identity/signed_out.html", {"frames": [], "target": None})
