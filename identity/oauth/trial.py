"""A trial token request with client credentials, for administrators who test an application."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from identity.oauth import jwt
from identity.oauth.responses import FORM
from identity.oauth.token import TokenEndpoint

_OF_THE_BROWSER = {"HTTP_COOKIE", "HTTP_AUTHORIZATION"}


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """The claims of the token, or the endpoint's error (RFC 6749, 5.2)."""

    is_token: bool
    content: Mapping[str, Any]


def service_token_try(request: HttpRequest, *, client_id: str, secret: str) -> TrialAnswer:
    """The response of the token endpoint to client_credentials; the rate limits of the request's address apply.

    Calls the view, not the URL: the instance may not reach its own public address.
    """
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    body = urlencode(form).encode()
    environ = {
        **{name: value for name, value in request.META.items() if name not in _OF_THE_BROWSER},
        "REQUEST_METHOD": "POST",
        "PATH_INFO": reverse("oauth2_provider:token"),
        "QUERY_STRING": "",
        "CONTENT_TYPE": FORM,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
    }
    response = TokenEndpoint.as_view()(WSGIRequest(environ))
    assert isinstance(response, HttpResponse)
    content = json.loads(response.content)
    if response.status_code != 200:
        return TrialAnswer(False, content)
    return TrialAnswer(True, jwt.verify_access_token(content["access_token"]))
