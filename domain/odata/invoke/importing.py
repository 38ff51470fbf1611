"""Imports many objects in one request, individually or all or nothing (spec 03, 3.4).

Objects are read and applied one after another, and each has a result. In per-object mode each has its own dataset and
commit. In all-objects mode they share one database transaction; datasets of at most CHUNK objects bound the memory.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, cast

import orjson
from django.db import connection, transaction
from django.utils.translation import gettext

from domain.dataset.commit.retries import RetryState, run_with_retries
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.records.record import ModelName, Record
from domain.dataset.transactions import write_lock_time
from domain.model.registry import repositories
from domain.odata.message.failures import known_error
from domain.odata.message.json_body import invalid_body
from domain.odata.message.references import annotation, reference_path
from domain.odata.write.payload import PayloadReader
from foundation import dry_runs, errors
from foundation.error_summaries import ErrorSummary
from foundation.execution_slot import defer_to_slot
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from identity.context import CallContext

logger = logging.getLogger(__name__)
#: Maximum of objects of a chunk, and of their size (`_size`) before the last one.
CHUNK, CHUNK_SIZE = 200, 16 * 1024 * 1024
#: Maximum of different warnings that an import keeps of its commits.
WARNINGS_KEPT = 100
#: As many as one dataset keeps; an import in all-objects mode has one for each chunk.
TRACES_KEPT = 1_000
TransactionMode = Literal["per-object", "all-objects"]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import.

    logging_level   0 nothing, 1 the import, 2 also each object
    rolled_back     a dry run: each object is applied and committed as in an import, then all of it is rolled back
    """

    transaction: TransactionMode = "per-object"
    model: ModelName = "frontend"
    logging_level: int = 2
    rolled_back: bool = False


@dataclass(slots=True)
class ImportSummary:
    """The summary of an import, complete after the last object's result has been read.

    error      of the first failed object
    warnings   of rules, in all-objects mode, where a commit's warnings belong to no single object; at most
               WARNINGS_KEPT different ones
    traces     of rules, likewise; at most TRACES_KEPT
    """

    succeeded: int = 0
    failed: int = 0
    exchange: str | None = None
    failures: list[str] = field(default_factory=list)
    error: ErrorSummary | None = None
    warnings: list[str] = field(default_factory=list)
    traces: list[Mapping[str, Any]] = field(default_factory=list)

    def note_rules(self, dataset: Dataset) -> None:
        """Add the warnings and traces of the rules that ran on the dataset."""
        self.traces += dataset.traces[: TRACES_KEPT - len(self.traces)]
        for warning in dataset.warnings:
            if len(self.warnings) < WARNINGS_KEPT and warning not in self.warnings:
                self.warnings.append(warning)

    @property
    def result(self) -> str:
        """success | fail."""
        return "fail" if self.failed else "success"


def read_options(members: dict[str, Any]) -> ImportOptions:
    """Options from the body's members. Raises BadRequest for unknown names and values."""
    known = ("objects", "transaction", "model", "loggingLevel")
    unknown = [name for name in members if name not in known and "@" not in name]
    if unknown:
        raise errors.unknown_parameter("Import", unknown[0], known)
    if "objects" not in members:
        raise errors.BadRequest(errors.MISSING_PARAMETER, "Import", "objects", target="objects")
    mode = _given(members, "transaction", "per-object")
    if mode not in ("per-object", "all-objects"):
        raise _not_one_of("transaction", mode, "per-object | all-objects")
    model = _given(members, "model", "frontend")
    if model not in ("frontend", "common", "backend"):
        raise _not_one_of("model", model, "frontend | common | backend")
    level = _given(members, "loggingLevel", 2)
    if isinstance(level, bool) or level not in (0, 1, 2):
        raise _not_one_of("loggingLevel", level, "0 | 1 | 2")
    return ImportOptions(cast(TransactionMode, mode), "frontend" if model == "frontend" else "common", level)


def _given(members: dict[str, Any], name: str, default: Any) -> Any:
    value = members.get(name)
    return default if value is None else value


def _not_one_of(name: str, value: Any, expected: str) -> errors.BadRequest:
    return errors.BadRequest(errors.INVALID_LITERAL, value, expected, name, target=name)


def import_objects(
    context: CallContext, objects: Iterable[Any], options: ImportOptions, summary: ImportSummary
) -> Iterator[dict[str, Any]]:
    """Apply each object; yields its result, in input order. `summary` is filled in as results are read.

    In all-objects mode a failure ends the import: the results of the other objects say that they were undone.
    """
    if options.rolled_back:
        options = replace(options, logging_level=0)
    log = _Log(context, options, summary)
    log.begin()
    if options.rolled_back:
        answers = _tried(context, objects, options)
    elif options.transaction == "per-object":
        answers = _each(context, objects, options)
    else:
        answers = _together(context, objects, options, summary)
    for answer in answers:
        if answer["@erpnet.result"] == "success":
            summary.succeeded += 1
        else:
            summary.failed += 1
            summary.error = summary.error or _summary(answer)
        log.note(answer)
        yield answer
        _pause()
    log.end()


