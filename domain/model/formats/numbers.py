"""Formats of numbers, as .NET's standard and custom numeric format strings.

C<digits>   currency of the reader's country        D<digits>   at least that many digits; whole numbers only
N<digits>   with group separators                   P<digits>   percentage
#,##0.00    a pattern: 0 a digit, # a digit if there is one, . the decimal point, `,` between digits groups them and
            before the decimal point divides by 1000, % and ‰ multiply, ; separates positive, negative and zero,
            'text', "text" and \\c are literal

Rounding is half away from zero. A number that rounds to zero has no sign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

from domain.model.formats.cultures import Culture

#: Digits after the decimal point of C, N and P without a number.
_DEFAULT_DIGITS = 2
_STANDARD = re.compile(r"(?P<letter>[CcDdNnPp])(?P<digits>\d{0,2})")
_LETTERED = re.compile(r"[A-Za-z]\d*")
_TOKEN = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|\\(?P<escaped>.)|(?P<sign>[0#.,%‰;])|(?P<text>.)", re.S
)
_SCIENTIFIC = re.compile(r"[Ee][+-]?0")


@dataclass(frozen=True, slots=True)
class Standard:
    """C, D, N or P, and its number of digits; None: the culture's."""

    letter: str
    digits: int | None


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a pattern.

    tokens       (sign, "") or ("", literal text), in order; commas are gone
    whole        digit placeholders before the decimal point; min_whole: of these, from the first 0 on
    fraction     after it; min_fraction: up to the last 0
    scale        power of ten by which the number is multiplied
    """

    tokens: tuple[tuple[str, str], ...]
    whole: int
    min_whole: int
    fraction: int
    min_fraction: int
    scale: int
    grouped: bool


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of one to three sections: positive, negative, zero. An empty one is None."""

    sections: tuple[Section | None, ...]

    def section(self, index: int) -> tuple[Section, int]:
        """The section for positive (0), negative (1) or zero (2) numbers, and its index."""
        result = self.sections[index] if index < len(self.sections) else None
        if result is None:
            index, result = 0, self.sections[0]
        assert result is not None
        return result, index


NumberFormat = Standard | Pattern


@lru_cache(maxsize=1024)
def parse(format: str, *, whole: bool = False) -> NumberFormat | None:
    """The parsed format; None if it is invalid. `whole`: for whole numbers, which also accept D."""
    standard = _STANDARD.fullmatch(format)
    if standard is not None:
        letter = standard["letter"].upper()
        digits = int(standard["digits"]) if standard["digits"] else None
        return None if letter == "D" and not whole else Standard(letter, digits)
    return None if _LETTERED.fullmatch(format) else _parse_pattern(format)


def _parse_pattern(format: str) -> Pattern | None:
    sections: list[list[tuple[str, str]]] = [[]]
    bare = ""
    end = 0
    for match in _TOKEN.finditer(format):
        end = match.end()
        if match["sign"] == ";":
            sections.append([])
        elif match["sign"]:
            sections[-1].append((match["sign"], ""))
        elif match["text"] is not None:
            if match["text"] in "'\"\\":
                return None  # an unclosed quote, or a backslash at the end
            sections[-1].append(("", match["text"]))
        else:
            sections[-1].append(("", match["single"] or match["double"] or match["escaped"] or ""))
        bare += match[0] if match["sign"] or match["text"] else " "
    if end != len(format) or len(sections) > 3 or _SCIENTIFIC.search(bare):
        return None
    parsed = tuple(_section(tokens) if tokens else None for tokens in sections)
    first = parsed[0]
    return None if first is None or first.whole + first.fraction == 0 else Pattern(parsed)


def _section(tokens: list[tuple[str, str]]) -> Section:
    kept: list[tuple[str, str]] = []
    digits, point, first_zero, last_zero = 0, -1, -1, -1
    comma_at, commas, grouped, scale = -1, 0, False, 0
    for sign, text in tokens:
        if sign == ",":
            if digits and point < 0:
                grouped = grouped or (comma_at >= 0 and comma_at != digits)
                commas = commas + 1 if comma_at == digits else 1
                comma_at = digits
            continue
        if sign == ".":
            if point >= 0:
                continue  # as in .NET, only the first decimal point counts
            point = digits
        elif sign in ("0", "#"):
            digits += 1
            if sign == "0":
                first_zero = digits if first_zero < 0 else first_zero
                last_zero = digits
        elif sign:
            scale += 2 if sign == "%" else 3
        kept.append((sign, text))
    point = digits if point < 0 else point
    if comma_at == point:
        scale -= 3 * commas
    elif comma_at >= 0:
        grouped = True
    min_whole = point - first_zero + 1 if 0 < first_zero <= point else 0
    return Section(tuple(kept), point, min_whole, digits - point, max(last_zero - point, 0), scale, grouped)


