"""Scripts of user business rules (spec 05, 5.2), called by rules.scripting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from scripts.services import check_source, script_run


def run_rule_script(subject: Record, event: Mapping[str, Any], dataset: Dataset, source: str, rule_code: str) -> None:
    """Run a rule's script with the entity as `subject` and the event's attributes as `event`.

    It acts for the platform: CLIENT* events do not fire for what it changes, and it may change the subject whatever the
    caller may; for everything else the caller's rights hold. It cannot end the transaction that it runs in.

    Raises Refused: SCRIPT_CANCELLED (Action.cancel), SCRIPT_THREW, SCRIPT_LIMIT, or what the platform refused it.
    """
    if not source.strip():
        return
    script_run(source, dataset, kind="Rule", name=rule_code, subject=subject, event=event)


def check_rule_script(source: str) -> None:
    """Raise Refused(SCRIPT_SYNTAX) where a rule's script does not parse."""
    if source.strip():
        check_source(source)
