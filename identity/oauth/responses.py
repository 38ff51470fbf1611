"""Answers of the authorization endpoint: query, fragment or form_post, always with `iss` (RFC 9207), or a page.

An error page is for everything that must not be redirected: an unknown client or redirect URI (RFC 6749, 4.1.2.1).
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from django.core.exceptions import BadRequest, SuspiciousOperation, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.utils.translation import gettext

from foundation.phrases import Phrase, said
from identity import instance

Parameters = dict[str, str]
RESPONSE_MODES = ("query", "fragment", "form_post")


class UnreadableForm(Exception):
    """Parameters that cannot be taken apart; the text is public."""


def parameters_given(request: HttpRequest) -> QueryDict:
    """The parameters of the query or, for POST, of the body.

    Empty ones count as left out (RFC 6749, 3.1). Raises UnreadableForm for what is no form of a sensible size; Django
    alone would answer with a page of its own.
    """
    try:
        given = request.POST if request.method == "POST" else request.GET
    except TooManyFieldsSent as exc:
        raise UnreadableForm(Phrase("The request has too many parameters.")) from exc
    except (SuspiciousOperation, BadRequest, MultiPartParserError) as exc:
        raise UnreadableForm(Phrase("The parameters cannot be read.")) from exc
    found = QueryDict(mutable=True)
    for name, values in given.lists():
        if name != "csrfmiddlewaretoken" and (filled := [value for value in values if value]):
            found.setlist(name, filled)
    return found


def repeated(parameters: QueryDict) -> list[str]:
    """The parameters that are there more than once, which none may be (RFC 6749, 3.1 and 3.2).

    `resource` may (RFC 8707, 2); here it means nothing.
    """
    return [name for name, values in parameters.lists() if len(values) > 1 and name != "resource"]


def answer(request: HttpRequest, redirect_uri: str, parameters: Parameters, mode: str) -> HttpResponse:
    """Send the parameters to the client by way of the browser."""
    parameters = {**parameters, "iss": instance.issuer(request)}
    if mode == "form_post":
        # OAuth 2.0 Form Post Response Mode, 2; the page's script submits it, a button does without scripts.
        response = render(request, "identity/form_post.html", {"action": redirect_uri, "fields": parameters.items()})
        response.form_action = redirect_uri  # type: ignore[attr-defined]  # for the page's security policy
    else:
        response = redirect_to(with_parameters(redirect_uri, parameters, fragment=mode == "fragment"))
    return no_store(response)


def answer_error(
    request: HttpRequest, redirect_uri: str, *, error: str, description: str, state: str | None, mode: str
) -> HttpResponse:
    """An error that the client may hear (RFC 6749, 4.1.2.1; OIDC Core, 3.1.2.6)."""
    parameters = {"error": error, "error_description": description}
    return answer(request, redirect_uri, {**parameters, **({"state": state} if state else {})}, mode)


def error_page(request: HttpRequest, *, error: str, description: str, status: int = 400) -> HttpResponse:
    """A page for the person in front of the browser."""
    context = {"error": error, "description": said(description, gettext)}
    return no_store(render(request, "identity/error.html", context, status=status))


def redirect_to(url: str) -> HttpResponseRedirect:
    """A redirect to a registered URI, whatever its scheme (RFC 8252, 7.1)."""
    return _RedirectToClient(url)


def with_parameters(url: str, parameters: Parameters, *, fragment: bool = False) -> str:
    """The URL with the parameters added to what its query has, or as its fragment."""
    parts = urlsplit(url)
    encoded = urlencode(parameters)
    if fragment:
        return urlunsplit(parts._replace(fragment=encoded))
    return urlunsplit(parts._replace(query=f"{parts.query}&{encoded}" if parts.query else encoded))


def protocol_parameters(location: str) -> Parameters:
    """What oauthlib put into a Location, apart from what the redirect URI had itself."""
    parts = urlsplit(location)
    known = {"code", "id_token", "state", "error", "error_description", "error_uri"}
    return {name: value for name, value in parse_qsl(parts.fragment or parts.query) if name in known}


def no_store(response: HttpResponse) -> HttpResponse:
    """Nothing of this may stay in a cache (RFC 6749, 5.1)."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["Pragma"] = "no-cache"
    return response


class _RedirectToClient(HttpResponseRedirect):
    def __init__(self, redirect_to: str) -> None:
        # Exact match against registered URIs has decided already; the scheme is part of that.
        self.allowed_schemes = [urlsplit(redirect_to).scheme]
        super().__init__(redirect_to)
