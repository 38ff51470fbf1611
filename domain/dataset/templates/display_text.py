"""Display texts of records in a dataset, including pending values."""

from __future__ import annotations

from typing import Any

from domain.dataset.lookups.name_binding import MAX_DISPLAY_DEPTH
from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import InvalidTemplate, Template, compile_template
from domain.model.custom_properties import CACHE_VERSION
from domain.model.registry import derived, repositories
from domain.model.repository import Repository
from domain.model.template_syntax import Placeholder, parse
from foundation.versioned_cache import VersionedCache


def display_text(record: Record) -> str:
    """The repository's display format rendered for the record, in the caller's language (spec 05, 5.4)."""
    chain = record.dataset.describing
    if len(chain) >= MAX_DISPLAY_DEPTH or record.key in chain:
        return record.id
    chain.append(record.key)
    try:
        return _template(record.repository).render(record, escape="display").strip()
    finally:
        chain.pop()


def _template(repository: Repository[Any]) -> Template:
    if _names_attributes(repository):
        return _own_template(repository)
    known = _added.get()
    found = known.get(repository.name)
    if found is None:
        try:
            found = _compiled(repository)
        except InvalidTemplate:  # a property or calculated attribute is gone
            found = compile_template(repository, "{Id}")
        known[repository.name] = found
    return found


@derived
def _names_attributes(repository: Repository[Any]) -> bool:
    """Whether the format names only attributes, neither custom properties nor calculated attributes."""
    placeholders = (part for part in parse(repository.display_format) if isinstance(part, Placeholder))
    return not any(each.sigil or each.path[-1].startswith("#") or _is_added(repository, each) for each in placeholders)


def _is_added(repository: Repository[Any], placeholder: Placeholder) -> bool:
    holder = repository
    for name in placeholder.path[:-1]:
        holder = repositories[holder.attributes[name].target]
    return placeholder.path[-1] not in holder.attributes and placeholder.path != ("EntityName",)


def _compiled(repository: Repository[Any]) -> Template:
    return compile_template(repository, repository.display_format)


_own_template = derived(_compiled)
#: Repository → template, of formats with custom properties or calculated attributes.
_added: VersionedCache[dict[str, Template]] = VersionedCache(dict, CACHE_VERSION, state=lambda: repositories.generation)
