"""What every view of Django REST framework gets by settings.REST_FRAMEWORK: callers, limits, parsers and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import include, path
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient

from foundation.cache_versions import bump
from identity.models import RateLimits, User
from identity.rate_limits import CACHE_VERSION
from identity.rest import IdentityAuthentication, IsUser, context_of
from identity.rest_views import PlatformView, PublicView
from tests.identity.flows import Browser, service_token

_RAISED = {"lost": Http404(), "forbidden": PermissionDenied(), "crash": RuntimeError("secret inner life")}


class LineSerializer(serializers.Serializer[None]):
    quantity = serializers.IntegerField(min_value=1)


class OrderSerializer(serializers.Serializer[None]):
    number = serializers.CharField(max_length=5)
    lines = LineSerializer(many=True, required=False)


class OrderView(PlatformView):
    def post(self, request: Request) -> Response:
        order = OrderSerializer(data=request.data)
        order.is_valid(raise_exception=True)
        return Response({"number": order.validated_data["number"], "by": context_of(request).application})


class PersonView(PlatformView):
    authentication_classes = (IdentityAuthentication, SessionAuthentication)
    permission_classes = (IsUser,)

    def get(self, request: Request) -> Response:
        assert isinstance(request.user, User)
        return Response({"login": request.user.login})

    def post(self, request: Request) -> Response:
        return Response(status=204)


class RaisingView(PublicView):
    def get(self, request: Request, name: str) -> Response:
        raise _RAISED[name]

    def post(self, request: Request, name: str) -> Response:
        return Response(list(request.data))


urlpatterns = [
    path("api/orders", OrderView.as_view()),
    path("api/person", PersonView.as_view()),
    path("api/raise/<str:name>", RaisingView.as_view()),
    path("person", PersonView.as_view()),
    path("", include("platform_site.urls")),
]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.once]


@pytest.fixture
def anyone(db: None) -> APIClient:
    """A client without a credential, which gets the response to a crash."""
    return APIClient(raise_request_exception=False)


@pytest.fixture
def service(demo: None) -> APIClient:
    """A client with a service's token."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {service_token(client)}")
    return client


def error_of(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    error: dict[str, Any] = response.json()["error"]
    return error


def test_a_view_reads_its_body_for_a_token(service: APIClient, anyone: APIClient) -> None:
    response: Any = service.post("/api/orders", {"number": "1"}, format="json")
    assert response.json() == {"number": "1", "by": "ServiceDemoClient"}
    assert response["Cache-Control"] == "no-store"
    refused: Any = anyone.post("/api/orders", {"number": "1"}, format="json")
    assert error_of(refused, 401)["type"] == "TokenMissing"
    assert refused["WWW-Authenticate"] == "Bearer"


def test_each_value_that_a_serializer_refuses_is_named(service: APIClient) -> None:
    body = {"number": "123456", "lines": [{"quantity": 1}, {"quantity": 0}]}
    error = error_of(service.post("/api/orders", body, format="json", headers={"Accept-Language": "de"}), 400)
    assert (error["type"], error["target"]) == ("InvalidValue", "number")
    assert error["message"] == (
        "number kann nicht verwendet werden: Stelle sicher, dass dieses Feld nicht mehr als 5 Zeichen lang ist."
    )
    assert [each["target"] for each in error["details"]] == ["number", "lines/1/quantity"]


@pytest.mark.parametrize(
    "content_type, body, status, code",
    [
        ("application/json", b"{", 400, "InvalidBody"),
        ("application/json", b"\xff", 400, "InvalidBody"),
        pytest.param("application/json", b"[" * 100_000, 400, "InvalidBody", id="deep"),
        ("application/json", b"[]", 400, "InvalidBody"),
        ("multipart/form-data", b"x", 400, "InvalidBody"),
        pytest.param("application/x-www-form-urlencoded", b"a=1&" * 1100, 400, "InvalidBody", id="many"),
        ("application/xml", b"<a/>", 415, "UnsupportedMediaType"),
        pytest.param("x" * 300, b"{}", 415, "UnsupportedMediaType", id="long"),
    ],
)
def test_a_body_that_cannot_be_read(service: APIClient, content_type: str, body: bytes, status: int, code: str) -> None:
    response = service.post("/api/orders", body, content_type=content_type)
    assert error_of(response, status)["type"] == code


@pytest.mark.parametrize("type_", ["application/json", "application/x-www-form-urlencoded"])
def test_a_body_above_the_limit(anyone: APIClient, settings: Any, type_: str) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    response = anyone.post("/api/raise/x", b" " * 101, content_type=type_)
    assert error_of(response, 413)["parameters"] == ["100"]


def test_a_missing_method_is_named_before_the_caller_is_asked_for(anyone: APIClient) -> None:
    for method in ("get", "options", "patch"):
        refused: Any = getattr(anyone, method)("/api/orders")
        assert error_of(refused, 405)["type"] == "MethodNotAllowed"
        assert refused["Allow"] == "POST"


def test_the_limits_of_the_application_hold(service: APIClient) -> None:
    RateLimits.objects.update_or_create(pk=1, defaults={"application_per_minute": 1})
    bump(CACHE_VERSION)
    answers: list[Any] = [service.post("/api/orders", {"number": "1"}, format="json") for _ in range(3)]
    assert error_of(answers[-1], 429)["type"] == "RateLimited"
    assert answers[-1]["RateLimit-Limit"] == "1"
    assert int(answers[-1]["Retry-After"]) > 0


def test_a_cookie_counts_only_with_proof_against_forgery(browser: Browser) -> None:
    browser.log_in("demo")
    client = APIClient(enforce_csrf_checks=True)
    client.cookies = browser.client.cookies
    assert client.get("/person").json() == {"login": "demo"}
    refused = error_of(client.post("/person"), 403)
    assert refused["type"] == "AccessDenied"
    assert "CSRF" in refused["message"]


def test_services_are_no_persons(service: APIClient) -> None:
    assert error_of(service.get("/api/person"), 403)["type"] == "UserRequired"


@pytest.mark.parametrize(
    "name, status, code",
    [("lost", 404, "ResourceNotFound"), ("forbidden", 403, "AccessDenied"), ("crash", 500, "InternalError")],
)
def test_what_a_view_raises(anyone: APIClient, name: str, status: int, code: str) -> None:
    response = anyone.get(f"/api/raise/{name}")
    assert error_of(response, status)["type"] == code
    assert b"secret inner life" not in response.content


def test_a_query_that_django_refuses_names_no_language(service: APIClient) -> None:
    query = "culture=de&" + "a=1&" * 1100
    response: Any = service.get(f"/api/domain/odata/GetVersion()?{query}")
    assert response["Content-Type"].startswith("application/json")
    assert error_of(APIClient().get(f"/api/domain/currentmodel?{query}"), 401)["type"] == "TokenMissing"
    assert error_of(APIClient().get(f"/api/domain/standardmodel?{query}"), 400)["type"] == "InvalidBody"
