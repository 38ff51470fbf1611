"""The pages under /api/, and their access token."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
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
from domain.odata.metadata import openapi
from domain.syntax.functions import FUNCTIONS
from foundation.browser_pages import BrowserPage
from identity.models import User
from identity.page_tokens import PageApplication, PageToken, page_session_close, page_token_issue
from identity.permissions import may_enter_admin
from identity.rest_views import PlatformView

SITE = PageApplication("DomainApiSite", "Domain API site", ("read", "update", "exec"))


class Page(BrowserPage):
    """A page rendered from a template of domain/api_site, with shared context and that of `values`."""

    http_method_names = ["get", "head"]
    template = ""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the page."""
        context = {
            "site_data": _script_data(request),
            "site_texts": page_texts(),
            "login_url": f"{reverse('identity:login')}?{urlencode({'next': request.get_full_path()})}",
            "may_call": isinstance(request.user, User) and request.user.user_type == "InternalUser",
            **self.values(),
        }
        return render(request, f"domain/api_site/{self.template}.html", context)

    def values(self) -> dict[str, Any]:
        """The template's additional context."""
        return {}


class ExplorerPage(Page):
    """The API explorer: documents and runs the operations of each namespace's OpenAPI document (spec 02, 2.1)."""

    template = "explorer"

    def values(self) -> dict[str, Any]:
        return {"namespaces": openapi.openapi_namespaces()}


class BuilderPage(Page):
    """The query builder; domain.api_site.model_pages renders its form."""

    template = "builder"

    def values(self) -> dict[str, Any]:
        return {"sets": repositories.set_names()}


class ImportPage(Page):
    """The import page; domain.api_site.import_page renders its part for a spreadsheet."""

    template = "import"

    def values(self) -> dict[str, Any]:
        return {"sets": repositories.set_names()}


class PageTokenSerializer(serializers.Serializer[PageToken]):
    """A token as the pages' scripts read it."""

    accessToken = serializers.CharField(source="access_token")
    expiresIn = serializers.IntegerField(source="expires_in_seconds")
    login = serializers.CharField(source="user.login")


class SessionView(PlatformView, BrowserPage):
    """The token of the pages' scripts, issued to the browser session. Both methods require the CSRF header."""

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
    is_admin = isinstance(user, User) and user.is_admin
    return {
        "root": f"{reverse('odata')}/",
        "publicRoot": service_root(request),
        "session": reverse("api-session"),
        "logIn": reverse("identity:login"),
        "standardModel": reverse("site-standard-model"),
        "currentModel": reverse("site-current-model"),
        "openapi": reverse("openapi"),
        "queries": reverse("api-queries"),
        "sheets": reverse("api-import-sheets"),
        # Prefix of export URLs; scripts append set name and file type (domain.odata.http.export_views).
        "exports": reverse("export", args=["SET", "csv"]).removesuffix("SET.csv"),
        "query": reverse("api-query"),
        "model": reverse("api-model"),
        # The home page with tiles of saved queries, for users of the admin.
        "home": reverse("admin:index") if isinstance(user, User) and may_enter_admin(user) else "",
        "sets": reverse("api-sets"),
        "set": reverse("api-set"),
        "chart": reverse("api-chart"),
        "builder": reverse("api-builder-form"),
        # Prefix of request inspector URLs, for administrators; scripts append a request id.
        "requests": f"{reverse('admin:platform_site_recordedrequest_changelist')}?q=" if is_admin else "",
        "login": user.login if isinstance(user, User) else "",
        "language": translation.get_language(),
        "functions": [
            {"name": known.name, "least": known.least_arguments, "most": known.most_arguments}
            for known in FUNCTIONS.values()
            if not known.is_geo
        ],
    }
