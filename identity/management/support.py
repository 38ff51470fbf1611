"""Shared base of commands: help with examples, JSON output, look-ups with clear errors."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter

from identity.models import TrustedApplication, User

Row = dict[str, Any]
_DURATION = re.compile(r"(\d+)([hd])")
_MAX_HOURS = 36_500 * 24


class _HelpFormatter(DjangoHelpFormatter):
    """Wraps a paragraph; text in lines, such as examples, stays as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "".join(f"{indent}{line}" for line in text.splitlines(keepends=True))


class PlatformCommand(BaseCommand):
    """A command whose `--help` shows `example`; several examples are lines of it, indented by two."""

    # System checks take as long as the command; `manage.py check` and `make test` run them.
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ()
    example = ""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        kwargs.setdefault("formatter_class", _HelpFormatter)
        return super().create_parser(prog_name, subcommand, epilog=f"Example:\n  {self.example}", **kwargs)

    def print_rows(self, rows: Sequence[Row], *, as_json: bool) -> None:
        """A table for people, or JSON for programs."""
        if as_json:
            self.stdout.write(json.dumps(rows, indent=2, default=str))
        elif not rows:
            self.stdout.write("None.")
        else:
            columns = list(rows[0])
            cells = [columns, *([_text(row[column]) for column in columns] for row in rows)]
            widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
            for line in cells:
                self.stdout.write(
                    "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                )

    def print_result(self, result: Row, sentence: str, *, as_json: bool) -> None:
        """One result, as JSON or as a sentence."""
        self.stdout.write(json.dumps(result, default=str) if as_json else sentence)


def application_get(uri: str) -> TrustedApplication:
    """The application with this ApplicationUri. Raises CommandError."""
    result = TrustedApplication.objects.filter(application_uri=uri).first()
    if result is None:
        raise CommandError(f"There is no trusted application {uri!r}.")
    return result


def user_get(login: str) -> User:
    """The user with this login, in any case. Raises CommandError."""
    try:
        return User.objects.get_by_natural_key(login)
    except User.DoesNotExist as exc:
        raise CommandError(f"There is no user {login!r}.") from exc


def duration(text: str) -> datetime.timedelta:
    """`12h` or `30d`. Raises CommandError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise CommandError(f"{text!r} is not a duration such as 12h or 30d.")
    hours = int(match[1]) * (1 if match[2] == "h" else 24)
    if hours > _MAX_HOURS:
        raise CommandError(f"{text!r} is more than {_MAX_HOURS // 24}d.")
    return datetime.timedelta(hours=hours)


def moment(text: str, *, allowed: str = "a time such as 2026-01-31T12:00Z, or a day") -> datetime.datetime:
    """A time in ISO 8601, or the beginning of a day; UTC without an offset. Raises CommandError."""
    try:
        result = datetime.datetime.fromisoformat(text)
    except ValueError as exc:
        raise CommandError(f"{text!r} is not {allowed}.") from exc
    return result if result.tzinfo is not None else result.replace(tzinfo=datetime.UTC)


def _text(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return "" if value is None else str(value)
