"""manage.py validate_rules: check every stored rule as if it were saved now."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from identity.management.support import PlatformCommand
from rules.specs import stored_rules
from rules.validation import check_rule


class Command(PlatformCommand):
    """Exit status 1 when an active rule is broken; inactive ones are only shown."""

    help = "Check user business rules: names, values, parameters, templates and scripts."
    example = "manage.py validate_rules --active --json"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--active leaves inactive rules out."""
        parser.add_argument("--active", action="store_true", help="check active rules only")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each broken rule with its problems."""
        rules = stored_rules(active_only=options["active"])
        found = [(rule, problems) for rule in rules if (problems := list(check_rule(rule)))]
        if options["as_json"]:
            rows = [
                {
                    "code": rule.code,
                    "repository": rule.repository,
                    "active": rule.is_active,
                    "problems": [{"target": problem.target, "message": problem.message} for problem in problems],
                }
                for rule, problems in found
            ]
            self.stdout.write(json.dumps({"checked": len(rules), "broken": rows}, indent=2, ensure_ascii=False))
        else:
            for rule, problems in found:
                state = "active" if rule.is_active else "inactive"
                self.stdout.write(self.style.ERROR(f"{rule.title('en')}  {rule.repository}  ({state})"))
                for problem in problems:
                    self.stdout.write(f"    {problem.target or 'rule'}: {problem.message}")
        broken = sum(rule.is_active for rule, _ in found)
        if broken:
            raise CommandError(f"{broken} of {len(rules)} rules are active and broken.")
        if not options["as_json"]:
            self.stdout.write(self.style.SUCCESS(f"{len(rules)} rules checked."))
