"""Character sets, as ranges of code points: sorted, disjoint, without surrogates.

Each engine gets the ranges, so that its own definition of a digit, a letter or of lower case has no effect.
"""

from __future__ import annotations

import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import cache

Ranges = tuple[tuple[int, int], ...]

LAST = sys.maxunicode
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF
#: Only characters of the first two planes have cases.
_PLANES_WITH_CASE = 0x20000


def normalized(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of the ranges."""
    result: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        first = _LAST_SURROGATE + 1 if is_surrogate(first) else first
        last = _FIRST_SURROGATE - 1 if is_surrogate(last) else last
        if first > last:
            continue
        if result and first <= _after(result[-1][1]):
            result[-1] = result[-1][0], max(last, result[-1][1])
        else:
            result.append((first, last))
    return tuple(result)


def complement(ranges: Ranges) -> Ranges:
    """The characters outside the set."""
    result: list[tuple[int, int]] = []
    begin = 0
    for first, last in ranges:
        if begin < first:
            result.append((begin, first - 1))
        begin = last + 1
    if begin <= LAST:
        result.append((begin, LAST))
    return normalized(result)


def of(text: str) -> Ranges:
    """The characters of a text."""
    return normalized((ord(each), ord(each)) for each in text)


def contains(ranges: Ranges, code: int) -> bool:
    """Whether the character is in the set."""
    at = bisect_right(ranges, (code, LAST)) - 1
    return at >= 0 and code <= ranges[at][1]


def is_surrogate(code: int) -> bool:
    """Whether the code point is a surrogate of UTF-16."""
    return _FIRST_SURROGATE <= code <= _LAST_SURROGATE


def _after(code: int) -> int:
    return _LAST_SURROGATE + 1 if code == _FIRST_SURROGATE - 1 else code + 1


#: ECMAScript's `\d`, `\w`, `\s` and the characters that `.` excludes (ECMA-262, 22.2.1, 12.2 and 12.3).
DIGITS: Ranges = ((0x30, 0x39),)
WORD = normalized([*DIGITS, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
LINE_ENDS = of("\n\r\u2028\u2029")
SPACES = normalized([*of("\t\v\f \xa0\u1680\u202f\u205f\u3000\ufeff"), (0x2000, 0x200A), *LINE_ENDS])
ANY = complement(())
IN_LINE = complement(LINE_ENDS)


def in_any_case(ranges: Ranges) -> Ranges:
    """The set with the other cases of its characters, by simple case folding (ECMA-262, 22.2.2.7.3)."""
    codes, others = _cases()
    added: list[tuple[int, int]] = []
    for first, last in ranges:
        for code in codes[bisect_left(codes, first) : bisect_right(codes, last)]:
            added += ((other, other) for other in others[code])
    return normalized([*ranges, *added])


@cache
def _cases() -> tuple[list[int], Mapping[int, tuple[int, ...]]]:
    """Characters with other cases, sorted, and those cases."""
    same: dict[str, list[int]] = {}
    for code in range(_PLANES_WITH_CASE):
        character = chr(code)
        if character.casefold() != character or character.upper() != character:
            same.setdefault(_folded(character), []).append(code)
    others: dict[int, tuple[int, ...]] = {}
    for folded, found in same.items():
        codes = {*found, ord(folded)}
        for code in codes:
            others[code] = tuple(codes - {code})
    return sorted(others), others


def _folded(character: str) -> str:
    """Simple case folding; Python has only the full one, which maps some characters to several."""
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character


def category(name: str) -> Ranges | None:
    """The characters of a general category of Unicode, such as `Lu`, or of a group of them, `L`; None if unknown."""
    result = [ranges for short, ranges in _categories().items() if short == name or short[0] == name]
    return normalized(part for ranges in result for part in ranges) if result else None


@cache
def _categories() -> Mapping[str, Ranges]:
    """Category → its characters."""
    result: dict[str, list[tuple[int, int]]] = {}
    begin, of_begin = 0, unicodedata.category("\0")
    for code in range(1, LAST + 2):
        now = unicodedata.category(chr(code)) if code <= LAST else ""
        if now != of_begin:
            result.setdefault(of_begin, []).append((begin, code - 1))
            begin, of_begin = code, now
    return {name: normalized(ranges) for name, ranges in result.items()}
