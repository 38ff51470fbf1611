"""The one place where rules call the script runner (spec 05, 5.2: "then the script")."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from django.utils.translation import gettext

from foundation import errors

if TYPE_CHECKING:
    from rules.firing import Firing

_RUNNER = "scripts.rule_scripts"


def run_script(firing: Firing) -> None:
    """Run the rule's script against the dataset, with the entity as `subject` and the event attributes as `event`.

    Raises Refused: SCRIPT_CANCELLED (Action.cancel), SCRIPT_THREW, SCRIPT_LIMIT, or RULE_BROKEN where this instance
    has no script runner.
    """
    if find_spec(_RUNNER) is None:
        raise errors.Refused(
            errors.RULE_BROKEN,
            firing.rule.title(firing.dataset.context.language),
            gettext("this instance cannot run scripts of rules"),
        )
    runner = import_module(_RUNNER)
    runner.run_rule_script(
        firing.record,
        dict(firing.events),
        firing.dataset,
        firing.rule.script_text or "",
        firing.rule.code,
    )


def script_problem(source: str) -> str | None:
    """Why the script does not compile; None when it does, or when nobody here can tell."""
    if find_spec(_RUNNER) is None:
        return None
    runner = import_module(_RUNNER)
    check = getattr(runner, "check_rule_script", None)
    if check is None:
        return None
    try:
        check(source)
    except errors.Refused as exc:  # a busy sandbox says nothing about the script, so that error goes on
        return exc.message
    return None
