"""Header attributes with the common value of all lines (spec 08, 8.4).

Lines mark their header: "Lines.LineStore" in `dirty` stands for a line's LineStore, "Lines" for added or removed lines.
So a header reads its lines once for all changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from domain.model.attributes import Calculation, LateDefault

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: (API name on the header, API name on the line)
Pair = tuple[str, str]


def marks_header(collection: str, *attributes: str) -> tuple[Calculation, ...]:
    """Calculations of lines: mark the header for recalculation if one of the attributes changes."""

    def mark(attribute: str) -> Callable[[Record], None]:
        def mark_header(line: Record) -> None:
            if (header := line.parent) is not None and not header.is_deleted:
                header.dataset.about_to_change(header)
                header.dirty.add(f"{collection}.{attribute}")

        return mark_header

    return tuple(Calculation(mark(attribute), (attribute,), always=True) for attribute in attributes)


def from_header(pairs: Sequence[Pair]) -> LateDefault:
    """A late default of lines: missing values come from the header."""

    def fill_from_header(line: Record) -> None:
        header = line.parent
        if header is None:
            return
        for of_header, of_line in pairs:
            value = header.values.get(of_header)
            if value is not None and line.values.get(of_line) is None:
                line.dataset.assign(line, of_line, value)

    return fill_from_header


def header_calculations(collection: str, pairs: Sequence[Pair]) -> tuple[Calculation, ...]:
    """Calculations of headers: a header value is copied to every line (frontend model); differing lines clear it."""

    def spread(pair: Pair) -> Callable[[Record], None]:
        def set_lines(header: Record) -> None:
            value = header.values.get(pair[0])
            # Null on the header means that the lines differ: keep their values.
            if header.dataset.model == "frontend" and value is not None:
                for line in header.children(collection):
                    header.dataset.assign(line, pair[1], value)

        return set_lines

    def agree(pair: Pair) -> Callable[[Record], None]:
        def agree_on_pair(header: Record) -> None:
            # A new line without a value has not been filled from the header yet.
            values = {
                value
                for line in header.children(collection)
                if not ((value := line.values.get(pair[1])) is None and line.is_new)
            }
            if values:
                header.dataset.assign(header, pair[0], values.pop() if len(values) == 1 else None)

        return agree_on_pair

    return (
        *(Calculation(spread(pair), (pair[0],)) for pair in pairs),
        *(Calculation(agree(pair), (collection, f"{collection}.{pair[1]}"), always=True) for pair in pairs),
    )
