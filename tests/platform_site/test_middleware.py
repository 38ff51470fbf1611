"""Request ids, the request log and the short way of the API."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from django.utils import translation
from pytest_django import Settings

from foundation import errors
from foundation.browser_pages import BrowserPage


def echo(request: HttpRequest) -> HttpResponse:
    """Says what reached the view."""
    return HttpResponse(
        f"{request.request_id} {request.traceparent} {hasattr(request, 'session')} {translation.get_language()}"  # type: ignore[attr-defined]
    )


def refuse(request: HttpRequest) -> HttpResponse:
    """A failure with a public face that its view did not render."""
    raise errors.BadRequest(errors.UNKNOWN_SET, "Nothing", "")


def lose(request: HttpRequest) -> HttpResponse:
    """Django's own not found."""
    raise Http404("no such thing")


def crash(request: HttpRequest) -> HttpResponse:
    """A bug."""
    raise RuntimeError("the secret inner life")


class EchoPage(BrowserPage):
    """A page of the API site."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return echo(request)


urlpatterns = [
    path("page", echo),
    path("api/echo", echo),
    path("api/page", EchoPage.as_view()),
    path("api/refuse", refuse),
    path("api/lose", lose),
    path("api/crash", crash),
]

pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]


@pytest.fixture
def client() -> Client:
    """A client that sees the answer to a crash instead of the crash."""
    return Client(raise_request_exception=False)


@pytest.fixture
def request_log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The request log at INFO."""
    with caplog.at_level(logging.INFO, logger="platform.request"):
        yield caplog


TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"


@pytest.mark.parametrize("address", ["/page", "/api/echo", "/api/none", "/none"])
def test_every_answer_carries_a_request_id(client: Client, address: str) -> None:
    first, second = (client.get(address).headers["X-Request-Id"] for _ in range(2))
    assert len(first) == 32
    assert first != second


@pytest.mark.parametrize("address", ["/page", "/api/echo"])
def test_it_takes_the_callers_request_id(client: Client, address: str) -> None:
    response = client.get(address, headers={"X-Request-Id": "order-4711"})
    assert response.headers["X-Request-Id"] == "order-4711"
    assert response.content.decode().startswith("order-4711 ")


@pytest.mark.parametrize("hostile", ["a b", "x" * 65, "one\ttwo", "<script>", ""])
def test_it_replaces_a_request_id_that_does_not_belong_in_a_log(client: Client, hostile: str) -> None:
    assert client.get("/api/echo", headers={"X-Request-Id": hostile}).headers["X-Request-Id"] != hostile


def test_it_takes_the_trace_id_where_there_is_no_request_id(client: Client) -> None:
    response = client.get("/api/echo", headers={"traceparent": TRACEPARENT})
    assert response.headers["X-Request-Id"] == TRACE_ID
    assert TRACEPARENT in response.content.decode()


@pytest.mark.parametrize("wrong", ["garbage", f"00-{'0' * 32}-00f067aa0ba902b7-01", TRACEPARENT.upper()])
def test_it_ignores_a_traceparent_that_is_none(client: Client, wrong: str) -> None:
    response = client.get("/api/echo", headers={"traceparent": wrong})
    assert wrong not in response.content.decode()


def test_the_api_skips_the_stack_and_pages_get_it(client: Client, db: None) -> None:
    assert client.get("/api/echo").content.decode().split()[-2:] == ["False", "en"]
    assert client.get("/page").content.decode().split()[-2] == "True"


def test_a_page_below_the_api_gets_the_stack(client: Client, db: None) -> None:
    response = client.get("/api/page")
    assert response.content.decode().split()[-2] == "True"
    assert response.headers["X-Frame-Options"] == "DENY"


def test_the_api_does_not_inherit_the_language_of_the_request_before_it(client: Client, db: None) -> None:
    assert client.get("/page", headers={"Accept-Language": "bg"}).content.decode().endswith(" bg")
    assert client.get("/api/echo").content.decode().endswith(" en")


