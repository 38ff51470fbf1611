"""The application that the web server's worker processes load."""

import signal
from collections.abc import Iterable
from typing import Any

# A worker process inherits a SIGTERM handler, and installs its own only after the application is loaded. A SIGTERM in
# between would be lost, and stopping would wait until the worker is killed. While the application loads the process
# serves no requests, so it may exit at once.
signal.signal(signal.SIGTERM, signal.SIG_DFL)

from django.conf import settings  # noqa: E402
from django.core.cache import close_caches  # noqa: E402
from django.core.handlers.base import reset_urlconf  # noqa: E402
from django.core.signals import request_finished, request_started  # noqa: E402
from django.db import close_old_connections  # noqa: E402
from granian.utils.proxies import wrap_wsgi_with_proxy_headers  # noqa: E402

from platform_site.serving.application import PooledApplication  # noqa: E402
from platform_site.serving.exchange import StartResponse  # noqa: E402
from platform_site.serving.response_headers import use_quick_headers  # noqa: E402
from platform_site.serving.thread_state import use_plain_settings, use_thread_locals  # noqa: E402
from platform_site.wsgi import application as django_application  # noqa: E402

# Django's handlers are not needed: the connection pool checks the connections, each request sets its URL configuration,
# and the caches have nothing to close.
request_started.disconnect(close_old_connections)
request_finished.disconnect(close_old_connections)
request_finished.disconnect(reset_urlconf)
request_finished.disconnect(close_caches)

use_thread_locals()
use_plain_settings()
use_quick_headers()
application = PooledApplication(django_application)


def _keep_environ(environ: dict[str, Any], start_response: StartResponse | None) -> Iterable[bytes]:
    return []


# REMOTE_ADDR becomes the client's address: rate limits, sessions and logs use it.
_set_forwarded_address = wrap_wsgi_with_proxy_headers(_keep_environ, settings.TRUSTED_PROXIES)

# Models cannot be imported before the application is loaded.
from platform_site.serving import bodies, callers  # noqa: E402


class Policy:
    """Limits and caller of a request; implements receiving.Policy."""

    max_bytes = staticmethod(bodies.max_bytes)
    takes_data = staticmethod(bodies.takes_data)

    def __init__(self) -> None:
        self._callers = callers.Callers()
        self.caller = self._callers.name

    def prepare(self, environ: dict[str, Any]) -> None:
        """Set the client's address if a trusted proxy has forwarded the request."""
        if "HTTP_X_FORWARDED_FOR" in environ:
            _set_forwarded_address(environ, None)

    def find_caller(self, environ: dict[str, Any]) -> str:
        """The name of the caller, from the database."""
        with application.connections:
            return self._callers.find(environ)

    def is_known(self, environ: dict[str, Any]) -> bool:
        """Whether the sender has a valid credential, from the database."""
        with application.connections:
            return self._callers.is_known(environ)


__all__ = ["Policy", "application"]
