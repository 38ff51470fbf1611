"""Responses of the authorization endpoint: query, fragment or form_post, always with `iss` (RFC 9207), or a page.

Errors that must not be redirected are shown as a page: an unknown client or redirect URI (RFC 6749, 4.1.2.1).
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from django.core.exceptions import BadRequest, SuspiciousOperation, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.utils.translation import gettext

from foundation.messages import TranslatableMessage as Message
from foundation.messages import translated
from identity import instance
from identity.anonymous_forms import MAX_BYTES, is_too_long

Parameters = dict[str, str]
FORM = "application/x-www-form-urlencoded"
RESPONSE_MODES = ("query", "fragment", "form_post")
#: Headers that forbid caching (RFC 6749, 5.1).
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class UnreadableForm(Exception):
    """Parameters that cannot be parsed; the message is public."""


def parameters_given(request: HttpRequest) -> QueryDict:
    """The parameters of the query or, for POST, of the body.

    Empty ones count as omitted (RFC 6749, 3.1). Cached in `request.protocol_parameters`, where a pushed request
    (RFC 9126) replaces them. Raises UnreadableForm for an invalid or too large form; Django would respond with its own
    page.
    """
    known: QueryDict | None = getattr(request, "protocol_parameters", None)
    if known is not None:
        return known
    if is_too_long(request):
        raise UnreadableForm(Message("The request is larger than {0} bytes.", MAX_BYTES))
    try:
        given = request.POST if request.method == "POST" else request.GET
    except TooManyFieldsSent as exc:
        raise UnreadableForm(Message("The request has too many parameters.")) from exc
    except (SuspiciousOperation, BadRequest, MultiPartParserError) as exc:
        raise UnreadableForm(Message("The parameters cannot be read.")) from exc
    found = QueryDict(mutable=True)
    for name, values in given.lists():
        if name != "csrfmiddlewaretoken" and (filled := [value for value in values if value]):
            found.setlist(name, filled)
    request.protocol_parameters = found  # type: ignore[attr-defined]
    return found


def repeated(parameters: QueryDict) -> list[str]:
    """The repeated parameters, which are not allowed (RFC 6749, 3.1 and 3.2).

    `resource` (RFC 8707, 2) and `audience` (RFC 8693, 2.1) may be repeated; only a token exchange heeds them.
    """
    repeatable = {"resource", "audience"}
    return [name for name, values in parameters.lists() if len(values) > 1 and name not in repeatable]


def return_to_client(request: HttpRequest, redirect_uri: str, parameters: Parameters, mode: str) -> HttpResponse:
    """Return the parameters to the client through the browser."""
    parameters = {**parameters, "iss": instance.issuer(request)}
    if mode == "form_post":
        # OAuth 2.0 Form Post Response Mode, 2; the page's script submits it, or a button without scripts.
        response = render(request, "identity/form_post.html", {"action": redirect_uri, "fields": parameters.items()})
        response.form_leads_away = True  # type: ignore[attr-defined]  # for the page's security policy
    else:
        response = redirect_to(with_parameters(redirect_uri, parameters, fragment=mode == "fragment"))
    return no_store(response)


def error_page(request: HttpRequest, *, error: str, description: str, status: int = 400) -> HttpResponse:
    """An error page for the user."""
    context = {"error": error, "description": translated(description, gettext)}
    return no_store(render(request, "identity/error.html", context, status=status))


def redirect_to(url: str) -> HttpResponseRedirect:
    """A redirect to a registered URI, whatever its scheme (RFC 8252, 7.1)."""
    return _RedirectToClient(url)


def with_parameters(url: str, parameters: Parameters, *, fragment: bool = False) -> str:
    """The URL with the parameters added to its query, or as its fragment."""
    parts = urlsplit(url)
    encoded = urlencode(parameters)
    if fragment:
        return urlunsplit(parts._replace(fragment=encoded))
    return urlunsplit(parts._replace(query=f"{parts.query}&{encoded}" if parts.query else encoded))


def protocol_parameters(location: str) -> Parameters:
    """The parameters that oauthlib added to a Location, without those of the redirect URI."""
    parts = urlsplit(location)
    known = {"code", "id_token", "state", "error", "error_description", "error_uri"}
    return {name: value for name, value in parse_qsl(parts.fragment or parts.query) if name in known}


def no_store(response: HttpResponse) -> HttpResponse:
    """Forbid caching (RFC 6749, 5.1)."""
    for name, value in NO_STORE.items():
        response.headers[name] = value
    return response


class _RedirectToClient(HttpResponseRedirect):
    def __init__(self, redirect_to: str) -> None:
        # The redirect URI, including the scheme, equals a registered one.
        self.allowed_schemes = [urlsplit(redirect_to).scheme]
        super().__init__(redirect_to)
