"""Calculated attributes of selected rows (spec 10.1): as columns of the SELECT, or computed after the page is read.

An attribute whose operators all have SQL is a column. The others are computed for all rows of a page at once, with one
query for the values that they need of the rows, and one for each list.

A failed evaluation gives null and, beside it, the annotation `Name@erpnet.warning` with the row of the definition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import orjson

from domain.database.bypass import Row
from domain.model.attribute_scripts import ScriptResult
from domain.model.repository import Repository
from domain.model.template_syntax import plain_number
from domain.query.base.bound import (
    GUID,
    AnyText,
    Bound,
    Input,
    ListValue,
    Rows,
    Scripted,
    Sort,
    Source,
    TextItem,
    ValueType,
    python_operator,
)
from domain.query.base.representation import ShapeKey
from domain.query.bind.binder import Binder
from domain.query.rights.policies import visible
from domain.query.run.evaluation import Environment, canonical, evaluate
from domain.query.run.execute import Statement
from domain.query.run.row_json import AnswerSize, RowCode, base64url, canonical_decoder
from domain.query.run.scripts import ScriptRows
from domain.query.sql.compiler import Compiler
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Run, Sql, join, run_keys, select_from
from domain.query.sql.joins import Block
from domain.query.sql.lists import order_key
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from identity.context import CallContext

WARNING = "@erpnet.warning"
#: Maximum of rows of one list for all rows of a page.
MAX_LIST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Failure:
    """Function: number of a definition's failed row → the annotation, with its text in the active language."""

    name: str

    def __call__(self, number: int) -> dict[str, Any]:
        text = errors.format_message(errors.CALCULATION_FAILED.message_format, [self.name, str(number)])
        return {"row": number, "message": text}


def calculated_pairs(name: str, value: Any, compiler: Compiler, code: RowCode) -> list[str]:
    """The members of a row for a calculated attribute that the database computes."""
    result = value.bound
    position = code.column(compiler.value(result), result.type)
    pairs = [f"{name!r}: {code.value(position, result.type)}"]
    failed = value.failed_row
    if failed is not None:
        number = f"r[{code.column(compiler.value(failed), failed.type)}]"
        text = code.constant(Failure(name))
        pairs.append(f"**(E if {number} is None else {{{name + WARNING!r}: {text}({number})}})")
    return pairs


@dataclass(slots=True)
class ComputedBatch:
    """Calculated attributes that are computed after a page is read; planning adds names.

    key_column   position of the row's key in the row
    """

    key_column: int
    repository: Repository[Any]
    names: list[str] = field(default_factory=list)
    as_objects: bool = False


@dataclass(slots=True)
class _Level:
    """The rows of one source: a statement for their keys and cells, and the lists below them.

    decoders   of the cells, by position in the row after the key
    """

    source: Source
    cells: dict[Bound, int] = field(default_factory=dict)
    lists: dict[Rows, _Level] = field(default_factory=dict)
    statement: Statement | None = None
    decoders: list[Callable[[Any], Any]] = field(default_factory=list)

    def collect(self, node: Any) -> None:
        """Add the cells and lists that the evaluation of an expression needs."""
        if isinstance(node, tuple):
            for part in node:
                self.collect(part)
        elif not isinstance(node, Bound) or isinstance(node, Input):
            return
        elif isinstance(node, TextItem):
            return  # has a value only while AnyText is evaluated
        elif python_operator(node) is None and not _has_free_item(node):
            self.cells.setdefault(node, len(self.cells))
        elif isinstance(node, ListValue):
            self._collect_list(node)
        else:
            for name in node.__dataclass_fields__:
                self.collect(getattr(node, name))

    def _collect_list(self, node: ListValue) -> None:
        rows = node.rows
        if rows.owner is None or rows.owner != self.source:
            _refuse_list(python_operator(node) or "")
        below = self.lists.setdefault(rows, _Level(rows.variable))
        below.collect(node.value)


def _has_free_item(node: Any) -> bool:
    """Whether an expression contains the tested text of an AnyText outside of it."""
    match node:
        case TextItem():
            return True
        case AnyText():
            return _has_free_item(node.texts)
        case tuple():
            return any(_has_free_item(part) for part in node)
        case Bound():
            return any(_has_free_item(getattr(node, name)) for name in node.__dataclass_fields__)
    return False


