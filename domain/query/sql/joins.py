"""FROM and its joins: one Block per SELECT, joins made when a column needs them and shared by path.

Tables of one inheritance chain share their key (foundation.models), so a reference joins exactly the tables whose
columns are read, each by its own key. A reference into a repository that the caller sees only in part joins that
repository's table under the condition of the row policies; everything behind it hangs on that join, so what is hidden
reads as null.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from domain.model.attributes import Attribute
from domain.model.repository import Repository
from domain.query.base.access import Access
from domain.query.base.bound import Bound, Source
from domain.query.rights.policies import visible
from domain.query.sql.dialects import Dialect
from domain.query.sql.fragments import Sql, quote

_EMPTY = Sql("")
_numbers = itertools.count(1_000_000)


def new_root(repository: Repository[Any], *, guarded: bool = False) -> Source:
    """A row variable that nothing else in any query is."""
    return Source(repository, next(_numbers), guarded=guarded)


class Statement:
    """What all blocks of one statement share: the dialect, the caller's rights, names that are used once.

    predicate    compiles a condition of a block (domain.query.sql.compiler.new_statement gives it)
    """

    def __init__(self, dialect: Dialect, access: Access, predicate: Callable[[Block, Bound], Sql]) -> None:
        self.dialect = dialect
        self.access = access
        self.predicate = predicate
        self._aliases = 0

    def alias(self, prefix: str = "t") -> str:
        """A table alias that nothing else in the statement has."""
        self._aliases += 1
        return f"{prefix}{self._aliases}"


class Block:
    """One SELECT's FROM. `root` is the row that it ranges over; `outer` the block that it is nested in."""

    def __init__(self, statement: Statement, root: Source, outer: Block | None = None) -> None:
        self.statement = statement
        self.root = root
        self.outer = outer
        self._aliases: dict[tuple[Source, str], str] = {}
        self._joins: list[Sql] = []
        alias = statement.alias()
        self._aliases[root, root.repository.table] = alias
        self._from = Sql(f"{quote(root.repository.table)} {alias}")

    def from_sql(self) -> Sql:
        """FROM's text, without the keyword. Ask last: compiling expressions adds joins."""
        text, params = [self._from.text], list(self._from.params)
        for each in self._joins:
            text.append(each.text)
            params.extend(each.params)
        return Sql(" ".join(text), tuple(params))

    def add_join(self, text: Sql) -> None:
        """A join of the caller's own, such as the keys of a batch."""
        self._joins.append(text)

    def _home(self, source: Source) -> Block:
        """The block, this or an outer one, whose root the source hangs on."""
        root = source
        while root.parent is not None:
            root = root.parent
        block: Block | None = self
        while block is not None:
            if block.root == root:
                return block
            block = block.outer
        raise LookupError(f"{root.repository.name} #{root.number} is in no block")

    # --- columns --------------------------------------------------------------------------------------------------

    def column(self, source: Source, attribute: Attribute) -> Sql:
        """A stored attribute of a source."""
        if attribute.name == "Id":
            return self.key(source)
        return self.raw(source, attribute.table, attribute.column)

    def raw(self, source: Source, table: str, column: str) -> Sql:
        """Any column of one of the source's tables."""
        return Sql(f"{self._home(source)._alias(source, table)}.{quote(column)}")

    def key(self, source: Source) -> Sql:
        """The source's key, from what is joined anyway where possible."""
        home = self._home(source)
        if source.parent is not None and source.reference is not None and not source.guarded:
            # The reference holds the key itself.
            return self.column(source.parent, source.reference)
        return home._own_key(source)

    def _own_key(self, source: Source) -> Sql:
        table, key = source.repository.tables[-1]
        return Sql(f"{self._alias(source, table)}.{quote(key)}")

    def _alias(self, source: Source, table: str) -> str:
        known = self._aliases.get((source, table))
        if known is not None:
            return known
        key_columns = dict(source.repository.tables)
        on = self._link(source, table)
        alias = self.statement.alias()
        kind = "LEFT JOIN" if source.nullable else "JOIN"
        condition = f"{alias}.{quote(key_columns[table])} = {on.text}"
        params = on.params
        if source.guarded and source.parent is not None and table == source.repository.table:
            guard = self._guard(source, alias)
            condition, params = f"{condition} AND {guard.text}", params + guard.params
        self._joins.append(Sql(f"{kind} {quote(table)} {alias} ON {condition}", params))
        self._aliases[source, table] = alias
        return alias

    def _link(self, source: Source, table: str) -> Sql:
        """What the key of a joined table must equal."""
        if source.parent is None or (source.guarded and table != source.repository.table):
            return self._own_key(source)
        if source.reference is None:
            if source.nullable and table != source.repository.table:
                # A row that is not of the derived type must not show the base's columns either.
                return self._own_key(source)
            return self.key(source.parent)
        return self.column(source.parent, source.reference)

    def _guard(self, source: Source, alias: str) -> Sql:
        """The row policies for a joined table; as EXISTS where they need joins of their own."""
        root = new_root(source.repository)
        condition = visible(self.statement.access, root)
        if condition is None:
            return Sql("1 = 1")
        plain = Block(self.statement, root)
        plain._aliases[root, root.repository.table] = alias
        predicate = self.statement.predicate(plain, condition)
        if not plain._joins:
            return predicate
        inner = Block(self.statement, root)
        predicate = self.statement.predicate(inner, condition)
        body, key = inner.from_sql(), quote(root.repository.key_column)
        return Sql(
            f"EXISTS (SELECT 1 FROM {body.text} WHERE {inner.key(root).text} = {alias}.{key} AND {predicate.text})",  # noqa: S608  (names are the model's, values parameters)
            body.params + predicate.params,
        )


BlockMaker = Callable[[Source], Block]

__all__ = ["Block", "Statement", "replace"]
