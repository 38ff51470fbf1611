"""Import a file of objects as the Import action does (spec 03, 3.4), with a progress bar."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from django.core.management.base import CommandError

from domain.odata.invoke.importing import ImportSummary, import_objects, read_options
from domain.odata.message.json_stream import JsonObjectFile
from foundation import errors
from identity.context import CallContext, Caller
from identity.management.support import PlatformCommand
from identity.models import User

_WIDTH = 40


class Command(PlatformCommand):
    """What the API answers of each object goes to a file; problems and a summary are printed."""

    help = 'Imports a JSON file {"objects": [{"@odata.type": …}, …]}, which may also hold the options of Import.'
    example = "manage.py import_data objects.json --transaction all-objects --answers answers.jsonl"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file, and the options of Import, which win over those in the file."""
        parser.add_argument("file", type=Path, help="the JSON file")
        parser.add_argument("--transaction", choices=["per-object", "all-objects"])
        parser.add_argument("--model", choices=["frontend", "common", "backend"])
        parser.add_argument("--logging-level", type=int, choices=[0, 1, 2])
        parser.add_argument("--user", default="", help="login of the user who is to have made the changes")
        parser.add_argument("--answers", type=Path, help="write the answer of each object to this file, one a line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; the exit status is 1 when an object failed."""
        path: Path = options["file"]
        context = _context(options["user"])
        answers = options["answers"].open("wb") if options["answers"] else None
        try:
            with path.open("rb") as file:
                summary = self._run(file, context, options, answers)
        except OSError as exc:
            raise CommandError(f"{path}: {exc.strerror}") from exc
        except errors.PlatformError as exc:
            raise CommandError(f"{path}: {errors.render(exc, correlation_id='', debug=False).body['error']['message']}") from exc  # fmt: skip # noqa: E501
        finally:
            if answers is not None:
                answers.close()
        print(f"{summary.succeeded} succeeded, {summary.failed} failed")
        if summary.failed:
            raise CommandError("Some objects were not imported.")

    def _run(
        self, file: BinaryIO, context: CallContext, options: dict[str, Any], answers: BinaryIO | None
    ) -> ImportSummary:
        source = JsonObjectFile(file, "objects")
        members = source.members()
        count = int(members.get("objects") or 0)
        given = {"transaction": options["transaction"], "model": options["model"]}
        given["loggingLevel"] = options["logging_level"]
        wanted = read_options({**members, **{name: value for name, value in given.items() if value is not None}})
        summary = ImportSummary()
        bar = _Bar(count)
        for number, answer in enumerate(import_objects(context, source.elements(), wanted, summary), 1):
            if answers is not None:
                answers.write(orjson.dumps(answer) + b"\n")
            if answer["@erpnet.result"] == "fail" and "@erpnet.error" in answer:
                bar.say(f"object {number}: {answer['@erpnet.error']['message']}")
            bar.show(number)
        bar.end()
        return summary


def _context(login: str) -> CallContext:
    if not login:
        return CallContext(user=None)
    user = User.objects.filter(login=login).first()
    if user is None:
        raise CommandError(f"There is no user with the login {login}.")
    name = next(iter(user.name.values()), login) if isinstance(user.name, dict) else str(user.name or login)
    return CallContext(user=Caller(user.id, user.login, name, user.email or "", is_admin=user.is_admin))


class _Bar:
    """A progress bar on a terminal; nothing where the output goes to a file."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.shown = -1
        self.active = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, done: int) -> None:
        """Draw it, where it has moved."""
        percent = 100 if not self.count else done * 100 // self.count
        if not self.active or percent == self.shown:
            return
        self.shown = percent
        filled = percent * _WIDTH // 100
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {percent:3d} % ({done} of {self.count})")
        sys.stderr.flush()

    def say(self, text: str) -> None:
        """A line above the bar."""
        sys.stderr.write(f"\r{' ' * (_WIDTH + 40)}\r{text}\n" if self.active else f"{text}\n")
        self.shown = -1

    def end(self) -> None:
        """Leave the bar behind."""
        if self.active:
            sys.stderr.write("\n")