def _refuse_list(operator: str) -> NoReturn:
    """Raise BadRequest for an operator without SQL in a list that is not owned by the row itself."""
    raise errors.BadRequest(
        errors.CALCULATION_INVALID,
        operator,
        Message(
            "the values of a list of another entity or of a repository are computed by the database, which has no {0}",
            operator,
        ),
    )


@dataclass(slots=True)
class ComputedPlan:
    """Computes the attributes of one ComputedBatch."""

    batch: ComputedBatch
    level: _Level
    values: Mapping[str, tuple[Bound, Bound | None]]
    render: Callable[[Any, ValueType], Any]
    dialect: Dialect

    def groups(self, parents: Sequence[Row], run: Run, size: AnswerSize) -> Mapping[str, Any]:
        """key → members of the row."""
        position = self.batch.key_column
        keys = list({row[position]: None for row in parents if row[position] is not None})
        return self.members(keys, run) if keys else {}

    def members(self, keys: list[str], run: Run) -> dict[str, dict[str, Any]]:
        """key → members of the row."""
        result: dict[str, dict[str, Any]] = {}
        for key, env in _read(self.level, keys, run, self.dialect).items():
            members: dict[str, Any] = {}
            for name, (value, failed) in self.values.items():
                members[name] = self.render(canonical(evaluate(value, env), value.type), value.type)
                warning = failure(name, value, failed, env)
                if warning is not None:
                    members[name + WARNING] = warning
            result[key] = members
        return result

    def values_of(self, keys: list[str], run: Run) -> dict[str, dict[str, CalculatedValue]]:
        """Key → name → canonical value, of the rows that the caller may see."""
        return {
            key: {
                name: CalculatedValue(canonical(evaluate(value, env), value.type), failure(name, value, failed, env))
                for name, (value, failed) in self.values.items()
            }
            for key, env in _read(self.level, keys, run, self.dialect).items()
        }


@dataclass(frozen=True, slots=True)
class CalculatedValue:
    """A canonical value; `failure` is the annotation of a failed evaluation."""

    value: Any
    failure: Mapping[str, Any] | None


def failure(name: str, value: Bound, failed: Bound | None, env: Environment) -> dict[str, Any] | None:
    """The annotation of a failed evaluation: the row of the definition, or the line of the script, and a message."""
    number = None if failed is None else evaluate(failed, env)
    if number is None:
        return None
    if isinstance(value, Scripted):
        result = env.scripted(value)
        return {"line": result.line, "message": result.error}
    return Failure(name)(int(number))


def calculation_error(name: str, annotation: Mapping[str, Any]) -> errors.Refused:
    """The error for a failed evaluation, for a request of the attribute alone."""
    if "row" in annotation:
        return errors.Refused(errors.CALCULATION_FAILED, name, annotation["row"], target=name)
    return errors.Refused(errors.CALCULATION_THREW, name, annotation["message"], target=name)


@dataclass(slots=True)
class _Cells:
    """One row's cells and lists (run.evaluation.Environment)."""

    ctx: CallContext
    level: _Level
    cells: Sequence[Any]
    below: Mapping[Rows, Sequence[_Cells]]
    scripts: ScriptRows

    def known(self, node: Bound) -> bool:
        return node in self.level.cells

    def leaf(self, node: Bound) -> Any:
        return self.cells[self.level.cells[node]]

    def scripted(self, node: Scripted) -> ScriptResult:
        return self.scripts.result(node, self)

    def items(self, rows: Rows) -> Iterable[_Cells]:
        found = self.below[rows]
        return found if rows.limit is None else found[: rows.limit]


def _read(level: _Level, keys: list[str], run: Run, dialect: Dialect) -> dict[str, _Cells]:
    """key → the row's cells."""
    assert level.statement is not None
    run.keys = dialect.encode_keys(keys)
    rows = level.statement.fetch(run)
    lists = {each: _read_list(below, keys, run, dialect) for each, below in level.lists.items()}
    result: dict[str, _Cells] = {}
    scripts = ScriptRows()
    for row in rows:
        below = {each: found.get(row[0], ()) for each, found in lists.items()}
        result[row[0]] = _Cells(run.ctx, level, _decoded(level, row[1:]), below, scripts)
    scripts.rows.extend(result.values())
    return result


