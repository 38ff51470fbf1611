"""Saved mappings: the user's own, and those that other users share (spec 11, 11.2)."""

from __future__ import annotations

from typing import Any

import orjson

from domain.model.saved_settings import NAME_CHARACTERS, SavedMapping, setting_save, usable_by
from domain.odata.message.json_body import invalid_body
from domain.odata.sheets.mapping import FileMapping, read_mapping
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from identity.models import User

#: Maximum of a mapping as JSON.
MOST_BYTES = 64 << 10


def saved_mapping_get(user_id: str | None, name: str) -> FileMapping:
    """The mapping of that name: the user's own one, else the first that is shared. Raises BadRequest."""
    known = SavedMapping.objects.filter(usable_by(user_id), name=name)
    found = min(known, key=lambda each: (str(each.user_id) != str(user_id), each.pk), default=None)
    if found is None:
        raise invalid_body(Message("there is no saved mapping {0}", quoted(name)), target="mapping")
    return read_mapping(found.mapping)


def saved_mapping_save(*, user: User, name: str, mapping: Any, is_shared: bool) -> SavedMapping:
    """Save a mapping, or replace the user's mapping of that name.

    Raises BadRequest for an invalid mapping, and for a name that is empty, too long or begins with a brace, as JSON
    does; Refused for more than MOST_OF_USER.
    """
    if not 0 < len(name.strip()) <= NAME_CHARACTERS or name.startswith("{"):
        raise errors.BadRequest(errors.INVALID_LITERAL, name[:NAME_CHARACTERS], "Edm.String", "name", target="name")
    read_mapping(mapping)
    if len(orjson.dumps(mapping)) > MOST_BYTES:
        raise invalid_body(Message("a mapping has at most {0} bytes", MOST_BYTES), target="mapping")
    return setting_save(SavedMapping, user.pk, {"mapping": mapping, "is_shared": is_shared}, name=name)
