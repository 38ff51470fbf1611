"""manage.py prune: delete rows past their retention, in every app (spec 09, 9.4)."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from foundation.pruning import pruners
from identity.management.support import PlatformCommand


class Command(PlatformCommand):
    """Runs the deletions of the scheduled tasks now; safe to run at any time and repeatedly."""

    help = (
        "Remove what is past its retention: expired sessions, sign-ins and tokens, abandoned Domain transactions, "
        "changes that no delta link can ask for, the history of script runs, finished webhook deliveries, "
        "audit entries (a signed stub of them stays)."
    )
    example = "manage.py prune\n  manage.py prune --only tokens --only script_runs --json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--only", action="append", choices=sorted(pruners.names()), help="just this; may be repeated"
        )
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        removed: dict[str, int] = {}
        failed: dict[str, str] = {}
        for name in options["only"] or pruners.names():
            try:
                removed[name] = pruners[name]()
            except Exception as exc:  # A failing table must not keep the others from being pruned.
                failed[name] = f"{type(exc).__name__}: {exc}"
            if sys.stderr.isatty():
                self.stderr.write(f"{name}: done")
        if options["as_json"]:
            self.stdout.write(json.dumps({"removed": removed, "failed": failed}))
        else:
            for name, count in removed.items():
                self.stdout.write(f"{count:>8}  {name.replace('_', ' ')}")
        if failed:
            raise CommandError("; ".join(f"{name}: {problem}" for name, problem in failed.items()))
