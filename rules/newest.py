"""Runs a rule on the newest entities of its repository, as a dry run (spec 12, 12.1)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import transaction

from foundation import dry_runs, errors
from identity.context import CallContext
from rules.dry_run import DryRun, draft_dry_run
from rules.specs import RuleSpec

MAX_ENTITIES = 100
#: Maximum duration; further entities are skipped: on SQLite a dry run holds the lock of all writers.
MAX_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class EntityOutcome:
    """The effect of one event of the rule on one entity; refusal: its message, "" if the rule lets it pass."""

    entity_id: str
    entity: str
    event: str
    refusal: str
    changes: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewestOutcomes:
    """The effects of a rule on the newest entities. `outcomes` has only those on which it acts, newest first.

    entities    number of tried entities, up to MAX_ENTITIES
    is_whole    whether all of them were tried in time
    """

    entities: int
    is_whole: bool
    outcomes: Sequence[EntityOutcome]

    @property
    def refused(self) -> list[EntityOutcome]:
        """The outcomes with a refusal or failure."""
        return [outcome for outcome in self.outcomes if outcome.refusal]

    @property
    def acted(self) -> int:
        """Number of entities on which one of its events acts."""
        return len({outcome.entity_id for outcome in self.outcomes})

    @property
    def changing(self) -> list[EntityOutcome]:
        """The outcomes with changes and without a refusal."""
        return [outcome for outcome in self.outcomes if outcome.changes and not outcome.refusal]


def run_on_newest(rule: RuleSpec, entities: Sequence[tuple[str, str]], context: CallContext) -> NewestOutcomes:
    """Run the rule, which need not be stored, on each stored entity by itself, as `draft_dry_run` does.

    entities    (guid, display text), newest first
    """
    until = time.monotonic() + MAX_SECONDS
    outcomes: list[EntityOutcome] = []
    tried = 0
    with dry_runs.dry_run():
        for entity_id, text in entities:
            if time.monotonic() > until:
                break
            tried += 1
            outcomes += _outcomes(rule, entity_id, text, context)
    return NewestOutcomes(tried, tried == len(entities), outcomes)


def _outcomes(rule: RuleSpec, entity_id: str, text: str, context: CallContext) -> Iterator[EntityOutcome]:
    attempts: list[DryRun] = []
    try:
        with transaction.atomic():
            attempts = draft_dry_run(rule=rule, entity_id=entity_id, context=context)
            transaction.set_rollback(True)
    except errors.NotFound:
        return  # deleted meanwhile
    for attempt in attempts:
        if attempt.fired or attempt.refusal:
            event = f"{attempt.event} {attempt.parameter}".strip()
            yield EntityOutcome(
                entity_id, text, event, attempt.refusal or "", len(attempt.changes), tuple(attempt.warnings)
            )
