"""Runs managed scripts: binds arguments and checks outputs (spec 04, 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from domain.dataset.checks.authority import RunningStep
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from foundation import errors
from foundation.messages import reason_of
from scripts.authors import AUTHORS
from scripts.json_values import as_doubles
from scripts.parameters import InvalidSchema, Problem, read_schema
from scripts.services import FailedRun, script_outcome

LANGUAGE = "JavaScript"


@dataclass(frozen=True, slots=True)
class ManagedOutcome:
    """outputs: the declared Output and InputOutput parameters by name."""

    outputs: dict[str, Any]
    return_value: Any
    console: str
    duration_ms: float


def execute(
    script: Record, arguments: Mapping[str, Any], dataset: Dataset, *, depth: int = 0, text: str | None = None
) -> ManagedOutcome | FailedRun:
    """Run a managed script against the dataset. Nothing is committed and the definition is not changed.

    text: source to run instead of the saved text, for the editor.

    The script may change access rights only if its author is also an administrator (dataset.checks.authority); unsaved
    text may not.

    Raises Refused: SCRIPT_INACTIVE, SCRIPT_HAS_NO_TEXT, SCRIPT_LANGUAGE, SCRIPT_INVALID (an unreadable schema),
    SCRIPT_ARGUMENTS. A failed run, also one with invalid outputs (SCRIPT_OUTPUTS), is a FailedRun.
    """
    code = str(script.values.get("Code") or "")
    if not script.values.get("IsActive"):
        raise errors.Refused(errors.SCRIPT_INACTIVE, code)
    if script.values.get("Language") != LANGUAGE:
        raise errors.Refused(errors.SCRIPT_LANGUAGE, code, script.values.get("Language"))
    source = (script.values.get("ScriptText") if text is None else text) or ""
    if not source.strip():
        raise errors.Refused(errors.SCRIPT_HAS_NO_TEXT, code)
    try:
        schema = read_schema(script.values.get("ParameterSchema"))
    except InvalidSchema as exc:
        raise errors.Refused(errors.SCRIPT_INVALID, reason_of(exc), target="ParameterSchema") from exc
    values, problems = schema.bind(arguments)
    if problems:
        raise _refused(errors.SCRIPT_ARGUMENTS, problems)
    outputs: dict[str, Any] = {}

    def check(parameters_json: bytes) -> errors.Refused | None:
        nonlocal outputs
        outputs, problems = schema.outputs(orjson.loads(parameters_json))
        return _refused(errors.SCRIPT_OUTPUTS, problems) if problems else None

    dataset.running_steps.append(RunningStep(code, AUTHORS.behind(script), is_rule=False))
    try:
        outcome = script_outcome(
            source,
            dataset,
            kind="Managed",
            name=code,
            mode="function_body",
            parameters=as_doubles(values),
            depth=depth,
            check=check,
        )
    finally:
        dataset.running_steps.pop()
    if isinstance(outcome, FailedRun):
        return outcome
    return ManagedOutcome(outputs, orjson.loads(outcome.value_json), outcome.console, outcome.duration_ms)


def _refused(code: errors.ErrorCode, problems: list[Problem]) -> errors.Refused:
    return errors.Refused(
        code,
        "; ".join(problem.text for problem in problems),
        target=problems[0].parameter,
        details=[errors.Detail(code, (problem.text,), problem.parameter) for problem in problems],
    )
