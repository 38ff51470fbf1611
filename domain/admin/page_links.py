"""Links and buttons above an object's page in the admin.

A link opens another page about the object; a button posts to a URL that acts on it.

    @page_link(UserBusinessRule)
    def events_link(request: HttpRequest, rule: Any) -> PageLink | None:
        ...

The function returns a link, or None if the object has none or the user may not see it. Apps above the one with the page
can add links, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import models
from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link; icon: name in Material Symbols."""

    title: str
    url: str
    icon: str


@dataclass(frozen=True, slots=True)
class PageButton:
    """A button that posts the fields to the URL, which redirects to the page."""

    title: str
    url: str
    icon: str
    fields: Mapping[str, str]


ButtonMaker = Callable[[HttpRequest, Any], Iterable[PageButton]]
_button_makers: list[ButtonMaker] = []


def page_button(maker: ButtonMaker) -> ButtonMaker:
    """Decorator of a function that makes buttons on the pages of all entities."""
    _button_makers.append(maker)
    return maker


def page_buttons(request: HttpRequest, obj: models.Model | None) -> list[PageButton]:
    """The buttons for a stored object."""
    if obj is None or obj._state.adding:
        return []
    return [button for maker in _button_makers for button in maker(request, obj)]


Maker = Callable[[HttpRequest, Any], PageLink | None]
M = TypeVar("M", bound=Maker)
#: Model → makers of the links on its pages, and on those of derived models.
_makers: dict[type[models.Model], list[Maker]] = defaultdict(list)


def page_link(*linked: type[models.Model]) -> Callable[[M], M]:
    """Decorator of a function that makes a link on the pages of these models."""

    def add(maker: M) -> M:
        for model in linked:
            _makers[model].append(maker)
        return maker

    return add


def page_links(request: HttpRequest, obj: models.Model | None) -> list[PageLink]:
    """The links for a stored object, in the order in which they were added."""
    if obj is None or obj._state.adding:
        return []
    makers = [maker for model in type(obj).__mro__ for maker in _makers.get(model, ())]
    return [link for maker in makers if (link := maker(request, obj)) is not None]