def _read_list(level: _Level, keys: list[str], run: Run, dialect: Dialect) -> Mapping[str, Sequence[_Cells]]:
    """key of the owner → the cells of the rows of a list, in order."""
    assert level.statement is not None
    run.keys = dialect.encode_keys(keys)
    rows = level.statement.fetch(run)
    if len(rows) > MAX_LIST_ROWS:
        raise errors.PayloadTooLarge(errors.ANSWER_TOO_LARGE, Message("{0} expanded rows", MAX_LIST_ROWS))
    own = [row[1] for row in rows]
    lists = {each: _read_list(below, own, run, dialect) if own else {} for each, below in level.lists.items()}
    result: dict[str, list[_Cells]] = defaultdict(list)
    scripts = ScriptRows()
    for row in rows:
        below = {each: found.get(row[1], ()) for each, found in lists.items()}
        cells = _Cells(run.ctx, level, _decoded(level, row[2:]), below, scripts)
        scripts.rows.append(cells)
        result[row[0]].append(cells)
    return result


def _decoded(level: _Level, cells: Sequence[Any]) -> list[Any]:
    return [None if cell is None else decode(cell) for cell, decode in zip(cells, level.decoders, strict=True)]


def plan_computed(
    binder: Binder,
    batch: ComputedBatch,
    source: Source,
    where: Sequence[Bound],
    shape: ShapeKey,
    block: Callable[[Source], Block],
    dialect: Dialect,
) -> ComputedPlan:
    """The plan of a batch over the rows of `source`, which the conditions restrict to those that the caller may see."""
    level = _Level(source)
    values: dict[str, tuple[Bound, Bound | None]] = {}
    for name in batch.names:
        value = binder.calculated(source, name)
        assert value is not None
        values[name] = value.bound, value.failed_row
        for each in values[name]:
            level.collect(each)
    _compile(level, None, where, block, dialect)
    return ComputedPlan(batch, level, values, _renderer(shape), dialect)


def _compile(
    level: _Level, rows: Rows | None, where: Sequence[Bound], block: Callable[[Source], Block], dialect: Dialect
) -> None:
    own = block(level.source)
    compiler = Compiler(own)
    key = own.key(level.source)
    columns = [dialect.output(key, GUID)]
    order: list[Sql] = []
    among = key
    if rows is not None:
        assert rows.back is not None
        among = compiler.value(rows.back)
        columns.insert(0, dialect.output(among, GUID))
        order = [join(", ", [order_key(compiler, each) for each in rows.orders])]
        where = [*where, *([rows.predicate] if rows.predicate is not None else [])]
    for node in level.cells:
        columns.append(dialect.output(compiler.value(node), node.type))
        level.decoders.append(_decoder(node, dialect))
    conditions = [dialect.among_keys(among, run_keys), *(compiler.predicate(each) for each in where)]
    level.statement = Statement.of(select_from(columns, own.from_sql(), conditions, order), dialect)
    for below, inner in level.lists.items():
        _compile(inner, below, _visible(compiler, below.variable), block, dialect)


def _visible(compiler: Compiler, variable: Source) -> list[Bound]:
    """The condition that the caller may see a row of a list."""
    seen = visible(compiler.block.statement.access, variable) if variable.guarded else None
    return [] if seen is None else [seen]


def _decoder(node: Bound, dialect: Dialect) -> Callable[[Any], Any]:
    """The conversion from an output column to the value for `evaluate`."""
    if node.type.sort is Sort.STATE:
        return int
    return canonical_decoder(node, dialect)


def _renderer(shape: ShapeKey) -> Callable[[Any, ValueType], Any]:
    """The conversion from a canonical value to JSON."""

    def render(value: Any, value_type: ValueType) -> Any:
        match value_type.sort:
            case _ if value is None:
                return None
            case Sort.NUMBER if not value_type.integer:
                text = plain_number(value)
                return text if shape.ieee754 else orjson.Fragment(text)
            case Sort.DATETIME:
                return utc_text(value)
            case Sort.BINARY:
                return base64url(value)
        return value

    return render
