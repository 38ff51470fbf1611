"""Runs the parts of a batch, one after another, group by group."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import urlsplit

import orjson

from domain.dataset.commit.retries import RetryState, run_with_retries
from domain.dataset.dataset import Dataset
from domain.dataset.transactions import domain_transactions, write_lock_time
from domain.odata.message.failures import failure
from domain.odata.message.json_body import invalid_body
from domain.odata.message.message import JSON, ODataRequest, ODataResponse, ReceivedRequest
from domain.odata.message.response_annotations import TRACE_RULES, annotate
from domain.odata.resources import former_names, targets
from domain.odata.service import idempotency
from domain.odata.service.batch.conditions import holds
from domain.odata.service.batch.parts import Done, Part, Serve
from domain.odata.service.current_model import with_current_model
from domain.odata.service.dry_run import check_model, check_no_dry_run_of_part
from domain.odata.service.parsing import parse, transaction_id_of
from domain.odata.service.steps import Exchange, apply, authorize, resolve
from domain.query.run.row_json import MAX_ANSWER_BYTES
from foundation import errors
from foundation.error_summaries import ErrorSummary
from foundation.execution_slot import defer_to_slot
from foundation.messages import TranslatableMessage as Message
from identity.languages import messages_of
from identity.preferences import CONTEXT_PARAMETERS, parse_prefer
from identity.rate_limits import check_api_request

MAX_PARTS = 1000
#: Annotation of a group's errors with the id of the failed request (OASIS vocabulary Core, term ContentID).
CONTENT_ID = "@Org.OData.Core.V1.ContentID"
#: Seconds after which no further part is started.
MAX_SECONDS = 30.0
_OF_BATCH = Message("it belongs to the batch, whose parts share its context")
#: Headers of the batch itself that do not apply to its parts.
_OWN_HEADERS = frozenset(
    {
        "content-type",
        "content-length",
        "content-encoding",
        "accept",
        "accept-encoding",
        "if-match",
        "if-none-match",
        "host",
        "connection",
        *idempotency.HEADERS,
    }
)


def preferred_continuation(request: ODataRequest) -> bool | None:
    """Whether the caller prefers that parts after a failed one run; None without a preference."""
    prefer = request.context.prefer
    value = prefer.get("continue-on-error", prefer.get("odata.continue-on-error"))
    return None if value is None else value != "false"


def continue_on_error(request: ODataRequest, *, default: bool) -> bool:
    """Whether parts after a failed one run."""
    preferred = preferred_continuation(request)
    return default if preferred is None else preferred


@dataclass(slots=True)
class Runner:
    """Runs a batch's parts.

    references   id of a part → path of the entity that it created, changed or read
    done         id of a part, or name of a group → its response
    begun        start of the batch by the monotonic clock
    counted      requests of this batch that the rate limits have counted in advance: the batch itself
    answered     bytes of responses so far
    error        of the first part that failed by itself, not because of a failed dependency
    failed       number of failed parts
    """

    request: ODataRequest
    serve: Serve
    references: dict[str, str] = field(default_factory=dict)
    done: dict[str, Done] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)
    counted: int = 1
    answered: int = 0
    error: ErrorSummary | None = None
    failed: int = 0

    def run(self, parts: list[Part], *, continue_on_error: bool) -> Iterator[list[Done]]:
        """Responses group by group, in order; stops after the first failure unless `continue_on_error`.

        Raises BadRequest, before any part runs, for an invalid batch.
        """
        _check(parts)
        for group in _groups(parts):
            defer_to_slot()
            answers = self._group(group) if group[0].group else [self._single(group[0])]
            for answer in answers:
                self.done[answer.part.id] = answer
                self.answered += len(answer.response.body)
                if answer.failed:
                    self._count_failure(answer.response)
            if group[0].group:
                self.done[group[0].group] = answers[0]
            yield answers
            if not continue_on_error and any(answer.failed for answer in answers):
                return

    def response(self, body: bytes, content_type: str) -> ODataResponse:
        """The response of the batch, with the first error and the number of failed parts for the request's record."""
        headers = {"Content-Type": content_type}
        return ODataResponse(200, body, headers, error=self.error, failed_parts=self.failed)

    def _count_failure(self, response: ODataResponse) -> None:
        self.failed += 1
        if self.error is None and response.status != errors.DEPENDENCY_FAILED.status:
            self.error = response.error

    def _single(self, part: Part) -> Done:
        try:
            check_model()
            self._check_dependencies(part)
            self._check_budget(1)
            exchange = Exchange(self._received(part))
        except Exception as error:  # the responses of parts that have committed must not be lost
            return Done(part, self._failure(error))
        response = self.serve(exchange)
        if response.status < 300 and part.id:
            # Later parts may refer to the entity of a GET, too (OData Protocol 4.01, 11.7.3.1).
            self.references[part.id] = exchange.entity or exchange.received.path
        return Done(part, response)

    def _group(self, parts: list[Part]) -> list[Done]:
        """Run a changeset or atomicity group with one dataset and one commit; one failure fails all of it (11.7.4)."""
        culprit: Part | None = None
        dataset: Dataset | None = None
        applied: list[tuple[Part, Exchange, Callable[[], ODataResponse]]] = []

        def attempted(retry: RetryState) -> list[Done]:
            nonlocal culprit, dataset
            applied.clear()
            with self._dataset_of(parts, retry) as (dataset, commits):
                for culprit in parts:
                    self._check_time()
                    exchange = Exchange(self._received(culprit), dataset=dataset)
                    check_no_dry_run_of_part(exchange.received)
                    if idempotency.is_repeatable(exchange.received):
                        raise errors.BadRequest(
                            errors.INVALID_HEADER, "Idempotency-Key", Message("a group has that of its batch")
                        )
                    exchange.request = parse(exchange.received)
                    resolve(exchange)
                    authorize(exchange)
                    applied.append((culprit, exchange, apply(exchange, dataset)))
                    if exchange.entity is not None and culprit.id:
                        self.references[culprit.id] = exchange.entity
                culprit = None
                if commits:
                    dataset.commit(savepoint=False)
                return [_answered(*each) for each in applied]

        inside = {part.id for part in parts}
        try:
            check_model()
            for culprit in parts:
                self._check_dependencies(culprit, inside)
            culprit = None
            self._check_budget(len(parts))
            return with_current_model(
                partial(run_with_retries, attempted),
                may_repeat=lambda: transaction_id_of(self._received(parts[0])) is None,
            )
        except Exception as error:
            for other in parts:
                self.references.pop(other.id, None)
            writers = _writers(applied)
            if culprit is None and isinstance(error, errors.PlatformError):
                culprit = _writer_of(error.about, dataset, writers)
            failed = annotate(self._failure(error), dataset)
            if culprit is not None or isinstance(error, errors.PlatformError):
                _name_requests(failed, error, culprit, partial(_writer_of, dataset=dataset, writers=writers))
            if self.request.content_type not in (JSON, ""):
                return [Done(culprit or parts[0], failed)]
            return self._all_failed(parts, culprit, failed)

    def _check_budget(self, requests: int) -> None:
        """Count requests before they run. Raises TooManyRequests, and PayloadTooLarge for the batch's budgets."""
        if self.answered > MAX_ANSWER_BYTES:
            spent = Message("{0} bytes of answers", MAX_ANSWER_BYTES)
            raise errors.PayloadTooLarge(errors.BATCH_TOO_LARGE, spent)
        self._check_time()
        if self.counted:
            # The batch itself was counted, as its first part.
            requests, self.counted = requests - self.counted, 0
        if requests and self.request.context.quota is not None:
            check_api_request(self.request.context.quota, requests)

    def _check_time(self) -> None:
        write_lock_time.check_time()
        if time.monotonic() - self.begun > MAX_SECONDS:
            raise errors.PayloadTooLarge(errors.BATCH_TOO_LARGE, Message("{0} seconds", int(MAX_SECONDS)))

    @contextmanager
    def _dataset_of(self, parts: list[Part], retry: RetryState) -> Iterator[tuple[Dataset, bool]]:
        """(dataset of the group's parts, whether the group commits it); in a Domain transaction it does not."""
        ids = {transaction_id_of(self._received(part)) for part in parts}
        if len(ids) > 1:
            raise errors.BadRequest(
                errors.INVALID_HEADER, "TransactionId", Message("the parts of a group are in one transaction")
            )
        (id,) = ids
        context = self.request.context
        if any(TRACE_RULES in self._received(part).context.prefer for part in parts):
            context = context.with_(prefer={**context.prefer, TRACE_RULES: ""})
        if id is None:
            with retry.transaction(deferred=True):
                yield Dataset(context, locks=retry.locks), True
        else:
            with domain_transactions.opened(context, id) as dataset:
                retry.begin()
                yield dataset, False

    def _all_failed(self, parts: list[Part], culprit: Part | None, failed: ODataResponse) -> list[Done]:
        """A response for every request of a failed group: 424 for all but the culprit (OData JSON 4.01, 19.5).

        Without a culprit, as the commit failed, its error is the response to all of them.
        """
        if culprit is None:
            return [Done(part, replace(failed)) for part in parts]
        because = self._failure(
            _dependency_failed(Message("request {0} of the same atomicity group failed", culprit.id))
        )
        return [Done(part, failed if part is culprit else replace(because)) for part in parts]

    def _failure(self, error: Exception) -> ODataResponse:
        response = failure(error, self.request.context, f"{self.request.method} {self.request.path}")
        response.headers.setdefault("OData-Version", self.request.version)
        response.headers.setdefault("Content-Language", messages_of(self.request.context))
        return response

    def _check_dependencies(self, part: Part, inside: frozenset[str] | set[str] = frozenset()) -> None:
        """Raise if a dependency failed or the condition does not hold. inside: ids of its group, not checked."""
        before = [id for id in part.depends_on if id not in inside]
        unknown = [id for id in before if id not in self.done]
        if unknown:
            raise invalid_body(Message("dependsOn names {0}, which did not run before", ", ".join(unknown)))
        if part.condition is not None:
            if not holds(part.condition, self.done):
                raise _dependency_failed(Message("its condition does not hold: {0}", part.condition))
            return
        failed = [id for id in before if self.done[id].failed]
        if failed:
            raise _dependency_failed(Message("a request it depends on failed: {0}", ", ".join(failed)))

    def _received(self, part: Part) -> ReceivedRequest:
        path, query = self._relative(part.url)
        inherited = {name: value for name, value in self.request.headers.items() if name not in _OWN_HEADERS}
        headers = {**inherited, **part.headers}
        for name in ("if-match", "if-none-match"):
            if name in part.headers:
                headers[name] = self._etag(part.headers[name])
        context = self.request.context
        self._check_context(part)
        if "prefer" in headers:
            # Parts inherit no preference of the batch but the one for traces.
            prefer = dict(parse_prefer(part.headers.get("prefer", "")))
            if TRACE_RULES in context.prefer:
                prefer[TRACE_RULES] = ""
            context = context.with_(prefer=prefer)
        return ReceivedRequest(
            method=part.method,
            path=path,
            query=query,
            headers=headers,
            body=part.body,
            context=context,
            service_root=self.request.service_root,
            references=self.references,
            depth=self.request.depth + 1,
            batch_version=self.request.version,
        )

    def _check_context(self, part: Part) -> None:
        """Refuse a context or reason of the part that the batch does not have: it would be ignored."""
        for name in ("ErpContextParameters", "X-Change-Reason"):
            if part.headers.get(name.lower()) not in (None, self.request.headers.get(name.lower())):
                raise errors.BadRequest(errors.INVALID_HEADER, name, _OF_BATCH, target=name)
        prefer = parse_prefer(part.headers.get("prefer", ""))
        for name in CONTEXT_PARAMETERS:
            if prefer.get(name.lower()) not in (None, self.request.context.prefer.get(name.lower())):
                raise errors.BadRequest(errors.INVALID_HEADER, "Prefer", _OF_BATCH, target="Prefer")

    def _etag(self, given: str) -> str:
        """Replace `$1` by the ETag in the response to request 1 (OData JSON 4.01, 19.3)."""
        done = self.done.get(given[1:]) if given.startswith("$") else None
        return given if done is None else done.response.headers.get("ETag", given)

    def _relative(self, url: str) -> tuple[str, str]:
        """Path and query below the service root of an absolute, host-relative or service-relative URL."""
        root = urlsplit(self.request.service_root)
        try:
            split = urlsplit(url)
        except ValueError as exc:
            raise invalid_body(Message("'{0}' is no URL", url), info=str(exc)) from exc
        if "#" in url:
            raise invalid_body(Message("'{0}' is no URL", url), info="# is written %23")
        if (split.scheme or split.netloc) and split.netloc != root.netloc:
            raise invalid_body(Message("{0} leads out of this service", url))
        path = split.path
        if path.startswith("/"):
            if not path.startswith(root.path.rstrip("/")):
                raise invalid_body(Message("{0} leads out of this service", url))
            path = path[len(root.path.rstrip("/")) :]
        return path.strip("/"), split.query


