"""Catalogues: registries of classes or functions by name.

    authentications: Catalogue[Authentication] = Catalogue("webhook authentication")

    @authentications.register
    class StandardWebhooks(Authentication):
        name = "StandardWebhooks"

Registration fails at start-up for a missing, malformed or taken name. Instances of registered classes are shared, so
they keep no state: what they need comes as arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, KeysView
from typing import Generic, TypeVar

T = TypeVar("T")


class Catalogue(Generic[T]):
    """Registered items of one kind by name. Iteration gives the items in the order of registration.

    kind     what an item is called in errors
    pattern  regular expression of the names
    """

    def __init__(self, kind: str, *, pattern: str = r"[A-Za-z]\w*") -> None:
        self.kind = kind
        self._pattern = re.compile(pattern)
        self._items: dict[str, T] = {}

    def register(self, declaration: type[T]) -> type[T]:
        """Class decorator: add an instance of the class by its `name`. Raises ValueError as `add` does."""
        item = declaration()
        try:
            self.add(getattr(item, "name", ""), item)
        except ValueError as exc:
            raise ValueError(f"{declaration.__qualname__}: {exc}") from None
        return declaration

    def function(self, name: str) -> Callable[[T], T]:
        """Decorator: add a function. Raises ValueError as `add` does."""

        def register(function: T) -> T:
            self.add(name, function)
            return function

        return register

    def add(self, name: str, item: T) -> None:
        """Add an item. Raises ValueError for a missing, malformed or taken name."""
        if not name:
            raise ValueError(f"the {self.kind} has no name")
        if not self._pattern.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of {_with_article(self.kind)}: it does not match {self._pattern.pattern}"
            )
        if name in self._items:
            raise ValueError(f"the {self.kind} {name} is registered twice")
        self._items[name] = item

    def remove(self, name: str) -> T:
        """Remove an item and return it: for tests that register one of their own. Raises KeyError."""
        return self._items.pop(name)

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()

    def names(self) -> KeysView[str]:
        """The names, in the order of registration."""
        return self._items.keys()

    def get(self, name: str) -> T | None:
        """The item with this name."""
        return self._items.get(name)

    def __getitem__(self, name: str) -> T:
        """The item with this name. Raises KeyError."""
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