def _pause() -> None:
    """Let another request run between two objects. Raises PayloadTooLarge in a dry run that takes too long,
    TooManyRequests if the caller has held SQLite's write lock for too long.
    """
    defer_to_slot()
    write_lock_time.check_time()
    if (run := dry_runs.current()) is not None:
        run.check_time()


def _each(context: CallContext, objects: Iterable[Any], options: ImportOptions) -> Iterator[dict[str, Any]]:
    for body in objects:
        yield _one(context, body, options)


def _tried(context: CallContext, objects: Iterable[Any], options: ImportOptions) -> Iterator[dict[str, Any]]:
    """The results of a dry run, in which each object sees the effects of those before it; failed ones have none."""
    locks = AdvisoryLocks(whole=True)
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as answers:
        with dry_runs.dry_run():
            for body in objects:
                answers.write(orjson.dumps(_one(context, body, options, locks)) + b"\n")
                defer_to_slot()
        answers.seek(0)
        for line in answers:
            yield orjson.loads(line)


def _one(context: CallContext, body: Any, options: ImportOptions, locks: AdvisoryLocks | None = None) -> dict[str, Any]:
    dataset: Dataset | None = None

    def attempted(retry: RetryState) -> dict[str, Any]:
        nonlocal dataset
        with retry.transaction():
            dataset = Dataset(context, model=options.model, locks=retry.locks)
            answer = _answer(_apply(dataset, body))
            dataset.commit(savepoint=False)
            return answer

    try:
        answer = run_with_retries(attempted, locks=locks)
    except Exception as error:
        answer = _failure(error, context)
    if dataset is not None and dataset.warnings:
        if (run := dry_runs.current()) is not None:
            for warning in dataset.warnings:
                run.add("warnings", warning)
        answer["@erpnet.message"] = " ".join([*filter(None, [answer.get("@erpnet.message")]), *dataset.warnings])
    if dataset is not None and dataset.traces:
        answer["@erpnet.trace"] = list(dataset.traces)
    return answer


def _together(
    context: CallContext, objects: Iterable[Any], options: ImportOptions, summary: ImportSummary
) -> Iterator[dict[str, Any]]:
    locks = AdvisoryLocks(whole=True)
    # A file holds the results until the commit: a hundred thousand of them need many times the memory of a chunk.
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as answers:
        done, chunk = 0, _Chunk(context, options)
        iterator = iter(objects)
        try:
            with transaction.atomic(), write_lock_time.limited(context, is_held=connection.vendor == "sqlite"):
                for bodies in _chunks(iterator):
                    chunk = _Chunk(context, options, bodies)
                    result = run_with_retries(chunk.write, locks=locks)
                    answers.writelines(orjson.dumps(answer) + b"\n" for answer in result)
                    done += len(result)
                    summary.note_rules(chunk.dataset)
                    chunk = _Chunk(context, options)
        except Exception as error:
            undone = {
                "@erpnet.result": "fail",
                "@odata.id": None,
                "@erpnet.state": "Unchanged",
                "@erpnet.message": gettext("Undone, because another object of the import failed."),
            }
            failure = _failure(error, context)
            summary.note_rules(chunk.dataset)
            summary.warnings.clear()
            # A refused commit is not caused by a single object: its error is the result of every object of the chunk.
            applied = len(chunk.answers)
            before, refused = (done, applied) if chunk.is_committing else (done + applied, 1)
            for _ in range(before):
                yield dict(undone)
            for _ in range(refused):
                yield dict(failure)
            for _ in chain(chunk.bodies[before - done + refused :], iterator):
                yield dict(undone)
            return
        answers.seek(0)
        for line in answers:
            yield orjson.loads(line)


def _chunks(objects: Iterator[Any]) -> Iterator[list[Any]]:
    """The objects of each chunk; no more are taken from the iterator than are given."""
    chunk: list[Any] = []
    size = 0
    for body in objects:
        chunk.append(body)
        size += _size(body)
        if len(chunk) == CHUNK or size > CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _size(value: Any) -> int:
    """About what a JSON value takes in memory, in bytes."""
    if isinstance(value, dict):
        return sum(map(_size, value.values()), 200 * (1 + len(value)))
    if isinstance(value, list):
        return sum(map(_size, value), 100)
    return 100 + (len(value) if isinstance(value, str) else 0)


