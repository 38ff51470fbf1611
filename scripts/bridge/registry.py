"""The calls that the prelude may make of the host: one function each.

A script can bend what the prelude is made of (`Array.prototype.map = …`), and so call with anything at all. What a
function's annotations say of its arguments is therefore checked before it is called: `str`, `bool`, `list[Any]`, and
`Any` for what it looks at itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final

#: Characters of what a script gave that an error repeats: an answer is no place for a script's megabytes.
MAX_SAID: Final = 2_000

Answer = dict[str, Any] | list[Any] | str | None
#: A function of the bridge and of what the script gave.
HostFunction = Callable[..., Answer]

_KINDS: Final[dict[str, type]] = {"Any": object, "str": str, "bool": bool, "list[Any]": list}


@dataclass(frozen=True, slots=True)
class HostCall:
    """A function and what it takes after the bridge."""

    answer: HostFunction
    kinds: tuple[type, ...]

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Whether these are as many arguments as it has, and of their types."""
        return len(arguments) == len(self.kinds) and all(map(isinstance, arguments, self.kinds))


host_calls: Final[dict[str, HostCall]] = {}


def host_call(name: str) -> Callable[[HostFunction], HostFunction]:
    """Registers the answer to a call of the prelude.

    Raises ValueError for a second one of the name, KeyError for an argument of a type that nobody checks.
    """

    def register(answer: HostFunction) -> HostFunction:
        if name in host_calls:
            raise ValueError(f"two host calls are named {name!r}")
        _, *taken = signature(answer).parameters.values()
        host_calls[name] = HostCall(answer, tuple(_KINDS[parameter.annotation] for parameter in taken))
        return answer

    return register
