"""The application as the web server's worker processes load it."""

import signal
from collections.abc import Iterable
from typing import Any

# A worker process is forked from one that handles SIGTERM, and installs a handler of its own only after the application
# is loaded. A SIGTERM in between would be heard by neither, and stopping would wait for the worker until it is killed.
# While it loads it serves nobody, so it may simply end.
signal.signal(signal.SIGTERM, signal.SIG_DFL)

from django.conf import settings  # noqa: E402
from django.core.cache import close_caches  # noqa: E402
from django.core.handlers.base import reset_urlconf  # noqa: E402
from django.core.signals import request_finished  # noqa: E402
from django.db import close_old_connections  # noqa: E402
from granian.utils.proxies import wrap_wsgi_with_proxy_headers  # noqa: E402

from platform_site.serving.turns import StartResponse, TurnApplication  # noqa: E402
from platform_site.wsgi import application as django_application  # noqa: E402

# What Django does at the end of each request, done already: connections are looked at when they are taken back
# (LentConnections), each request names its URL configuration anew, and our caches have nothing to close.
request_finished.disconnect(close_old_connections)
request_finished.disconnect(reset_urlconf)
request_finished.disconnect(close_caches)

application = TurnApplication(django_application)


def _only_told(environ: dict[str, Any], start_response: StartResponse | None) -> Iterable[bytes]:
    return []


# REMOTE_ADDR becomes the caller's: rate limits count by it, and sessions and logs show it.
_forwarded = wrap_wsgi_with_proxy_headers(_only_told, settings.TRUSTED_PROXIES)

# Models: there are none before the application is made.
from platform_site.serving import bodies, callers  # noqa: E402


class Policy:
    """What a request may send, and who sends it."""

    max_bytes = staticmethod(bodies.max_bytes)
    takes_data = staticmethod(bodies.takes_data)

    def __init__(self) -> None:
        self._callers = callers.Callers()
        self.caller_of = self._callers.caller_of

    def prepare(self, environ: dict[str, Any]) -> None:
        """Who it came through is asked only where somebody says that it was forwarded."""
        if "HTTP_X_FORWARDED_FOR" in environ:
            _forwarded(environ, None)

    def identify(self, environ: dict[str, Any]) -> None:
        """Ask the database, with the turn."""
        with application.connections:
            self._callers.identify(environ)

    def is_known(self, environ: dict[str, Any]) -> bool:
        """Ask the database, with the turn."""
        with application.connections:
            return bodies.is_known(environ)


__all__ = ["Policy", "application"]
