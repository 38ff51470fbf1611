"""Runs scripts of user business rules (spec 05, 5.2) with the scripts app."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.dataset.dataset import Dataset
from scripts.services import SourceRefused, check_source, script_run

if TYPE_CHECKING:
    from rules.firing import Firing


def run_script(firing: Firing) -> None:
    """Run the rule's script against the dataset, with the entity as `subject` and the event attributes as `event`.

    CLIENT* events do not fire for its changes. It may change the subject without the caller's rights, everything else
    only with them. It cannot end its transaction. Raises Refused: SCRIPT_CANCELLED (Action.cancel), SCRIPT_THREW,
    SCRIPT_LIMIT, or a refusal of the platform.
    """
    source, dataset = firing.rule.script_text or "", firing.dataset
    if source.strip():
        assert isinstance(dataset, Dataset)  # only datasets raise events
        script_run(
            source,
            dataset,
            kind="Rule",
            name=firing.rule.code,
            subject=firing.record,
            event=dict(firing.events),
        )


def script_problem(source: str) -> str | None:
    """The syntax error of the script; None if it compiles. Raises Unavailable if no worker is free."""
    if not source.strip():
        return None
    try:
        check_source(source)
    except SourceRefused as exc:
        return exc.message
    return None
