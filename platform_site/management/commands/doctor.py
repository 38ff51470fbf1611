"""manage.py doctor: diagnoses an instance for support (spec 09, 9.4)."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal

import django
from django.conf import settings
from django.core.cache import cache
from django.core.checks import WARNING, run_checks
from django.core.management.base import CommandParser
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Max, Min
from django_q.brokers import get_broker
from django_q.models import Schedule

from domain.database.replicas import Reason, replicas_examine
from domain.dataset.dataset import Dataset
from domain.query.sql import dialects
from event_sinks.delivery import sinks_progress
from foundation.clock import database_now
from foundation.encrypted_columns import unreadable_rows
from foundation.encryption import FILE_NAME, key_ids
from foundation.fields import utc_now
from identity.context import system_context
from identity.licences import licence_read
from identity.management.support import PlatformCommand
from identity.models import Session, User
from identity.oauth.keys import key_set
from identity.sessions import open_count
from identity.usage import usage_warnings
from jobs.planning import runs_overdue
from platform_site.environment import BASE_DIR, SETTINGS
from platform_site.routers import written_databases
from scripts.services import pool, script_run
from webhooks import selectors

Level = Literal["ok", "warning", "problem"]
#: (name, version, marker) of a package in a compiled requirements file.
_PIN = re.compile(r"^([\w.-]+)==([^\s;]+)(?: ; ([^\\\n]+))?", re.M)
_FREE_WARNING, _FREE_PROBLEM = 2 * 1024**3, 200 * 1024**2
_CLOCK_WARNING_SECONDS = 2.0
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# This many users with one address suggest an untrusted proxy.
_USERS_OF_A_PROXY = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check; `cure` says how to fix a problem."""

    topic: str
    level: Level
    text: str
    cure: str = ""


Examination = Callable[[], Iterator[Finding]]
_examinations: list[tuple[str, Examination]] = []


def _examines(topic: str) -> Callable[[Examination], Examination]:
    def add(examination: Examination) -> Examination:
        _examinations.append((topic, examination))
        return examination

    return add


class Command(PlatformCommand):
    """Read-only, except that it runs a script, writes a cache value, and stamps the timeline of the primary's WAL."""

    help = (
        "Examine this node and what it uses: versions, settings, proxies, databases, replicas, migrations, cache, "
        "queue, workers, keys, sandbox, licence, disk, clock. Exit status 1 where there is a problem; warnings "
        "leave it 0."
    )
    example = "manage.py doctor\n  manage.py doctor --json | jq '.findings[] | select(.level != \"ok\")'"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = [finding for topic, examination in _examinations for finding in _examined(topic, examination)]
        healthy = all(finding.level != "problem" for finding in findings)
        if options["as_json"]:
            self.stdout.write(json.dumps({"healthy": healthy, "findings": [asdict(f) for f in findings]}, indent=2))
        else:
            for finding in findings:
                mark = {"ok": "✓", "warning": "!", "problem": "✗"}[finding.level]
                self.stdout.write(f"{mark} {finding.topic:<10} {finding.text}")
                if finding.cure:
                    self.stdout.write(f"  {'':<10} → {finding.cure}")
            counted = {level: sum(f.level == level for f in findings) for level in ("problem", "warning")}
            self.stdout.write(f"{counted['problem']} problems, {counted['warning']} warnings.")
        if not healthy:
            sys.exit(1)


def _examined(topic: str, examination: Examination) -> list[Finding]:
    try:
        return list(examination())
    except Exception as exc:  # A failing check must not hide the others.
        return [Finding(topic, "problem", f"cannot be examined: {type(exc).__name__}: {exc}")]


@_examines("versions")
def _versions() -> Iterator[Finding]:
    text = f"Python {platform.python_version()}, Django {django.get_version()}, {platform.platform()}"
    yield Finding("versions", "ok", text)
    wrong = []
    for name, wanted, marker in _PIN.findall((BASE_DIR / "requirements.txt").read_text()):
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            if marker:  # may apply to other systems or Python versions
                continue
            installed = "none"
        if installed != wanted:
            wrong.append(f"{name} {installed} instead of {wanted}")
    if wrong:
        yield Finding("versions", "warning", "; ".join(wrong), "make setup")
    else:
        yield Finding("versions", "ok", "every library is the pinned one")