def format_number(value: int | Decimal, format: NumberFormat, culture: Culture) -> str:
    """The number in a parsed format."""
    if isinstance(format, Pattern):
        return _by_pattern(Decimal(value), format, culture)
    number, digits = Decimal(value), format.digits
    if format.letter == "D":
        text = str(abs(int(number))).rjust(digits or 0, "0")
        return f"{culture.minus}{text}" if number < 0 else text
    places = _DEFAULT_DIGITS if digits is None else digits
    rounded = _rounded(number.scaleb(2, _context(number)) if format.letter == "P" else number, places)
    groups = {"N": culture.groups, "C": culture.currency.groups, "P": culture.percent.groups}[format.letter]
    whole, _, fraction = f"{rounded.copy_abs():f}".partition(".")
    text = _grouped(whole, groups, culture.group) + (culture.decimal + fraction if fraction else "")
    if format.letter == "C":
        text = culture.currency.around(text, culture.currency_symbol)
    elif format.letter == "P":
        text = culture.percent.around(text, "").replace("%", culture.percent_sign)
    return f"{culture.minus}{text}" if rounded < 0 else text


def _by_pattern(number: Decimal, pattern: Pattern, culture: Culture) -> str:
    section, index = pattern.section(1 if number < 0 else 2 if number == 0 else 0)
    rounded = _scaled(number, section)
    if rounded == 0 and number != 0:
        section, index = pattern.section(2)
        rounded = _scaled(Decimal(0), section)
    text = _digits_in(section, rounded.copy_abs(), culture)
    return f"{culture.minus}{text}" if rounded < 0 and index == 0 else text


def _scaled(number: Decimal, section: Section) -> Decimal:
    return _rounded(number.scaleb(section.scale, _context(number)), section.fraction)


def _digits_in(section: Section, number: Decimal, culture: Culture) -> str:
    whole, _, fraction = f"{number:f}".partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    borders = _borders(max(len(whole), section.whole), culture.groups) if section.grouped else frozenset()
    written: list[str] = []
    place, after = max(len(whole), section.whole), 0

    def write_whole(until: int) -> None:
        nonlocal place
        while place > until:
            if place <= len(whole) or place <= section.min_whole:
                written.append(whole[-place] if place <= len(whole) else "0")
                written.append(culture.group if place - 1 in borders else "")
            place -= 1

    seen = 0
    for sign, text in section.tokens:
        if sign in ("0", "#") and seen < section.whole:
            seen += 1
            write_whole(section.whole - seen)
        elif sign in ("0", "#"):
            written.append(fraction[after] if after < len(fraction) else "0" if after < section.min_fraction else "")
            after += 1
        elif sign == ".":
            write_whole(0)
            written.append(culture.decimal if section.min_fraction or fraction else "")
        elif sign:
            written.append(culture.percent_sign if sign == "%" else culture.per_mille)
        else:
            written.append(text)
    return "".join(written)


def _grouped(whole: str, groups: tuple[int, ...], separator: str) -> str:
    borders = _borders(len(whole), groups)
    return "".join(
        digit + (separator if len(whole) - index - 1 in borders else "") for index, digit in enumerate(whole)
    )


def _borders(length: int, groups: tuple[int, ...]) -> frozenset[int]:
    """Numbers of digits, counted from the decimal point, after which a group separator follows."""
    borders: list[int] = []
    index = at = 0
    while groups[index]:
        at += groups[index]
        if at >= length:
            break
        borders.append(at)
        index = min(index + 1, len(groups) - 1)
    return frozenset(borders)


def _rounded(number: Decimal, places: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _context(number, places))


def _context(number: Decimal, places: int = 0) -> Context:
    """A decimal context with enough precision for every digit."""
    return Context(prec=len(number.as_tuple().digits) + abs(number.adjusted()) + places + 400)
