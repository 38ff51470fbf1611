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

from platform_site.serving.stopping import on_stop  # noqa: E402
from platform_site.serving.turns import BufferedApplication, StartResponse  # noqa: E402
from platform_site.wsgi import application as django_application  # noqa: E402

# What Django does at the end of each request, done already: connections are looked at when they are taken back
# (LentConnections), each request names its URL configuration anew, and our caches have nothing to close.
request_finished.disconnect(close_old_connections)
request_finished.disconnect(reset_urlconf)
request_finished.disconnect(close_caches)

_direct = BufferedApplication(django_application, max_body_bytes=settings.MAX_BODY_BYTES)
# REMOTE_ADDR becomes the caller's: rate limits count by it, and sessions and logs show it.
_forwarded = wrap_wsgi_with_proxy_headers(_direct, settings.TRUSTED_PROXIES)


def application(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    """Every request. Who it came through is asked only where somebody says that it was forwarded."""
    answer = _forwarded if "HTTP_X_FORWARDED_FOR" in environ else _direct
    return answer(environ, start_response)


# Models: there are none before the application is made.
from domain.dataset.change_waits import watch  # noqa: E402

# The server waits for answers that are under way before it ends; nobody should wait for those that wait themselves.
on_stop(watch.stop)

__all__ = ["application"]
