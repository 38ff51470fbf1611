"""`/metrics` for Prometheus (spec 09, 9.3): counters of all processes of this node, and the state of the instance.

Two kinds of numbers:

counted     by prometheus_client's Counter and Histogram, declared in any app where something happens. Each process of
            the node writes its numbers to a file below DATA_DIR (settings.METRICS_DIR); a scrape sums the files.
collected   at each scrape, by functions that `register` adds: the state in the database, the same on every node.

Access: with METRICS_TOKEN, callers that send it as a bearer token; without it, callers on this machine that did not
come through a proxy, behind which all callers look local.
"""

from __future__ import annotations

import hmac
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import psutil
from django.conf import settings
from django.db import connection
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django_q.brokers import get_broker
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from domain.database.replicas import replica_states
from domain.dataset.tables.models import DomainTransaction
from event_sinks.delivery import sinks_progress
from foundation import errors
from foundation.safe_views import reads_only
from identity.instance import client_address
from identity.rate_limits import check_client, note_client_failure
from identity.usage import usage_now
from platform_site.serving.addresses import is_loopback
from rules.models import RuleState
from webhooks.selectors import delivery_statistics, workers_alive

logger = logging.getLogger(__name__)

Collect = Callable[[], Iterable[Metric]]

#: Sites by the first part of the path; other paths count as "other", so that scanners add no series.
_SITES = frozenset({"api", "id", "admin", "profile", "sys", "static"})
_SILENT_SECONDS = 7 * 86_400
#: Space for some 2,000 series; the library lets a file grow beyond.
_FILE_BYTES = 1 << 18
#: Client name for counting failed attempts with METRICS_TOKEN; no application can have it.
SCRAPER = "\0metrics"
_PROXY_HEADERS = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")

