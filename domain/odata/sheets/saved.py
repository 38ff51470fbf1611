"""Saved mappings: each user's own, and those that others share (spec 11, 11.2)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext

from domain.model.saved_mappings import NAME_CHARACTERS, SavedMapping
from domain.odata.message.json_body import invalid_body
from domain.odata.sheets.mapping import FileMapping, read_mapping
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from identity.models import User

MOST_OF_USER, MOST_SHARED = 100, 200
#: Of a mapping as JSON.
MOST_BYTES = 64 << 10


def saved_mappings_list(user: User) -> list[SavedMapping]:
    """The user's own mappings and at most MOST_SHARED that others share, each part by name."""
    known = SavedMapping.objects.select_related("user").order_by("name", "id")
    return [*known.filter(user=user), *known.filter(is_shared=True).exclude(user=user)[:MOST_SHARED]]


def saved_mapping_get(user_id: str | None, name: str) -> FileMapping:
    """The mapping of that name: the user's own one, else the first that is shared. Raises BadRequest."""
    known = SavedMapping.objects.filter(Q(user_id=user_id) | Q(is_shared=True), name=name)
    found = min(known, key=lambda each: (str(each.user_id) != str(user_id), each.pk), default=None)
    if found is None:
        raise invalid_body(Message("there is no saved mapping {0}", quoted(name)), target="mapping")
    return read_mapping(found.mapping)


def saved_mapping_save(*, user: User, name: str, mapping: Any, is_shared: bool) -> SavedMapping:
    """Save a mapping, or replace the user's mapping of that name.

    Raises BadRequest for what is no mapping, and for a name that is empty, too long or looks like a mapping (it begins
    with a brace); Refused for more than MOST_OF_USER.
    """
    if not 0 < len(name.strip()) <= NAME_CHARACTERS or name.startswith("{"):
        raise errors.BadRequest(errors.INVALID_LITERAL, name[:NAME_CHARACTERS], "Edm.String", "name", target="name")
    read_mapping(mapping)
    if len(orjson.dumps(mapping)) > MOST_BYTES:
        raise invalid_body(Message("a mapping has at most {0} bytes", MOST_BYTES), target="mapping")
    with transaction.atomic():
        # One save of a user at a time: two would both find room for the last one.
        User.objects.select_for_update().get(pk=user.pk)
        own = SavedMapping.objects.filter(user=user)
        if not own.filter(name=name).exists() and own.count() >= MOST_OF_USER:
            reason = gettext("You have %(count)d saved mappings; delete one first.") % {"count": MOST_OF_USER}
            raise errors.Refused(errors.VALIDATION_FAILED, reason)
        values = {"mapping": mapping, "is_shared": is_shared}
        return SavedMapping.objects.update_or_create(user=user, name=name, defaults=values)[0]


def saved_mapping_delete(*, user: User, mapping_id: UUID) -> None:
    """Delete a mapping of the user. Raises NotFound, for mappings of others, too."""
    if not SavedMapping.objects.filter(user=user, pk=mapping_id).delete()[0]:
        raise errors.NotFound(errors.RESOURCE_NOT_FOUND, str(mapping_id))
