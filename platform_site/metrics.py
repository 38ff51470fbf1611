"""`/metrics` for Prometheus (spec 09, 9.3): counters of all processes of this node, and the state of the instance.

Two kinds of numbers:

counted   by prometheus_client's own Counter and Histogram, declared wherever something happens, in any app. Each
          process of the node writes its numbers to a file below DATA_DIR (settings.METRICS_DIR), and a scrape adds them
          up, whichever process answers it.
asked     by functions registered here with `register`, at each scrape: what the database knows, the same on every node.

Who may ask: with METRICS_TOKEN whoever sends it as a bearer token; without one only callers on this machine, and none
that came through a proxy, behind which everybody looks local.
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

from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django_q.brokers import get_broker
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from domain.dataset.tables.models import DomainTransaction
from foundation import errors
from foundation.safe_views import reads_only
from identity.instance import client_address
from identity.rate_limits import check_client, note_client_failure
from identity.usage import usage_now
from platform_site.serving.addresses import is_loopback
from rules.models import RuleState
from webhooks.selectors import delivery_statistics, workers_alive

logger = logging.getLogger(__name__)

Ask = Callable[[], Iterable[Metric]]

#: First part of the path → site; what is none of these counts as "other", so that scanners add no series.
_SITES = frozenset({"api", "id", "admin", "profile", "sys", "static"})
_SILENT_SECONDS = 7 * 86_400
#: Room for some 2,000 series; the library lets a file grow beyond.
_FILE_BYTES = 1 << 18
#: Who shows METRICS_TOKEN, for counting; no application has this name (identity.oauth.clients.client_load).
_SCRAPER = "\0metrics"
_PROXY_HEADERS = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")

_requests = Counter("platform_requests", "Requests answered.", ("site", "method", "status"))
_latency = Histogram(
    "platform_request_seconds",
    "Time from request to answer.",
    ("site",),
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_asked: dict[str, Ask] = {}


def register(name: str, ask: Ask) -> None:
    """Add or replace a function that is asked for metrics at each scrape. One that raises costs only its own."""
    _asked[name] = ask


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
    """What counts such requests; prometheus_client looks its labels up under a lock."""
    return _requests.labels(site, method, f"{hundreds}xx"), _latency.labels(site)


@reads_only
def metrics(request: HttpRequest) -> HttpResponse:
    """The page."""
    address, shown = client_address(request), bool(settings.METRICS_TOKEN) and "HTTP_AUTHORIZATION" in request.META
    if shown:
        # An operator chose the token, perhaps a short one: unlike tokens of ours it is not compared beyond the limit.
        try:
            check_client(_SCRAPER, address)
        except errors.TooManyRequests as limited:
            return HttpResponse(status=429, headers=dict(limited.headers()))
    if not may_ask(request):
        if shown:
            note_client_failure(_SCRAPER, address)
        headers = {"WWW-Authenticate": 'Bearer realm="metrics"'} if settings.METRICS_TOKEN else {}
        return HttpResponse(status=401 if headers else 403, headers={"Cache-Control": "no-store", **headers})
    registry = CollectorRegistry()
    if directory := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        MultiProcessCollector(registry, directory)  # type: ignore[no-untyped-call]
    registry.register(_Asked())
    return HttpResponse(
        generate_latest(registry), content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"}
    )


def may_ask(request: HttpRequest) -> bool:
    """See the module's text."""
    token: str = settings.METRICS_TOKEN
    if token:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())
    if any(name in request.META for name in _PROXY_HEADERS):
        return False
    return is_loopback(request.META.get("REMOTE_ADDR", ""))


def forget_processes(directory: Path) -> None:
    """Remove what processes of earlier starts counted, which would pile up; another part of the node may still run.

    A container has another name at each start: the directories of machines that have long been silent go too.
    """
    for file in directory.glob("*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not _runs(int(pid)):
            file.unlink(missing_ok=True)
    for machine in directory.parent.iterdir():
        if machine != directory and machine.is_dir() and time.time() - _last_written(machine) > _SILENT_SECONDS:
            shutil.rmtree(machine, ignore_errors=True)


def _last_written(directory: Path) -> float:
    return max(path.stat().st_mtime for path in (directory, *directory.iterdir()))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _Asked(Collector):
    def collect(self) -> Iterator[Metric]:
        """Everything registered; what fails is logged and left out."""
        for name, ask in _asked.items():
            try:
                found = list(ask())
            except Exception:
                logger.exception("metrics of %s are missing", name)
                continue
            yield from found


def gauge(name: str, text: str, value: float) -> Metric:
    """A gauge without labels."""
    return GaugeMetricFamily(name, text, value=value)


# --- what the platform itself tells -------------------------------------------------------------------------------


def _webhooks() -> Iterator[Metric]:
    found = delivery_statistics()
    states = GaugeMetricFamily("platform_webhook_deliveries", "Webhook deliveries by state.", labels=("state",))
    for state, count in found.by_state.items():
        states.add_metric([state.lower()], count)
    yield states
    yield gauge("platform_webhook_lag_seconds", "Wait of the oldest delivery that is due.", found.lag_seconds)
    yield gauge("platform_webhook_open_circuits", "Templates left alone for now, by host.", len(found.open_circuits))
    yield gauge("platform_webhook_suspended_templates", "Templates held after failures.", found.suspended_templates)
    workers = workers_alive()
    yield gauge("platform_workers", "Worker processes that were heard of lately.", len(workers))
    yield gauge("platform_webhook_attempts_under_way", "Attempts being sent.", sum(w.under_way for w in workers))


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
    found = RuleState.objects.aggregate(
        fired=Sum("fired_count", default=0),
        failed=Sum("failure_count", default=0),
        microseconds=Sum("total_microseconds", default=0),
    )
    firings = CounterMetricFamily("platform_rule_firings", "Firings of business rules.", labels=("outcome",))
    firings.add_metric(["succeeded"], found["fired"])
    firings.add_metric(["failed"], found["failed"])
    yield firings
    seconds = float(found["microseconds"]) / 1_000_000
    yield CounterMetricFamily("platform_rule_seconds", "Time that firings of business rules took.", value=seconds)


register("webhooks", _webhooks)
register("queue", _queue)
register("sessions", _sessions)
register("transactions", _transactions)
register("rules", _rules)
