"""manage.py serve: run web server and worker in one terminal."""

from __future__ import annotations

import gc
import time
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import resolve

from platform_site.serving import addresses, granian_server, preparation, service_manager
from platform_site.serving.children import Child, StartFailed, Supervisor
from platform_site.serving.console import Console
from platform_site.tenants.directory import root
from platform_site.tenants.memory import load_code, machine_memory, max_running_by_memory
from platform_site.tenants.pool import Pool
from platform_site.tenants.tenant_settings import TenantError

READY_TIMEOUT_SECONDS = 60.0


class Command(BaseCommand):
    """Prepare the instance, start web server and worker, and watch them until Ctrl-C."""

    help = (
        "Start the instance: web server and background worker in one terminal; Ctrl-C or SIGTERM stops both. "
        "Database, keys and static files are brought up to date first, where a cheap look says that they are not. "
        "Example: PORT=9000 manage.py serve"
    )
    # The checks cost a second and run in `make test` and `check --deploy`; migrate runs those that concern databases.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options; differences between instances are settings."""
        parser.add_argument("--only", choices=("web", "worker"), help="Start only one of the two on this node.")
        parser.add_argument("--keys-only", action="store_true", help="Generate the keys that are missing, then end.")
        parser.add_argument(
            "--i-know", action="store_true", help="Serve demo logins, or DEBUG, where other machines reach it."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Exit status 0 after an orderly stop, 1 if the instance could not start."""
        host, port = settings.HOST, settings.PORT
        console = Console()
        if options["keys_only"]:
            preparation.generate_keys()
            return
        if settings.TENANTS:
            self._serve_tenants(console, options["only"])
            return
        serves_web = options["only"] != "worker"
        if serves_web:
            self._check_address(host, port, accepts_risk=options["i_know"])
        started = time.monotonic()
        try:
            preparation.prepare(console.say)
        except RuntimeError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            # No child runs yet; the next start repeats unfinished steps of the preparation.
            raise CommandError("Stopped before it was started.", returncode=130) from None
        _load_code(pages=serves_web)
        children = _children(host, port, options["only"], web_processes=settings.WEB_PROCESSES)
        supervisor = Supervisor(console, children)
        try:
            supervisor.start()
            up = supervisor.wait_until(
                lambda: not serves_web or addresses.is_responding(host, port), timeout_seconds=READY_TIMEOUT_SECONDS
            )
            if up:
                if serves_web:
                    self._greet(console, host, port)
                console.say(f"Started in {time.monotonic() - started:.1f} s. Ctrl-C stops everything.")
                console.say("ready")
                service_manager.notify("READY=1")
                supervisor.run()
            service_manager.notify("STOPPING=1")
            console.say("\nStopping ... (Ctrl-C again to stop at once)")
        except StartFailed as error:
            raise CommandError(str(error)) from error
        finally:
            supervisor.stop()
        console.say("Stopped.")

    def _serve_tenants(self, console: Console, only: str | None) -> None:
        if only:
            raise CommandError("A pool of tenants starts web servers and workers together: without --only.")
        for name in ("DEBUG", "DEMO", "REDIS_URL"):
            if getattr(settings, name):
                raise CommandError(f"{name} is not for a pool of tenants; unset it, or TENANTS.")
        try:
            directory = root()
            preparation.prepare_pool(console.say)
        except (RuntimeError, TenantError) as error:
            raise CommandError(str(error)) from error
        load_code()
        _load_code(pages=True)
        most = settings.TENANTS_RUNNING or max_running_by_memory(machine_memory())
        pool = Pool(console, directory, most, settings.TENANT_IDLE_SECONDS)
        try:
            pool.run()
            console.say("\nStopping ... (Ctrl-C again to stop at once)")
        finally:
            service_manager.notify("STOPPING=1")
            pool.stop()
        console.say("Stopped.")

    def _check_address(self, host: str, port: int, *, accepts_risk: bool) -> None:
        # The settings module has checked the same before writing files, unless another program calls the command.
        problem = addresses.start_problem(
            host, port, settings.BASE_URL, debug=settings.DEBUG, demo=settings.DEMO, accepts_risk=accepts_risk
        )
        reached = addresses.reached_by_others(host, settings.BASE_URL)
        if problem is None and reached and not accepts_risk and preparation.has_demo_logins():
            problem = (
                f"The data in {settings.DATA_DIR}, or in its database, comes from demo mode and holds logins that "
                f"everybody knows, so it is not served at {reached}. Use another DATA_DIR or DATABASE_URL, or add "
                "--i-know (`make run ARGS=--i-know`) after changing them."
            )
        if problem:
            raise CommandError(problem)

    def _greet(self, console: Console, host: str, port: int) -> None:
        root = addresses.link_root(host, port, settings.BASE_URL)
        for line in addresses.startup_lines(root, demo=settings.DEMO, data_dir=str(settings.DATA_DIR)):
            console.say(line)


def _children(host: str, port: int, only: str | None, *, web_processes: int) -> list[Child]:
    web = Child("web", lambda: granian_server.serve(host, port, workers=web_processes))
    worker = Child("worker", lambda: call_command("qcluster"), waits=True)
    return [child for child in (web, worker) if only in (None, child.name)]


def _load_code(*, pages: bool) -> None:
    """Import all code before the children are forked, so that they share its memory."""
    if pages:
        resolve("/healthz")
    # Exclude the loaded code from garbage collection: a full collection over it would stop a process for a third of a
    # second, and write to each page of the shared memory.
    gc.collect()
    gc.freeze()
