"""manage.py try_rule: runs a rule against the last changes of its repository."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from identity.context import system_context
from identity.management.support import PlatformCommand
from rules.past_runs import MAX_CHANGES, past_run
from rules.specs import stored_rules


class Command(PlatformCommand):
    """Runs a rule against past changes, without saving or sending anything."""

    help = "Run a rule, active or not, against the last changes of its repository, and list what it would have refused."
    example = "manage.py try_rule NO_LATE_ORDERS --last 500 --json"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the rule's code")
        parser.add_argument("--last", type=int, default=100, help=f"number of changes, at most {MAX_CHANGES}")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the numbers and the refusals."""
        rule = next((each for each in stored_rules(active_only=False) if each.code == options["code"]), None)
        if rule is None:
            raise CommandError(f"There is no rule {options['code']}.")
        if not 1 <= options["last"] <= MAX_CHANGES:
            raise CommandError(f"--last is a number from 1 to {MAX_CHANGES}.")
        run = past_run(rule=rule, context=system_context(), last=options["last"])
        if options["as_json"]:
            self.stdout.write(json.dumps(asdict(run), indent=2, ensure_ascii=False, default=str))
            return
        self.stdout.write(
            f"{run.changes} changes of {rule.repository}: {run.matched} raise its events, it acts on {run.acted} "
            f"and refuses {run.refused}."
        )
        if run.is_cut:
            self.stdout.write(self.style.WARNING("There was no time for all of them."))
        for name in run.unknown:
            self.stdout.write(self.style.WARNING(f"The history does not know when {name} was raised."))
        for each in run.refusals:
            self.stdout.write(
                f"  {each.at:%Y-%m-%d %H:%M}  {each.user or 'the platform'}  {each.entity}: {each.message}"
            )