_requests = Counter("platform_requests", "Requests answered.", ("site", "method", "status"))
_latency = Histogram(
    "platform_request_seconds",
    "Time from request to answer.",
    ("site",),
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_collected: dict[str, Collect] = {}


def register(name: str, collect: Collect) -> None:
    """Add or replace a function that collects metrics at each scrape. If it raises, only its metrics are missing."""
    _collected[name] = collect


def files_allocate() -> None:
    """Allocate the files of this process's counters, where the system can.

    The library makes files with holes: a counter that is first written on a full disk would end the process (SIGBUS).
    """
    if not hasattr(os, "posix_fallocate"):
        return  # macOS
    for kind in ("counter", "histogram"):
        descriptor = os.open(settings.METRICS_DIR / f"{kind}_{os.getpid()}.db", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, max(_FILE_BYTES, os.fstat(descriptor).st_size))
        except OSError as error:
            logger.warning("The files of metrics could not be allocated: %s", error)
        finally:
            os.close(descriptor)


def request_counted(request: HttpRequest, response: HttpResponseBase, *, seconds: float) -> None:
    """Count an answered request."""
    site = request.path_info.partition("/")[2].partition("/")[0]
    site = site if site in _SITES else "other"
    method = request.method if request.method in _METHODS else "other"
    counter, histogram = _series(site, method, response.status_code // 100)
    counter.inc()
    histogram.observe(seconds)


@cache
def _series(site: str, method: str | None, hundreds: int) -> tuple[Counter, Histogram]:
    """The counter and histogram for these labels, cached: prometheus_client looks labels up under a lock."""
    return _requests.labels(site, method, f"{hundreds}xx"), _latency.labels(site)


@reads_only
def metrics(request: HttpRequest) -> HttpResponse:
    """The page that Prometheus scrapes."""
    if refused := scrape_refusal(request):
        return refused
    registry = CollectorRegistry()
    if directory := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        MultiProcessCollector(registry, directory)  # type: ignore[no-untyped-call]
    registry.register(_Collected())
    return HttpResponse(
        generate_latest(registry), content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"}
    )


def scrape_refusal(request: HttpRequest) -> HttpResponse | None:
    """The refusal of a caller who may not read the metrics (see the module); counts failed attempts."""
    address, shown = client_address(request), bool(settings.METRICS_TOKEN) and "HTTP_AUTHORIZATION" in request.META
    if shown:
        # Attempts are limited, because the operator may have chosen a short token.
        try:
            check_client(SCRAPER, address)
        except errors.TooManyRequests as limited:
            return HttpResponse(status=429, headers=dict(limited.headers()))
    if not may_scrape(request):
        if shown:
            note_client_failure(SCRAPER, address)
        headers = {"WWW-Authenticate": 'Bearer realm="metrics"'} if settings.METRICS_TOKEN else {}
        return HttpResponse(status=401 if headers else 403, headers={"Cache-Control": "no-store", **headers})
    return None


def may_scrape(request: HttpRequest) -> bool:
    """Whether the caller may read the metrics (see the module)."""
    token: str = settings.METRICS_TOKEN
    if token:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    if any(name in request.META for name in _PROXY_HEADERS):
        return False
    return is_loopback(request.META.get("REMOTE_ADDR", ""))


def forget_processes(directory: Path) -> None:
    """Remove the files of processes that no longer run.

    Also removes directories of machines without writes for days, since a container has a new host name at each start.
    """
    for file in directory.glob("*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            file.unlink(missing_ok=True)
    for machine in directory.parent.iterdir():
        if machine != directory and machine.is_dir() and time.time() - _last_written(machine) > _SILENT_SECONDS:
            shutil.rmtree(machine, ignore_errors=True)


def process_ids() -> set[int]:
    """Ids of the instance's processes on this machine that count metrics and run."""
    names = (file.stem.rpartition("_")[2] for file in settings.METRICS_DIR.glob("*.db"))
    return {int(name) for name in names if name.isdigit() and psutil.pid_exists(int(name))}


def figures() -> dict[str, float]:
    """The collected metrics: `name` or `name{label="value"}` → value."""
    result: dict[str, float] = {}
    for metric in _Collected().collect():
        for sample in metric.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
            result[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return result


def _last_written(directory: Path) -> float:
    return max(path.stat().st_mtime for path in (directory, *directory.iterdir()))


class _Collected(Collector):
    def collect(self) -> Iterator[Metric]:
        """The metrics of all registered functions; a function that fails is logged and left out."""
        for name, collect in _collected.items():
            try:
                result = list(collect())
            except Exception:
                logger.exception("metrics of %s are missing", name)
                continue
            yield from result


def gauge(name: str, text: str, value: float) -> Metric:
    """A gauge without labels."""
    return GaugeMetricFamily(name, text, value=value)


# --- the platform's own metrics -----------------------------------------------------------------------------------


def _webhooks() -> Iterator[Metric]:
    result = delivery_statistics()
    states = GaugeMetricFamily("platform_webhook_deliveries", "Webhook deliveries by state.", labels=("state",))
    for state, count in result.by_state.items():
        states.add_metric([state.lower()], count)
    yield states
    yield gauge("platform_webhook_lag_seconds", "Wait of the oldest delivery that is due.", result.lag_seconds)
    yield gauge("platform_webhook_open_circuits", "Templates left alone for now, by host.", len(result.open_circuits))
    yield gauge("platform_webhook_suspended_templates", "Templates held after failures.", result.suspended_templates)
    yield gauge("platform_workers", "Worker processes that were heard of lately.", len(workers_alive()))
    yield gauge("platform_webhook_attempts_under_way", "Attempts being sent.", result.by_state["Delivering"])


def _event_sinks() -> Iterator[Metric]:
    progress = sinks_progress()
    behind = GaugeMetricFamily(
        "platform_event_sink_behind", "Changes that an event sink has not got yet.", labels=("sink",)
    )
    for each in progress:
        behind.add_metric([each.name], each.behind)
    yield behind
    failing = sum(each.failing_since is not None for each in progress)
    yield gauge("platform_event_sinks_failing", "Event sinks whose last attempt failed.", failing)


def _queue() -> Iterator[Metric]:
    yield gauge("platform_queue_tasks", "Tasks that wait in the queue.", get_broker().queue_size())


def _sessions() -> Iterator[Metric]:
    taken, slots = usage_now()
    yield gauge("platform_sessions", "Licensed sessions that are open.", taken)
    yield gauge("platform_session_slots", "Licensed sessions at most.", slots)


def _transactions() -> Iterator[Metric]:
    text = "Domain transactions that are open, those included that have expired and wait to be removed."
    yield gauge("platform_transactions", text, DomainTransaction.objects.count())


def _rules() -> Iterator[Metric]:
    result = RuleState.objects.aggregate(
        fired=Sum("fired_count", default=0),
        failed=Sum("failure_count", default=0),
        microseconds=Sum("total_microseconds", default=0),
    )
    firings = CounterMetricFamily("platform_rule_firings", "Firings of business rules.", labels=("outcome",))
    firings.add_metric(["succeeded"], result["fired"])
    firings.add_metric(["failed"], result["failed"])
    yield firings
    seconds = float(result["microseconds"]) / 1_000_000
    yield CounterMetricFamily("platform_rule_seconds", "Time that firings of business rules took.", value=seconds)


def _database() -> Iterator[Metric]:
    """Connections: on PostgreSQL of all nodes, counted by the server; on SQLite open handles of this machine."""
    text = "Connections to the main database."
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            yield gauge("platform_database_connections", text, cursor.fetchone()[0])
        return
    path = os.path.realpath(str(connection.settings_dict["NAME"]))
    yield gauge("platform_database_connections", text, sum(_handles(pid, path) for pid in process_ids()))


def _replicas() -> Iterator[Metric]:
    """The state of the replicas, as seen by the process that handles the scrape."""
    used = GaugeMetricFamily("platform_replica_in_use", "Whether a replica answers reads.", labels=("server",))
    lag = GaugeMetricFamily("platform_replica_lag_seconds", "How far a replica is behind.", labels=("server",))
    left_out = GaugeMetricFamily(
        "platform_replica_left_out", "Why a replica answers no reads: the label `reason`.", labels=("server", "reason")
    )
    for each in replica_states():
        used.add_metric([each.name], each.reason is None)
        if each.reason is not None:
            left_out.add_metric([each.name, each.reason], 1)
        if each.lag_seconds is not None:
            lag.add_metric([each.name], each.lag_seconds)
    yield used
    yield left_out
    yield lag


def _handles(pid: int, path: str) -> int:
    try:
        return sum(file.path == path for file in psutil.Process(pid).open_files())
    except psutil.Error:
        return 0  # the process has just ended


register("webhooks", _webhooks)
register("event_sinks", _event_sinks)
register("queue", _queue)
register("sessions", _sessions)
register("transactions", _transactions)
register("rules", _rules)
register("database", _database)
register("replicas", _replicas)