def _dependency_failed(why: Message) -> errors.FailedDependency:
    return errors.FailedDependency(errors.DEPENDENCY_FAILED, why)


def _writers(applied: list[tuple[Part, Exchange, Callable[[], ODataResponse]]]) -> dict[str, Part]:
    """Guid → the last part of a group that wrote the entity, or whose path starts at it."""
    writers: dict[str, Part] = {}
    for part, exchange, _respond in applied:
        key = targets.starting_key(exchange.target)
        if key:
            writers[key] = part
        if exchange.entity is not None:
            writers[exchange.entity.rpartition("(")[2].rstrip(")")] = part
    return writers


def _writer_of(about: tuple[str, str] | None, dataset: Dataset | None, writers: Mapping[str, Part]) -> Part | None:
    """The part that wrote an entity, or one of its owners; None if only rules or effects of other changes wrote it."""
    record = dataset.records.get(about) if dataset is not None and about is not None else None
    while record is not None:
        if record.id in writers:
            return writers[record.id]
        record = record.parent
    return None


def _name_requests(
    response: ODataResponse,
    error: Exception,
    culprit: Part | None,
    writer_of: Callable[[tuple[str, str] | None], Part | None],
) -> None:
    """Add the Content-ID of the request that failed to the error, and to each of its details."""
    body = orjson.loads(response.body)
    shown = body["error"]
    if culprit is not None and culprit.id:
        shown[CONTENT_ID] = culprit.id
    details = error.details if isinstance(error, errors.PlatformError) else ()
    for detail, entry in zip(details, shown.get("details", ()), strict=False):
        part = writer_of(detail.about) or culprit
        if part is not None and part.id:
            entry[CONTENT_ID] = part.id
    response.body = json.dumps(body).encode()


def _answered(part: Part, exchange: Exchange, respond: Callable[[], ODataResponse]) -> Done:
    response = annotate(former_names.warn(respond(), exchange.renamed), exchange.dataset)
    response.headers.setdefault("OData-Version", exchange.request.version)
    return Done(part, response)


def check_count(parts: int) -> None:
    """Raise BadRequest for more than MAX_PARTS parts."""
    if parts > MAX_PARTS:
        raise invalid_body(Message("a batch has at most {0} requests", MAX_PARTS))


def _check(parts: list[Part]) -> None:
    if any(part.group and part.method in ("GET", "HEAD") for part in parts):
        raise invalid_body(Message("a changeset or atomicity group holds no reading requests"))


def _groups(parts: list[Part]) -> Iterator[list[Part]]:
    """Adjacent parts of one group together."""
    group: list[Part] = []
    for part in parts:
        if group and not (part.group and part.group == group[0].group):
            yield group
            group = []
        group.append(part)
    if group:
        yield group
