"""The process environment, read once and checked: a wrong value stops the start with a sentence (spec 09, 9.2)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: its type, default and meaning. The docs table is generated from these."""

    name: str
    type: str
    default: Any
    meaning: str


SETTINGS: tuple[Setting, ...] = (
    Setting("DATA_DIR", "path", "./.data", "Where the embedded database, keys and generated secrets live."),
    Setting("DATABASE_URL", "url", "", "Main database; empty means SQLite in DATA_DIR."),
    Setting(
        "REDIS_URL",
        "url",
        "",
        "Redis or Valkey for cache, limits, change signals and the task broker; empty: files in DATA_DIR.",
    ),
    Setting(
        "ENCRYPTION_KEYS",
        "list",
        [],
        "Keys that encrypt the secrets in the database, newest first, each 32 bytes in base64url; "
        "empty: `DATA_DIR/encryption_keys`, made on first start.",
    ),
    Setting(
        "BASE_URL", "url", "", "Public root of the instance, without a trailing slash; empty: taken from each request."
    ),
    Setting("HOST", "text", "127.0.0.1", "Address that the web server listens on."),
    Setting("PORT", "number", 8000, "Port that the web server listens on."),
    Setting("ALLOWED_HOSTS", "list", [], "Host names that requests may carry; empty: those of BASE_URL and loopback."),
    Setting(
        "TRUSTED_PROXIES",
        "list",
        ["127.0.0.1", "::1"],
        "Addresses or networks (CIDR) of proxies whose X-Forwarded-For names the caller.",
    ),
    Setting("DEBUG", "switch", False, "Stack traces in error answers; never in production."),
    Setting("DEMO", "switch", False, "Demo mode: known logins and secrets; loopback only."),
    Setting("LICENSE_SESSIONS", "number", 25, "Concurrent sessions of the licence created on first run."),
    Setting("WEB_PROCESSES", "number", 2, "Web server processes."),
    Setting("WORKER_PROCESSES", "number", 2, "django-q2 worker processes."),
    Setting("SANDBOX_WORKERS", "number", 2, "Warm script workers of each web or worker process."),
    Setting(
        "EGRESS_ALLOW",
        "list",
        [],
        "Hosts (`erp.local`, `*.erp.local`) or networks (CIDR) that webhooks and scripts may reach although private. "
        "Of its hosts, a placeholder in a webhook's URL may choose one.",
    ),
    Setting("REFUSE_RENAMED_SETS", "switch", False, "Answer 400 to former names of entity sets, instead of a warning."),
    Setting(
        "METRICS_TOKEN",
        "text",
        "",
        "Bearer token that /metrics asks for; empty: only callers on this machine are answered.",
    ),
    Setting(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "url",
        "",
        "OpenTelemetry collector that spans are sent to, by OTLP over HTTP; needs its Python packages. Empty: none.",
    ),
    Setting("QUERY_SECONDS", "decimal", 30.0, "Time that the database may take for one query of a caller."),
    Setting(
        "SCRIPTS_PER_CALLER",
        "number",
        32,
        "Scripts of one user that may run or wait in each process, those of rules included; the next one gets 429.",
    ),
    Setting(
        "SCRIPTS_WAITING",
        "number",
        64,
        "Scripts that may wait for a worker in each process; each holds one of its 128 threads.",
    ),
    Setting("SCRIPT_WALL_SECONDS", "decimal", 5.0, "Time that a script may take, the database's included."),
    Setting("SCRIPT_MEMORY_BYTES", "number", 200_000_000, "Memory of a script."),
    Setting("SCRIPT_HOST_CALLS", "number", 100_000, "Calls that a script may make to the platform."),
    Setting("SCRIPT_SOURCE_BYTES", "number", 1_000_000, "Size of a script's source, in UTF-8."),
    Setting("SCRIPT_CONSOLE_BYTES", "number", 1_000_000, "Size of a script's console, which is cut beyond."),
    Setting(
        "SCRIPT_HISTORY_DAYS", "number", 30, "Days that runs of scripts are kept; a daily task deletes older ones."
    ),
    # The webhooks' own (webhooks.conf says more of each); WEBHOOK_X becomes settings.WEBHOOKS["x"].
    Setting(
        "WEBHOOK_RETRY_SECONDS",
        "numbers",
        [5, 30, 120, 600, 1800, 3600, 7200, 14400, 28800, 43200],
        "Wait before the first, second ... retry of a webhook; the last repeats.",
    ),
    Setting("WEBHOOK_RETRY_JITTER", "decimal", 0.2, "Share by which each wait is stretched or shrunk."),
    Setting("WEBHOOK_RETRY_AFTER_MAX_SECONDS", "number", 86_400, "Longest Retry-After of a receiver that is honoured."),
    Setting("WEBHOOK_DEFAULT_RETRIES", "number", 3, "Retries of a template with RetryLogic Retry."),
    Setting(
        "WEBHOOK_CONNECT_TIMEOUT_SECONDS",
        "decimal",
        5.0,
        "Time to connect; the template's TimeoutSeconds bounds the whole attempt.",
    ),
    Setting(
        "WEBHOOK_SWEEP_SECONDS", "decimal", 2.0, "How often each worker looks for deliveries that nobody announced."
    ),
    Setting(
        "WEBHOOK_LEASE_MARGIN_SECONDS",
        "decimal",
        20.0,
        "A claim of a worker that died ends so long after the template's timeout.",
    ),
    Setting(
        "WEBHOOK_LOST_CLAIMS_MAX", "number", 5, "Workers that may die over one delivery before it counts as failed."
    ),
    Setting("WEBHOOK_CONCURRENCY", "number", 64, "Attempts at once in one worker process."),
    Setting(
        "WEBHOOK_DESTINATION_CONCURRENCY",
        "number",
        32,
        "Attempts at once to one destination, all workers together; a template has half of what others leave free.",
    ),
    Setting(
        "WEBHOOK_BREAKER_FAILURES", "number", 5, "Failures in a row of a template at a host that open its circuit."
    ),
    Setting(
        "WEBHOOK_BREAKER_OPEN_SECONDS",
        "numbers",
        [30, 60, 120, 300, 600],
        "How long a circuit stays open the first, second ... time; the last repeats.",
    ),
    Setting("WEBHOOK_SUSPEND_FAILURES", "number", 50, "Failed attempts of a template in a row that suspend it ..."),
    Setting("WEBHOOK_SUSPEND_AFTER_SECONDS", "number", 3600, "... when the first of them is this old."),
    Setting("WEBHOOK_RETENTION_DAYS", "number", 30, "Finished deliveries are removed after."),
    Setting("WEBHOOK_STORED_ANSWER_BYTES", "number", 4096, "How much of an answer's body is kept with the attempt."),
    Setting(
        "EMAIL_URL",
        "url",
        "",
        "Mail server, for example smtp+tls://user:password@mail.example.com:587; empty: no mail.",
    ),
    Setting("EMAIL_FROM", "text", "", "Sender of mail; empty: noreply at the host of BASE_URL."),
    Setting("LOG_LEVEL", "text", "INFO", "Lowest level that is logged."),
    Setting("LOG_FORMAT", "text", "text", "text or json."),
    Setting("SECURE", "switch", None, "HTTPS cookies, HSTS and redirects; unset: on when BASE_URL is https."),
)


