"""The content of a card of the home page."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from foundation.charts import Chart

#: The state of a part; also its CSS class.
GOOD, WARNING, BAD = "good", "warning", "bad"
_WORDS = {GOOD: _("In order"), WARNING: _("Needs attention"), BAD: _("In trouble")}


@dataclass(frozen=True, slots=True)
class Line:
    """A line below a card's figure, with a link to the affected object."""

    text: str
    note: str = ""
    state: str = ""
    url: str = ""
    when: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A small table of texts with column names."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Card:
    """A card: a figure and its description (said), a chart, a table, lines. Only cards of the instance have a state.

    load   the URL of the complete card, by which home.js replaces this one; "" for a complete card
    """

    name: str
    title: str
    url: str
    state: str = ""
    figure: str = ""
    said: str = ""
    lines: tuple[Line, ...] = ()
    chart: Chart | None = None
    table: Table | None = None
    load: str = ""

    @property
    def word(self) -> Promise | str:
        """The state in words, for users who do not see its colour."""
        return _WORDS.get(self.state, "")


def number_text(value: Any, digits: int = 0) -> str:
    """The number in the format of the user's language."""
    return number_format(value, digits, use_l10n=True, force_grouping=True)
