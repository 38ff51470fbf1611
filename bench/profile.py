"""Where a request's processor time goes, by layer: `make bench ARGS=--profile`.

The WSGI application answers in this process, without a server around it, and a timer of processor time looks a
thousand times a second which code runs. A sample belongs to the innermost layer on the stack, so that Django's query
compiler counts for who asked it, and a C function for who called it.
"""

from __future__ import annotations

import io
import os
import signal
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any

from bench.load import Request
from bench.operations import Measured

_SAMPLE_SECONDS = 0.001
_WARM_UP = 30
#: Layer → modules, by the beginnings of their names. The first layer that matches counts.
LAYERS = {
    "database": ("django.db.backends", "sqlite3", "psycopg", "domain.database"),
    "token, session, licence": ("identity", "oauth2_provider", "oauthlib", "jwt"),
    "metrics, traces": ("platform_site.metrics", "prometheus_client", "foundation.spans", "opentelemetry"),
    "parsing, binding": (
        "domain.syntax", "domain.query.bind", "domain.query.api", "domain.odata.resources",
        "domain.odata.service.parsing",
    ),
    "planning, SQL": ("domain.query.plan", "domain.query.sql", "domain.query.rights", "domain.query.base"),
    "rows, JSON": ("domain.query.run", "domain.odata.read", "domain.odata.message"),
    "dataset, commit": ("domain.dataset", "domain.odata.write", "domain.entities", "domain.model"),
    "rules, webhooks, audit": ("rules", "webhooks", "audit", "domain.events"),
    "OData service": ("domain.odata", "domain.repositories"),
    "HTTP, middleware": ("django", "rest_framework", "platform_site", "foundation"),
}  # fmt: skip


def print_profile(operations: Sequence[Measured], environment: dict[str, str], seconds: float) -> None:
    """Print milliseconds of processor time a request for each operation and layer."""
    os.environ.update(environment)
    from platform_site.wsgi import application  # reads the settings of the environment

    names = [*LAYERS, "other"]
    print(f"\nProcessor time of a request in milliseconds, by layer; {seconds:g} s of samples each")
    print(f"{'operation':<22}{'all':>8}" + "".join(f"{name:>25}" for name in names))
    for operation in operations:
        took, samples = sampled(partial(ask, application, operation.ours), seconds)
        shares = [samples[name] / max(1, samples.total()) for name in names]
        print(f"{operation.name:<22}{took:>8.2f}" + "".join(f"{took * share:>25.3f}" for share in shares), flush=True)


def sampled(work: Callable[[], object], seconds: float) -> tuple[float, Counter[str]]:
    """(milliseconds of processor time that one piece of work takes, layer → samples in it)."""
    found: Counter[str] = Counter()
    for _ in range(_WARM_UP):
        work()

    def look(number: int, frame: FrameType | None) -> None:
        found[_layer_of(frame)] += 1

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE_SECONDS, _SAMPLE_SECONDS)
    started, count, deadline = time.process_time(), 0, time.perf_counter() + seconds
    try:
        while time.perf_counter() < deadline:
            work()
            count += 1
    finally:
        took = time.process_time() - started
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return took * 1000 / count, found


def _layer_of(frame: FrameType | None) -> str:
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        for layer, beginnings in LAYERS.items():
            if module.startswith(beginnings):
                return layer
        frame = frame.f_back
    return "other"


_numbers = iter(range(10**9))


def ask(application: Any, request: Request) -> None:
    """Send the request to the WSGI application; RuntimeError for an answer that is not 2xx."""
    parts = urllib.parse.urlsplit(request.url)
    body = request.body(next(_numbers)) if request.body is not None else b""
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()}
    environ = {
        "REQUEST_METHOD": request.method, "PATH_INFO": urllib.parse.unquote(parts.path), "QUERY_STRING": parts.query,
        "SERVER_NAME": parts.hostname, "SERVER_PORT": str(parts.port), "SERVER_PROTOCOL": "HTTP/1.1", "SCRIPT_NAME": "",
        "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": parts.netloc, "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": request.headers.get("Content-Type", ""), "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http", "wsgi.errors": io.StringIO(), **headers,
    }  # fmt: skip
    statuses: list[str] = []
    answer = application(environ, lambda status, headers, error=None: statuses.append(status))
    try:
        for _ in answer:
            pass
    finally:
        if hasattr(answer, "close"):
            answer.close()
    if not statuses[0].startswith("2"):
        raise RuntimeError(f"{request.method} {request.url} answered {statuses[0]}")
