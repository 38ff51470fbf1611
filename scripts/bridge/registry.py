"""Registry of the host calls of the prelude: one function each.

A script can change globals that the prelude uses (`Array.prototype.map = …`), and so send any arguments. So arguments
are checked against the function's annotations before the call: `str`, `bool`, `list[Any]`, and `Any` for arguments that
the function checks itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final

from foundation.catalogue import Catalogue

#: Maximum length of script text in an error message.
MAX_ERROR_CHARACTERS: Final = 2_000

Answer = dict[str, Any] | list[Any] | str | None
#: A function of the bridge and the script's arguments.
HostFunction = Callable[..., Answer]

#: Annotation as text (annotations are postponed) → the checked type.
_KINDS: Final[dict[Any, type]] = {
    "Any": object,
    "str": str,
    "bool": bool,
    "list[Any]": list,
    Any: object,
    str: str,
    bool: bool,
    list[Any]: list,
}


@dataclass(frozen=True, slots=True)
class HostCall:
    """A function and its parameters after the bridge.

    member  name of the call in `Action` for scripts, with arguments and answer as JSON; "" for calls of the prelude
    only
    reads   whether it only reads, so that scripts of calculated attributes may use it
    undone  whether a failed call changes nothing (Dataset.undoing)
    """

    answer: HostFunction
    kinds: tuple[type, ...]
    member: str = ""
    reads: bool = False
    undone: bool = False

    def takes(self, arguments: Sequence[Any]) -> bool:
        """Whether number and types of the arguments match."""
        return len(arguments) == len(self.kinds) and all(map(isinstance, arguments, self.kinds))


host_calls: Catalogue[HostCall] = Catalogue("host call")


def host_call(
    name: str, *, member: str = "", reads: bool = False, undone: bool = False
) -> Callable[[HostFunction], HostFunction]:
    """Decorator: register a function as a call of the prelude, or of scripts as `Action.<member>`; see HostCall.

    Raises ValueError for a taken name, KeyError for a parameter type that is not checked.
    """

    def register(answer: HostFunction) -> HostFunction:
        _, *taken = signature(answer).parameters.values()
        kinds = tuple(_KINDS[parameter.annotation] for parameter in taken)
        host_calls.add(name, HostCall(answer, kinds, member, reads, undone))
        return answer

    return register
