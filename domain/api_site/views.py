"""The pages under /api/, and their access token."""

from __future__ import annotations

from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from domain.api_site.texts import page_texts
from domain.model.registry import repositories
from domain.odata.http.views import service_root
from domain.odata.metadata import model_json, openapi
from domain.syntax.functions import FUNCTIONS
from foundation.browser_pages import BrowserPage
from identity.models import User
from identity.page_tokens import PageApplication, PageToken, page_session_close, page_token_issue
from identity.rest_views import PlatformView

SITE = PageApplication("DomainApiSite", "Domain API site", ("read", "update", "exec"))


class Page(BrowserPage):
    """A template of domain/api_site, with shared values and those of `values`."""

    http_method_names = ["get", "head"]
    template = ""

    def get(self, request: HttpRequest, **arguments: str) -> HttpResponse:
        """Show the page."""
        context = {
            "site_data": _script_data(request),
            "site_texts": page_texts(),
            "login_url": f"{reverse('identity:login')}?{urlencode({'next': request.get_full_path()})}",
            "may_call": isinstance(request.user, User) and request.user.user_type == "InternalUser",
            **self.values(**arguments),
        }
        return render(request, f"domain/api_site/{self.template}.html", context)

    def values(self, **arguments: str) -> dict[str, Any]:
        """The template's own values; the arguments are those of the URL. Raises Http404."""
        return {}


class DescriptionPage(Page):
    """The OpenAPI document as a page: the sets by namespace, and the unbound operations (spec 02, 2.1)."""

    template = "description"

    def values(self, **arguments: str) -> dict[str, Any]:
        namespaces = [(namespace, list(sets)) for namespace, sets in groupby(repositories, lambda each: each.namespace)]
        set_paths = {f"/{repository.set_name}" for repository in repositories}
        operations = [
            _described(path, item)
            for path, item in openapi.openapi_tree(custom=False)["paths"].items()
            if path.count("/") == 1 and path.partition("(")[0] not in set_paths
        ]
        return {"namespaces": namespaces, "operations": operations}


class SetPage(Page):
    """One set of the OpenAPI document: its members and operations."""

    template = "set"

    def values(self, **arguments: str) -> dict[str, Any]:
        set_name = arguments["set_name"]
        result = repositories.for_set(set_name)
        if result is None:
            raise Http404
        paths = [_described(path, item) for path, item in openapi.repository_paths(result[0], custom=False)]
        return {"node": model_json.model_of_set(set_name, None), "paths": paths}


class PageTokenSerializer(serializers.Serializer[PageToken]):
    """A token as the pages' scripts read it."""

    accessToken = serializers.CharField(source="access_token")
    expiresIn = serializers.IntegerField(source="expires_in_seconds")
    login = serializers.CharField(source="user.login")


class SessionView(PlatformView, BrowserPage):
    """The token of the pages' scripts, for the browser's cookie. Both methods require the CSRF header."""

    authentication_classes = (SessionAuthentication,)
    permission_classes = ()

    def post(self, request: Request) -> Response:
        """Issue a token for the signed-in user."""
        return Response(PageTokenSerializer(page_token_issue(request._request, SITE)).data)

    def delete(self, request: Request) -> Response:
        """End the licensed session of the user's token."""
        page_session_close(request._request, SITE)
        return Response(status=204)


def _script_data(request: HttpRequest) -> dict[str, Any]:
    """Data for the pages' scripts: URLs as this browser reaches them, the user, names of functions."""
    user = request.user
    return {
        "root": f"{reverse('odata')}/",
        "publicRoot": service_root(request),
        "session": reverse("api-session"),
        "logIn": reverse("identity:login"),
        "standardModel": reverse("site-standard-model"),
        "currentModel": reverse("site-current-model"),
        "query": reverse("api-query"),
        "model": reverse("api-model"),
        "login": user.login if isinstance(user, User) else "",
        "language": translation.get_language(),
        "functions": [
            {"name": known.name, "least": known.least_arguments, "most": known.most_arguments}
            for known in FUNCTIONS.values()
            if not known.is_geo
        ],
    }


def _described(path: str, item: dict[str, Any]) -> dict[str, Any]:
    methods = [(name.upper(), node["summary"]) for name, node in item.items() if name != "parameters"]
    return {"path": path, "methods": methods}
