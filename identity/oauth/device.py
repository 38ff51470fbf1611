"""The device flow (RFC 8628): the device authorization endpoint, and the page on which a user allows a device."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from oauth2_provider.views.mixins import OAuthLibMixin

from foundation import errors
from identity import rate_limits
from identity.account_pages import own_form_page, user_of
from identity.instance import client_address, link_base_url
from identity.limited_pages import limited_page, limited_text
from identity.models import DeviceGrant
from identity.oauth.clients import DEVICE_CODE, check_grant
from identity.oauth.device_grants import EXPIRES_SECONDS, INTERVAL_SECONDS, device_decide, device_find, device_request
from identity.oauth.endpoints import FormEndpoint
from identity.oauth.scopes import scopes_for_user, scopes_grant
from identity.oauth.sign_in import sign_in_get
from identity.scopes import DESCRIPTIONS

# Each request stores a row, and a public client has no secret.
_REQUESTS_PER_MINUTE = 10


class DeviceAuthorizationEndpoint(FormEndpoint, OAuthLibMixin):  # type: ignore[misc]
    """POST client credentials and scope; 200 with the codes (RFC 8628, 3.1 and 3.2)."""

    def post(self, request: HttpRequest) -> HttpResponse:
        address = rate_limits.counted_as(client_address(request))
        rate_limits.count(f"device:{self.client_id}:{address}", _REQUESTS_PER_MINUTE)
        application = self.get_oauthlib_core().authenticate_client(request)
        rate_limits.check_token_request(application.client_id)
        check_grant(application, DEVICE_CODE)
        scopes = scopes_grant(application, self.form.get("scope", "").split(), service=False, refreshable=False)
        device_code, user_code = device_request(application, scopes)
        page = link_base_url(request) + reverse("oauth2_provider:device")
        return JsonResponse(
            {
                "device_code": device_code,
                "user_code": user_code,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?user_code={user_code}",
                "expires_in": EXPIRES_SECONDS,
                "interval": INTERVAL_SECONDS,
            }
        )


@own_form_page
def device_page(request: HttpRequest) -> HttpResponse:
    """The page: enter the code, show application and scopes, allow or deny. A code in the URL is only filled in."""
    sign_in = sign_in_get(request)
    assert sign_in is not None
    code = (request.POST if request.method == "POST" else request.GET).get("user_code", "")[:20]
    if request.method == "GET" or not code:
        return _page(request, "enter", code)
    try:
        grant = _found(request, code)
    except errors.TooManyRequests as limited:
        return _page(request, "enter", code, limited_text(limited), limited=limited)
    if grant is None:
        return _page(request, "enter", code, _("No device waits with this code. It is valid for ten minutes."))
    is_external = sign_in.user.user_type != "InternalUser"
    if not grant.application.admits(sign_in.user) or (is_external and "openid" not in grant.scope.split()):
        return _page(request, "enter", code, _("You may not use this application."))
    decision = request.POST.get("decision", "")
    if decision not in ("allow", "deny"):
        return _page(request, "decide", code, grant=grant)
    if not device_decide(grant, sign_in, allowed=decision == "allow"):
        return _page(request, "enter", "", _("No device waits with this code. It is valid for ten minutes."))
    return _page(request, "allowed" if decision == "allow" else "denied", grant=grant)


def _found(request: HttpRequest, code: str) -> DeviceGrant | None:
    """The pending request. Raises TooManyRequests after too many guesses, even for a right code (RFC 8628, 5.1)."""
    person = f"device:{request.user.pk}"
    rate_limits.count_guess(person, "", amount=0)
    grant = device_find(code)
    if grant is None:
        rate_limits.count_guess(person, "")
    return grant


def _page(
    request: HttpRequest,
    state: str,
    code: str = "",
    problem: str = "",
    *,
    grant: DeviceGrant | None = None,
    limited: errors.TooManyRequests | None = None,
) -> HttpResponse:
    scopes = scopes_for_user(user_of(request), grant.scope.split()) if grant else []
    context = {
        "state": state,
        "code": code,
        "problem": problem,
        "application": grant.application if grant else None,
        "scopes": [DESCRIPTIONS[scope] for scope in scopes if scope in DESCRIPTIONS],
    }
    return limited_page(request, "identity/device.html", context, limited)
