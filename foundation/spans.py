"""OpenTelemetry spans, if the instance has a collector (spec 09, 9.3); else nothing is imported.

OTEL_EXPORTER_OTLP_ENDPOINT names the collector. The packages are not among the platform's requirements: `pip install
opentelemetry-exporter-otlp-proto-http`. The SDK reads its other variables by itself (OTEL_SERVICE_NAME,
OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS …). Spans have the data of the request log: no query, body or secret.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import util as multiprocessing_util
from typing import TYPE_CHECKING, Literal

from django.conf import settings

from foundation.per_process import PerProcess

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

Kind = Literal["SERVER", "CLIENT"]

_SERVICE_NAME = "business-platform"


@dataclass(frozen=True, slots=True)
class OpenSpan:
    """An open span. `traceparent` identifies it as the parent of other spans (W3C Trace Context)."""

    traceparent: str
    _span: Span

    def describe(self, attributes: Mapping[str, str | int], *, name: str | None = None, failed: bool = False) -> None:
        """Set attributes, without empty ones; rename the span; mark it as failed."""
        from opentelemetry.trace import StatusCode

        self._span.set_attributes({key: value for key, value in attributes.items() if value != ""})
        if name is not None:
            self._span.update_name(name)
        if failed:
            self._span.set_status(StatusCode.ERROR)


def are_configured() -> bool:
    """Whether a collector is configured."""
    return bool(settings.OTEL_EXPORTER_OTLP_ENDPOINT)


def packages_are_installed() -> bool:
    """Whether the exporter packages are installed."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def span(name: str, *, kind: Kind, traceparent: str = "") -> Iterator[OpenSpan]:
    """A span, a child of `traceparent` if that is valid. Call only if `are_configured()`."""
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = TraceContextTextMapPropagator()
    parent = carrier.extract({"traceparent": traceparent})
    tracer = provider().get_tracer("platform")
    # Exceptions are not recorded: their messages may hold data that the log must not have.
    with tracer.start_as_current_span(name, parent, SpanKind[kind], record_exception=False) as opened:
        written: dict[str, str] = {}
        carrier.inject(written)
        yield OpenSpan(written.get("traceparent", traceparent), opened)


def flush() -> None:
    """Send the ended spans now."""
    provider().force_flush()


@PerProcess
def provider() -> TracerProvider:
    """Sends the spans of this process to the collector."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces"
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": _SERVICE_NAME}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    # Unlike atexit this runs in the worker's forked processes too.
    multiprocessing_util.Finalize(None, provider.shutdown, exitpriority=10)
    return provider
