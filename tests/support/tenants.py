"""A pool of tenants as a process, with tenants that are copies of one prepared instance."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests

from foundation import private_files
from platform_site.environment import SETTINGS
from platform_site.tenants.directory import Tenant
from tests.support.instances import prepared_instance
from tests.support.platform import ROOT, free_port
from tests.support.waiting import eventually

START_TIMEOUT_SECONDS = 180.0
#: Made anew, at a tenant's first start or here, so that each has its own.
_SECRETS = ("secret_key", "encryption_keys", "keys")
_SIGNED = ("identity_signingkey", "audit_audithead")


@dataclass
class Pool:
    """A directory of tenants, and the pool that serves it while it runs."""

    path: Path
    settings: dict[str, str] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    @property
    def tenants(self) -> Path:
        """TENANTS."""
        return self.path / "tenants"

    @property
    def environment(self) -> dict[str, str]:
        """What the pool and commands are run with."""
        names = {each.name for each in SETTINGS} | {"DJANGO_SETTINGS_MODULE"}
        plain = {name: value for name, value in os.environ.items() if name not in names}
        own = {"TENANTS": str(self.tenants), "DATA_DIR": str(self.path / "own")}
        return {**plain, **own, **self.settings}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run manage.py."""
        return subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def copy_of(self, original: Path, name: str, host: str, *, own_keys: bool = True, **settings: str) -> Tenant:
        """A tenant with the data of a prepared instance. Its demo logins are for a host that is loopback."""
        tenant = Tenant(self.tenants / name)
        tenant.path.mkdir(mode=0o700, parents=True)
        ignored = shutil.ignore_patterns("static", "metrics", "cache", *(_SECRETS if own_keys else ()))
        shutil.copytree(original, tenant.data, ignore=ignored)
        if own_keys:
            private_files.write(tenant.data / "secret_key", secrets.token_urlsafe(50).encode())
            with closing(sqlite3.connect(tenant.data / "platform.sqlite3")) as database:
                for table in _SIGNED:
                    database.execute(f"DELETE FROM {table}")
                database.commit()
            with closing(sqlite3.connect(tenant.data / "broker.sqlite3")) as broker:
                broker.execute("DELETE FROM django_q_ormq")  # signed with the secret of the original
                broker.commit()
        port = settings.get("PORT") or str(free_port())
        chosen = {"PORT": port, "ALLOWED_HOSTS": host, "BASE_URL": f"http://{host}:{port}", "DEMO": "1"}
        tenant.write_settings({**chosen, "SLOW_REQUEST_SECONDS": "60", **settings})
        return tenant

    def request(
        self, tenant: Tenant, method: str, path: str, *, headers: Any = None, **options: Any
    ) -> requests.Response:
        """A request as the proxy passes it on."""
        sent = {"Host": tenant.hosts()[0], "Connection": "close", **(headers or {})}
        options.setdefault("timeout", 90)
        options.setdefault("allow_redirects", False)
        return requests.request(method, f"http://127.0.0.1:{tenant.port}{path}", headers=sent, **options)

    def processes(self, tenant: Tenant) -> list[psutil.Process]:
        """The processes of a running tenant, its supervisor first."""
        assert self.process is not None
        title = f"platform: tenant {tenant.name}"
        for child in psutil.Process(self.process.pid).children():
            try:
                if child.cmdline()[:1] == [title] and child.status() != psutil.STATUS_ZOMBIE:
                    return [child, *child.children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
        return []

    def running(self) -> list[str]:
        """The names of the tenants that run."""
        assert self.process is not None
        found = []
        for child in psutil.Process(self.process.pid).children():
            try:
                title = child.cmdline()[0]
            except (psutil.Error, IndexError):
                continue  # it has just ended
            if title.startswith("platform: tenant "):
                found.append(title.rpartition(" ")[2])
        return sorted(found)

    def stops(self, tenant: Tenant, timeout_seconds: float = 60.0) -> bool:
        """Whether its processes end in time."""
        return eventually(lambda: not self.processes(tenant), timeout_seconds)

    @contextmanager
    def serving(self) -> Iterator[Pool]:
        """Run the pool until the block ends."""
        self.output.clear()
        ready = threading.Event()
        process = self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                self.output.append(line)
                if line.strip() == "ready":
                    ready.set()
            ready.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            if not ready.wait(START_TIMEOUT_SECONDS) or process.poll() is not None:
                raise RuntimeError("the pool did not start:\n" + "".join(self.output))
            yield self
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(90)
            finally:
                process.kill()
                reader.join(30)


@contextmanager
def new_pool(path: Path, **settings: str) -> Iterator[tuple[Pool, Path]]:
    """A pool that does not run yet, and the data directory of a prepared instance to copy."""
    original = path / "original"
    pool = Pool(path, dict(settings))
    pool.tenants.mkdir(parents=True, mode=0o700)
    given = {name: os.environ.pop(name) for name in ("DATABASE_URL",) if name in os.environ}
    try:
        # SQLite also where the suite runs on PostgreSQL: a tenant's database is a file here.
        with prepared_instance(original):
            yield pool, original
    finally:
        os.environ.update(given)


def nginx_configuration(path: Path, tenants_map: str, port: int) -> Path:
    """The file of a configuration of nginx: deploy/tenants without TLS, on this loopback port; all is below path."""
    (path / "tenants.map").write_text(tenants_map)
    server = (ROOT / "deploy/tenants/nginx.conf").read_text()
    server = server.replace("/etc/nginx/tenants.map", str(path / "tenants.map"))
    server = server.replace("listen 443 ssl http2;", f"listen 127.0.0.1:{port};")
    server = "\n".join(line for line in server.splitlines() if "ssl_" not in line and "access_log" not in line)
    forwarded = (ROOT / "deploy/tenants/proxy.conf").read_text()
    server = server.replace("include /etc/nginx/business-platform-tenant.conf;", forwarded)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {path}/{kind};" for kind in kinds)
    head = f"pid {path}/pid; error_log {path}/error.log; daemon off; events {{}} "
    file = path / "nginx.conf"
    file.write_text(f"{head}http {{ access_log off; {temporary}\n{server}\n}}")
    return file
