"""Display texts of records in a dataset, pending values included."""

from __future__ import annotations

from typing import Any

from domain.dataset.records.record import Record
from domain.dataset.templates.template import Template, compile_template
from domain.model.registry import derived
from domain.model.repository import Repository

#: Display formats may show references, whose display texts may show references; a circle of them ends here.
MAX_DEPTH = 5


def display_text(record: Record) -> str:
    """The repository's display format filled in for the record, in the caller's language (spec 05, 5.4)."""
    chain = record.dataset.describing
    if len(chain) >= MAX_DEPTH or record.key in chain:
        return record.id
    chain.append(record.key)
    try:
        return _template(record.repository).render(record, escape="text").strip()
    finally:
        chain.pop()


@derived
def _template(repository: Repository[Any]) -> Template:
    return compile_template(repository, repository.display_format)
