"""manage.py validate_rules: check every stored rule as if it were saved now."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from identity.management.support import PlatformCommand
from rules.scope import Finding
from rules.specs import RuleSpec, stored_rules
from rules.validation import review_rule


class Command(PlatformCommand):
    """Exit status 1 if an active rule is broken; inactive ones, and warnings, are only printed."""

    help = "Check user business rules: names, values, parameters, templates and scripts."
    example = "manage.py validate_rules --active --json"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--active", action="store_true", help="check active rules only")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each broken rule with its problems, and each other rule with its warnings."""
        rules = stored_rules(active_only=options["active"])
        reviews = [(rule, review_rule(rule)) for rule in rules]
        broken = [(rule, review.problems) for rule, review in reviews if review.problems]
        suspicious = [(rule, review.warnings) for rule, review in reviews if review.warnings]
        if options["as_json"]:
            listed = {
                "checked": len(rules),
                "broken": [_row(rule, "problems", problems) for rule, problems in broken],
                "doubtful": [_row(rule, "warnings", warnings) for rule, warnings in suspicious],
            }
            self.stdout.write(json.dumps(listed, indent=2, ensure_ascii=False))
        else:
            for rule, problems in broken:
                self._print(self.style.ERROR(_head(rule)), problems)
            for rule, warnings in suspicious:
                self._print(self.style.WARNING(_head(rule)), warnings, kind="warning: ")
        active = sum(rule.is_active for rule, _ in broken)
        if active:
            raise CommandError(f"{active} of {len(rules)} rules are active and broken.")
        if not options["as_json"]:
            self.stdout.write(self.style.SUCCESS(f"{len(rules)} rules checked."))

    def _print(self, head: str, findings: Sequence[Finding], kind: str = "") -> None:
        self.stdout.write(head)
        for finding in findings:
            self.stdout.write(f"    {kind}{finding.target or 'rule'}: {finding.message}")


def _head(rule: RuleSpec) -> str:
    return f"{rule.title('en')}  {rule.repository}  ({'active' if rule.is_active else 'inactive'})"


def _row(rule: RuleSpec, name: str, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "code": rule.code,
        "repository": rule.repository,
        "active": rule.is_active,
        name: [{"target": finding.target, "message": finding.message} for finding in findings],
    }
