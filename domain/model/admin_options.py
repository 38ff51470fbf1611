"""Options of the generated admin pages (Repository.admin)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """Options of a repository's pages; attributes by their Python names. A subtype adds its options to those of its
    base.

    section            English title of a section of the home page (gettext_noop); "": the section of the namespace
    is_subject         a main subject of other entities: a reference named as the model (`customer`) comes first in
                       their lists and forms
    columns            attributes that a list shows first
    unlisted           attributes that a list shows neither as columns nor as filters
    shown_first        attributes that a form never collapses
    hidden             attributes that no form shows
    open_collections   owned collections that come first, expanded
    short_texts        texts of a few lines
    repository_names   attributes with the dotted name of a repository
    hints              attribute → help text, if the name does not suffice
    """

    section: str = ""
    is_subject: bool = False
    columns: tuple[str, ...] = ()
    unlisted: frozenset[str] = frozenset()
    shown_first: frozenset[str] = frozenset({"is_active", "active"})
    hidden: frozenset[str] = frozenset()
    open_collections: frozenset[str] = frozenset()
    short_texts: frozenset[str] = frozenset({"notes"})
    repository_names: frozenset[str] = frozenset()
    hints: Mapping[str, Any] = field(default_factory=dict)

    def added_to(self, base: AdminOptions) -> AdminOptions:
        """The options of a subtype combined with those of its base."""
        return replace(
            self,
            section=self.section or base.section,
            columns=(*base.columns, *self.columns),
            unlisted=base.unlisted | self.unlisted,
            shown_first=base.shown_first | self.shown_first,
            hidden=base.hidden | self.hidden,
            open_collections=base.open_collections | self.open_collections,
            short_texts=base.short_texts | self.short_texts,
            repository_names=base.repository_names | self.repository_names,
            hints={**base.hints, **self.hints},
        )
