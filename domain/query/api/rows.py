"""Reads Python values and single properties, and checks rows against filters. See domain.query."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.db import connections

from domain.model.repository import Repository
from domain.query.api.cache import TEXT_KEPT, VALUES_KEPT, parameterize, plan_for, shape_of
from domain.query.base.access import Access
from domain.query.base.bound import BOOL, GUID, STRING, Bound, ConcreteType, CustomText, Source, new_root
from domain.query.base.representation import Representation, ShapeKey, ValueResult
from domain.query.base.scope import entity_scope
from domain.query.bind.binder import Binder
from domain.query.bind.paths import bind_path
from domain.query.bind.sources import column
from domain.query.bind.sources import follow as follow_reference
from domain.query.bind.texts import as_scalar
from domain.query.plan.calculated import WARNING, calculation_error
from domain.query.plan.planner import KeyEquals, Planner
from domain.query.plan.rows_plan import RowsPlan
from domain.query.rights.policies import bind_policy, restriction, visible
from domain.query.run.execute import Statement
from domain.query.run.row_json import canonical_decoder, dump
from domain.query.sql import dialects
from domain.query.sql.compiler import Compiler, new_statement
from domain.query.sql.fragments import Run, Sql, run_keys, run_limit, select_from
from domain.query.sql.joins import Block
from domain.syntax import ast, parse_boolean_expression, parse_orderby
from domain.syntax.ast import Expression, QueryOptions
from domain.syntax.errors import ODataUrlError
from foundation import errors
from foundation.kinds import Kind
from foundation.texts import decode_base64
from identity.context import CallContext, Operation
from identity.lru import GenerationalCache

Decoder = Callable[[Any], Any]
SHAPE = ShapeKey()
_filters: GenerationalCache[str, tuple[Any, tuple[Any, ...]]] = GenerationalCache(500)
_STEP = re.compile(r"[./]")


@dataclass(frozen=True, slots=True)
class _ValuesPlan:
    statement: Statement
    decoders: tuple[Decoder, ...]


def select_rows(
    repository: Repository[Any],
    names: Sequence[str],
    *,
    ctx: CallContext,
    filter: Expression | str | None = None,
    orderby: str = "",
    limit: int | None = None,
    ids: Sequence[str] | None = None,
) -> list[tuple[Any, ...]]:
    """Canonical Python values of attributes, also by paths over references ("Customer.Party.PartyName", or with "/").

    The value of a reference is its key, of an amount or quantity its number (`Price/Currency` the code), of a custom
    property its object. filter is a $filter (text or tree); orderby the text of an $orderby; ids restricts to those
    keys.
    """
    tree, values = _parameterized(filter)
    shape = shape_of(tree, len(values))
    by_ids = ids is not None
    if ids is not None:
        # The key of a null reference is empty.
        ids = [id for id in ids if id]
        if not ids:
            return []

    def make() -> _ValuesPlan:
        return _plan_values(repository, tuple(names), tree, orderby, ctx, limit is not None, by_ids)

    key = ("values", repository, tuple(names), shape, orderby, limit is not None, by_ids)
    plan = plan_for(key, ctx, None, make)
    run = Run(values, ctx, limit=limit or 0)
    if ids is not None:
        run.keys = plan.statement.dialect.encode_keys(list(ids))
    decoders = plan.decoders
    return [
        tuple([None if cell is None else decode(cell) for cell, decode in zip(row, decoders, strict=True)])
        for row in plan.statement.fetch(run)
    ]


def select_ids(
    repository: Repository[Any],
    *,
    ctx: CallContext,
    filter: Expression | str | None = None,
    orderby: str = "",
    limit: int | None = None,
) -> list[str]:
    """Keys of the rows that match."""
    rows = select_rows(repository, ("Id",), ctx=ctx, filter=filter, orderby=orderby, limit=limit)
    return [row[0] for row in rows]


def _parameterized(filter: Expression | str | None) -> tuple[Any, tuple[Any, ...]]:
    if filter is None:
        return None, ()
    if isinstance(filter, str):
        known = _filters.get(filter)
        if known is None:
            known = parameterize(parse_filter(filter))
            if len(known[1]) <= VALUES_KEPT and len(filter) <= TEXT_KEPT:
                _filters.put(filter, known)
        return known
    return parameterize(filter)


def parse_filter(text: str) -> Expression:
    """A $filter's tree. Raises BadRequest with the position."""
    try:
        return parse_boolean_expression(text)
    except ODataUrlError as exc:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$filter", exc.located) from exc


