"""The product's settings for a test process: a data directory of its own, found by nobody else, gone afterwards.

Every pytest-xdist worker is a process and so has its own. DATABASE_URL and REDIS_URL come through from the environment:
pytest-django gives each worker a database of its own, and the cache gets a prefix of its own below.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")

_directory = tempfile.mkdtemp(prefix=f"platform-test-{WORKER}-")
atexit.register(shutil.rmtree, _directory, ignore_errors=True)
# The settings read the environment when imported, so it is set before. What a developer has set for `make run` (a port,
# a base address, demo mode) must not change what tests see.
os.environ["DATA_DIR"] = _directory
for _name in ("BASE_URL", "DEMO", "DEBUG", "SECURE", "ALLOWED_HOSTS", "EGRESS_ALLOW", "LICENSE_SESSIONS", "LOG_FORMAT"):
    os.environ.pop(_name, None)
os.environ.setdefault("LOG_LEVEL", "WARNING")

from platform_site.settings import *  # noqa: E402, F403
from platform_site.settings import (  # noqa: E402
    CACHES,
    DATA_DIR,
    DATABASES,
    INSTALLED_APPS,
    Q_CLUSTER,
    STATIC_ROOT,
    STORAGES,
)

INSTALLED_APPS = [*INSTALLED_APPS, "tests.sample_library", "tests.sample_app"]

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]

for _alias, _database in DATABASES.items():
    if _database["ENGINE"] == "foundation.sqlite":
        # A file, not memory: WAL, locks and BEGIN IMMEDIATE then behave as they do in production.
        _database["TEST"] = {"NAME": str(DATA_DIR / f"test-{_alias}.sqlite3")}

# Redis, where there is one, is shared too: each process has a queue of its own.
Q_CLUSTER["name"] = f"test-{WORKER}-{os.getpid()}"
if "broker" in DATABASES:
    # Its few tables are made from the models: django-q2's migrations would bring those of all apps along.
    DATABASES["broker"]["TEST"]["MIGRATE"] = False

CACHES["default"]["KEY_PREFIX"] = f"test-{WORKER}-{os.getpid()}"

# Argon2id with real parameters costs some 50 ms and 100 MB a hash; tests hash many passwords and guard none.
PASSWORD_HASHERS = ["tests.support.hashers.QuickArgon2PasswordHasher"]

# No collectstatic in tests: names stay as they are.
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
Path(STATIC_ROOT).mkdir(parents=True, exist_ok=True)  # whitenoise warns about a missing one

# Many tests have no database, and others count queries: tests of recorded requests set a retention.
REQUEST_HISTORY_DAYS = 0
