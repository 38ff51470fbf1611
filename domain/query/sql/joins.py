"""FROM and its joins: one Block per SELECT; a join is added when a column needs it, and shared by path.

Tables of one inheritance chain share their key (foundation.models), so a reference joins only the tables whose columns
are read, each by its own key. A reference into a restricted repository joins that repository's table under the
condition of the row policies; further paths depend on that join, so hidden values are null.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.model.attributes import Attribute
from domain.query.base.access import Access
from domain.query.base.bound import Bound, Source, new_root
from domain.query.rights.policies import visible
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Sql, quote


class Statement:
    """The state that all blocks of one statement share: dialect, the caller's rights, aliases.

    predicate    compiles a condition of a block (domain.query.sql.compiler.new_statement gives it)
    """

    def __init__(self, dialect: Dialect, access: Access, predicate: Callable[[Block, Bound], Sql]) -> None:
        self.dialect = dialect
        self.access = access
        self.predicate = predicate
        self._aliases = 0

    def alias(self, prefix: str = "t") -> str:
        """A table alias that is unique in the statement."""
        self._aliases += 1
        return f"{prefix}{self._aliases}"


class Block:
    """One SELECT's FROM. `root` is its row variable; `outer` the enclosing block."""

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
        """The text of FROM, without the keyword. Call it last: compiling expressions adds joins."""
        text, params = [self._from.text], list(self._from.params)
        for each in self._joins:
            text.append(each.text)
            params.extend(each.params)
        return Sql(" ".join(text), tuple(params))

    def _home(self, source: Source) -> Block:
        """The block, this or an outer one, whose root is the root of the source."""
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
        """The source's key, without a further join where possible."""
        home = self._home(source)
        if source.parent is not None and source.reference is not None and not source.guarded:
            # The reference column has the key.
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
        """The value that the key of a joined table must equal."""
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
