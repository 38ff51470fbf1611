"""Display texts of records in a dataset, including pending values."""

from __future__ import annotations

from typing import Any

from domain.dataset.lookups.name_binding import MAX_DISPLAY_DEPTH
from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import Template, compile_template
from domain.model.registry import derived
from domain.model.repository import Repository


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


@derived
def _template(repository: Repository[Any]) -> Template:
    return compile_template(repository, repository.display_format)
