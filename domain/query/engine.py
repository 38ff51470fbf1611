"""The verbs of the read engine. See domain.query for the contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import orjson
from django.conf import settings

from domain.model.repository import Repository
from domain.odata.syntax.ast import NO_OPTIONS, QueryOptions
from domain.query.access import Access
from domain.query.cache import NOTHING, Prepared, plan_for, prepare
from domain.query.concat import ConcatPlan
from domain.query.context_url import context_suffix
from domain.query.fragments import Run
from domain.query.paging import make_token, read_token
from domain.query.plan import Planner, RowsPlan
from domain.query.representation import (
    CollectionResult,
    EntityResult,
    ParentScope,
    Representation,
    ShapeKey,
)
from domain.query.shape import DUMP_OPTIONS, AnswerSize, joined
from foundation import errors
from identity.context import CallContext

Counting = Callable[[Run], int]
#: Rows whose expansions are fetched together; a page ends behind the last ones that fit into an answer.
_ROWS_AT_ONCE = 250
_COUNT_SHAPE: ShapeKey = ("none", False, False, "4.01")


def read_collection(
    repository: Repository[Any],
    options: QueryOptions,
    ctx: CallContext,
    representation: Representation,
    *,
    parent: ParentScope | None = None,
    base_path: str = "",
    max_page_size: int | None = None,
    may_end_early: bool = True,
) -> CollectionResult:
    """One page of a set, or of an owned collection of `parent`, as a JSON body.

    base_path is the URL of the request for next links: relative or absolute, with its query options except $skip and
    $skiptoken, which the engine appends. max_page_size is the caller's odata.maxpagesize. Whether the parent exists
    is the caller's question (`follow`); of one that is hidden from the caller, no row is shown.

    A page whose rows would be more than MAX_ANSWER_BYTES has fewer rows where it may end early. Raises PayloadTooLarge
    where it may not, or has one row.
    """
    ctx = _in_language(ctx, representation)
    prepared = prepare(options)
    plan = _rows_plan(repository, prepared, ctx, representation, parent)
    run = Run(prepared.values, ctx, key=parent.key if parent is not None else "")
    page = _page(plan, prepared, run, max_page_size)
    number = _count_of(plan, run) if prepared.count else None
    body: dict[str, Any] = {}
    if representation.metadata != "none":
        body["@odata.context"] = f"{representation.service_root}$metadata#{plan.context}"
    if number is not None:
        body["@odata.count"] = str(number) if representation.ieee754 else number
    if plan.batches:
        written = _written(plan, page.rows, run, may_end_early=may_end_early)
        body["value"] = joined(written)
        page = page.shortened(len(written))
    else:
        body["value"] = plan.shaped(page.rows, run)
    link = None
    if page.goes_on:
        link = f"{base_path}{'&' if '?' in base_path else '?'}$skiptoken={quote(page.token(plan))}"
        body["@odata.nextLink"] = link
    return CollectionResult(orjson.dumps(body, option=DUMP_OPTIONS), len(page.rows), number, link)


def _written(plan: RowsPlan | ConcatPlan, rows: Sequence[Any], run: Run, *, may_end_early: bool) -> list[bytes]:
    """The rows as JSON; fewer where not all fit into an answer. Raises PayloadTooLarge where the first does not."""
    size, written, step = AnswerSize(), list[bytes](), _ROWS_AT_ONCE
    while len(written) < len(rows):
        some = rows[len(written) : len(written) + step]
        try:
            written += size.written(plan.shaped(some, run))
        except errors.PayloadTooLarge:
            if not may_end_early or (step == 1 and not written):
                raise
            if written:
                break
            size, step = AnswerSize(), max(1, min(step, len(rows)) // 4)
    return written


def _in_language(ctx: CallContext, representation: Representation) -> CallContext:
    """The call in the representation's language, which is nearly always its own."""
    return ctx if ctx.language == representation.language else ctx.with_(language=representation.language)


def _rows_plan(
    repository: Repository[Any],
    prepared: Prepared,
    ctx: CallContext,
    representation: Representation,
    parent: ParentScope | None,
) -> RowsPlan | ConcatPlan:
    shape_key = representation.shape_key
    collection = (parent.repository.name, parent.collection) if parent is not None else None

    def make() -> RowsPlan | ConcatPlan:
        planner = _planner(ctx, shape_key, prepared.shape.options)
        planner.access.check_readable(repository)
        options = prepared.shape.options
        if options.apply:
            from domain.query.apply import plan_apply

            return plan_apply(planner, repository, options, by=_back(repository, parent))
        context = repository.set_name + context_suffix(repository, options)
        return planner.rows(repository, options, by=_back(repository, parent), context=context, parent=parent)

    return plan_for(("rows", repository.name, prepared.shape, collection), ctx, shape_key, make)


def _planner(ctx: CallContext | None, shape_key: ShapeKey, options: QueryOptions) -> Planner:
    return Planner(
        Access(ctx.permissions if ctx is not None else None),
        shape_key,
        {alias.name: alias.value for alias in options.aliases},
    )