class Environment:
    """Values of SETTINGS from the environment and an optional `.env` beside manage.py (the environment wins)."""

    def __init__(self) -> None:
        self._env = environ.Env()
        dotenv = BASE_DIR / ".env"
        if dotenv.exists():
            environ.Env.read_env(dotenv, overwrite=False)
        self._declared = {setting.name: setting for setting in SETTINGS}

    def __call__(self, name: str) -> Any:
        """The value in its declared type. Raises ImproperlyConfigured with a sentence for a value that does not fit."""
        setting = self._declared[name]
        raw = os.environ.get(name)
        if raw is None or raw == "":
            return list(setting.default) if isinstance(setting.default, list) else setting.default
        return self._convert(setting, raw)

    def _convert(self, setting: Setting, raw: str) -> Any:
        match setting.type:
            case "number":
                if not raw.isdigit():
                    raise ImproperlyConfigured(f"{setting.name} must be a whole number, not {raw!r}.")
                return int(raw)
            case "decimal":
                return _decimal(setting, raw)
            case "numbers":
                return [_decimal(setting, item) for item in raw.split(",")]
            case "switch":
                lowered = raw.lower()
                if lowered in {"1", "true", "yes", "on"}:
                    return True
                if lowered in {"0", "false", "no", "off"}:
                    return False
                raise ImproperlyConfigured(f"{setting.name} must be true or false, not {raw!r}.")
            case "list":
                return [item.strip() for item in raw.split(",") if item.strip()]
            case "url":
                if "://" not in raw:
                    raise ImproperlyConfigured(f"{setting.name} must be a URL such as scheme://host, not {raw!r}.")
                return raw.rstrip("/")
            case _:
                return raw

    def email(self, url: str) -> dict[str, Any]:
        """Django's EMAIL_ settings for a URL; schemes of django-environ (smtp, smtp+tls, smtp+ssl, consolemail …)."""
        try:
            found = dict(self._env.email_url_config(url))
        except Exception as exc:
            raise ImproperlyConfigured(f"EMAIL_URL cannot be read: {exc}") from exc
        return {name: value for name, value in found.items() if name.startswith("EMAIL_") and value is not None}

    def database(self, url: str) -> dict[str, Any]:
        """Django's database settings for a URL."""
        try:
            return dict(self._env.db_url_config(url))
        except Exception as exc:
            raise ImproperlyConfigured(f"DATABASE_URL cannot be read: {exc}") from exc


def _decimal(setting: Setting, raw: str) -> float:
    # Neither signs nor exponents, nan or inf: these are times and shares.
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", raw, re.ASCII) is None:
        raise ImproperlyConfigured(f"{setting.name} must be made of numbers such as 2 or 0.5, not {raw!r}.")
    return float(raw)
