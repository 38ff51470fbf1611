"""Reads sets, collections and entities as JSON, and counts them. See domain.query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import orjson
from django.conf import settings

from domain.model.repository import Repository
from domain.query.api.cache import NOTHING, Prepared, plan_for, prepare
from domain.query.base.access import Access
from domain.query.base.context_url import context_suffix
from domain.query.base.representation import CollectionResult, EntityResult, ParentScope, Representation, ShapeKey
from domain.query.plan.apply_plan import plan_apply
from domain.query.plan.concat import ConcatPlan
from domain.query.plan.planner import Planner
from domain.query.plan.rows_plan import RowsPlan
from domain.query.run.paging import make_token, read_token
from domain.query.run.row_json import DUMP_OPTIONS
from domain.query.sql.fragments import Run
from domain.syntax.ast import NO_OPTIONS, QueryOptions
from foundation import errors
from identity.context import CallContext

Counting = Callable[[Run], int]
_COUNT_SHAPE = ShapeKey()


def read_collection(
    repository: Repository[Any],
    options: QueryOptions,
    ctx: CallContext,
    representation: Representation,
    *,
    parent: ParentScope | None = None,
    base_path: str = "",
    max_page_size: int | None = None,
    top_paging: bool = False,
    may_end_early: bool = True,
) -> CollectionResult:
    """One page of a set, or of an owned collection of `parent`, as a JSON body.

    base_path is the URL of the request for next links: relative or absolute, with its query options except $skip and
    $skiptoken, which the engine appends. max_page_size is the caller's odata.maxpagesize. With top_paging $top is the
    size of a page instead of the number of rows on all pages. The caller checks whether the parent exists (`follow`);
    the collection of a hidden parent is empty.

    A page that would exceed MAX_ANSWER_BYTES has fewer rows if it may end early. Raises PayloadTooLarge if it may not,
    or for a single row.
    """
    ctx = _in_language(ctx, representation)
    prepared = prepare(options)
    plan = _rows_plan(repository, prepared, ctx, representation, parent)
    run = Run(prepared.values, ctx, key=parent.key if parent is not None else "")
    page = _page(plan, prepared, run, max_page_size, top_paging=top_paging)
    number = _count_of(plan, run) if prepared.count else None
    body: dict[str, Any] = {}
    if representation.metadata != "none":
        body["@odata.context"] = f"{representation.service_root}$metadata#{plan.context}"
    if number is not None:
        body["@odata.count"] = str(number) if representation.ieee754 else number
    while True:
        try:
            body["value"] = plan.array(page.rows, run)
            break
        except errors.PayloadTooLarge:
            if len(page.rows) <= 1 or not may_end_early:
                raise
            page = page.shortened()
    link = None
    if page.has_more:
        link = f"{base_path}{'&' if '?' in base_path else '?'}$skiptoken={quote(page.token(plan))}"
        body["@odata.nextLink"] = link
    return CollectionResult(orjson.dumps(body, option=DUMP_OPTIONS), len(page.rows), number, link)


def _in_language(ctx: CallContext, representation: Representation) -> CallContext:
    """The call context with the language of the representation."""
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
            return plan_apply(planner, repository, options, by=_back(repository, parent))
        context = repository.set_name + context_suffix(repository, options)
        return planner.rows(repository, options, by=_back(repository, parent), context=context, parent=parent)

    return plan_for(("rows", repository, prepared.shape, collection), ctx, shape_key, make)


def _planner(ctx: CallContext | None, shape_key: ShapeKey, options: QueryOptions) -> Planner:
    return Planner(
        Access.of(ctx) if ctx is not None else Access(None),
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

    has_more    more rows follow
    remaining   rows that $top allows, these included; None without $top
    skipped     rows before these
    """

    rows: Sequence[Any]
    has_more: bool
    remaining: int | None
    skipped: int

    def shortened(self) -> _Page:
        """The page with the first quarter of its rows, for a page that is too large as JSON."""
        return replace(self, rows=self.rows[: max(1, len(self.rows) // 4)], has_more=True)

    def token(self, plan: RowsPlan | ConcatPlan) -> str:
        """The $skiptoken of the next page."""
        left = None if self.remaining is None else self.remaining - len(self.rows)
        if plan.aggregated:
            return make_token(plan.fingerprint, [self.skipped + len(self.rows)], left)
        assert isinstance(plan, RowsPlan)  # a concatenation is aggregated
        last = self.rows[-1]
        return make_token(plan.fingerprint, [last[position] for position in plan.key_columns], left)


def _page(
    plan: RowsPlan | ConcatPlan, prepared: Prepared, run: Run, max_page_size: int | None, *, top_paging: bool
) -> _Page:
    page = settings.PAGE_SIZE_MAX if max_page_size is None else min(max(1, max_page_size), settings.PAGE_SIZE_MAX)
    remaining, nulls, skip = prepared.top, None, prepared.skip or 0
    if top_paging and remaining:
        # $top=0 selects no rows; as a page size it would give endless next links.
        page, remaining = min(page, remaining), None
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
    """One entity as a JSON body; None if it does not exist or is hidden from the caller."""
    ctx = _in_language(ctx, representation)
    prepared = NOTHING if options is NO_OPTIONS else prepare(options)
    shape_key = representation.shape_key

    def make() -> RowsPlan:
        result = prepared.shape.options
        planner = _planner(ctx, shape_key, result)
        planner.access.check_readable(repository)
        context = f"{repository.set_name}{context_suffix(repository, result)}/$entity"
        return planner.rows(repository, result, by=("Id",), context=context)

    plan = plan_for(("entity", repository, prepared.shape), ctx, shape_key, make)
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
    """Number of rows that match $filter and $search ($apply counts the resulting rows)."""
    prepared = prepare(options)
    collection = (parent.repository.name, parent.collection) if parent is not None else None

    def make() -> Counting:
        result = prepared.shape.options
        planner = _planner(ctx, _COUNT_SHAPE, result)
        planner.access.check_readable(repository)
        if result.apply:
            plan = plan_apply(planner, repository, result, by=_back(repository, parent))
            return lambda run: _count_of(plan, run)
        statement = planner.count(repository, result, by=_back(repository, parent), parent=parent)
        return lambda run: int(statement.fetch(run)[0][0])

    counting = plan_for(("count", repository, prepared.shape, collection), ctx, None, make)
    return counting(Run(prepared.values, ctx, key=parent.key if parent is not None else ""))


def _count_of(plan: RowsPlan | ConcatPlan, run: Run) -> int:
    return plan.count(run) if isinstance(plan, ConcatPlan) else int(plan.count_statement.fetch(run)[0][0])