def _plan_values(
    repository: Repository[Any],
    names: tuple[str, ...],
    tree: Expression | None,
    orderby: str,
    ctx: CallContext,
    limited: bool,
    by_ids: bool,
) -> _ValuesPlan:
    planner = Planner(Access.of(ctx), SHAPE, {})
    planner.access.check_readable(repository)
    source = planner.root(repository)
    scope = entity_scope(source)
    block = planner.block(source)
    compiler = Compiler(block)
    bounds = [_bind_name(planner.binder, source, name) for name in names]
    try:
        items = parse_orderby(orderby) if orderby else ()
    except ODataUrlError as exc:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$orderby", exc.located) from exc
    options = QueryOptions(filter=tree, orderby=items)
    where = [compiler.predicate(each) for each in planner.where(source, options, scope, ())]
    if by_ids:
        where.append(planner.dialect.among_keys(block.key(source), run_keys))
    orders = [planner.order_text(planner.order_key(compiler, each)) for each in planner.orders(source, options, scope)]
    columns = [planner.dialect.output(compiler.value(bound), bound.type) for bound in bounds]
    text = select_from(columns, block.from_sql(), where, orders)
    if limited:
        text = text + Sql(" LIMIT %s", (run_limit,))
    decoders = tuple(canonical_decoder(bound, planner.dialect) for bound in bounds)
    return _ValuesPlan(Statement.of(text, planner.dialect), decoders)


def _bind_name(binder: Binder, source: Source, name: str) -> Bound:
    steps = tuple(ast.NameStep(part) for part in _STEP.split(name))
    bound = bind_path(binder, steps, entity_scope(source), 0)
    if name.rpartition("/")[2].rpartition(".")[2].lower() == "displaytext":
        return as_scalar(bound)
    if isinstance(bound, CustomText):
        # The value of the property itself is the object; its members are texts.
        named = steps[-1].name.lower() in ("value", "valueid")
        return as_scalar(bound) if named else replace(bound, member="")
    return bound


# --- single rows --------------------------------------------------------------------------------------------------


def follow(repository: Repository[Any], key: str, path: Sequence[str], ctx: CallContext) -> tuple[str, str] | None:
    """The target of a path of single references from an entity: (dotted name of the row's own repository, key).

    None if a reference is null or hidden from the caller. The target of an empty path is the entity itself.
    """
    if not key:
        return None

    def make() -> tuple[Statement, str | None]:
        planner = Planner(Access.of(ctx), SHAPE, {})
        planner.access.check_readable(repository)
        root = planner.root(repository)
        source = root
        for name in path:
            attribute = source.repository.attribute(name)
            if attribute is None or not attribute.is_reference:
                raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, source.repository.set_name, target=name)
            source = follow_reference(planner.binder, source, attribute)
        block = planner.block(root)
        compiler = Compiler(block)
        columns = [planner.dialect.output(block.key(source), GUID)]
        fixed_name = source.repository.name
        if source.repository.is_polymorphic:
            columns.append(compiler.value(ConcreteType(STRING, True, source)))
        where = [compiler.predicate(each) for each in planner.where(root, ast.NO_OPTIONS, entity_scope(root), ("Id",))]
        text = select_from(columns, block.from_sql(), where)
        return Statement.of(text, planner.dialect), None if len(columns) > 1 else fixed_name

    statement, name = plan_for(("follow", repository, tuple(path)), ctx, None, make)
    rows = statement.fetch(Run((), ctx, key=key))
    if not rows or rows[0][0] is None:
        return None
    return (name or rows[0][1] or repository.name, rows[0][0])


