"""manage.py tenants: create, list, suspend, resume, back up, restore, delete tenants, and run commands of them."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from identity.management.support import PlatformCommand
from platform_site.environment import BASE_DIR
from platform_site.tenants import archives, proxies
from platform_site.tenants.directory import (
    Tenant,
    add,
    directory_lock,
    remove,
    review,
    root,
    settings_get,
    tenant_get,
    tenants,
)
from platform_site.tenants.tenant_settings import TenantError, TenantSettings

_PREPARE = "from platform_site.serving.preparation import prepare; prepare(print, collects_static=False)"
_EXAMPLES = {
    "create": "tenants create acme --host acme.example.com --admin maria",
    "list": "tenants list --json",
    "suspend": "tenants suspend acme",
    "resume": "tenants resume acme",
    "backup": "tenants backup acme /var/backups/acme.tar.gz",
    "restore": "tenants restore acme /var/backups/acme.tar.gz",
    "delete": "tenants delete acme --confirm acme",
    "run": "tenants run acme register_app Billing --service --system-user service",
    "proxy": "tenants proxy nginx",
}


class Command(PlatformCommand):
    """Administers the directory of tenants; a running pool takes changes up within a second."""

    help = "Administer the tenants below the directory TENANTS; a running `serve` takes changes up within a second."
    example = "\n  ".join(f"manage.py {each}" for each in _EXAMPLES.values())

    def add_arguments(self, parser: CommandParser) -> None:
        """A parser for each action."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

        def action(name: str, text: str) -> argparse.ArgumentParser:
            made: argparse.ArgumentParser = actions.add_parser(
                name, help=text, description=text, epilog=f"Example: manage.py {_EXAMPLES[name]}"
            )
            return made

        create = action("create", "Make a tenant with a database, keys and an administrator of its own.")
        create.add_argument("name", help="letters, digits and hyphens")
        create.add_argument("--host", action="append", required=True, help="name by which callers reach it; repeatable")
        create.add_argument(
            "--database-url", default="", help="an empty PostgreSQL database; without it SQLite is used"
        )
        create.add_argument("--admin", default="admin", metavar="LOGIN", help="its first administrator")
        create.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of tenant.env; repeatable"
        )
        create.add_argument("--json", action="store_true", dest="as_json")
        listed = action("list", "List the tenants.")
        listed.add_argument("--json", action="store_true", dest="as_json")
        action("suspend", "Stop a tenant and answer 503 in its place.").add_argument("name")
        action("resume", "Serve a suspended tenant again.").add_argument("name")
        backup = action("backup", "Write database, keys and files into one archive, while the tenant may be in use.")
        backup.add_argument("name")
        backup.add_argument("file", type=Path, help="is replaced if it exists; contains secrets")
        restored = action("restore", "Put a tenant back into the state of a backup; makes it if it is not there.")
        restored.add_argument("name")
        restored.add_argument("file", type=Path)
        restored.add_argument(
            "--database-url",
            default="",
            help="PostgreSQL database, which is emptied, of a tenant that is not there",
        )
        delete = action("delete", "Delete a tenant: its settings, keys and files, and its embedded database.")
        delete.add_argument("name")
        delete.add_argument("--confirm", required=True, metavar="NAME", help="the name once more")
        run = action("run", "Run a command of manage.py for a tenant; the exit status is that of the command.")
        run.add_argument("name")
        run.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="with its arguments")
        proxy = action("proxy", "Print what the proxy needs to lead each host to its tenant.")
        proxy.add_argument("program", choices=("nginx", "caddy"))

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit status 1 with a sentence for what cannot be done."""
        run: Callable[[dict[str, Any]], None] = getattr(self, f"_{options['action']}")
        try:
            run(options)
        except (TenantError, OSError) as error:
            raise CommandError(str(error)) from error

    def _create(self, options: dict[str, Any]) -> None:
        given = dict(_setting(text) for text in options["set"])
        settings = {
            "BASE_URL": f"https://{options['host'][0]}",
            "ALLOWED_HOSTS": ",".join(options["host"]),
            "INSTANCE_NAME": options["name"],
            **({"DATABASE_URL": options["database_url"]} if options["database_url"] else {}),
            **given,
        }
        with contextlib.ExitStack() as stack:
            with directory_lock():
                tenant = add(options["name"], settings)
                lock = stack.enter_context(tenant.changing())
            try:
                _run(tenant, "shell", "--no-imports", "--command", _PREPARE, lock=lock)
                password = secrets.token_urlsafe(12)
                login = {"DJANGO_SUPERUSER_PASSWORD": password}
                _run(tenant, "createsuperuser", "--no-input", "--login", options["admin"], more=login, lock=lock)
            except BaseException:
                remove(tenant)
                raise
            tenant.mark_unfinished("")
        made = settings_get(tenant)
        found = {**_row(tenant, made), "admin": options["admin"], "password": password}
        sentence = (
            f"Created {tenant.name}: {made.values['BASE_URL']}/, port {made.port}. Its administrator is "
            f"{options['admin']}; password, shown only now: {password}"
        )
        self.print_result(found, sentence, as_json=options["as_json"])

    def _list(self, options: dict[str, Any]) -> None:
        found = tenants(root())
        reviewed = review(root())
        rows = [_row(each, reviewed.settings.get(each.name), reviewed.problems.get(each.name, "")) for each in found]
        self.print_rows(rows, as_json=options["as_json"])

    def _suspend(self, options: dict[str, Any]) -> None:
        tenant_get(options["name"]).suspend()
        self.stdout.write(f"Suspended {options['name']}.")

    def _resume(self, options: dict[str, Any]) -> None:
        tenant_get(options["name"]).resume()
        self.stdout.write(f"Resumed {options['name']}.")

    def _backup(self, options: dict[str, Any]) -> None:
        archives.back_up(tenant_get(options["name"]), options["file"])
        self.stdout.write(f"Wrote {options['file']}, {options['file'].stat().st_size} bytes.")

    def _restore(self, options: dict[str, Any]) -> None:
        with directory_lock():
            tenant = archives.restore(options["name"], options["file"], root(), options["database_url"])
        _run(tenant, "shell", "--no-imports", "--command", _PREPARE)
        self.stdout.write(f"Restored {tenant.name} from {options['file']}.")

    def _delete(self, options: dict[str, Any]) -> None:
        tenant = tenant_get(options["name"])
        if options["confirm"] != tenant.name:
            raise TenantError(f"--confirm must be {tenant.name}; nothing was deleted.")
        url = tenant.settings().get("DATABASE_URL", "")
        with directory_lock(), tenant.stopped():
            remove(tenant)
        left = " Its database in PostgreSQL is left; drop it there." if url else ""
        self.stdout.write(f"Deleted {tenant.name}.{left}")

    def _run(self, options: dict[str, Any]) -> None:
        tenant = tenant_get(options["name"])
        if not options["command"]:
            raise TenantError("Name a command of manage.py, such as doctor.")
        if options["command"][0] in ("serve", "tenants"):
            raise TenantError(f"{options['command'][0]} is a command of the pool.")
        with tenant.used():
            environment = tenant.environment(settings_get(tenant).values)
            self.stdout.flush()
            raise SystemExit(subprocess.run(_words(options["command"]), cwd=BASE_DIR, env=environment).returncode)

    def _proxy(self, options: dict[str, Any]) -> None:
        reviewed = review(root())
        served = [each for name, each in reviewed.settings.items() if name not in reviewed.problems]
        self.stdout.write(getattr(proxies, options["program"])(served))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise TenantError(f"--set needs NAME=VALUE, not {text!r}.")
    return name, value


def _row(tenant: Tenant, settings: TenantSettings | None, problem: str = "") -> dict[str, Any]:
    if settings is None or problem:
        return {"name": tenant.name, "state": "refused", "hosts": "", "port": None, "database": "", "problem": problem}
    return {
        "name": tenant.name,
        "state": "unfinished" if tenant.unfinished else "suspended" if tenant.is_suspended else "active",
        "hosts": ",".join(settings.hosts),
        "port": settings.port,
        "database": "PostgreSQL" if settings.values.get("DATABASE_URL") else "SQLite",
        "problem": "",
    }


def _words(command: Sequence[str]) -> list[str]:
    return [sys.executable, "manage.py", *command]


def _run(tenant: Tenant, *command: str, more: dict[str, str] | None = None, lock: int | None = None) -> None:
    """Run a command of the tenant quietly. Raises TenantError with what it printed.

    lock   descriptor of the tenant's lock, which the command holds, too: it continues if this process is killed
    """
    done = subprocess.run(
        _words(command),
        cwd=BASE_DIR,
        env={**tenant.environment(settings_get(tenant).values), **(more or {})},
        pass_fds=() if lock is None else (lock,),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise TenantError(f"{tenant.name} could not be prepared:\n{done.stdout}{done.stderr}".rstrip())
