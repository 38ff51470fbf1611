"""The members of an Enumeration: "Petrol = 0; Diesel = 1"."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from itertools import count

from django.utils.translation import gettext as _

#: (name, number)
Member = tuple[str, int]

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_LONGEST = 48
_MOST_MEMBERS = 200
#: Numbers are of Edm.Int32.
_HIGHEST = 2**31 - 1


def numbered(text: str, before: str = "") -> tuple[Member, ...]:
    """The members that a text names. One without a number keeps the number that it has in `before`, or gets a new one.

    A new number is unused, and higher than all in `before` and those of the preceding members.
    """
    known, given = dict(_parsed(before)), _parsed(text)
    wanted = [known.get(name) if number is None else number for name, number in given]
    taken = {number for number in (*known.values(), *wanted) if number is not None}
    highest = max((number for number in known.values() if number is not None), default=-1)
    result = []
    for (name, _number), number in zip(given, wanted, strict=True):
        if number is None:
            number = next(each for each in count(highest + 1) if each not in taken)
        highest = max(highest, number)
        result.append((name, number))
    return tuple(result)


def text_of(members: Sequence[Member]) -> str:
    """The text of members, as it is stored."""
    return "; ".join(f"{name} = {number}" for name, number in members)


def problems(members: Sequence[Member]) -> Iterator[str]:
    """A sentence for each problem of the members."""
    if not members:
        yield _("name its members, for example Petrol; Diesel")
    if len(members) > _MOST_MEMBERS:
        yield _("it has more than %(most)s members") % {"most": _MOST_MEMBERS}
        return
    names, numbers = set(), set()
    for name, number in members:
        if keyword.iskeyword(name):
            yield f"{name}: {_('this name is reserved')}"
        elif not _NAME.fullmatch(name) or len(name) > _LONGEST:
            yield _("the member %(name)s must be letters and digits, the first a capital, such as Petrol") % {
                "name": name[:_LONGEST]
            }
        elif name.lower() in names:
            yield _("there are two members %(name)s") % {"name": name}
        elif number in numbers or number > _HIGHEST:
            yield _("the number of %(name)s is taken, or above %(highest)s") % {"name": name, "highest": _HIGHEST}
        names.add(name.lower())
        numbers.add(number)


def _parsed(text: str) -> list[tuple[str, int | None]]:
    """Names and numbers. Text that is not `name = number` becomes a name, which `problems` refuses."""
    result: list[tuple[str, int | None]] = []
    for part in filter(None, map(str.strip, text.split(";"))):
        name, _equals, number = (piece.strip() for piece in part.partition("="))
        is_number = number.isascii() and number.isdecimal()
        result.append((name, int(number)) if is_number else (part, None))
    return result
