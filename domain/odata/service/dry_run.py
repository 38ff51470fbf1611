"""Handles a request as a dry run, in a database transaction that is rolled back (spec 12, 12.1)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from django.db import transaction

from domain.dataset.commit.retries import ATTEMPTS
from domain.dataset.tables.write_transaction import write_transaction
from domain.dataset.transactions import write_lock_time
from domain.model import model_version
from domain.odata.message.dry_run_report import attach, is_preferred, report_of
from domain.odata.message.message import ODataRequest, ODataResponse, ReceivedRequest
from domain.odata.service.steps import Exchange
from foundation import cache_versions, dry_runs, errors
from foundation.messages import TranslatableMessage as Message

#: Maximum duration of a dry run with many parts, because it holds its locks to the end.
MAX_SECONDS = 30.0


def is_dry_run(received: ReceivedRequest) -> bool:
    """Whether the request begins a dry run, rather than being a part of one."""
    return is_preferred(received.method, received.context) and dry_runs.current() is None


def perform(exchange: Exchange, respond: Callable[[Exchange], ODataResponse]) -> ODataResponse:
    """The response of `respond`, whose effects are rolled back; sets the exchange's report.

    Raises the errors of `respond`.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _perform_once(exchange, respond, is_first=attempt == 1)
        except dry_runs.RepeatDryRun as repeat:
            if attempt == ATTEMPTS:
                raise (repeat.__cause__ or repeat) from None
            if exchange.received.body_file is not None:
                exchange.received.body_file.seek(0)
    raise AssertionError("the last attempt raises")


def _perform_once(exchange: Exchange, respond: Callable[[Exchange], ODataResponse], *, is_first: bool) -> ODataResponse:
    with dry_runs.dry_run(write_transaction, limit_seconds=MAX_SECONDS, is_repeatable=True, is_first=is_first) as run:
        try:
            with write_lock_time.limited(exchange.received.context):
                return respond(exchange)
        finally:
            warnings = exchange.dataset.warnings if exchange.dataset is not None else ()
            exchange.report = report_of(run, exchange.received.context, warnings)


def is_only_write(received: ReceivedRequest) -> bool:
    """Whether the request's commit is the only one of a dry run, on its first attempt, and needs no savepoint.

    A savepoint costs two statements. After a lost race the dry run needs one: it retries within the same transaction,
    with locks on the rows in conflict.
    """
    run = dry_runs.current()
    return run is not None and run.is_first and not received.depth


def read_savepoint(request: ODataRequest) -> AbstractContextManager[None]:
    """A savepoint for a reading part of a dry run, as PostgreSQL aborts a transaction after a failed statement.

    Writes have savepoints of their own, one for each commit.
    """
    return transaction.atomic() if dry_runs.current() is not None and request.is_read else nullcontext()


def add_report(exchange: Exchange, response: ODataResponse) -> None:
    """Add the report to the response; an empty one if the request was refused before it ran."""
    report = exchange.report
    if report is None:
        with dry_runs.dry_run() as nothing:
            report = report_of(nothing, exchange.received.context)
    attach(response, report, exchange.received.context, exchange.received.service_root)


def check_model() -> None:
    """Refuse a part after one that changed a custom entity's definition. Raises NotSupported.

    The model of the process changes only with a commit, and a dry run has none.
    """
    if dry_runs.current() is not None and cache_versions.is_bumped(model_version.CACHE_VERSION):
        raise errors.NotSupported(
            Message("requests after a change of a custom entity's definition in the same dry run; try them after it")
        )


def check_no_dry_run_of_part(received: ReceivedRequest) -> None:
    """Refuse a dry run of a single request of a group, which is committed as a whole. Raises BadRequest."""
    if is_dry_run(received):
        reason = Message("a request of a group cannot be a dry run by itself; ask for a dry run of the batch")
        raise errors.BadRequest(errors.INVALID_HEADER, "Prefer", reason)