@_examines("settings")
def _settings() -> Iterator[Finding]:
    given = sorted(setting.name for setting in SETTINGS if os.environ.get(setting.name))
    yield Finding("settings", "ok", f"set in the environment: {', '.join(given) or 'none'}")
    if settings.DEBUG:
        yield Finding("settings", "warning", "DEBUG is on: errors show stack traces", "unset DEBUG in production")
    if settings.DEMO:
        yield Finding("settings", "warning", "DEMO is on: logins and secrets that everybody knows", "unset DEMO")
    if not settings.BASE_URL:
        yield Finding("settings", "ok", "BASE_URL is empty: addresses are taken from each request")
    for message in run_checks(include_deployment_checks=settings.SECURE):
        if message.level >= WARNING and not message.is_silenced():
            level: Level = "problem" if message.is_serious() else "warning"
            yield Finding("settings", level, f"{message.id}: {message.msg}", message.hint or "")


@_examines("proxies")
def _proxies() -> Iterator[Finding]:
    networks = [ip_network(text, strict=False) for text in settings.TRUSTED_PROXIES if text != "*"]
    cure = "TRUSTED_PROXIES=<address or network of the proxy>"
    if len(networks) < len(settings.TRUSTED_PROXIES) or any(network.prefixlen == 0 for network in networks):
        text = "every caller is believed to be a proxy, and chooses the address by which limits count it"
        yield Finding("proxies", "problem", text, cure)
        return
    host, behind_tls = settings.HOST, settings.BASE_URL.startswith("https:")
    if behind_tls and host not in _LOOPBACK and all(network.is_loopback for network in networks):
        text = f"HOST is {host} and only proxies on this machine are trusted: one elsewhere hides its callers"
        yield Finding("proxies", "warning", text, cure)
    since = utc_now() - timedelta(days=1)
    recent = Session.objects.filter(opened__gt=since).exclude(client_address="")
    seen = recent.aggregate(users=Count("user", distinct=True), first=Min("client_address"), last=Max("client_address"))
    if seen["users"] >= _USERS_OF_A_PROXY and seen["first"] == seen["last"] and not settings.DEMO:
        text = f"all {seen['users']} users of a day came from {seen['first']}: a proxy that is not trusted?"
        yield Finding("proxies", "warning", text, cure)
    yield Finding("proxies", "ok", f"trusted: {', '.join(map(str, settings.TRUSTED_PROXIES)) or 'none'}")


@_examines("database")
def _pooler() -> Iterator[Finding]:
    """Findings about a connection pooler, behind which the web processes set no limit of connections."""
    if not settings.DATABASE_TRANSACTION_POOLER or connections["default"].vendor != "postgresql":
        return
    with connections["default"].cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        (limit,) = cursor.fetchone()
    if limit == "0":
        text = "the pooler's sessions have no statement_timeout: a query of a caller may run without end"
        cure = "for web nodes: set it in connect_query of the pooler, as deploy/pgbouncer.ini does"
        yield Finding("database", "warning", text, cure)


@_examines("database")
def _databases() -> Iterator[Finding]:
    for alias in written_databases():
        connection = connections[alias]
        started = time.perf_counter()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            milliseconds = (time.perf_counter() - started) * 1000
        version = ".".join(str(part) for part in connection.get_database_version())
        yield Finding(
            "database", "ok", f"{alias}: {connection.display_name} {version}, answers in {milliseconds:.1f} ms"
        )
        plan = MigrationExecutor(connection).migration_plan(_targets(alias))
        if plan:
            names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _backwards in plan[:5])
            yield Finding(
                "database", "problem", f"{alias}: {len(plan)} migrations are due: {names}", "manage.py migrate"
            )
        else:
            yield Finding("database", "ok", f"{alias}: no migration is due")
    if not dialects.current().indexes_by_code_point():
        yield Finding(
            "database", "warning", "its collation is not C.UTF-8: no index finds texts by prefix, range or order",
            "CREATE DATABASE … TEMPLATE template0 LOCALE 'C.UTF-8', and load a dump into it",
        )  # fmt: skip


