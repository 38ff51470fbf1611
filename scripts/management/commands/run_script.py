"""manage.py run_script: runs a script from a file, or a managed script, as a user."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import CommandError

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from foundation import errors
from identity.context import CallContext, Caller
from identity.management.support import PlatformCommand, user_get
from identity.permissions import permissions_for
from scripts import history, managed
from scripts.services import FailedRun, script_run


class Command(PlatformCommand):
    """Commits only if the script does, or with --commit."""

    help = "Run a script from a file (- for standard input), or a managed script by its code."
    example = (
        "manage.py run_script script.js --user demo\n"
        "  manage.py run_script --code PRICES --arguments '{\"percent\": 5}' --user demo --commit"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", help="the script's file; - reads standard input")
        parser.add_argument("--code", help="of a managed script, instead of a file")
        parser.add_argument("--arguments", default="{}", help="JSON object, for a managed script")
        parser.add_argument("--user", help="login of the user whose rights hold; without it everything is allowed")
        parser.add_argument("--commit", action="store_true", help="commit what the script leaves pending")
        parser.add_argument("--prune-history", action="store_true", help="delete runs older than the retention first")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["prune_history"]:
            self.stdout.write(f"{history.prune()} runs deleted")
            if not (options["file"] or options["code"]):
                return
        if bool(options["file"]) == bool(options["code"]):
            raise CommandError("Give either a file or --code.")
        dataset = Dataset(_context(options["user"]))
        try:
            if options["code"]:
                self._run_managed(dataset, options["code"], options["arguments"])
            else:
                self._run_file(dataset, options["file"])
            if options["commit"]:
                dataset.commit()
        except errors.PlatformError as exc:
            raise CommandError(f"{exc.code.type}: {exc.message}\n{exc.info or ''}".rstrip()) from exc
        finally:
            history.pending.flush_if_due()

    def _run_file(self, dataset: Dataset, file: str) -> None:
        try:
            source = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise CommandError(f"{file} cannot be read: {exc}") from exc
        outcome = script_run(source, dataset, kind="Command", name="" if file == "-" else Path(file).name)
        if outcome.console:
            self.stdout.write(outcome.console)

    def _run_managed(self, dataset: Dataset, code: str, arguments: str) -> None:
        try:
            given = orjson.loads(arguments)
        except orjson.JSONDecodeError as exc:
            raise CommandError(f"--arguments is not JSON: {exc}") from exc
        if not isinstance(given, dict):
            raise CommandError("--arguments must be a JSON object.")
        script: Record | None = dataset.find_one("Systems.Core.Scripts", code=code)
        if script is None:
            raise CommandError(f"There is no script with the code {code}.")
        outcome = managed.execute(script, given, dataset)
        if isinstance(outcome, FailedRun):
            raise outcome.error
        if outcome.console:
            self.stdout.write(outcome.console)
        answer = {"parameters": outcome.outputs, "returnValue": outcome.return_value}
        self.stdout.write(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())


def _context(login: str | None) -> CallContext:
    """The user's context; without a login that of the platform itself."""
    if login is None:
        return CallContext(user=None, client_initiated=False)
    user = user_get(login)
    caller = Caller(user.id, user.login, str(user), user.email or "", is_admin=user.is_admin)
    return CallContext(
        user=caller,
        permissions=permissions_for(user.pk, is_admin=user.is_admin),
        language=user.default_language or "en",
    )
