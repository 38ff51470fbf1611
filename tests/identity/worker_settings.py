"""Settings of processes that share the database of the test that started them."""

from __future__ import annotations

import os

from platform_site.settings import *  # noqa: F403
from platform_site.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["TEST_DATABASE_NAME"]
ROOT_URLCONF = "tests.identity.api"
ALLOWED_HOSTS = ["testserver", "localhost"]
