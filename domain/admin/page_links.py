"""Links and buttons above an object's page in the admin.

A link leads to another page about the object, a button does something with it: it posts to an address of its own.

    @page_link(UserBusinessRule)
    def events_link(request: HttpRequest, rule: Any) -> PageLink | None:
        ...

A function makes a link, or None where there is none for the object or its reader. Apps above the one that has the page
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
    """A link; icon is a name of Material Symbols."""

    title: str
    url: str
    icon: str


@dataclass(frozen=True, slots=True)
class PageButton:
    """A button: it posts the fields to the address, which redirects to the page."""

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
