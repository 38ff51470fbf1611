"""manage.py prune: remove what is past its retention, in every app (spec 09, 9.4)."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from identity.management.support import PlatformCommand

# What is removed → the function that does it and says how many. Each keeps to the retention of its own app.
PRUNERS: dict[str, str] = {
    "sessions": "identity.sessions.sessions_sweep",
    "closed_sessions": "identity.sessions.sessions_prune",
    "browser_sessions": "identity.sessions.browser_sessions_prune",
    "tokens": "identity.oauth.issue.tokens_prune",
    "change_feed": "domain.dataset.tables.change_feed.change_feed_prune",
    "transactions": "domain.dataset.transactions.domain_transactions.transactions_expire",
    "script_runs": "scripts.history.prune",
    "webhook_deliveries": "webhooks.services.deliveries_prune",
    "webhook_circuits": "webhooks.breaker.breakers_prune",
}


class Command(PlatformCommand):
    """What the worker does by itself, at once; safe to run at any time and twice."""

    help = (
        "Remove what is past its retention: expired sessions, sign-ins and tokens, abandoned Domain transactions, "
        "changes that no delta link can ask for, the history of script runs, finished webhook deliveries."
    )
    example = "manage.py prune\n  manage.py prune --only tokens --only script_runs --json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--only", action="append", choices=sorted(PRUNERS), help="just this; may be repeated")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        removed: dict[str, int] = {}
        failed: dict[str, str] = {}
        for name in options["only"] or PRUNERS:
            try:
                removed[name] = _pruner(name)()
            except Exception as exc:  # one table that is in the way must not keep the others from being pruned
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


def _pruner(name: str) -> Callable[[], int]:
    module, _, function = PRUNERS[name].rpartition(".")
    found: Callable[[], int] = getattr(importlib.import_module(module), function)
    return found