def test_the_api_forbids_sniffing(client: Client) -> None:
    assert client.get("/api/echo").headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "address,status,code",
    [
        ("/api/refuse", 400, "UnknownEntitySet"),
        ("/api/lose", 404, "ResourceNotFound"),
        ("/api/nothing/here", 404, "ResourceNotFound"),
        ("/api/crash", 500, "InternalError"),
    ],
)
def test_what_no_api_view_renders_is_still_an_api_error(client: Client, address: str, status: int, code: str) -> None:
    response = client.get(address)
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json"
    assert response.json()["error"]["type"] == code


@pytest.mark.parametrize(
    "language, said, message",
    [
        ("de-AT,de;q=0.9", "de", "Unter {0} gibt es nichts."),
        ("bg", "bg", "На {0} няма нищо."),
        ("fr", "en", "There is nothing at {0}."),
        ("fr, bg;q=0.5", "bg", "На {0} няма нищо."),
        ("", "en", "There is nothing at {0}."),
    ],
)
@pytest.mark.parametrize("address", ["/api/nothing/here", "/api/lose", "/api/domain/nothing"])
def test_it_speaks_the_language_of_the_request(
    client: Client, address: str, language: str, said: str, message: str
) -> None:
    response = client.get(address, headers={"Accept-Language": language})
    error = response.json()["error"]
    assert (error["messageFormat"], error["message"]) == (message, message.replace("{0}", address))
    assert response.headers["Content-Language"] == said
    assert "Accept-Language" in response.headers["Vary"]
    assert client.get(f"{address}?culture=de").json()["error"]["messageFormat"] == "Unter {0} gibt es nichts."


def test_a_crash_shows_its_correlation_id_and_nothing_of_itself(client: Client) -> None:
    response = client.get("/api/crash")
    assert response.headers["X-Request-Id"] in response.json()["error"]["info"]
    assert b"secret inner life" not in response.content


def test_a_crash_is_logged_with_its_request(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    client.get("/api/crash")
    assert "secret inner life" in caplog.text


def test_a_crash_reaches_the_test_client_as_with_any_view() -> None:
    with pytest.raises(RuntimeError):
        Client().get("/api/crash")


def test_the_api_refuses_a_host_that_is_not_its_own(client: Client) -> None:
    response = client.get("/api/echo", headers={"Host": "evil.example"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "InvalidHeader"


def test_the_api_follows_the_demand_for_tls(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 60
    assert client.get("/api/echo").status_code == 301
    assert client.get("/api/echo", secure=True).headers["Strict-Transport-Security"] == "max-age=60"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_of_a_node_are_answered_without_tls(client: Client, settings: Settings, path: str) -> None:
    """As the image's HEALTHCHECK asks, and a load balancer."""
    settings.SECURE_SSL_REDIRECT = True
    assert client.get(path, headers={"Host": "127.0.0.1:8000"}).status_code not in {301, 302, 400}


def test_the_log_says_what_happened_without_the_query_string(
    client: Client, request_log: pytest.LogCaptureFixture
) -> None:
    client.get("/api/echo?access_token=geheim")
    (record,) = [record for record in request_log.records if record.name == "platform.request"]
    assert record.getMessage() == "GET /api/echo 200"
    assert record.__dict__["queries"] == 0
    assert record.__dict__["duration_ms"] >= 0
    assert "geheim" not in request_log.text


def test_a_slow_request_is_a_warning(client: Client, request_log: pytest.LogCaptureFixture, settings: Settings) -> None:
    settings.SLOW_REQUEST_SECONDS = 0
    client.get("/api/echo")
    assert [record.levelno for record in request_log.records if record.name == "platform.request"] == [logging.WARNING]


def test_probes_are_not_logged(client: Client, request_log: pytest.LogCaptureFixture) -> None:
    client.get("/healthz")
    assert not [record for record in request_log.records if record.name == "platform.request"]
