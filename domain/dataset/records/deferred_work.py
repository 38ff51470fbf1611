"""Work that events defer to the commit: writes in its database transaction, and actions after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Work = Callable[[], None]


class DeferredWork:
    """The deferred work of one dataset.

    writes    key → write, run in the commit's database transaction after the entities
    actions   run after the database transaction has committed
    """

    def __init__(self) -> None:
        self.writes: dict[object, Work] = {}
        self.actions: list[Work] = []

    def __bool__(self) -> bool:
        return bool(self.writes or self.actions)

    def defer(self, key: object, write: Work) -> None:
        """Add a write. An equal key replaces the earlier write, so a repeated event writes once."""
        self.writes[key] = write

    def copy(self) -> DeferredWork:
        """A copy, for `restore` after a failed commit."""
        copied = DeferredWork()
        copied.restore(self)
        return copied

    def restore(self, other: DeferredWork) -> None:
        """Replace the content by that of the other."""
        self.writes, self.actions = dict(other.writes), list(other.actions)

    def replace_writes(self, writes: Mapping[object, Work]) -> None:
        """Replace the writes, keep the actions."""
        self.writes = dict(writes)

    def take_writes(self) -> list[Work]:
        """Remove and return the writes in order."""
        writes = list(self.writes.values())
        self.writes.clear()
        return writes

    def take_actions(self) -> list[Work]:
        """Remove and return the actions in order."""
        actions, self.actions = self.actions, []
        return actions

    def clear(self) -> None:
        self.writes.clear()
        self.actions.clear()
