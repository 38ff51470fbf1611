"""Carries out the parts of a batch, one after another, group by group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from django.db import connection

from domain.dataset.commit.retries import Attempt, repeated
from domain.dataset.dataset import Dataset
from domain.dataset.transactions import domain_transactions
from domain.odata.message.failures import failure
from domain.odata.message.message import JSON, ODataRequest, ODataResponse
from domain.odata.message.response_annotations import tell
from domain.odata.service.batch.conditions import holds
from domain.odata.service.batch.parts import Done, Part, Service
from domain.query.run.shape import MAX_ANSWER_BYTES
from foundation import errors, turns
from foundation.phrases import Phrase
from identity.preferences import parse_prefer
from identity.rate_limits import check_api_request

MAX_PARTS = 1000
#: Seconds after which no further part is begun.
MAX_SECONDS = 30.0
#: Who holds locks waits no longer for the turn of the process.
_PATIENCE_SECONDS = 0.02
#: Headers of the batch itself that say nothing about its parts.
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
    }
)


def continue_on_error(request: ODataRequest, *, default: bool) -> bool:
    """Whether the caller prefers that parts behind a failed one are carried out."""
    prefer = request.context.prefer
    value = prefer.get("continue-on-error", prefer.get("odata.continue-on-error"))
    return default if value is None else value != "false"


@dataclass(slots=True)
class Runner:
    """Runs a batch's parts.

    references   id of a part → path of the entity that it made, changed or read
    done         id of a part, or name of a group → how it ended
    begun        when, by the monotonic clock
    counted      requests that the rate limits have counted ahead: the batch itself is one
    answered     bytes of answers so far
    """

    request: ODataRequest
    service: Service
    references: dict[str, str] = field(default_factory=dict)
    done: dict[str, Done] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)
    counted: int = 1
    answered: int = 0

    def run(self, parts: list[Part], *, continue_on_error: bool) -> Iterator[list[Done]]:
        """Answers group by group, in order; stops behind the first failure unless told to continue.

        Raises BadRequest, before anything is carried out, for what is no batch.
        """
        _check(parts)
        for number, group in enumerate(_groups(parts)):
            if number:
                # A batch may take long; others take their turns between its parts.
                turns.share(_PATIENCE_SECONDS if connection.in_atomic_block else None)
            answers = self._group(group) if group[0].group else [self._single(group[0])]
            for answer in answers:
                self.done[answer.part.id] = answer
                self.answered += len(answer.response.body)
            if group[0].group:
                self.done[group[0].group] = answers[0]
            yield answers
            if not continue_on_error and any(answer.failed for answer in answers):
                return

    def _single(self, part: Part) -> Done:
        try:
            self._check_dependencies(part)
            self._check_budget(1)
            asked = self._asked(part)
        except errors.PlatformError as error:
            return Done(part, self._failure(error))
        response = self.service.handle(asked)
        if response.status < 300 and part.id:
            # What a GET shows can be referred to, as what others make (OData Protocol 4.01, 11.7.3.1).
            self.references[part.id] = asked.entity or asked.path
        return Done(part, response)

    def _group(self, parts: list[Part]) -> list[Done]:
        """A changeset: one dataset, one commit; one failure answers for all (11.7.4)."""
        culprit: Part | None = None
        dataset: Dataset | None = None

        def attempted(attempt: Attempt) -> list[Done]:
            nonlocal culprit, dataset
            responds: list[tuple[Part, Callable[[], ODataResponse]]] = []
            with self._dataset_of(parts, attempt) as (dataset, transaction_id):
                for culprit in parts:
                    asked = self._asked(culprit)
                    responds.append((culprit, self.service.apply_in(asked, dataset, transaction_id)))
                    if asked.entity is not None and culprit.id:
                        self.references[culprit.id] = asked.entity
                culprit = None
                if transaction_id is None:
                    dataset.commit(savepoint=False)
                return [_answered(part, respond) for part, respond in responds]

        inside = {part.id for part in parts}
        try:
            for culprit in parts:
                self._check_dependencies(culprit, inside)
            culprit = None
            self._check_budget(len(parts))
            return repeated(attempted)
        except Exception as error:
            for other in parts:
                self.references.pop(other.id, None)
            failed = tell(self._failure(error), dataset)
            if self.request.content_type != JSON:
                return [Done(culprit or parts[0], failed)]
            return self._all_failed(parts, culprit, failed)

    def _check_budget(self, requests: int) -> None:
        """Count requests that are to be carried out. Raises TooManyRequests, and PayloadTooLarge of the answers."""
        if self.answered > MAX_ANSWER_BYTES:
            spent = Phrase("{0} bytes of answers", MAX_ANSWER_BYTES)
            raise errors.PayloadTooLarge(errors.BATCH_TOO_LARGE, spent)
        if time.monotonic() - self.begun > MAX_SECONDS:
            raise errors.PayloadTooLarge(errors.BATCH_TOO_LARGE, Phrase("{0} seconds", int(MAX_SECONDS)))
        if self.counted:
            # The first part is what the batch itself was counted for.
            requests, self.counted = requests - self.counted, 0
        if requests and self.request.context.quota is not None:
            check_api_request(self.request.context.quota, requests)

    @contextmanager
    def _dataset_of(self, parts: list[Part], attempt: Attempt) -> Iterator[tuple[Dataset, str | None]]:
        """The dataset that the group's parts share, and the Domain transaction that it is the dataset of."""
        ids = {self.service.transaction_id_of(self._asked(part)) for part in parts}
        if len(ids) > 1:
            raise errors.BadRequest(
                errors.INVALID_HEADER, "TransactionId", Phrase("the parts of a group are in one transaction")
            )
        (id,) = ids
        if id is None:
            with attempt.transaction():
                yield Dataset(self.request.context, locks=attempt.locks), None
        else:
            with domain_transactions.opened(self.request.context, id) as dataset:
                attempt.begin()
                yield dataset, id

    def _all_failed(self, parts: list[Part], culprit: Part | None, failed: ODataResponse) -> list[Done]:
        """OData JSON 4.01, 19.5: every request of the group has an answer; the others failed for the culprit's sake.

        What the commit refuses is nobody's alone, and all are told it.
        """
        if culprit is None:
            return [Done(part, replace(failed)) for part in parts]
        because = self._failure(_DependencyFailed(Phrase("request {0} of the same atomicity group failed", culprit.id)))
        return [Done(part, failed if part is culprit else replace(because)) for part in parts]

    def _failure(self, error: Exception) -> ODataResponse:
        response = failure(self.request, error)
        if isinstance(error, _DependencyFailed):
            response.status = 424
        response.headers.setdefault("OData-Version", "4.01")
        return response

    def _check_dependencies(self, part: Part, inside: frozenset[str] | set[str] = frozenset()) -> None:
        """Raise where the part is not to be carried out. `inside`: ids of its group, which fails or succeeds as one."""
        before = [id for id in part.depends_on if id not in inside]
        unknown = [id for id in before if id not in self.done]
        if unknown:
            raise errors.BadRequest(
                errors.INVALID_BODY, Phrase("dependsOn names {0}, which did not run before", ", ".join(unknown))
            )
        if part.condition is not None:
            if not holds(part.condition, {id: not done.failed for id, done in self.done.items()}):
                raise _DependencyFailed(Phrase("its condition does not hold: {0}", part.condition))
            return
        failed = [id for id in before if self.done[id].failed]
        if failed:
            raise _DependencyFailed(Phrase("a request it depends on failed: {0}", ", ".join(failed)))

    def _asked(self, part: Part) -> ODataRequest:
        path, query = self._relative(part.url)
        inherited = {name: value for name, value in self.request.headers.items() if name not in _OWN_HEADERS}
        headers = {**inherited, **part.headers}
        for name in ("if-match", "if-none-match"):
            if name in part.headers:
                headers[name] = self._etag(part.headers[name])
        context = self.request.context
        if "prefer" in part.headers:
            context = context.with_(prefer=parse_prefer(part.headers["prefer"]))
        elif "prefer" in headers:
            # What the caller prefers of the batch (continue-on-error) is not what they prefer of each part.
            context = context.with_(prefer={})
        return ODataRequest(
            method=part.method,
            path=path,
            query=query,
            headers=headers,
            body=part.body,
            context=context,
            service_root=self.request.service_root,
            references=self.references,
            depth=self.request.depth + 1,
        )

    def _etag(self, given: str) -> str:
        """`$1` stands for the ETag that request 1 was answered with (OData JSON 4.01, 19.3)."""
        done = self.done.get(given[1:]) if given.startswith("$") else None
        return given if done is None else done.response.headers.get("ETag", given)

    def _relative(self, url: str) -> tuple[str, str]:
        """Path and query behind the service root of an absolute, host-relative or service-relative URL."""
        root = urlsplit(self.request.service_root)
        try:
            split = urlsplit(url)
        except ValueError as exc:
            raise errors.BadRequest(errors.INVALID_BODY, Phrase("'{0}' is no URL", url), info=str(exc)) from exc
        if (split.scheme or split.netloc) and split.netloc != root.netloc:
            raise errors.BadRequest(errors.INVALID_BODY, Phrase("{0} leads out of this service", url))
        path = split.path
        if path.startswith("/"):
            if not path.startswith(root.path.rstrip("/")):
                raise errors.BadRequest(errors.INVALID_BODY, Phrase("{0} leads out of this service", url))
            path = path[len(root.path.rstrip("/")) :]
        return path.strip("/"), split.query


class _DependencyFailed(errors.BadRequest):
    """424: not carried out, because something that it depends on has failed."""

    def __init__(self, why: str) -> None:
        super().__init__(errors.INVALID_BODY, why)


def _answered(part: Part, respond: Callable[[], ODataResponse]) -> Done:
    response = respond()
    response.headers.setdefault("OData-Version", "4.01")
    return Done(part, response)


def _check(parts: list[Part]) -> None:
    if len(parts) > MAX_PARTS:
        raise errors.BadRequest(
            errors.INVALID_BODY, Phrase("a batch has at most {0} requests, not {1}", MAX_PARTS, len(parts))
        )
    if any(part.group and part.method in ("GET", "HEAD") for part in parts):
        raise errors.BadRequest(errors.INVALID_BODY, Phrase("a changeset or atomicity group holds no reading requests"))


def _groups(parts: list[Part]) -> Iterator[list[Part]]:
    """Parts of one group together; those of a group stand side by side."""
    group: list[Part] = []
    for part in parts:
        if group and not (part.group and part.group == group[0].group):
            yield group
            group = []
        group.append(part)
    if group:
        yield group
