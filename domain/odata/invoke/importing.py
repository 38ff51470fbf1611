"""Import: many objects in one request, each on its own or all of them together (spec 03, 3.4).

Objects are read, applied and answered one after another. In per-object mode each has a dataset and a commit of its own;
in all-objects mode they share one database transaction, committed to datasets of CHUNK objects so that memory stays
bounded, and one failure leaves nothing.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, cast

import orjson
from django.db import transaction
from django.utils.translation import gettext

from domain.dataset.commit.retries import Attempt, repeated
from domain.dataset.dataset import Dataset
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.records.record import ModelName, Record
from domain.model.registry import repositories
from domain.odata.message.failures import known_error
from domain.odata.message.references import reference_path
from domain.odata.write.payload import PayloadReader
from foundation import errors, turns
from foundation.phrases import Phrase, quoted
from identity.context import CallContext

logger = logging.getLogger(__name__)
CHUNK = 200
_PATIENCE_SECONDS = 1.0
TransactionMode = Literal["per-object", "all-objects"]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What an import is asked to do. logging_level: 0 nothing, 1 the import, 2 each object too."""

    transaction: TransactionMode = "per-object"
    model: ModelName = "frontend"
    logging_level: int = 2


@dataclass(slots=True)
class ImportSummary:
    """What came of an import, known when its answers have been read to the end."""

    succeeded: int = 0
    failed: int = 0
    exchange: str | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def result(self) -> str:
        """success | fail."""
        return "fail" if self.failed else "success"


def read_options(members: dict[str, Any]) -> ImportOptions:
    """Options from the body's members. Raises BadRequest for unknown names and values."""
    known = {"transaction", "model", "loggingLevel", "objects"}
    unknown = [name for name in members if name not in known and "@" not in name]
    if unknown:
        raise errors.BadRequest(errors.UNKNOWN_PARAMETER, "Import", unknown[0], target=unknown[0])
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
    """Apply each object; its answer, in input order. `summary` is filled in as answers are taken.

    In all-objects mode a failure ends the import: the objects before it are answered as rolled back with it.
    """
    log = _Log(context, options, summary)
    log.begin()
    if options.transaction == "per-object":
        answers = _each(context, objects, options)
    else:
        answers = _together(context, objects, options)
    for answer in answers:
        if answer["@erpnet.result"] == "success":
            summary.succeeded += 1
        else:
            summary.failed += 1
        log.note(answer)
        yield answer
        # A long import keeps its web process busy for minutes; between two objects others may go first.
        turns.share()
    log.end()


def _each(context: CallContext, objects: Iterable[Any], options: ImportOptions) -> Iterator[dict[str, Any]]:
    for body in objects:
        yield _one(context, body, options)


def _one(context: CallContext, body: Any, options: ImportOptions) -> dict[str, Any]:
    dataset: Dataset | None = None

    def attempted(attempt: Attempt) -> dict[str, Any]:
        nonlocal dataset
        with attempt.transaction():
            dataset = Dataset(context, model=options.model, locks=attempt.locks)
            answer = _answer(_apply(dataset, body))
            dataset.commit(savepoint=False)
            return answer

    try:
        answer = repeated(attempted)
    except Exception as error:
        answer = _failure(error, context)
    if dataset is not None and dataset.warnings:
        answer["@erpnet.message"] = " ".join(dataset.warnings)
    if dataset is not None and dataset.traces:
        answer["@erpnet.trace"] = list(dataset.traces)
    return answer


