"""The redirect target of a sign-in: a URL of this instance, from the parameter `next`."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from identity.oauth.clients import client_load

#: Parameter of an authorization request whose user declined the factor of acr_values.
DECLINED = "_declined"


def login_page(target: str) -> HttpResponseRedirect:
    """A redirect to the login page, and from there to the target."""
    return HttpResponseRedirect(f"{settings.LOGIN_URL}?{urlencode({'next': target})}")


def second_factor_page(target: str) -> HttpResponseRedirect:
    """A redirect to the page of the second factor, and from there to the target."""
    return HttpResponseRedirect(f"{reverse('identity:second_factor')}?{urlencode({'next': target})}")


def safe_next(request: HttpRequest) -> str:
    """The redirect target after the login: a URL of this instance, or ""."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    # Checked without the query: that of an authorization request (state, id_token_hint) is often longer than the 2,048
    # characters that Django accepts for a URL.
    address = target.partition("?")[0]
    safe = url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())
    return target if safe else ""


def application_name_of(target: str) -> str:
    """How the login page names the application to which an authorization request leads; "" for other targets.

    An application that registered itself is named by the host of its redirect URI, because its own name is unverified.
    """
    parts = urlsplit(target)
    if parts.path != reverse("oauth2_provider:authorize"):
        return ""
    query = parse_qs(parts.query)
    application = client_load(query.get("client_id", [""])[0])
    if application is None or not application.login_urls:
        return ""
    given = query.get("redirect_uri", application.login_urls)[0]
    if not application.redirect_uri_allowed(given):
        return ""
    return (urlsplit(given).netloc or given) if application.has_registered_itself else str(application)


def acr_values_of(target: str) -> str:
    """The parameter acr_values of an authorization request; "" for other targets."""
    parts = urlsplit(target)
    is_authorization = parts.path == reverse("oauth2_provider:authorize")
    return parse_qs(parts.query).get("acr_values", [""])[0] if is_authorization else ""
