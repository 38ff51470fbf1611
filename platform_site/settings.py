"""Django settings; every value that differs between instances comes through platform_site.environment."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
from django.core.exceptions import ImproperlyConfigured

from foundation import private_files, spans
from foundation.vault import key_is_valid
from platform_site.environment import BASE_DIR, SETTINGS, Environment

# Lets Django's generic classes (Field, ModelAdmin, QuerySet …) be subscripted at run time, as the type checker wants.
django_stubs_ext.monkeypatch()

env = Environment()

DEBUG: bool = env("DEBUG")
DEMO: bool = env("DEMO")
DATA_DIR = Path(env("DATA_DIR")).expanduser()
if not DATA_DIR.is_absolute():
    DATA_DIR = BASE_DIR / DATA_DIR
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
BASE_URL: str = env("BASE_URL")
PORT: int = env("PORT")
# Read when prometheus_client is first imported, by whichever app that is: processes of a node count into files there.
# Each machine has a directory: on a DATA_DIR that machines share, processes of two would have the same id, and file.
METRICS_DIR = DATA_DIR / "metrics" / platform.node()
METRICS_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIR)


def _generated_secret(name: str) -> str:
    """A secret of this instance, made on first use and kept in DATA_DIR with tight permissions (spec 09, 9.1)."""
    path = DATA_DIR / name
    # Another process may be faster.
    with contextlib.suppress(FileExistsError):
        if not path.exists():
            private_files.write(path, secrets.token_urlsafe(48).encode(), is_new=True)
    return path.read_text()


SECRET_KEY = os.environ.get("SECRET_KEY") or _generated_secret("secret_key")

# Secrets that must be read again are encrypted with these (foundation.vault).
ENCRYPTION_KEYS: list[str] = env("ENCRYPTION_KEYS")
if not all(key_is_valid(key) for key in ENCRYPTION_KEYS):
    raise ImproperlyConfigured("ENCRYPTION_KEYS must be keys of 32 bytes in base64url, separated by commas.")

ALLOWED_HOSTS: list[str] = env("ALLOWED_HOSTS") or ["localhost", "127.0.0.1", "[::1]"]
if BASE_URL and (_host := urlsplit(BASE_URL).hostname):
    ALLOWED_HOSTS.append(_host)
TRUSTED_PROXIES: list[str] = env("TRUSTED_PROXIES")
CSRF_TRUSTED_ORIGINS = [f"{urlsplit(BASE_URL).scheme}://{urlsplit(BASE_URL).netloc}"] if BASE_URL else []

INSTALLED_APPS = [
    "foundation",
    # Before identity, whose admin takes the toolkit's registrations back: the domain generates those pages.
    "oauth2_provider",
    "identity",
    "domain",
    "scripts",
    "rules",
    "webhooks",
    "platform_site.apps.PlatformSiteConfig",
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
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
            ],
        },
    },
]

# Form widgets of ours have their templates beside all others.
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

# --- mail ---------------------------------------------------------------------------------------------------------

# Password reset is offered where mail can leave (identity.mailed_links).
if _email_url := env("EMAIL_URL"):
    globals().update(env.email(_email_url))
EMAIL_TIMEOUT = 10  # a mail server that does not answer must not hold a web process
DEFAULT_FROM_EMAIL = env("EMAIL_FROM") or f"noreply@{urlsplit(BASE_URL).hostname or 'localhost'}"

# --- databases ----------------------------------------------------------------------------------------------------


def _sqlite(name: str) -> dict[str, Any]:
    path = DATA_DIR / name
    # SQLite would make the file readable by everybody, and gives its WAL the mode of the database.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
            "PRAGMA cache_size=-16384; PRAGMA mmap_size=268435456; PRAGMA temp_store=MEMORY;",
        },
    }


DATABASES: dict[str, dict[str, Any]] = {
    "default": env.database(env("DATABASE_URL")) if env("DATABASE_URL") else _sqlite("platform.sqlite3"),
}
DATABASES["default"]["CONN_MAX_AGE"] = None
REDIS_URL: str = env("REDIS_URL")
# The task broker has a file of its own, so that its polling never waits for, or holds up, a business transaction.
if not REDIS_URL:
    DATABASES["broker"] = _sqlite("broker.sqlite3")
    DATABASES["broker"]["CONN_MAX_AGE"] = None
DATABASE_ROUTERS = ["platform_site.routers.BrokerRouter"]
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

# --- tasks --------------------------------------------------------------------------------------------------------

Q_CLUSTER: dict[str, Any] = {
    "name": "platform",
    "workers": env("WORKER_PROCESSES"),
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
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
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
# A login is unique in any case: an index on LOWER(login), which the check of unique fields cannot see.
SILENCED_SYSTEM_CHECKS = ["auth.W004"]
OAUTH2_PROVIDER_APPLICATION_MODEL = "identity.TrustedApplication"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "identity.AccessToken"
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "identity.RefreshToken"
OAUTH2_PROVIDER_GRANT_MODEL = "identity.Grant"
OAUTH2_PROVIDER_ID_TOKEN_MODEL = "identity.IDToken"
OAUTH2_PROVIDER: dict[str, Any] = {
    "OIDC_ENABLED": True,
    "OAUTH2_VALIDATOR_CLASS": "identity.oauth.validator.Validator",
    "OIDC_SERVER_CLASS": "identity.oauth.server.Server",
    "AUTHORIZATION_CODE_EXPIRE_SECONDS": 60,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 3600,
    "ID_TOKEN_EXPIRE_SECONDS": 3600,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 3600,
    "ROTATE_REFRESH_TOKEN": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    # What may be redirected to is decided per application, exactly (identity.applications); loopback http included.
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
    "ALLOW_URI_WILDCARDS": False,
    "PKCE_REQUIRED": True,
    # Every recommendation of RFC 9700 that the toolkit knows.
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
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
FORMAT_MODULE_PATH = ["platform_site.formats"]

# --- files --------------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS: list[Path] = []
# DATA_DIR is this user's alone, static files included: the web server itself serves them.
FILE_UPLOAD_PERMISSIONS = 0o600
# Names carry a digest of the content, so that browsers may keep a file for ever; `manage.py serve` collects them.
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": DATA_DIR / "files"}},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- security -----------------------------------------------------------------------------------------------------

SECURE: bool = env("SECURE") if env("SECURE") is not None else BASE_URL.startswith("https://")
SESSION_ENGINE = "identity.browser_sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
SECURE_SSL_REDIRECT = SECURE
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- the platform -------------------------------------------------------------------------------------------------

EGRESS_ALLOW: list[str] = env("EGRESS_ALLOW") + (["127.0.0.0/8", "::1/128"] if DEMO else [])
SANDBOX_WORKERS: int = env("SANDBOX_WORKERS")
QUERY_SECONDS: float = env("QUERY_SECONDS")
SCRIPTS_PER_CALLER: int = env("SCRIPTS_PER_CALLER")
SCRIPTS_WAITING: int = env("SCRIPTS_WAITING")
SCRIPT_WALL_SECONDS: float = env("SCRIPT_WALL_SECONDS")
SCRIPT_MEMORY_BYTES: int = env("SCRIPT_MEMORY_BYTES")
SCRIPT_HOST_CALLS: int = env("SCRIPT_HOST_CALLS")
SCRIPT_SOURCE_BYTES: int = env("SCRIPT_SOURCE_BYTES")
SCRIPT_CONSOLE_BYTES: int = env("SCRIPT_CONSOLE_BYTES")
SCRIPT_HISTORY_DAYS: int = env("SCRIPT_HISTORY_DAYS")
METRICS_TOKEN: str = env("METRICS_TOKEN")
OTEL_EXPORTER_OTLP_ENDPOINT: str = env("OTEL_EXPORTER_OTLP_ENDPOINT")
if OTEL_EXPORTER_OTLP_ENDPOINT and not spans.packages_are_installed():
    raise ImproperlyConfigured(
        "OTEL_EXPORTER_OTLP_ENDPOINT is set, and what sends spans is not installed: "
        "pip install opentelemetry-exporter-otlp-proto-http, or unset it."
    )
WEBHOOKS: dict[str, Any] = {
    setting.name.removeprefix("WEBHOOK_").lower(): env(setting.name)
    for setting in SETTINGS
    if setting.name.startswith("WEBHOOK_")
}
LICENSE_SESSIONS: int = env("LICENSE_SESSIONS")
MAX_BODY_BYTES = 256 * 1024 * 1024
PAGE_SIZE_MAX = 1000
REFUSE_RENAMED_SETS: bool = env("REFUSE_RENAMED_SETS")
# How long a delta link stays good; the change feed is kept at least as long.
DELTA_RETENTION_DAYS = 30
# Of every body but the Domain API's. A script of SCRIPT_SOURCE_BYTES in a form of the admin site has up to thrice that.
DATA_UPLOAD_MAX_MEMORY_SIZE = 3 * SCRIPT_SOURCE_BYTES + 1024 * 1024

# --- log ----------------------------------------------------------------------------------------------------------

LOG_FORMAT: str = env("LOG_FORMAT")
if LOG_FORMAT not in {"text", "json"}:
    raise ImproperlyConfigured(f"LOG_FORMAT must be text or json, not {LOG_FORMAT!r}.")
LOG_LEVEL: str = env("LOG_LEVEL").upper()
if LOG_LEVEL not in {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}:
    raise ImproperlyConfigured(f"LOG_LEVEL must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {LOG_LEVEL!r}.")
# A request or a rule that takes longer is logged as a warning. A commit may fire dozens of rules.
SLOW_REQUEST_SECONDS = 1.0
SLOW_RULE_SECONDS = 0.25

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "platform_site.logging.RequestIdFilter"}},
    "formatters": {
        "text": {"()": "platform_site.logging.TextFormatter"},
        "json": {"()": "platform_site.logging.JsonFormatter"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["request_id"]},
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        # Django's own handlers would say everything twice, and mail to addresses that nobody set.
        "django": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        # Each of its processes announces each of its steps.
        "django-q": {"handlers": [], "level": "WARNING", "propagate": True},
        # Below INFO they write down tokens and codes.
        "oauthlib": {"level": "INFO"},
        "oauth2_provider": {"level": "INFO"},
        # Every 4xx and 5xx answer is in the request log already; here only what was not expected.
        "django.request": {"handlers": [], "level": "ERROR", "propagate": True},
    },
}
