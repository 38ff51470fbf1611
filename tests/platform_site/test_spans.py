"""Spec 09, 9.3, "optional OpenTelemetry": spans as a collector receives them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pytest_django import Settings

from foundation import spans
from platform_site.environment import BASE_DIR
from tests.domain.conftest import api, fresh_process, world
from tests.rules.cast import World, write_rule
from tests.support.api import Api
from tests.support.receiver import LoopbackReceiver
from tests.webhooks.cast import CURRENCIES, deliver_due, new_web_hook

__all__ = ["api", "fresh_process", "world"]

TRACE_ID, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{CALLER}-01"
SET = "General_Currencies_Currencies"


@pytest.fixture
def collector(settings: Settings) -> Iterator[LoopbackReceiver]:
    """What the instance sends its spans to."""
    with LoopbackReceiver().running() as receiver:
        settings.OTEL_EXPORTER_OTLP_ENDPOINT = receiver.url
        spans.provider.forget()
        yield receiver
        spans.flush()


def collected(collector: LoopbackReceiver) -> list[Span]:
    """Every span that has come."""
    spans.flush()
    found: list[Span] = []
    for request in collector.requests:
        assert request.path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(request.body).resource_spans:
            assert attributes_of(resource.resource)["service.name"] == "business-platform"
            found += [span for scope in resource.scope_spans for span in scope.spans]
    return found


def attributes_of(told: Any) -> dict[str, str]:
    """Name → value as text."""
    return {pair.key: pair.value.string_value or str(pair.value.int_value) for pair in told.attributes}


def test_a_request_and_its_webhook_are_spans_of_the_callers_trace(
    api: Api, world: World, collector: LoopbackReceiver, loopback_receiver: LoopbackReceiver, settings: Settings
) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.0/8"]
    new_web_hook(f"{loopback_receiver.url}/told?key=planted-query", Headers="X-Api-Key: planted-key")
    write_rule(world, CURRENCIES, ["COMMIT"], code="TELL", actions=[("WEBHOOK", ("Constant", "HOOK"))])
    path = f"{SET}?$select=Name&key=planted-query"
    response = api.post(path, {"CurrencySign": "XTS", "Name": "planted-value"}, traceparent=TRACEPARENT)
    assert response.status_code == 201, response.content
    deliver_due()

    request, attempt = collected(collector)
    assert {request.trace_id.hex(), attempt.trace_id.hex()} == {TRACE_ID}
    assert (request.kind, request.parent_span_id.hex()) == (Span.SPAN_KIND_SERVER, CALLER)
    told = attributes_of(request)
    assert (told["http.request.method"], told["http.response.status_code"]) == ("POST", "201")
    assert (told["url.path"], told["platform.client"]) == (f"/api/domain/odata/{SET}", "ServiceDemoClient")
    assert told["platform.request_id"] == response["X-Request-Id"] == TRACE_ID
    assert told["platform.session"]

    assert (attempt.kind, attempt.parent_span_id) == (Span.SPAN_KIND_CLIENT, request.span_id)
    sent = loopback_receiver.requests[0].headers
    assert sent["traceparent"] == f"00-{TRACE_ID}-{request.span_id.hex()}-01"
    told = attributes_of(attempt)
    assert (told["platform.web_hook"], told["platform.attempt"]) == ("HOOK", "1")
    assert (told["platform.delivery"], told["http.response.status_code"]) == (sent["webhook-id"], "200")
    assert not [body for body in collector.requests if b"planted" in body.body or api.token.encode() in body.body]


@pytest.mark.django_db
def test_a_request_that_begins_a_trace_has_its_id_and_probes_have_none(
    client: Client, collector: LoopbackReceiver
) -> None:
    client.get("/healthz")
    response = client.get("/api/domain/odata/NoSuchSet", headers={"traceparent": "00-nonsense"})
    (span,) = collected(collector)
    assert (span.parent_span_id, span.trace_id.hex()) == (b"", response["X-Request-Id"])
    assert span.status.code == span.status.STATUS_CODE_UNSET


def test_without_a_collector_nothing_of_it_is_imported() -> None:
    script = (
        "import django, sys; django.setup(); from django.test import Client; Client().get('/healthz');"
        " Client().get('/api/nothing'); print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=BASE_DIR,
        env={**os.environ, "REDIS_URL": ""},  # whose client imports what it finds of it
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_a_collector_without_the_packages_is_refused_at_start() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None; import django; django.setup()"  # as where they are missing
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=BASE_DIR,
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install opentelemetry-exporter-otlp-proto-http" in done.stderr