def _together(context: CallContext, objects: Iterable[Any], options: ImportOptions) -> Iterator[dict[str, Any]]:
    locks = AdvisoryLocks(whole=True)
    # Answers wait in a file until all is written: a hundred thousand of them are many times what one chunk needs.
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as answers:
        done, chunk = 0, _Chunk(context, options)
        try:
            with transaction.atomic():
                iterator = iter(objects)
                while bodies := list(islice(iterator, CHUNK)):
                    chunk = _Chunk(context, options, bodies)
                    found = repeated(chunk.write, locks=locks)
                    answers.writelines(orjson.dumps(answer) + b"\n" for answer in found)
                    done += len(found)
                    chunk = _Chunk(context, options)
        except Exception as error:
            undone = {
                "@erpnet.result": "fail",
                "@odata.id": None,
                "@erpnet.state": "Unchanged",
                "@erpnet.message": gettext("Undone, because another object of the import failed."),
            }
            failure = _failure(error, context)
            # Of a commit that is refused nobody can say whose fault it was, so all that it was for are told why.
            applied = len(chunk.answers)
            before, refused = (done, applied) if chunk.is_committing else (done + applied, 1)
            for _ in range(before):
                yield dict(undone)
            for _ in range(refused):
                yield dict(failure)
            return
        answers.seek(0)
        for line in answers:
            yield orjson.loads(line)


class _Chunk:
    """Objects that are committed together.

    answers         of those that were applied so far
    is_committing   whether all were, and their commit has begun
    """

    def __init__(self, context: CallContext, options: ImportOptions, bodies: Sequence[Any] = ()) -> None:
        self._context, self._options, self._bodies = context, options, bodies
        self.answers: list[dict[str, Any]] = []
        self.is_committing = False

    def write(self, attempt: Attempt) -> list[dict[str, Any]]:
        """Apply and commit them; their answers."""
        self.answers, self.is_committing = [], False
        with attempt.transaction():
            dataset = Dataset(self._context, model=self._options.model, locks=attempt.locks)
            for body in self._bodies:
                self.answers.append(_answer(_apply(dataset, body)))
                # Whoever has the turn then may wait for the very rows, or the file, that are locked here.
                turns.share(_PATIENCE_SECONDS)
            self.is_committing = True
            dataset.commit(savepoint=False)
        return self.answers


def _apply(dataset: Dataset, body: Any) -> Record | None:
    if not isinstance(body, dict):
        raise errors.BadRequest(errors.INVALID_BODY, Phrase("an object to import must be a JSON object"))
    type_name = body.get("@odata.type", body.get("@type"))
    repository = repositories.for_type(str(type_name)) if type_name is not None else None
    if repository is None:
        raise errors.BadRequest(errors.INVALID_BODY, _no_type(type_name), target="@odata.type")
    # An object to import says what it is, not that it is new: it is found by what identifies it, else created.
    return PayloadReader(dataset).apply(repository, body, default="merge")


def _no_type(name: Any) -> Phrase:
    """Names the type of a set, which is what people write instead."""
    found = repositories.for_set(str(name))
    if found is None:
        return Phrase("@odata.type must name an entity type, not {0}", quoted(name))
    return Phrase("@odata.type must name an entity type, {0}, not the set {1}", f"Erp.{found[0].entity_type}", name)


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
        "@erpnet.error": rendered.body["error"],
    }


class _Log:
    """Systems.Exchange.DataExchanges and their objects, written beside the import's own datasets."""

    def __init__(self, context: CallContext, options: ImportOptions, summary: ImportSummary) -> None:
        self.context = context.with_(client_initiated=False)
        self.options = options
        self.summary = summary
        self.pending: list[dict[str, Any]] = []

    def begin(self) -> None:
        """The exchange, in preparation."""
        if self.options.logging_level < 1:
            return
        dataset = Dataset(self.context)
        user = self.context.user
        exchange = dataset.create(
            "Systems.Exchange.DataExchanges",
            {"Name": "Import", "Mode": "Import", "State": "Ready", "ExchangedByUser": user.id if user else None},
        )
        dataset.commit()
        self.summary.exchange = exchange.id

    def note(self, answer: dict[str, Any]) -> None:
        """One object's outcome; written in chunks."""
        if self.options.logging_level < 2:
            return
        self.pending.append(answer)
        if len(self.pending) >= CHUNK:
            self._write()

    def end(self) -> None:
        """How it ended."""
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
