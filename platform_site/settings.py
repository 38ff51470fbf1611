"""Django settings.

A value that differs between instances is an environment variable, declared here by the line that reads it: name,
default and meaning for operators. docs/reference/settings.md is generated from these lines.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
from django.core.exceptions import ImproperlyConfigured

from foundation import private_files, spans
from foundation.encryption import key_is_valid
from identity.scopes import ALL_SCOPES, DESCRIPTIONS
from platform_site.appearance import colour_problem, logo_problem
from platform_site.environment import BASE_DIR, POSTGRESQL, SETTINGS, Environment
from platform_site.rest_framework_settings import REST_FRAMEWORK as REST_FRAMEWORK
from platform_site.serving.addresses import start_problem
from webhooks.conf import WebhookSettings

# Lets Django's generic classes (Field, ModelAdmin, QuerySet …) be subscripted at run time, as the type checker wants.
django_stubs_ext.monkeypatch()

# Django imports this module once more after an ImproperlyConfigured.
SETTINGS.clear()
env = Environment()

DEBUG = env.switch("DEBUG", False, "Stack traces in error responses; never in production.")
DEMO = env.switch("DEMO", False, "Demo mode: known logins and secrets; loopback only.")
_data_dir = env.text(
    "DATA_DIR", "./.data", "Directory of the embedded database, keys and generated secrets.", kind="path"
)
DATA_DIR = BASE_DIR / Path(_data_dir).expanduser()
BASE_URL = env.root_url(
    "BASE_URL", "", "Public base URL of the instance, without a trailing slash; empty: that of each request."
)
HOST = env.text("HOST", "127.0.0.1", "Address on which the web server listens.")
PORT = env.number("PORT", 8000, "Port on which the web server listens.")
INSTANCE_NAME = env.text("INSTANCE_NAME", "", "Name of the instance on its pages; empty: Business platform.")
_logo = env.text(
    "INSTANCE_LOGO",
    "",
    "Logo on the sign-in and account pages and in the admin, also the icon of the pages: an SVG, PNG, JPEG or WebP "
    "file of at most 512 KB. Empty: none.",
    kind="path",
)
INSTANCE_COLOUR = env.text(
    "INSTANCE_COLOUR",
    "",
    "Colour of buttons and links, such as `#1b5fc1`; one that is too light to be read stops the start. Empty: blue.",
    kind="colour",
)
INSTANCE_LOGO = str(BASE_DIR / Path(_logo).expanduser()) if _logo else ""
if INSTANCE_LOGO and (_problem := logo_problem(Path(INSTANCE_LOGO))):
    raise ImproperlyConfigured(_problem)
if INSTANCE_COLOUR and (_problem := colour_problem(INSTANCE_COLOUR)):
    raise ImproperlyConfigured(_problem)
_static_dir = env.text("STATIC_DIR", "", "Directory for collected static files; empty: `DATA_DIR/static`.", kind="path")
TENANTS = env.text(
    "TENANTS",
    "",
    "Directory of tenants: `manage.py serve` serves them instead of one instance (`manage.py tenants`). Empty: none.",
    kind="path",
)
TENANT_IDLE_SECONDS = env.number(
    "TENANT_IDLE_SECONDS", 300, "A tenant is stopped when it has had no request for this time; the next one starts it."
)
TENANTS_RUNNING = env.number(
    "TENANTS_RUNNING",
    0,
    "Maximum number of running tenants; the least recently used one is stopped for another. 0: as many as fit into "
    "half of the machine's memory, at most 1.5 GB.",
)
# Read when prometheus_client is first imported. Each process writes its counters to a file named by its id. Each
# machine has a directory, since processes of two machines with a shared DATA_DIR could have the same id.
METRICS_DIR = DATA_DIR / "metrics" / platform.node()
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIR)

_secret_key = env.text(
    "SECRET_KEY",
    "",
    "Secret of at least 32 characters that signs cookies and mailed links, the same on all nodes; empty: "
    "`DATA_DIR/secret_key`, created at the first start.",
)
if _secret_key and len(_secret_key) < 32:
    raise ImproperlyConfigured("SECRET_KEY must be a text of at least 32 characters.")
# Keys that encrypt stored secrets (foundation.encryption).
ENCRYPTION_KEYS = env.texts(
    "ENCRYPTION_KEYS",
    [],
    "Keys that encrypt the secrets in the database, newest first, each 32 bytes in base64url; "
    "empty: `DATA_DIR/encryption_keys`, created at the first start.",
)
if not all(key_is_valid(key) for key in ENCRYPTION_KEYS):
    raise ImproperlyConfigured("ENCRYPTION_KEYS must be keys of 32 bytes in base64url, separated by commas.")

ALLOWED_HOSTS: list[str] = env.texts(
    "ALLOWED_HOSTS", [], "Accepted Host headers; empty: those of BASE_URL and loopback."
) or ["localhost", "127.0.0.1", "[::1]"]
if BASE_URL and (_host := urlsplit(BASE_URL).hostname):
    ALLOWED_HOSTS.append(_host)
TRUSTED_PROXIES = env.proxies(
    "TRUSTED_PROXIES",
    ["127.0.0.1", "::1"],
    "Addresses or networks (CIDR) of proxies whose X-Forwarded-For names the caller.",
)
CSRF_TRUSTED_ORIGINS = [f"{urlsplit(BASE_URL).scheme}://{urlsplit(BASE_URL).netloc}"] if BASE_URL else []

INSTALLED_APPS = [
    "foundation",
    "audit",
    # Before identity, which unregisters the toolkit's admin pages; domain.admin generates these pages.
    "oauth2_provider",
    "identity",
    "domain",
    "domain.entities.custom_entities.apps.CustomEntitiesConfig",
    "scripts",
    "rules",
    "webhooks",
    "jobs",
    "event_sinks",
    "platform_site.apps.PlatformSiteConfig",
    # Before Django's admin, whose templates it overrides; PlatformAdminSite is the site.
    "unfold.apps.BasicAppConfig",
    "platform_site.apps.PlatformAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "rest_framework",
    "django_q",
]

MIDDLEWARE = [
    "platform_site.middleware.PlatformMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "platform_site.security.SecurityHeadersMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "identity.browser_sessions.BrowserSessionMiddleware",
    "identity.languages.CultureMiddleware",
    "django.middleware.common.CommonMiddleware",
    "identity.anonymous_forms.AnonymousFormMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "identity.factors.middleware.SignInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "identity.view_as.ViewAsMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "platform_site.landing.NotAllowedMiddleware",
]

ROOT_URLCONF = "platform_site.urls"
WSGI_APPLICATION = "platform_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "platform_site.branding.brand",
            ],
        },
    },
]

# The admin's look. Ctrl-K searches (platform_site.admin_search).
UNFOLD = {"COLORS": {}, "SHOW_VIEW_ON_SITE": False, "SIDEBAR": {"show_search": True, "command_search": True}}

# So that templates of form widgets are found like all others.
FORM_RENDERER = "foundation.form_renderer.FormRenderer"

# --- mail ---------------------------------------------------------------------------------------------------------

# Password reset is offered only if mail is configured (identity.mailed_links).
if _email_url := env.url(
    "EMAIL_URL", "", "Mail server, for example smtp+tls://user:password@mail.example.com:587; empty: no mail."
):
    globals().update(env.email(_email_url))
EMAIL_TIMEOUT = 10  # a mail server that does not answer must not hold a web process
DEFAULT_FROM_EMAIL = (
    env.text("EMAIL_FROM", "", "Sender of mail; empty: noreply at the host of BASE_URL.")
    or f"noreply@{urlsplit(BASE_URL).hostname or 'localhost'}"
)

# --- databases ----------------------------------------------------------------------------------------------------


def _sqlite(name: str) -> dict[str, Any]:
    return {
        "ENGINE": "foundation.sqlite",
        "NAME": DATA_DIR / name,
        "OPTIONS": {
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
            "PRAGMA cache_size=-16384; PRAGMA mmap_size=268435456; PRAGMA temp_store=MEMORY;",
        },
    }


_database_url = env.text("DATABASE_URL", "", "Main database; empty means SQLite in DATA_DIR.", kind="url")
DATABASES: dict[str, dict[str, Any]] = {
    "default": env.database(_database_url) if _database_url else _sqlite("platform.sqlite3"),
}
DATABASES["default"]["CONN_MAX_AGE"] = None
_is_postgresql = DATABASES["default"]["ENGINE"] == POSTGRESQL
if _is_postgresql:
    # A server whose machine is lost closes no connection: without limits a request would wait for minutes. Parameters
    # of libpq, in seconds and milliseconds; those in the URL win. Keepalives apply while a connection waits for a
    # response, the user timeout while it sends.
    DATABASES["default"]["OPTIONS"] = {
        "connect_timeout": 5,
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        **DATABASES["default"].get("OPTIONS", {}),
    }
#: Aliases of DATABASES.
DATABASE_REPLICAS: list[str] = []
for _number, _replica in enumerate(
    env.replicas(
        "DATABASE_REPLICA_URLS",
        "Streaming replicas of DATABASE_URL, one server each, the same on all nodes: reads go to those that have what "
        "their session has written and seen.",
    ),
    1,
):
    DATABASE_REPLICAS.append(f"replica{_number}")
    DATABASES[DATABASE_REPLICAS[-1]] = {
        **_replica,
        "CONN_MAX_AGE": None,
        # Do not wait for an unavailable server.
        "OPTIONS": {"connect_timeout": 2, "tcp_user_timeout": 2000, **_replica.get("OPTIONS", {})},
        "TEST": {"MIRROR": "default"},
    }
if DATABASE_REPLICAS and not _is_postgresql:
    raise ImproperlyConfigured("DATABASE_REPLICA_URLS needs a DATABASE_URL of PostgreSQL.")
DATABASE_REPLICA_LAG_SECONDS = env.decimal(
    "DATABASE_REPLICA_LAG_SECONDS", 1.0, "A replica with a greater lag is not used until it has caught up."
)
DATABASE_TRANSACTION_POOLER = env.switch(
    "DATABASE_TRANSACTION_POOLER",
    False,
    "DATABASE_URL is that of PgBouncer or another pooler in transaction mode: PostgreSQL sessions have no state.",
)
REDIS_URL = env.url(
    "REDIS_URL",
    "",
    "Redis or Valkey for cache, limits, change signals and the task broker; empty: files in DATA_DIR.",
    schemes=("redis", "rediss", "unix"),
)
# The task broker has its own file, so that its polling and business transactions do not wait for each other.
if not REDIS_URL:
    DATABASES["broker"] = _sqlite("broker.sqlite3")
    DATABASES["broker"]["CONN_MAX_AGE"] = None
DATABASE_ROUTERS = ["platform_site.routers.DatabaseRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- cache --------------------------------------------------------------------------------------------------------

CACHES: dict[str, dict[str, Any]] = {
    "default": (
        {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
        if REDIS_URL
        else {
            "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
            "LOCATION": DATA_DIR / "cache",
        }
    ),
}

# --- processes and tasks ------------------------------------------------------------------------------------------

WEB_PROCESSES = env.number("WEB_PROCESSES", 2, "Web server processes.", least=1)
DATABASE_CONNECTIONS = env.number(
    "DATABASE_CONNECTIONS",
    0,
    "Maximum connections of all web processes of this node to PostgreSQL, at least two for each; 0: no limit.",
)
if 0 < DATABASE_CONNECTIONS < 2 * WEB_PROCESSES:
    raise ImproperlyConfigured(
        f"DATABASE_CONNECTIONS must be at least {2 * WEB_PROCESSES}, two for each of the {WEB_PROCESSES} web processes."
    )
Q_CLUSTER: dict[str, Any] = {
    "name": "platform",
    "broker_class": "foundation.cluster.ClusterBroker",
    "workers": env.number("WORKER_PROCESSES", 2, "django-q2 worker processes."),
    "recycle": 5000,
    "timeout": 120,
    "retry": 180,
    "max_attempts": 3,
    "poll": 0.2,
    "save_limit": 1000,
    "catch_up": False,
    "scheduler": True,
    "log_level": "WARNING",
    **({"redis": REDIS_URL} if REDIS_URL else {"orm": "broker"}),
}

# --- identity -----------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "identity.User"
PASSWORD_HASHERS = ["identity.password_hashing.PasswordHasher"]
_VALIDATION = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS: list[dict[str, Any]] = [
    {
        "NAME": "identity.password_rules.NotOfTheUserValidator",
        "OPTIONS": {"user_attributes": ("login", "email", "person_name")},
    },
    {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
    {"NAME": f"{_VALIDATION}.NumericPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["identity.backends.RoleBackend"]
LOGIN_URL = "/id/account/login"
# A login is unique without regard to case: by an index on LOWER(login), which Django's check does not detect.
SILENCED_SYSTEM_CHECKS = ["auth.W004"]
OAUTH2_PROVIDER_APPLICATION_MODEL = "identity.TrustedApplication"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "identity.AccessToken"
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "identity.RefreshToken"
OAUTH2_PROVIDER_GRANT_MODEL = "identity.Grant"
OAUTH2_PROVIDER_DEVICE_GRANT_MODEL = "identity.DeviceGrant"
OAUTH2_PROVIDER_ID_TOKEN_MODEL = "identity.IDToken"
_CLIENT_AUTHENTICATION = ["client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt"]
OAUTH2_PROVIDER: dict[str, Any] = {
    "OIDC_ENABLED": True,
    "OIDC_ISS_ENDPOINT": f"{BASE_URL}/id" if BASE_URL else "",
    "OAUTH2_SERVER_CLASS": "identity.oauth.server.Server",
    "OAUTH2_BACKEND_CLASS": "identity.oauth.server.Core",
    "OAUTH2_VALIDATOR_CLASS": "identity.oauth.validator.Validator",
    "ACCESS_TOKEN_GENERATOR": "identity.oauth.issue.access_token_create",
    "REFRESH_TOKEN_GENERATOR": "oauthlib.oauth2.rfc6749.tokens.random_token_generator",
    "SCOPES": {scope: DESCRIPTIONS.get(scope, "") for scope in ALL_SCOPES},
    "OAUTH2_GRANT_TYPES_SUPPORTED": [
        "authorization_code",
        "client_credentials",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:token-exchange",
    ],
    "OIDC_RESPONSE_TYPES_SUPPORTED": ["code", "code id_token"],
    "OAUTH2_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": [*_CLIENT_AUTHENTICATION, "none"],
    "OIDC_TOKEN_ENDPOINT_AUTH_METHODS_SUPPORTED": [*_CLIENT_AUTHENTICATION, "none"],
    # A new key signs once no cache can lack it any more (identity.oauth.keys).
    "OIDC_JWKS_MAX_AGE_SECONDS": 300,
    "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    # The public halves of retired keys are kept for longer than a day (identity.oauth.keys).
    "ACCESS_TOKEN_EXPIRE_SECONDS": env.number(
        "ACCESS_TOKEN_SECONDS", 3600, "Lifetime of an access token, at most a day.", least=1, most=86_400
    ),
    "ID_TOKEN_EXPIRE_SECONDS": env.number(
        "ID_TOKEN_SECONDS", 3600, "Lifetime of an id token, at most a day.", least=1, most=86_400
    ),
    "REFRESH_TOKEN_EXPIRE_SECONDS": env.number(
        "REFRESH_TOKEN_SECONDS", 2_592_000, "Lifetime of a refresh token; each use gives a new one.", least=1
    ),
    "ROTATE_REFRESH_TOKEN": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    # Maximum concurrent requests for client ID metadata documents per process; unknown callers can cause them.
    "CIMD_MAX_CONCURRENT_FETCHES": 4,
    # Each application has its exact redirect URIs (identity.applications), loopback http included.
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
    "ALLOW_URI_WILDCARDS": False,
    "PKCE_REQUIRED": True,
    # Every recommendation of RFC 9700 that the toolkit has a setting for.
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_SCHEME": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
}

# --- language and time --------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("bg", "Български"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.time_zone(
    "TIME_ZONE", "UTC", "Time zone of the instance, for schedules of jobs and times in the admin, such as Europe/Sofia."
)
USE_TZ = True
USE_I18N = True
FORMAT_MODULE_PATH = ["platform_site.formats"]

# --- files --------------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / Path(_static_dir).expanduser() if _static_dir else DATA_DIR / "static"
STATICFILES_DIRS: list[Path] = []
# Only this user can read DATA_DIR, static files included: the web server serves them.
FILE_UPLOAD_PERMISSIONS = 0o600
# File names contain a digest of the content, so that browsers may cache them forever; `manage.py serve` collects them.
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": DATA_DIR / "files"}},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- security -----------------------------------------------------------------------------------------------------

SECURE = env.switch(
    "SECURE",
    BASE_URL.startswith("https://"),
    "HTTPS cookies, HSTS and redirects; unset: on when BASE_URL is https.",
    default_text="unset",
)
SESSION_ENGINE = "identity.browser_sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
# Browsers accept a cookie with this prefix only from this host over TLS, so that no sibling host can set one.
COOKIE_PREFIX = "__Host-" if SECURE else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}sessionid", f"{COOKIE_PREFIX}csrftoken"
SECURE_SSL_REDIRECT = SECURE
# Load balancers, container engines and Prometheus send requests to a node directly, without TLS.
SECURE_REDIRECT_EXEMPT = ["^(healthz|readyz|metrics)$"]
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- the platform -------------------------------------------------------------------------------------------------

EGRESS_ALLOW: list[str] = env.destinations(
    "EGRESS_ALLOW",
    [],
    "Hosts (`erp.local`, `*.erp.local`) or networks (CIDR) that webhooks and scripts may reach although they are "
    "private. A placeholder in the host of a webhook's URL may only become one of these hosts.",
) + (["127.0.0.0/8", "::1/128"] if DEMO else [])
SANDBOX_WORKERS = env.number("SANDBOX_WORKERS", 2, "Warm script workers of each web or worker process.", least=1)
QUERY_SECONDS = env.decimal("QUERY_SECONDS", 30.0, "Time limit of the database for one query of a caller.")
SCRIPTS_PER_CALLER = env.number(
    "SCRIPTS_PER_CALLER",
    32,
    "Running and waiting scripts of one user in each process, including those of rules; the next one gets 429.",
)
SCRIPTS_WAITING = env.number(
    "SCRIPTS_WAITING", 64, "Scripts that may wait for a worker in each process; each holds one of its 128 threads."
)
SCRIPT_WALL_SECONDS = env.decimal("SCRIPT_WALL_SECONDS", 5.0, "Time limit of a script, including the database's time.")
SCRIPT_MEMORY_BYTES = env.number("SCRIPT_MEMORY_BYTES", 200_000_000, "Memory of a script.")
SCRIPT_HOST_CALLS = env.number("SCRIPT_HOST_CALLS", 100_000, "Calls that a script may make to the platform.")
SCRIPT_SOURCE_BYTES = env.number("SCRIPT_SOURCE_BYTES", 1_000_000, "Size of a script's source, in UTF-8.")
SCRIPT_CONSOLE_BYTES = env.number(
    "SCRIPT_CONSOLE_BYTES", 1_000_000, "Size of a script's console; longer output is truncated."
)
SCRIPT_HISTORY_DAYS = env.number(
    "SCRIPT_HISTORY_DAYS", 30, "Retention of script runs in days; a daily task deletes older ones."
)
HISTORY_DAYS = env.number(
    "HISTORY_DAYS", 730, "Retention of the change history in days, unless a repository has its own; 0: forever."
)
MESSAGE_HISTORY_DAYS = env.number(
    "MESSAGE_HISTORY_DAYS", 90, "Retention of information messages in days; a task deletes older ones."
)
JOBS_TICK_SECONDS = env.number("JOBS_TICK_SECONDS", 10, "Interval in seconds at which the worker checks for due jobs.")
JOB_HISTORY_DAYS = env.number(
    "JOB_HISTORY_DAYS", 90, "Retention of runs of jobs in days; a daily task deletes older ones."
)
REQUEST_HISTORY_DAYS = env.number(
    "REQUEST_HISTORY_DAYS", 14, "Retention of failed and slow requests in days; 0: none are recorded."
)
AUDIT_RETENTION_DAYS = env.number(
    "AUDIT_RETENTION_DAYS",
    0,
    "Retention of audit entries in days; a daily task deletes older ones and keeps a signed stub. 0: all are kept.",
)
METRICS_TOKEN = env.text(
    "METRICS_TOKEN", "", "Bearer token that /metrics requires; empty: only callers on this machine are allowed."
)
OTEL_EXPORTER_OTLP_ENDPOINT = env.url(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "",
    "OpenTelemetry collector for spans, by OTLP over HTTP; requires its Python packages. Empty: none.",
)
if OTEL_EXPORTER_OTLP_ENDPOINT and not spans.packages_are_installed():
    raise ImproperlyConfigured(
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, but the exporter of spans is not installed: "
        "pip install opentelemetry-exporter-otlp-proto-http, or unset it."
    )
#: Declared by webhooks.conf.
WEBHOOKS: dict[str, Any] = {
    declared.name: env.declare(f"WEBHOOK_{declared.name.upper()}", declared.default, declared.metadata["meaning"])
    for declared in fields(WebhookSettings)
}
LICENSE_SESSIONS = env.number(
    "LICENSE_SESSIONS", 25, "Concurrent sessions until the page Licence is saved; demo data saves it on the first run."
)
EXPORT_ROWS = env.number(
    "EXPORT_ROWS",
    100_000,
    "Rows that one export of a list may have, and all exports of one user in a minute.",
)
#: Of bodies that are read as a whole, and of those of Import, which are read object by object from a file.
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_IMPORT_BYTES = 256 * 1024 * 1024
PAGE_SIZE_MAX = 1000
TOP_PAGING = env.switch(
    "TOP_PAGING",
    False,
    "Next links for $top=n while more rows remain, for trusted applications whose TopPaging is empty.",
)
REFUSE_RENAMED_SETS = env.switch(
    "REFUSE_RENAMED_SETS", False, "Respond to former names of entity sets with 400 instead of a warning."
)
TABLE_API_PASSWORD_APPLICATION = env.text(
    "TABLE_API_PASSWORD_APPLICATION",
    "",
    "ApplicationUri of the trusted application as which users may call the Table API with their password, by HTTP "
    "Basic; empty: only with a personal token.",
)
TABLE_STREAMS = env.number(
    "TABLE_STREAMS",
    2,
    "Concurrent responses of the Table API of more than 1 MB in a web process; the next one waits 2 seconds, then gets "
    "503. The last one is reserved for callers without one.",
)
# Lifetime of a delta link; the change feed is kept at least as long.
DELTA_RETENTION_DAYS = 30
# For all bodies except the Domain API's. A form of the admin site encodes a script in up to three times its bytes.
DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * SCRIPT_SOURCE_BYTES + 1024 * 1024

# --- log ----------------------------------------------------------------------------------------------------------

LOG_FORMAT = env.text("LOG_FORMAT", "text", "text or json.")
if LOG_FORMAT not in {"text", "json"}:
    raise ImproperlyConfigured(f"LOG_FORMAT must be text or json, not {LOG_FORMAT!r}.")
LOG_LEVEL: str = env.text("LOG_LEVEL", "INFO", "Lowest logged level.").upper()
if LOG_LEVEL not in {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}:
    raise ImproperlyConfigured(f"LOG_LEVEL must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {LOG_LEVEL!r}.")
# SLOW_RULE_SECONDS: a slower rule is logged as a warning, too. It is less, since a commit may fire dozens of rules.
SLOW_REQUEST_SECONDS = env.decimal(
    "SLOW_REQUEST_SECONDS", 1.0, "Requests that take longer are logged as warnings and recorded."
)
SLOW_RULE_SECONDS = 0.25

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request_id": {"()": "platform_site.logging.RequestIdFilter"},
        "no_traceback": {"()": "platform_site.logging.NoTracebackFilter"},
    },
    "formatters": {
        "text": {"()": "platform_site.logging.TextFormatter"},
        "json": {"()": "platform_site.logging.JsonFormatter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["request_id", "no_traceback"],
        },
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Django's own handlers would log everything twice, and send mail to unset addresses.
        "django": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        # Its INFO level logs each step of each process.
        "django-q": {"handlers": [], "level": "WARNING", "propagate": True},
        # Below INFO these loggers write tokens and codes.
        "oauthlib": {"level": "INFO"},
        "oauth2_provider": {"level": "INFO"},
        # At DEBUG and WARNING it logs URLs with their query strings.
        "urllib3": {"level": "ERROR"},
        # The request log has every 4xx and 5xx response; only unexpected failures are logged here.
        "django.request": {"handlers": [], "level": "ERROR", "propagate": True},
    },
}

# --- files --------------------------------------------------------------------------------------------------------

# Last, so that a refused configuration leaves no files.
if sys.argv[1:2] == ["serve"] and not (TENANTS or {"--keys-only", "--only=worker", "worker"} & set(sys.argv[2:])):
    _accepts_risk = "--i-know" in sys.argv[2:]
    if _problem := start_problem(HOST, PORT, BASE_URL, debug=DEBUG, demo=DEMO, accepts_risk=_accepts_risk):
        raise ImproperlyConfigured(_problem)
for _directory in (DATA_DIR, METRICS_DIR):
    _directory.mkdir(mode=0o700, parents=True, exist_ok=True)
for _database in DATABASES.values():
    if isinstance(_database["NAME"], Path):
        # SQLite would create the file readable for all users; the WAL gets the mode of the database.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(_database["NAME"], os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _generated_secret(name: str) -> str:
    """A secret of this instance, generated on first use and kept in DATA_DIR with mode 0600 (spec 09, 9.1)."""
    path = DATA_DIR / name
    # Another process may have written it first.
    with contextlib.suppress(FileExistsError):
        if not path.exists():
            private_files.write(path, secrets.token_urlsafe(48).encode(), is_new=True)
    return path.read_text()


SECRET_KEY = _secret_key or _generated_secret("secret_key")
