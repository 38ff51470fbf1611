"""FROM and its joins: one Block per SELECT; a join is added when a column needs it, and shared by path.

Tables of one inheritance chain share their key (foundation.models), so a reference joins only the tables whose columns
are read, each by its own key. A reference into a restricted repository joins that repository's table under the
condition of the row policies; further paths depend on that join, so hidden values are null.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from domain.model.attributes import Attribute
from domain.query.base.access import Access
from domain.query.base.bound import Bound, Source, new_root
from domain.query.rights.policies import visible
from domain.query.sql import past
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
        self._numbers = itertools.count(1)

    def alias(self, prefix: str = "t") -> str:
        """A table alias that is unique in the statement."""
        return f"{prefix}{next(self._numbers)}"

    def of_now(self) -> Statement:
        """The statement for a part that reads current data, not that of `$at`."""
        result = Statement(self.dialect, self.access.now(), self.predicate)
        result._numbers = self._numbers
        return result


class Block:
    """One SELECT's FROM. `root` is its row variable; `outer` the enclosing block."""

    def __init__(self, statement: Statement, root: Source, outer: Block | None = None) -> None:
        self.statement = statement
        self.root = root
        self.outer = outer
        self._aliases: dict[tuple[Source, str], str] = {}
        #: Source → alias of its first change after the time that the statement shows
        self._changes: dict[Source, str] = {}
        self._joins: list[Sql] = []
        alias = statement.alias()
        if statement.access.at is None:
            self._aliases[root, root.repository.table] = alias
            self._from = Sql(f"{quote(root.repository.table)} {alias}")
        else:
            past.check_known(statement.access, root.repository)
            self._root_key = Sql(f"{alias}.k")
            self._from = past.rows(statement.dialect, root.repository, alias)
            change = self._change(root)
            there = past.was_there(root.repository, change)
            # A join and not a condition, because a block provides FROM only. It removes rows that did not exist then.
            self._joins.append(Sql(f"JOIN (SELECT 1 AS one) {statement.alias()} ON ({change}.id IS NULL OR ({there}))"))

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
        home = self._home(source)
        if not self._is_past(source):
            return Sql(f"{home._alias(source, table)}.{quote(column)}")
        return home._past_value(source, table, column)

    def key(self, source: Source) -> Sql:
        """The source's key, without a further join where possible."""
        home = self._home(source)
        if source.parent is not None and source.reference is not None and not source.guarded:
            # The reference column contains the key.
            return self.column(source.parent, source.reference)
        return home._own_key(source)

    def _own_key(self, source: Source) -> Sql:
        table, key = source.repository.tables[-1]
        if not self._is_past(source):
            return Sql(f"{self._alias(source, table)}.{quote(key)}")
        if source == self.root:
            return self._root_key
        current, change = self._alias(source, table), self._change(source)
        there = past.was_there(source.repository, change)
        return Sql(
            f"CASE WHEN {change}.id IS NULL THEN {current}.{quote(key)} WHEN {there} THEN {change}.entity_item_id END"
        )

    def _alias(self, source: Source, table: str) -> str:
        known = self._aliases.get((source, table))
        if known is not None:
            return known
        if self.statement.access.at is not None:
            return self._current(source, table)
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
                # For a row of another type the base's columns must be null, too.
                return self._own_key(source)
            return self.key(source.parent)
        return self.column(source.parent, source.reference)

    # --- as of a time (domain.query.sql.past) ---------------------------------------------------------------------

    def _is_past(self, source: Source) -> bool:
        """Whether the source is read as of `$at`; a referenced entity without any history is read as it is now."""
        at = self.statement.access.at
        if at is None:
            return False
        return source.parent is None or at.unknown.get(source.repository.name, at.moment) is not None

    def _past_value(self, source: Source, table: str, column: str) -> Sql:
        """The value of a column at the time of the statement."""
        current, change = self._alias(source, table), self._change(source)
        there = past.was_there(source.repository, change)
        now = f"{current}.{quote(column)}"
        kept = past.kept_value(self.statement.dialect, source.repository, table, column, change, now)
        return Sql(f"CASE WHEN {change}.id IS NULL THEN {now} WHEN {there} THEN {kept} END")

    def _change(self, source: Source) -> str:
        """The alias of the first change of the source's entity after the time of the statement."""
        known = self._changes.get(source)
        if known is None:
            known = self._changes[source] = self.statement.alias("h")
            key = self._past_link(source)
            self._joins.append(past.first_change(self.statement.dialect, source.repository, known, key))
        return known

    def _current(self, source: Source, table: str) -> str:
        """The alias of the current row of the source's entity, if there is one."""
        columns = dict(source.repository.tables)
        own, own_key = source.repository.tables[-1]
        if source.parent is not None and source.reference is None and table != own:
            # For a row of another type the base's columns must be null, too.
            on = Sql(f"{self._alias(source, own)}.{quote(own_key)}")
        else:
            on = self._past_link(source)
        alias = self._aliases[source, table] = self.statement.alias()
        condition = f"{alias}.{quote(columns[table])} = {on.text}"
        self._joins.append(Sql(f"LEFT JOIN {quote(table)} {alias} ON {condition}", on.params))
        return alias

    def _past_link(self, source: Source) -> Sql:
        """The key of the source's entity, where it is visible to the caller."""
        if source.parent is None:
            return self._root_key
        statement = self.statement
        if self._is_past(source):
            past.check_known(statement.access, source.repository)
        else:
            statement = statement.of_now()
        link = self.key(source.parent) if source.reference is None else self.column(source.parent, source.reference)
        if not source.guarded:
            return link
        root = new_root(source.repository)
        condition = visible(statement.access, root)
        if condition is None:
            return link
        inner = Block(statement, root)
        predicate = statement.predicate(inner, condition)
        body, key = inner.from_sql(), inner.key(root)
        return Sql(
            f"CASE WHEN EXISTS (SELECT 1 FROM {body.text} WHERE {key.text} = {link.text} AND {predicate.text}) "  # noqa: S608  (as below)
            f"THEN {link.text} END",
            body.params + key.params + link.params + predicate.params + link.params,
        )

    # --- rights ---------------------------------------------------------------------------------------------------

    def _guard(self, source: Source, alias: str) -> Sql:
        """The row policies for a joined table; as EXISTS if they need further joins."""
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