class _Chunk:
    """Objects that are committed together.

    bodies          the objects
    answers         results of the objects applied so far
    is_committing   whether all objects were applied and their commit has begun
    dataset         the dataset of the last attempt
    """

    def __init__(self, context: CallContext, options: ImportOptions, bodies: Sequence[Any] = ()) -> None:
        self._context, self._options, self.bodies = context, options, bodies
        self.dataset = Dataset(context)
        self.answers: list[dict[str, Any]] = []
        self.is_committing = False

    def write(self, retry: RetryState) -> list[dict[str, Any]]:
        """Apply and commit the objects; returns their results."""
        self.answers, self.is_committing = [], False
        with retry.transaction():
            self.dataset = dataset = Dataset(self._context, model=self._options.model, locks=retry.locks)
            for body in self.bodies:
                self.answers.append(_answer(_apply(dataset, body)))
                _pause()
            self.is_committing = True
            dataset.commit(savepoint=False)
        return self.answers


def _apply(dataset: Dataset, body: Any) -> Record | None:
    if isinstance(body, errors.PlatformError):  # a spreadsheet row with an unusable cell
        raise body
    if not isinstance(body, dict):
        raise invalid_body(Message("an object to import must be a JSON object"))
    type_name = annotation(body, "type")
    repository = repositories.for_type(str(type_name)) if type_name is not None else None
    if repository is None:
        raise invalid_body(_no_type(type_name), target="@odata.type")
    # Merge: an object is found by its search properties, else created.
    return PayloadReader(dataset).apply(repository, body, default="merge")


def _no_type(name: Any) -> Message:
    """The error message for an invalid @odata.type; names the type if the value is a set, a common mistake."""
    named = repositories.for_set(str(name))
    if named is None:
        return Message("@odata.type must name an entity type, not {0}", quoted(name))
    return Message("@odata.type must name an entity type, {0}, not the set {1}", f"Erp.{named[0].entity_type}", name)


def _answer(record: Record | None) -> dict[str, Any]:
    if record is None:
        return {"@erpnet.result": "success", "@odata.id": None, "@erpnet.state": "Unchanged"}
    return {
        "@erpnet.result": "success",
        "@odata.id": reference_path(record.repository, record.id),
        "@erpnet.state": record.state,
    }


def _failure(error: Exception, context: CallContext) -> dict[str, Any]:
    known = known_error(error)
    if not isinstance(known, errors.PlatformError):
        logger.error("unhandled exception in an import", exc_info=error)
    rendered = errors.render(known, correlation_id=context.request_id, debug=False)
    return {
        "@erpnet.result": "fail",
        "@odata.id": None,
        "@erpnet.state": "Unchanged",
        "@erpnet.message": rendered.body["error"]["message"],
        "@erpnet.error": rendered.body["error"],
    }


def _summary(answer: dict[str, Any]) -> ErrorSummary | None:
    """The error of a failed object's result, whose message is in the caller's language; it lacks the failing rule."""
    error = answer.get("@erpnet.error")
    return None if error is None else ErrorSummary(error["type"], error["code"], error["message"])


class _Log:
    """Logs the import to Systems.Exchange.DataExchanges, with its own datasets."""

    def __init__(self, context: CallContext, options: ImportOptions, summary: ImportSummary) -> None:
        self.context = context.with_(client_initiated=False)
        self.options = options
        self.summary = summary
        self.pending: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Create the data exchange, in preparation."""
        if self.options.logging_level < 1:
            return
        dataset = Dataset(self.context)
        exchange = dataset.create(
            "Systems.Exchange.DataExchanges",
            {"Name": "Import", "Mode": "Import", "State": "Ready", "ExchangedByUser": self.context.user_id or None},
        )
        dataset.commit()
        self.summary.exchange = exchange.id

    def note(self, answer: dict[str, Any]) -> None:
        """Log one object's outcome; written in chunks."""
        if self.options.logging_level < 2:
            return
        self.pending.append(answer)
        if len(self.pending) >= CHUNK:
            self._write()

    def end(self) -> None:
        """Log the result."""
        if self.summary.exchange is None:
            return
        self._write()
        dataset = Dataset(self.context)
        exchange = dataset.load("Systems.Exchange.DataExchanges", self.summary.exchange)
        if exchange is not None:
            succeeded = self.summary.result == "success"
            dataset.assign(exchange, "State", "FinishedSuccess" if succeeded else "FinishedFail")
            dataset.assign(exchange, "ExchangedOn", dataset.now())
            dataset.assign(exchange, "ExchangeLog", f"{self.summary.succeeded} succeeded, {self.summary.failed} failed")
            dataset.commit()

    def _write(self) -> None:
        if not self.pending or self.summary.exchange is None:
            return
        dataset = Dataset(self.context)
        exchange = dataset.load("Systems.Exchange.DataExchanges", self.summary.exchange)
        for answer in self.pending:
            failed = answer["@erpnet.result"] == "fail"
            path = answer["@odata.id"] or ""
            dataset.create(
                "Systems.Exchange.DataExchangeObjects",
                {
                    "RepositoryName": path.partition("(")[0][:64] or None,
                    "ExchangeResult": "Fail" if failed else "Success",
                    "ExchangeMessage": answer["@erpnet.error"]["message"]
                    if "@erpnet.error" in answer
                    else path or None,
                },
                parent=exchange,
            )
        dataset.commit()
        self.pending = []
