"""The picture of a document type's states and the allowed changes between them (spec 03, 3.5).

States are drawn from top to bottom in their usual order, with their user statuses on the right. A change to the next or
previous state is an arrow between the two, any other an arc on the left. templates/domain/document_type.html draws SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext

from domain.entities.document_states import FORWARD, exit_statuses, transition_allowed
from foundation.enums import label

#: Widths in SVG user units: arcs, boxes of states, space, boxes of user statuses.
_ARCS, _BOX, _SPACE, _STATUS = 150, 130, 24, 240
_LINE, _GAP, _MARGIN, _STEP = 32, 30, 8, 34
#: Vertical position of the text baseline in a box.
_BASELINE = 20
#: Maximum user statuses drawn per state; the table below the picture has all.
_MOST_STATUSES = 8
_LONGEST_NAME = 30


@dataclass(frozen=True, slots=True)
class UserStatus:
    """An active user status of the type."""

    key: str
    name: str
    state: str
    is_exit_status: bool


@dataclass(frozen=True, slots=True)
class ShownStatus:
    """A user status in the picture. is_exit: the state can only be left from such statuses (`exit_statuses`)."""

    text: str
    x: int
    y: int
    text_x: int
    text_y: int
    is_exit: bool


@dataclass(frozen=True, slots=True)
class ShownState:
    """A state: its position in the picture, and the values for the table below it.

    statuses         the drawn user statuses; more: number of others
    later, earlier   the labels of the states to which it may change
    has_exits        the state can only be left from its exit statuses
    is_for_planning  PlanningOnly documents may have the state
    """

    name: str
    title: str
    y: int
    text_x: int
    text_y: int
    statuses: tuple[ShownStatus, ...]
    more: int
    more_x: int
    more_y: int
    later: tuple[str, ...]
    earlier: tuple[str, ...]
    all_statuses: tuple[UserStatus, ...]
    has_exits: bool
    is_for_planning: bool


@dataclass(frozen=True, slots=True)
class Arrow:
    """An allowed change. path: the attribute `d` of SVG; kind: forward, skip or back."""

    path: str
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class StatePicture:
    """Sizes, boxes and arrows."""

    width: int
    height: int
    states: tuple[ShownState, ...]
    arrows: tuple[Arrow, ...]
    left: int = _ARCS
    box_width: int = _BOX
    box_height: int = _LINE - 2
    status_width: int = _STATUS
    status_height: int = _LINE - 6

    @property
    def has_exits(self) -> bool:
        """Whether any state can only be left from its exit statuses."""
        return any(state.has_exits for state in self.states)


def state_picture(statuses: Sequence[UserStatus]) -> StatePicture:
    """The picture of a type with these active user statuses, in their order."""
    states: list[ShownState] = []
    y = _MARGIN
    for name in FORWARD:
        own = tuple(status for status in statuses if status.state == name)
        states.append(_state(name, own, y))
        y += max(1, min(len(own), _MOST_STATUSES + 1)) * _LINE + _GAP
    arrows = [
        _arrow(before, after)
        for before in states
        for after in states
        if before is not after and transition_allowed(before.name, after.name)
    ]
    # Long arcs first, so that short ones are drawn over them.
    arrows.sort(key=lambda arrow: arrow.kind != "skip")
    width = _ARCS + _BOX + _SPACE + _STATUS + _MARGIN
    return StatePicture(width, y - _GAP + _MARGIN, tuple(states), tuple(arrows))


def _state(name: str, own: tuple[UserStatus, ...], y: int) -> ShownState:
    exits = exit_statuses(own)
    at = _ARCS + _BOX + _SPACE
    drawn = [
        ShownStatus(_short(status.name), at, top + 2, at + 12, top + _BASELINE, status in exits)
        for index, status in enumerate(own[:_MOST_STATUSES])
        for top in (y + index * _LINE,)
    ]
    return ShownState(
        name=name,
        title=label(name),
        y=y,
        text_x=_ARCS + _BOX // 2,
        text_y=y + _BASELINE,
        statuses=tuple(drawn),
        more=max(0, len(own) - _MOST_STATUSES),
        more_x=at + 12,
        more_y=y + _MOST_STATUSES * _LINE + _BASELINE,
        later=tuple(label(other) for other in FORWARD if _is_later(name, other) and transition_allowed(name, other)),
        earlier=tuple(label(other) for other in FORWARD if _is_later(other, name) and transition_allowed(name, other)),
        all_statuses=own,
        has_exits=bool(exits),
        is_for_planning=name == FORWARD[0] or transition_allowed(FORWARD[0], name, planning_only=True),
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _is_later(before: str, after: str) -> bool:
    return FORWARD.index(after) > FORWARD.index(before)


def _arrow(before: ShownState, after: ShownState) -> Arrow:
    """A straight arrow between neighbours, down on the left and up on the right; else an arc, wider with distance."""
    distance = FORWARD.index(after.name) - FORWARD.index(before.name)
    title = gettext("%(before)s to %(after)s") % {"before": before.title, "after": after.title}
    if distance == 1:
        return Arrow(f"M{_ARCS + _BOX // 3} {before.y + _LINE - 2}V{after.y - 1}", "forward", title)
    if distance == -1:
        return Arrow(f"M{_ARCS + 2 * _BOX // 3} {before.y}V{after.y + _LINE - 1}", "back", title)
    bend, way = _ARCS - _STEP * (abs(distance) - 1), 1 if distance > 0 else -1
    start, end = (state.y + _LINE // 2 + shift * way for state, shift in ((before, 5), (after, -5)))
    return Arrow(
        f"M{_ARCS} {start}C{bend} {start} {bend} {end} {_ARCS - 1} {end}", "skip" if distance > 0 else "back", title
    )
