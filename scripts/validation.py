"""Validates source and schema of a managed script on save (spec 04, 4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext

from domain.dataset.records.record import Record
from domain.model import behaviours
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import translated
from scripts.authors import AUTHORS
from scripts.managed import LANGUAGE
from scripts.parameters import InvalidSchema, read_schema
from scripts.services import SourceRefused, check_source

SCRIPTS = "Systems.Core.Scripts"


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """A problem of one attribute's text; line and column count from 1, None if unknown."""

    attribute: str
    message: str
    line: int | None = None
    column: int | None = None


def register() -> None:
    """Register the validation of scripts and the recording of authors."""
    behaviours.add_validation(SCRIPTS, check_script)
    behaviours.add_validation(SCRIPTS, AUTHORS.note)


def check_script(script: Record) -> None:
    """Raise Refused(SCRIPT_INVALID) with line, column and attribute of each problem."""
    if script.is_deleted:
        return
    if script.state == "Modified" and not {"ParameterSchema", "ScriptText", "Language"} & set(script.original_values):
        return
    values = script.values
    problems = source_problems(values.get("ScriptText"), values.get("ParameterSchema"), str(values.get("Language")))
    result = [(problem.attribute, _in_words(problem)) for problem in problems]
    if result:
        raise errors.Refused(
            errors.SCRIPT_INVALID,
            "; ".join(text for _, text in result),
            target=result[0][0],
            details=[errors.Detail(errors.SCRIPT_INVALID, (text,), target) for target, text in result],
        )


def source_problems(text: str | None, schema: str | None, language: str) -> Iterator[SourceProblem]:
    """Problems that prevent saving a script. Raises Unavailable if no worker is free."""
    names: tuple[str, ...] = ()
    try:
        names = tuple(read_schema(schema).parameters)
    except InvalidSchema as exc:
        yield SourceProblem("ParameterSchema", errors.reason(exc), exc.line, exc.column)
    if language == LANGUAGE and (text or "").strip():
        try:
            check_source(text or "", mode="function_body", parameter_names=names)
        except SourceRefused as exc:
            yield SourceProblem("ScriptText", exc.message, exc.line, exc.column)


def _in_words(problem: SourceProblem) -> str:
    # The message of a syntax error already contains its position.
    place = problem.attribute == "ParameterSchema" and problem.line is not None
    words = f"{problem.attribute}: {problem.message}"
    if not place:
        return words
    return translated(Message("{0} (line {1}, column {2})", words, problem.line, problem.column), gettext)
