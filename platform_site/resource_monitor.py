"""`/tools/resource-monitor`: the machine, the instance's processes on it, and the figures of `/metrics`.

For administrators, by cookie or token, and for callers that may read `/metrics`; a page for browsers, else JSON.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

import psutil
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer, TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from foundation import errors
from foundation.texts import utc_text
from identity.instance import client_address
from identity.models import User
from identity.rate_limits import check_client, note_client_failure
from identity.rest import IdentityAuthentication
from identity.rest_views import PlatformView
from platform_site.metrics import SCRAPER, figures, may_scrape, process_ids

_MIB = 1024 * 1024
_SHOWN_COMMAND = 120
#: `request.auth` of a caller that may read the metrics.
_METRICS_ACCESS = "metrics"
# Starts the measurement: each call returns the load since the previous call.
psutil.cpu_percent()


class MetricsAuthentication(BaseAuthentication):
    """Authenticates by METRICS_TOKEN or, if it is not set, callers on this machine (platform_site.metrics)."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, str] | None:
        """Raises TooManyRequests for an address that guesses the token."""
        if settings.METRICS_TOKEN and "HTTP_AUTHORIZATION" in request.META:
            check_client(SCRAPER, client_address(request._request))
        return (AnonymousUser(), _METRICS_ACCESS) if may_scrape(request._request) else None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class MayWatch(BasePermission):
    """Allows administrators, and callers that may read the metrics."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.auth == _METRICS_ACCESS:
            return True
        if isinstance(request.user, User) and not request.user.is_admin:
            raise errors.Forbidden(errors.PERMISSION_DENIED, "read", request.path)
        return isinstance(request.user, User)


class ResourceMonitorView(PlatformView):
    """The load of the machine and of this instance."""

    authentication_classes = (MetricsAuthentication, SessionAuthentication, IdentityAuthentication)
    permission_classes = (MayWatch,)
    renderer_classes = (JSONRenderer, TemplateHTMLRenderer)
    content_negotiation_class = DefaultContentNegotiation

    def get(self, request: Request) -> Response:
        return Response(resources(), template_name="site/resource_monitor.html")

    def handle_exception(self, exc: Exception) -> Any:
        """Redirects a browser without a sign-in to the login page; other failures are JSON."""
        request = self.request._request
        response = super().handle_exception(exc)
        if response.status_code == 401 and settings.METRICS_TOKEN and "HTTP_AUTHORIZATION" in request.META:
            note_client_failure(SCRAPER, client_address(request))
        if response.status_code == 401 and "text/html" in request.headers.get("Accept", ""):
            return redirect_to_login(request.get_full_path())
        return response


def resources() -> dict[str, Any]:
    """The figures of the monitor. The first members have the reference platform's names and units."""
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # In kilobytes on Linux, in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "cpuUsage": psutil.cpu_percent(),
        "processorCount": os.cpu_count(),
        "availableMemoryMiB": round(memory.available / _MIB, 1),
        "usedMemoryMiB": round((memory.total - memory.available) / _MIB, 1),
        "committedMemoryMiB": round((memory.used + swap.used) / _MIB, 1),
        "totalMemoryMiB": round(memory.total / _MIB, 1),
        "serverTimeUtc": utc_text(timezone.now()),
        "loadAverage": [round(each, 2) for each in os.getloadavg()],
        "process": {
            "id": os.getpid(),
            "maxMemoryBytes": usage.ru_maxrss * unit,
            "cpuSeconds": round(usage.ru_utime + usage.ru_stime, 2),
        },
        "processes": processes(),
        "figures": figures(),
    }


def processes() -> list[dict[str, Any]]:
    """The instance's processes on this machine: those that count metrics, and their children (sandboxes)."""
    known = process_ids() | {os.getpid()}
    found = {
        each.pid: each for each in psutil.process_iter(["ppid", "cmdline", "memory_info", "num_threads", "cpu_times"])
    }
    ours = {pid for pid in found if _belongs(pid, found, known)}
    return [_described(found[pid]) for pid in sorted(ours)]


def _belongs(pid: int, found: dict[int, psutil.Process], known: set[int]) -> bool:
    """Whether the process, or one that it descends from, is known."""
    passed: set[int] = set()
    while pid not in known:
        passed.add(pid)
        parent = found[pid].info["ppid"] if pid in found else None
        if parent is None or parent in passed:
            return False
        pid = parent
    return True


def _described(process: psutil.Process) -> dict[str, Any]:
    """The figures of a process; null if the system shows them only to the process's owner."""
    info = process.info
    memory, times = info["memory_info"], info["cpu_times"]
    return {
        "id": process.pid,
        "command": " ".join(info["cmdline"] or ())[:_SHOWN_COMMAND],
        "memoryBytes": memory and memory.rss,
        "threads": info["num_threads"],
        "cpuSeconds": times and round(times.user + times.system, 2),
    }
