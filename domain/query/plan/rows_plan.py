"""Plans of rows: the part of a read that does not depend on its literals, and is cached (see `cache`).

A plan has one SELECT, its shaper, and a batch for each expanded collection, which fetches the collection for all rows
at once. It runs in these steps: parameters, cursor, rows, batches, JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from domain.database.bypass import Row
from domain.model.repository import Repository
from domain.query.plan.selection import Batch
from domain.query.run.execute import Statement
from domain.query.run.paging import OrderKey, seek_condition
from domain.query.run.row_json import AnswerSize, Shaper, drop_nulls
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Run, Sql, compose, run_limit, run_skip, select_from
from foundation import errors
from foundation.execution_slot import STEP, in_slices
from foundation.messages import TranslatableMessage as Message

#: Maximum rows of one expanded collection for all rows of a page; as JSON more would nearly always exceed a response.
MAX_EXPANDED_ROWS = 100_000


class AnyBatchPlan(Protocol):
    """Fetches further members of a page's rows: an expansion, or attributes that are computed."""

    def groups(self, parents: Sequence[Row], run: Run, size: AnswerSize) -> Mapping[str, Any]:
        """Key → the value for the row's expression. Raises PayloadTooLarge."""
        ...


@dataclass(slots=True)
class BatchPlan:
    """Fetches one batch. Column 0 of its rows is the key of the parent row."""

    batch: Batch
    statement: Statement
    shape: Shaper | None
    batches: tuple[AnyBatchPlan, ...]
    skip_nulls: bool

    def groups(self, parents: Sequence[Row], run: Run, size: AnswerSize) -> Mapping[str, Any]:
        """Key → JSON of the list of rows (or count, or the JSON of the one row). Raises PayloadTooLarge.

        JSON instead of objects, because a row that belongs to many keys would be serialized again for each of them,
        level by level, before the length of the response is known.
        """
        position = self.batch.key_column
        keys = list({row[position]: None for row in parents if row[position] is not None})
        if not keys:
            return {}
        run.keys = self.statement.dialect.encode_keys(keys)
        rows = self.statement.fetch(run)
        if self.shape is None:
            return dict(rows)
        if len(rows) > MAX_EXPANDED_ROWS:
            raise errors.PayloadTooLarge(errors.ANSWER_TOO_LARGE, Message("{0} expanded rows", MAX_EXPANDED_ROWS))
        shaped = shape_rows(self.shape, rows, self.batches, run)
        if self.skip_nulls:
            shaped = [drop_nulls(value) for value in shaped]
        if self.batch.single:
            if self.batch.as_objects:
                return {row[0]: value for row, value in zip(rows, shaped, strict=True)}
            return {row[0]: size.fragment(value) for row, value in zip(rows, shaped, strict=True)}
        groups: dict[str, list[Any]] = defaultdict(list)
        for row, value in zip(rows, shaped, strict=True):
            groups[row[0]].append(value)
        write = size.array if self.batches else size.fragment
        return {key: write(values) for key, values in groups.items()}


def shape_rows(shape: Shaper, rows: Sequence[Row], batches: Sequence[AnyBatchPlan], run: Run) -> list[Any]:
    """The rows as JSON-ready values, with their batches fetched. Raises PayloadTooLarge."""
    # The response contains all rows fetched here, so their total size is limited separately.
    size = AnswerSize()
    groups = [batch.groups(rows, run, size) for batch in batches]
    if len(rows) <= STEP:
        return shape(rows, groups)
    return [value for part in in_slices(rows) for value in shape(part, groups)]


@dataclass(frozen=True, slots=True)
class Narrow:
    """The inner SELECT of a page's keys, with only the columns and joins that filter and order need.

    A sort holds every output column of every matching row. So an ordered page selects its keys first, and reads only
    the rows of the page in full.
    """

    key: Sql
    outer_key: Sql
    body: Sql
    where: tuple[Sql, ...]
    keys: tuple[OrderKey, ...]
    order: Sql


@dataclass(slots=True)
class RowsPlan:
    """A set, an owned collection or one entity.

    columns, body, where, order   the parts of the SELECT
    keys           the order, ending in the key
    key_columns    positions of their values in a row
    aggregated     rows of $apply: no entities, no keys, paged by offset
    """

    repository: Repository[Any]
    dialect: Dialect
    columns: Sequence[Sql]
    body: Sql
    where: tuple[Sql, ...]
    order: Sql
    keys: tuple[OrderKey, ...]
    shape: Shaper
    batches: tuple[AnyBatchPlan, ...]
    counting: Callable[[], Statement]
    skip_nulls: bool
    context: str
    key_columns: tuple[int, ...] = ()
    etag_column: int | None = None
    aggregated: bool = False
    fingerprint: str = ""
    narrow: Narrow | None = None
    _variants: dict[Any, Statement] = field(default_factory=dict)

    @property
    def count_statement(self) -> Statement:
        """SELECT COUNT(*) of all rows; compiled on first use, as most reads do not count."""
        known = self._variants.get("count")
        if known is None:
            known = self._variants["count"] = self.counting()
        return known

    def statement(self, nulls: tuple[bool, ...] | None, *, with_skip: bool, with_limit: bool = True) -> Statement:
        """The statement of a page; nulls: which seek keys are null, None for the first page."""
        variant = (nulls, with_skip, with_limit)
        known = self._variants.get(variant)
        if known is None:
            narrow = self.narrow
            if narrow is None:
                whole = Narrow(self.order, self.order, self.body, self.where, self.keys, self.order)
                text = self._page(self.columns, whole, nulls, with_skip=with_skip, with_limit=with_limit)
            else:
                chosen = self._page([narrow.key], narrow, nulls, with_skip=with_skip, with_limit=with_limit)
                is_chosen = compose("{0} IN ({1})", narrow.outer_key, chosen)
                text = select_from(self.columns, self.body, [is_chosen], [self.order])
            known = self._variants[variant] = Statement.of(text, self.dialect)
        return known

    def _page(
        self,
        columns: Sequence[Sql],
        narrow: Narrow,
        nulls: tuple[bool, ...] | None,
        *,
        with_skip: bool,
        with_limit: bool,
    ) -> Sql:
        """SELECT … LIMIT … OFFSET of a page."""
        conditions = narrow.where
        if nulls is not None:
            conditions = (*conditions, seek_condition(narrow.keys, nulls, self.dialect))
        text = select_from(columns, narrow.body, conditions, [narrow.order] if narrow.order.text else ())
        if with_limit:
            text = text + Sql(" LIMIT %s", (run_limit,))
        if with_skip:
            text = text + Sql(" OFFSET %s", (run_skip,))
        return text

    def shaped(self, rows: Sequence[Row], run: Run) -> list[Any]:
        """The rows as JSON-ready values. Raises PayloadTooLarge."""
        values = shape_rows(self.shape, rows, self.batches, run)
        return [drop_nulls(value) for value in values] if self.skip_nulls else values

    def array(self, rows: Sequence[Row], run: Run) -> Any:
        """The rows as a JSON-ready array. Raises PayloadTooLarge."""
        values = self.shaped(rows, run)
        return AnswerSize().array(values) if self.batches else values
