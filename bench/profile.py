"""Processor time of a request by layer: `make bench ARGS=--profile`.

The WSGI application runs in this process without a server, and a timer of processor time samples the stack a thousand
times a second. A sample counts for the innermost layer on the stack: Django's query compiler or a C function for its
caller.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType

from bench.in_process import send
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
        took, samples = sampled(partial(send, application, operation.ours), seconds)
        shares = [samples[name] / max(1, samples.total()) for name in names]
        print(f"{operation.name:<22}{took:>8.2f}" + "".join(f"{took * share:>25.3f}" for share in shares), flush=True)


def sampled(work: Callable[[], object], seconds: float) -> tuple[float, Counter[str]]:
    """(milliseconds of processor time of one call of `work`, layer → number of samples)."""
    found: Counter[str] = Counter()
    for _ in range(_WARM_UP):
        work()

    def sample(number: int, frame: FrameType | None) -> None:
        found[_layer_of(frame)] += 1

    before = signal.signal(signal.SIGPROF, sample)
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
