"""Records failures of work without a caller: in the log, and by reporters such as messages for administrators."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.utils import translation

logger = logging.getLogger("platform.failures")

#: Function of the name of the failed work and the error's text; see `report_failures_to`.
Reporter = Callable[[str, str], None]
_reporters: list[Reporter] = []


def report_failures_to(reporter: Reporter) -> None:
    """Add a reporter, once, at start-up."""
    if reporter not in _reporters:
        _reporters.append(reporter)


def record_failure(what: str, error: BaseException) -> None:
    """Log a failure, and pass it to the reporters. Never raises."""
    # English, because readers of all languages see the stored text.
    with translation.override("en"):
        text = str(error)
    logger.error("%s failed: %s", what, text, exc_info=error)
    _report(what, f"{type(error).__name__}: {text}")


def record_problem(what: str, text: str) -> None:
    """As `record_failure`, for a problem without an exception, such as a missing mail server. `text` is English."""
    logger.error("%s: %s", what, text)
    _report(what, text)


def _report(what: str, text: str) -> None:
    for reporter in _reporters:
        try:
            reporter(what, text)
        except Exception:
            logger.exception("the failure of %s could not be reported", what)
