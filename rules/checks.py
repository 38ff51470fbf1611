"""System checks of stored rules (`manage.py check --database default`, and before `migrate`).

They read tables, so they are database checks, which Django runs only for named databases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import DatabaseError

from domain.entities import systems_bpm as bpm
from domain.events.types import event_types
from rules.actions import action_types


@checks.register(checks.Tags.database)
def stored_names(
    app_configs: Sequence[AppConfig] | None = None, databases: Iterable[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """rules.W001, rules.W002: stored event or action types that are not registered. Other rules still run."""
    if databases is None or "default" not in databases:
        return []
    try:
        events = set(bpm.UserBusinessRuleEvent.objects.values_list("event_type", flat=True).distinct())
        actions = set(bpm.UserBusinessRuleAction.objects.values_list("action_type", flat=True).distinct())
    except DatabaseError:
        return []  # before the first migration
    hint = "Run `manage.py validate_rules` to see which rules, and change or deactivate them."
    unregistered = [
        ("event", "W001", [name for name in events if event_types.get(name) is None]),
        ("action", "W002", [name for name in actions if action_types.get(name) is None]),
    ]
    return [
        checks.Warning(f"Stored rules use the {kind} type {name}, which does not exist.", hint=hint, id=f"rules.{code}")
        for kind, code, names in unregistered
        for name in sorted(names)
    ]