def read_value(
    repository: Repository[Any],
    key: str,
    path: Sequence[str],
    ctx: CallContext,
    representation: Representation,
) -> ValueResult | None:
    """`Set(key)/Prop`: one property, also of a complex one (`Price/Value`); None if the entity does not exist."""
    if not key:
        return None
    select = (ast.SelectItem(tuple(ast.NameStep(name) for name in path)),)
    shape = representation.shape_key._replace(metadata="none", skip_nulls=False)

    def make() -> RowsPlan:
        planner = Planner(Access.of(ctx), shape, {})
        planner.access.check_readable(repository)
        return planner.rows(repository, QueryOptions(select=select), by=("Id",))

    plan = plan_for(("value", repository, tuple(path), shape), ctx, None, make)
    run = Run((), ctx, key=key)
    rows = plan.statement(None, with_skip=False, with_limit=False).fetch(run)
    if not rows:
        return None
    (shaped,) = plan.shaped(rows, run)
    (name, value), *rest = shaped.items()
    for annotation, warning in rest:
        if annotation == name + WARNING:
            raise calculation_error(name, warning)
    for member in path[1:]:
        if isinstance(value, dict):
            value = next((inner for known, inner in value.items() if known.lower() == member.lower()), None)
    if value is None:
        return ValueResult(b"", None, True)
    context = f"{representation.service_root}$metadata#{repository.set_name}({key})/{'/'.join(path)}"
    annotations = {} if representation.metadata == "none" else {"@odata.context": context}
    encoded = dump(value)
    if encoded[:1] == b"{":
        head = dump(annotations)[:-1] + (b"," if annotations and encoded != b"{}" else b"")
        return ValueResult(head + encoded[1:], encoded, False)
    attribute = repository.attribute(path[0])
    raw = encoded
    if encoded[:1] == b'"':
        text = orjson.loads(encoded)
        is_binary = attribute is not None and attribute.kind is Kind.BINARY
        raw = decode_base64(text) if is_binary else text.encode()
    return ValueResult(dump({**annotations, "value": value}), raw, False)


def predicate_holds(repository: Repository[Any], filter_text: str, key: str, ctx: CallContext) -> bool:
    """Whether the stored row satisfies a filter (row policies on writes, see `access`).

    The filter is evaluated with full rights; the row's own read policies do not apply.
    """

    def make() -> Statement:
        return _check_statement(repository, filter_text)

    statement = plan_for(("holds", repository, filter_text), None, None, make)
    return bool(statement.fetch(Run((), ctx, key=key)))


def within_policies(repository: Repository[Any], operation: Operation, key: str, ctx: CallContext) -> bool:
    """Whether the caller's row policies for the operation allow the stored row."""

    def make() -> Statement | None:
        source = new_root(repository)
        condition = restriction(Access(ctx.permissions), source, operation)
        return None if condition is None else _exists(repository, source, condition)

    # In a tuple, because the cache takes None for missing.
    (statement,) = plan_for(("within", repository, operation), ctx, None, lambda: (make(),))
    return statement is None or bool(statement.fetch(Run((), ctx, key=key)))


def permitted_keys(repository: Repository[Any], operation: Operation, ctx: CallContext) -> tuple[str, list[Any]] | None:
    """SQL (with %s) and parameters of a subquery for the admin's statements; None: all rows.

    It selects the keys of the rows that the caller may read, or that the row policies for a write allow.
    """
    access = Access(ctx.permissions)
    if operation == "read" and not access.restricts(repository):
        return None

    def make() -> tuple[Sql | None]:
        source = new_root(repository)
        condition = visible(access, source) if operation == "read" else restriction(access, source, operation)
        if condition is None:
            return (None,)
        block = Block(new_statement(dialects.current(), Access(None)), source)
        predicate = Compiler(block).predicate(condition)
        return (select_from([block.key(source)], block.from_sql(), [predicate]),)

    # In a tuple, because the cache takes None for missing.
    (text,) = plan_for(("permitted", repository, operation), ctx, None, make)
    if text is None:
        return None
    dialects.current().prepare(connections["default"])
    run = Run((), ctx)
    return text.text, [param(run) for param in text.params]


def compile_filter(repository: Repository[Any], text: str) -> None:
    """Check a $filter or row policy against the model; raises BadRequest with the position."""
    _check_statement(repository, text)


def _check_statement(repository: Repository[Any], text: str) -> Statement:
    source = new_root(repository)
    return _exists(repository, source, bind_policy(source, text))


def _exists(repository: Repository[Any], source: Source, condition: Bound) -> Statement:
    """SELECT 1 for the row with the run's key, if it satisfies the condition."""
    dialect = dialects.current()
    block = Block(new_statement(dialect, Access(None)), source)
    compiler = Compiler(block)
    key = KeyEquals(BOOL, False, column(source, repository.id))
    conditions = [compiler.predicate(key), compiler.predicate(condition)]
    return Statement.of(select_from([Sql("1")], block.from_sql(), conditions), dialect)