@_examines("replicas")
def _replicas() -> Iterator[Finding]:
    """Findings about replicas: polls each until it has caught up with the primary's position, for some seconds."""
    if not settings.DATABASE_REPLICAS:
        yield Finding("replicas", "ok", "none are configured")
    for found in replicas_examine():
        if found.reason is Reason.NO_REPLICA:
            yield Finding(
                "replicas", "ok", f"{found.name} is no replica now, as the primary after a failover: left out"
            )
        elif found.problem:
            yield Finding("replicas", "problem", f"{found.name}: {found.problem}", found.cure)
        elif found.seconds > settings.DATABASE_REPLICA_LAG_SECONDS:
            text = f"{found.name} was {found.megabytes:.1f} MB behind and needed {found.seconds:.1f} s: it is left out"
            yield Finding("replicas", "warning", text, "look at its load, its network and recovery_min_apply_delay")
        else:
            yield Finding("replicas", "ok", f"{found.name} had what the primary had after {found.seconds:.2f} s")


def _targets(alias: str) -> list[tuple[str, str | None]]:
    leaves = MigrationExecutor(connections[alias]).loader.graph.leaf_nodes()
    # The broker's file has only the queue's tables (platform_site.serving.preparation).
    return [leaf for leaf in leaves if alias != "broker" or leaf[0] == "django_q"]


@_examines("clock")
def _clock() -> Iterator[Finding]:
    connection = connections["default"]
    if connection.vendor != "postgresql":
        yield Finding("clock", "ok", f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC; the database is in this process")
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp())")
        apart = abs(float(cursor.fetchone()[0]) - time.time())
    level: Level = "warning" if apart > _CLOCK_WARNING_SECONDS else "ok"
    cure = "run a time service (chrony, systemd-timesyncd) on every machine" if level == "warning" else ""
    yield Finding("clock", level, f"{apart:.2f} s apart from the database's clock", cure)


@_examines("cache")
def _cache() -> Iterator[Finding]:
    kind = "Redis" if settings.REDIS_URL else "files in DATA_DIR"
    value = f"{time.time()}"
    cache.set("doctor", value, 10)
    if cache.get("doctor") == value:
        yield Finding("cache", "ok", f"{kind}: what is put in is found")
    else:
        yield Finding(
            "cache", "problem", f"{kind}: what is put in is not found", "check REDIS_URL, or space in DATA_DIR"
        )


@_examines("queue")
def _queue() -> Iterator[Finding]:
    broker = get_broker()
    waiting = broker.queue_size()
    level: Level = "warning" if waiting > 1000 else "ok"
    yield Finding(
        "queue", level, f"{waiting} tasks wait ({broker.info()})", "start more workers" if waiting > 1000 else ""
    )
    alias = "broker" if "broker" in settings.DATABASES else "default"
    schedules = Schedule.objects.using(alias).count()
    if schedules:
        yield Finding("queue", "ok", f"{schedules} schedules")
    else:
        yield Finding("queue", "problem", "nothing is scheduled: sessions do not expire", "manage.py migrate")


@_examines("worker")
def _workers() -> Iterator[Finding]:
    alive = selectors.workers_alive()
    if alive:
        yield Finding("worker", "ok", f"{len(alive)} alive")
    else:
        cure = "start one: manage.py serve --only worker"
        yield Finding("worker", "warning", "no worker was heard of lately: webhooks and schedules wait", cure)
    numbers = selectors.delivery_statistics()
    late = numbers.lag_seconds > selectors.MAX_LAG_SECONDS
    text = f"webhooks: {numbers.by_state.get('Pending', 0)} pending, the oldest due for {numbers.lag_seconds:.0f} s"
    yield Finding("worker", "warning" if late else "ok", text, "see Webhook deliveries in the admin" if late else "")
    if numbers.open_circuits:
        yield Finding("worker", "warning", f"webhooks wait for receivers that fail: {', '.join(numbers.open_circuits)}")
    if numbers.suspended_templates:
        text = f"{numbers.suspended_templates} webhooks are suspended"
        yield Finding("worker", "warning", text, "see Webhook deliveries in the admin")


