"""Options of the generated admin pages (Repository.admin)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CollectionColumn:
    """A column of a list: a value of the first fitting entity of an owned collection, such as the phone of a party.

    name        of the column; no attribute has it
    title       its heading
    owner       the reference, by its Python name, to the collection's owner; "": the listed entity itself
    collection  the collection's API name
    value       the attribute shown
    where       Django lookups of the entities that fit
    order       their order, as in order_by
    """

    name: str
    title: Any
    owner: str = ""
    collection: str
    value: str
    where: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """Options of a repository's pages; attributes by their Python names. A subtype adds its options to those of its
    base.

    section            English title of a section of the home page (gettext_noop); "": the section of the namespace
    is_subject         other entities list and show a reference to it first, if it is named as the model (`customer`)
    text_format        template of an entity's text on pages, such as `{Number} {Title}`; "": its name with its code
    columns            attributes, and values of owned collections, that a list shows first; with the code and the
                       display text's reference among them, a list has no column of the display text
    unlisted           attributes that a list shows neither as columns nor as filters
    shown_first        attributes that a form never collapses
    hidden             attributes that no form shows
    open_collections   owned collections that come first, expanded
    row_columns        attributes of a row on its owner's page, shown even without an input; only the row's own page has
                       the others; empty: all
    labels             attribute → label of its input, if the name is too long for it
    short_texts        text attributes with an input of a few lines
    repository_names   attributes with the dotted name of a repository
    hints              attribute → help text, if the name does not suffice
    """

    section: str = ""
    is_subject: bool = False
    text_format: str = ""
    columns: tuple[str | CollectionColumn, ...] = ()
    unlisted: frozenset[str] = frozenset()
    shown_first: frozenset[str] = frozenset({"is_active", "active"})
    hidden: frozenset[str] = frozenset()
    open_collections: frozenset[str] = frozenset()
    row_columns: tuple[str, ...] = ()
    short_texts: frozenset[str] = frozenset({"notes"})
    repository_names: frozenset[str] = frozenset()
    labels: Mapping[str, Any] = field(default_factory=dict)
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
            row_columns=self.row_columns or base.row_columns,
            short_texts=base.short_texts | self.short_texts,
            repository_names=base.repository_names | self.repository_names,
            labels={**base.labels, **self.labels},
            hints={**base.hints, **self.hints},
        )
