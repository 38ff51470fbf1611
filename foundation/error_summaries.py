"""Summaries of errors for records: texts only, because an exception refers to every frame that it passed."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import translation

from foundation import errors


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """An error for administrators, in English.

    code      number in the catalogue; None for errors of other protocols
    rule_id   guid of the business rule that raised it; "" for none
    """

    type: str
    code: int | None = None
    message: str = ""
    rule_id: str = ""


def summary_of(error: BaseException) -> ErrorSummary:
    """The summary of any error; one that is no PlatformError is an InternalError, with the name of its class."""
    if not isinstance(error, errors.PlatformError):
        unexpected = errors.INTERNAL_ERROR
        return ErrorSummary(unexpected.type, unexpected.number, f"{type(error).__name__}: {error}")
    # English, because readers of all languages see the stored text.
    with translation.override("en"):
        return ErrorSummary(error.code.type, error.code.number, error.message, error.rule_id)
