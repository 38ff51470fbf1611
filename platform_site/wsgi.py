"""WSGI entry point."""

import os

from django.core.signals import request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, reset_queries
from django.db.backends.signals import connection_created
from django.urls import resolve

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")
application = get_wsgi_application()

from domain.database import time_limit  # noqa: E402  (imports models, which the line above makes ready)

# Django checks connections when a request begins, and again when it ends. Once is enough; twice cost a tenth of a
# keyed read.
request_started.disconnect(close_old_connections)
request_started.disconnect(reset_queries)

# Not in the settings, since migrations must have no time limit.
connection_created.connect(time_limit.limit_connection)

# Django imports the views with the first request, which then takes a second. They are imported here, so that a
# listening process is ready.
resolve("/healthz")
