"""The pages under /api/, and the token that they call the API with."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods, require_safe

from domain.api_site.texts import page_texts
from domain.model.registry import repositories
from domain.odata.http.views import service_root
from domain.odata.metadata import model_json, openapi
from domain.syntax.functions import FUNCTIONS
from foundation import errors
from identity.models import User
from identity.own_pages import PageApplication, page_session_close, page_token_issue

View = Callable[..., HttpResponse]

SITE = PageApplication("DomainApiSite", "Domain API site", ("read", "update", "exec"))


def _page(view: View) -> View:
    """As platform_site.middleware.browser_page marks it, which is above this app: the whole middleware stack."""
    view.browser_page = True  # type: ignore[attr-defined]
    return view


@_page
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What there is."""
    return _rendered(request, "domain/api_site/home.html")


@_page
@require_safe
def query_tool(request: HttpRequest) -> HttpResponse:
    """Any request, and its answer."""
    return _rendered(request, "domain/api_site/query.html")


@_page
@require_safe
def query_builder(request: HttpRequest) -> HttpResponse:
    """A GET put together by choosing."""
    return _rendered(request, "domain/api_site/builder.html")


@_page
@require_safe
def import_page(request: HttpRequest) -> HttpResponse:
    """The Import action for a file (spec 03, 3.4)."""
    return _rendered(request, "domain/api_site/import.html")


@_page
@require_safe
def model_browser(request: HttpRequest) -> HttpResponse:
    """Sets, members, references and operations."""
    return _rendered(request, "domain/api_site/model.html")


@_page
@require_safe
def description(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document to look at: every set by namespace, and the unbound operations (spec 02, 2.1)."""
    namespaces = [
        (namespace, list(members)) for namespace, members in groupby(repositories, lambda known: known.namespace)
    ]
    tree = openapi.openapi_tree(custom=False)
    unbound = [_described(path, item) for path, item in tree["paths"].items() if path.count("/") == 1]
    known = {f"/{repository.set_name}" for repository in repositories}
    operations = [entry for entry in unbound if entry["path"].partition("(")[0] not in known]
    return _rendered(request, "domain/api_site/description.html", namespaces=namespaces, operations=operations)


@_page
@require_safe
def set_page(request: HttpRequest, set_name: str) -> HttpResponse:
    """One set of the OpenAPI document: its members, and what can be asked of it."""
    found = repositories.for_set(set_name)
    if found is None:
        raise Http404
    paths = [_described(path, item) for path, item in openapi.repository_paths(found[0], custom=False)]
    return _rendered(request, "domain/api_site/set.html", node=model_json.model_of_set(set_name, None), paths=paths)


@_page
@never_cache
@csrf_protect
@require_http_methods(["POST", "DELETE"])
def session(request: HttpRequest) -> HttpResponse:
    """POST: a token for the person who is signed in. DELETE: end its licensed session. Both want the CSRF header."""
    if request.method == "DELETE":
        page_session_close(request, SITE)
        return HttpResponse(status=204)
    try:
        token = page_token_issue(request, SITE)
    except errors.PlatformError as error:
        rendered = errors.render(error, correlation_id=getattr(request, "request_id", ""), debug=False)
        return JsonResponse(rendered.body, status=rendered.status)
    return JsonResponse(
        {"accessToken": token.access_token, "expiresIn": token.expires_in_seconds, "login": token.user.login}
    )


def _rendered(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    here = request.get_full_path()
    return render(
        request,
        template,
        {
            "site_data": _data(request),
            "site_texts": page_texts(),
            "login_url": f"{reverse('identity:login')}?{urlencode({'next': here})}",
            "may_call": isinstance(request.user, User) and request.user.user_type == "InternalUser",
            **context,
        },
    )


def _data(request: HttpRequest) -> dict[str, Any]:
    """What the pages' scripts must know: addresses as this browser reaches them, who is here, names of functions."""
    user = request.user
    return {
        "root": f"{reverse('odata')}/",
        "publicRoot": service_root(request),
        "session": reverse("api-session"),
        "logIn": reverse("identity:login"),
        "standardModel": f"{reverse('standard-model')}?details=true",
        "currentModel": f"{reverse('current-model')}?details=true",
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