@_examines("jobs")
def _jobs() -> Iterator[Finding]:
    overdue = runs_overdue(database_now())
    if overdue:
        text = f"{overdue} runs of jobs have waited for more than ten minutes for a worker"
        yield Finding("jobs", "warning", text, "manage.py qcluster, or a look at *Job runs* in the admin")
    else:
        yield Finding("jobs", "ok", "no run is overdue")


@_examines("event sinks")
def _event_sinks() -> Iterator[Finding]:
    progress = sinks_progress()
    for each in progress:
        if each.failing_since is not None:
            text = f"{each.name} fails since {each.failing_since:%Y-%m-%d %H:%M} UTC: {each.last_error}"
            yield Finding("event sinks", "warning", text, "see Event sinks in the admin")
    if not any(each.failing_since for each in progress):
        yield Finding("event sinks", "ok", "none fails" if progress else "there are none")


@_examines("keys")
def _keys() -> Iterator[Finding]:
    key_set()
    yield Finding("keys", "ok", "the signing key can be read")
    unreadable = unreadable_rows()
    for key, rows in sorted(unreadable.items()):
        what = "are damaged" if key == "damaged" else f"need the key {key}, which is missing"
        cure = "put it back (DATA_DIR/encryption_keys or ENCRYPTION_KEYS), or enter headers and signing secrets anew"
        yield Finding("keys", "problem", f"secrets in {rows} rows of the database {what}", cure)
    if not unreadable:
        yield Finding("keys", "ok", f"the secrets in the database can be decrypted (key {key_ids()[0]})")
    private = (Path(settings.DATA_DIR) / "secret_key", Path(settings.DATA_DIR) / FILE_NAME)
    for path in (*private, *sorted((Path(settings.DATA_DIR) / "keys").glob("[!.]*"))):
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            yield Finding("keys", "problem", f"{path} can be read by others", f"chmod 600 {path}")


@_examines("sandbox")
def _sandbox() -> Iterator[Finding]:
    started = time.perf_counter()
    outcome = script_run("console.log(6 * 7);", Dataset(system_context()), kind="Command", name="doctor")
    milliseconds = (time.perf_counter() - started) * 1000
    if outcome.console.strip() != "42":
        yield Finding("sandbox", "problem", f"a script said {outcome.console!r} instead of 42")
    else:
        yield Finding("sandbox", "ok", f"a script ran in {milliseconds:.0f} ms, its process included")
    missing = sorted(name for name, holds in pool().confinement().items() if not holds)
    if missing:
        cure = "on Linux with seccomp, as a user that may not do more than it needs"
        yield Finding("sandbox", "warning", f"not confined by: {', '.join(missing)}", cure)


@_examines("licence")
def _licence() -> Iterator[Finding]:
    terms, taken = licence_read(), open_count()
    yield Finding("licence", "ok", f"{taken} of {terms.sessions} sessions are in use")
    for text in usage_warnings():
        yield Finding("licence", "warning", text, "manage.py list_sessions")
    if not User.objects.filter(is_admin=True, active=True).exists():
        cure = "manage.py createsuperuser"
        yield Finding("licence", "warning", "there is no active administrator", cure)


@_examines("disk")
def _disk() -> Iterator[Finding]:
    directory = Path(settings.DATA_DIR)
    free = shutil.disk_usage(directory).free
    level: Level = "problem" if free < _FREE_PROBLEM else "warning" if free < _FREE_WARNING else "ok"
    yield Finding("disk", level, f"{free / 1024**3:.1f} GiB are free where DATA_DIR is")
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & 0o077:
        yield Finding("disk", "warning", f"DATA_DIR is open to others ({mode:o})", f"chmod 700 {directory}")
    if not os.access(directory, os.W_OK):
        yield Finding("disk", "problem", "DATA_DIR cannot be written")
