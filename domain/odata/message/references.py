"""Parses references in URLs and bodies: `Set(guid)`, `Set/guid`, relative or absolute (spec 02, 2.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.guids import parse_guid
from foundation.messages import TranslatableMessage as Message

_GUID = "[0-9a-fA-F-]{36}"
_REFERENCE = re.compile(
    rf"(?:.*/)?(?P<set>[A-Za-z_]\w*)(?:\(\s*(?:Id\s*=\s*)?'?(?P<key>{_GUID})'?\s*\)|/(?P<segment>{_GUID}))/?",
    re.IGNORECASE | re.DOTALL,
)
_CONTENT_ID = re.compile(r"\$(?P<id>[A-Za-z0-9._-]+)")


def parse_reference(text: Any, what: str, references: Mapping[str, str] | None = None) -> tuple[Repository[Any], str]:
    """(repository, guid) of a reference's text; `$id` stands for the entity that an earlier part of a batch created.

    `what` names the place for the error. Raises BadRequest(INVALID_REFERENCE).
    """
    match = known = None
    if isinstance(text, str):
        named = _CONTENT_ID.fullmatch(text)
        if named is not None and references is not None and named["id"] in references:
            text = references[named["id"]]
        match = _REFERENCE.fullmatch(unquote(text.partition("?")[0]))
        known = repositories.for_set(match["set"]) if match is not None else None
    if match is None or known is None:
        raise errors.BadRequest(
            errors.INVALID_REFERENCE, what, text, Message("reference such as Set(guid)"), target=what
        )
    return known[0], parse_guid(match["key"] or match["segment"])


def annotation(body: Mapping[str, Any], name: str) -> Any:
    """The value of `@odata.name` in a body, or of its OData 4.01 short form `@name`; None for neither."""
    return body.get(f"@odata.{name}", body.get(f"@{name}"))


def check_target(reference: Repository[Any], declared: Repository[Any], what: str, id: str) -> None:
    """Check that the set of a reference is the declared one, a base of it, or derived from it."""
    if issubclass(reference.model, declared.model) or issubclass(declared.model, reference.model):
        return
    raise errors.BadRequest(
        errors.INVALID_REFERENCE, what, f"{reference.set_name}({id})", declared.entity_type, target=what
    )


def reference_path(repository: Repository[Any], id: str) -> str:
    """`Set(guid)`."""
    return f"{repository.set_name}({id})"