def _back(repository: Repository[Any], parent: ParentScope | None) -> tuple[str, ...]:
    if parent is None:
        return ()
    return (parent.repository.collections[parent.collection].back_reference,)


@dataclass(frozen=True, slots=True)
class _Page:
    """Rows of a page.

    goes_on     more rows follow
    remaining   rows that $top allows, these included; None without $top
    skipped     rows before these
    """

    rows: Sequence[Any]
    goes_on: bool
    remaining: int | None
    skipped: int

    def shortened(self, count: int) -> _Page:
        """The first of its rows."""
        if count == len(self.rows):
            return self
        return replace(self, rows=self.rows[:count], goes_on=True)

    def token(self, plan: RowsPlan | ConcatPlan) -> str:
        """The $skiptoken of the next page."""
        left = None if self.remaining is None else self.remaining - len(self.rows)
        if plan.aggregated:
            return make_token(plan.fingerprint, [self.skipped + len(self.rows)], left)
        return make_token(plan.fingerprint, self.rows[-1][plan.width :], left)


def _page(plan: RowsPlan | ConcatPlan, prepared: Prepared, run: Run, max_page_size: int | None) -> _Page:
    page = settings.PAGE_SIZE_MAX if max_page_size is None else min(max(1, max_page_size), settings.PAGE_SIZE_MAX)
    remaining, nulls, skip = prepared.top, None, prepared.skip or 0
    if prepared.skiptoken is not None:
        remaining, seek = read_token(plan.fingerprint, prepared.skiptoken, len(plan.keys) or 1)
        if plan.aggregated:
            skip = int(seek[0])
        else:
            run.seek, skip = seek, 0
            nulls = tuple(value is None for value in seek)
    if remaining == 0:
        return _Page([], False, remaining, skip)
    more_wanted = remaining is None or remaining > page
    run.limit = page + 1 if more_wanted else remaining or 0
    run.skip = skip
    if isinstance(plan, ConcatPlan):
        rows: Any = plan.read(run, with_skip=skip > 0)
    else:
        rows = plan.statement(nulls, with_skip=skip > 0).fetch(run)
    if not more_wanted or len(rows) <= page:
        return _Page(rows, False, remaining, skip)
    return _Page(rows[:page], True, remaining, skip)


def read_entity(
    repository: Repository[Any],
    key: str,
    options: QueryOptions,
    ctx: CallContext,
    representation: Representation,
) -> EntityResult | None:
    """One entity as a JSON body; None when there is none, or none for this caller."""
    ctx = _in_language(ctx, representation)
    prepared = NOTHING if options is NO_OPTIONS else prepare(options)
    shape_key = representation.shape_key

    def make() -> RowsPlan:
        made = prepared.shape.options
        planner = _planner(ctx, shape_key, made)
        planner.access.check_readable(repository)
        context = f"{repository.set_name}{context_suffix(repository, made)}/$entity"
        return planner.rows(repository, made, by=("Id",), context=context)

    plan = plan_for(("entity", repository.name, prepared.shape), ctx, shape_key, make)
    run = Run(prepared.values, ctx, key=key)
    rows = plan.statement(None, with_skip=False, with_limit=False).fetch(run)
    if not rows:
        return None
    (value,) = plan.shaped(rows, run)
    if representation.metadata != "none":
        value = {"@odata.context": f"{representation.service_root}$metadata#{plan.context}", **value}
    etag = f'W/"{rows[0][plan.etag_column]}"' if plan.etag_column is not None else None
    return EntityResult(orjson.dumps(value, option=DUMP_OPTIONS), key, etag)


def count(
    repository: Repository[Any],
    options: QueryOptions,
    ctx: CallContext,
    *,
    parent: ParentScope | None = None,
) -> int:
    """How many rows match $filter and $search ($apply counts the resulting rows)."""
    prepared = prepare(options)
    collection = (parent.repository.name, parent.collection) if parent is not None else None

    def make() -> Counting:
        made = prepared.shape.options
        planner = _planner(ctx, _COUNT_SHAPE, made)
        planner.access.check_readable(repository)
        if made.apply:
            from domain.query.apply import plan_apply

            plan = plan_apply(planner, repository, made, by=_back(repository, parent))
            return lambda run: _count_of(plan, run)
        statement = planner.count(repository, made, by=_back(repository, parent), parent=parent)
        return lambda run: int(statement.fetch(run)[0][0])

    counting = plan_for(("count", repository.name, prepared.shape, collection), ctx, None, make)
    return counting(Run(prepared.values, ctx, key=parent.key if parent is not None else ""))


def _count_of(plan: RowsPlan | ConcatPlan, run: Run) -> int:
    return plan.count(run) if isinstance(plan, ConcatPlan) else int(plan.count_statement.fetch(run)[0][0])


__all__ = ["NO_OPTIONS", "count", "read_collection", "read_entity"]
