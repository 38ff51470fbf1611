"""Managed scripts: arguments in, outputs and a return value out (spec 04, 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from domain.dataset.checks.authority import Acting
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from foundation import errors
from foundation.phrases import reason_of
from scripts.authors import AUTHORS
from scripts.json_values import as_doubles
from scripts.parameters import InvalidSchema, Problem, read_schema
from scripts.services import FailedRun, script_attempt

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
    """Run a managed script against the dataset. Nothing is committed and the definition is not touched.

    text: what to run instead of the saved text, for those who are writing it.

    The script changes who may do what only if its author, too, is an administrator (dataset.checks.authority); the
    text that somebody tries unsaved has no more.

    Raises Refused: SCRIPT_INACTIVE, SCRIPT_HAS_NO_TEXT, SCRIPT_LANGUAGE, SCRIPT_INVALID (a schema that cannot be read),
    SCRIPT_ARGUMENTS. A run that fails, outputs that do not fit (SCRIPT_OUTPUTS) included, is a FailedRun.
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
    dataset.acting.append(Acting(code, AUTHORS.behind(script), is_rule=False))
    try:
        outcome = script_attempt(
            source, dataset, kind="Managed", name=code, mode="function_body", parameters=as_doubles(values), depth=depth
        )
    finally:
        dataset.acting.pop()
    if isinstance(outcome, FailedRun):
        return outcome
    outputs, problems = schema.outputs(orjson.loads(outcome.parameters_json))
    if problems:
        return FailedRun(_refused(errors.SCRIPT_OUTPUTS, problems), outcome.committed, outcome.console)
    return ManagedOutcome(outputs, orjson.loads(outcome.value_json), outcome.console, outcome.duration_ms)


def _refused(code: errors.ErrorCode, problems: list[Problem]) -> errors.Refused:
    return errors.Refused(
        code,
        "; ".join(problem.text for problem in problems),
        target=problems[0].parameter,
        details=[errors.Detail(code, (problem.text,), problem.parameter) for problem in problems],
    )
