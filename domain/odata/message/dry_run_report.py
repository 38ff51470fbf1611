"""The report of a dry run (spec 12, 12.1): `Prefer: erpnet.dry-run`.

@erpnet.dryRun      the report, in a response that is a JSON object
X-Dry-Run-Report    the URL of the report, in other responses; stored for the same caller (foundation.temporary_texts)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import orjson
from django.db import DatabaseError, connection

from domain.dataset.records.dry_run_hooks import ReportedHook, ReportEntry
from domain.odata.message.message import ODataResponse
from domain.odata.message.response_annotations import is_object, with_members
from foundation import temporary_texts
from foundation.dry_runs import MAX_ENTRIES, DryRun
from identity.context import CallContext

DRY_RUN = "erpnet.dry-run"
ANNOTATION = "@erpnet.dryRun"
LINK = "X-Dry-Run-Report"
#: Path of the reports, beside the service root.
REPORTS_PATH = "dry-runs/"
#: Maximum of the entries; the rest of the report is short.
MAX_REPORT_BYTES = temporary_texts.MAX_BYTES - 10_000
_SECTIONS = ("changes", "rules", "notRun", "warnings", "webhooks", "mails")

Report = dict[str, Any]


def is_preferred(method: str, context: CallContext) -> bool:
    """Whether the caller asks for a dry run. Reads ignore the preference (RFC 7240, 2)."""
    return method not in ("GET", "HEAD", "OPTIONS") and context.prefer.get(DRY_RUN, "false") != "false"


def report_of(run: DryRun, context: CallContext, warnings: Iterable[str] = ()) -> Report:
    """The report, before the rollback. warnings: of the request itself, besides those of its parts.

    {"changes", "rules", "notRun", "warnings", "webhooks", "mails", "durationMs"}; with "omitted", {section: entries},
    where there were too many.
    """
    sections: dict[str, list[Any]] = {name: list(run.entries.get(name, ())) for name in _SECTIONS}  # type: ignore[call-overload]
    sections["warnings"] += [text for text in warnings if text not in sections["warnings"]]
    omitted = run.omitted.copy()
    for section, entry in _entries_of_hooks(run, context):
        if len(sections[section]) < MAX_ENTRIES:
            sections[section].append(entry)
        else:
            omitted[section] += 1
    if context.user is None or not context.user.is_admin:
        sections["notRun"] = [_without_destination(entry) for entry in sections["notRun"]]
    report: Report = {**sections, "durationMs": round(run.elapsed_seconds() * 1000, 3)}
    if omitted:
        report["omitted"] = dict(omitted)
    return report


def _entries_of_hooks(run: DryRun, context: CallContext) -> list[ReportEntry]:
    """The entries of the dry run's hooks; none after the only commit has failed, or after a failed statement.

    A failed commit drops its hooks with its savepoint, but the only commit has none. After a failed statement
    PostgreSQL executes no query.
    """
    if connection.needs_rollback:
        return []
    hooks = (hook for hook in run.hooks() if isinstance(hook, ReportedHook))
    try:
        return [entry for hook in hooks for entry in hook.report_entries(context)]
    except DatabaseError:
        return []


def _without_destination(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry without the destination, which only administrators may see."""
    return {name: value for name, value in entry.items() if name != "destination"}


def encoded(report: Report) -> bytes:
    """The report as JSON of at most about MAX_REPORT_BYTES; entries beyond it are counted in "omitted"."""
    size = 0
    omitted: dict[str, int] = dict(report.get("omitted", {}))
    bounded = dict(report)
    for section in _SECTIONS:
        kept: list[orjson.Fragment] = []
        for entry in report[section]:
            text = _dumps(entry)
            if size + len(text) > MAX_REPORT_BYTES:
                omitted[section] = omitted.get(section, 0) + 1
                continue
            size += len(text)
            kept.append(orjson.Fragment(text))
        bounded[section] = kept
    if omitted:
        bounded["omitted"] = omitted
    return orjson.dumps(bounded)


def _dumps(entry: Any) -> bytes:
    return orjson.dumps(entry, default=_default, option=orjson.OPT_UTC_Z)


def _default(value: Any) -> Any:
    """orjson's fallback: a Decimal as an exact JSON number, other values as text."""
    return orjson.Fragment(format(value.normalize(), "f")) if isinstance(value, Decimal) else str(value)


def attach(response: ODataResponse, report: Report, context: CallContext, service_root: str) -> None:
    """Add the report or its URL to the response."""
    applied = response.headers.get("Preference-Applied")
    response.headers["Preference-Applied"] = f"{applied}, {DRY_RUN}" if applied else DRY_RUN
    # A failed dry run is not recorded as a failed request.
    response.error = None
    text = encoded(report)
    if is_object(response):
        response.body = with_members(response.body, {ANNOTATION: orjson.Fragment(text)})
    else:
        with suppress(OSError):  # the disk is full: the response has no link
            id = temporary_texts.temporary_texts().store(_caller(context), text)
            response.headers[LINK] = f"{service_root.removesuffix('odata/')}{REPORTS_PATH}{id}"


# --- kept reports -------------------------------------------------------------------------------------------------


def kept_report(id: str, context: CallContext) -> bytes | None:
    """The JSON of a stored report of the same caller; None if it has expired or is another caller's."""
    return temporary_texts.temporary_texts().get(_caller(context), id)


def _caller(context: CallContext) -> str:
    """The owner of a stored report: user and application."""
    return f"{context.user_id} {context.application}"
