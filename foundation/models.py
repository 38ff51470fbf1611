"""Abstract base models of every entity table (spec 08, 8.1)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models.signals import class_prepared

from foundation.fields import GuidField, JsonDocumentField, JsonTextField, ReferenceField, guid_primary_key


class Entity(models.Model):
    """Attributes of every entity. Only the dataset (domain.dataset) writes rows."""

    id = guid_primary_key()
    object_version = models.PositiveIntegerField(default=1, editable=False)
    custom_property_values = JsonTextField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True


def _end_indexes_in_key(sender: type[models.Model], **_: object) -> None:
    """Give each indexed column and each reference of an entity an index that ends in the key.

    Sets are read in key order, a page at a time. With an index on the column alone the database would have to fetch all
    matching rows and sort them to find the first fifty.

    Fields that a reference covers (ReferenceField) follow the key, where they do not change the order and need no
    second index.

    Models in migrations have other bases; their indexes are written in the migrations.
    """
    if not issubclass(sender, Entity):
        return
    # Django's stubs lack db_index and original_attrs, which migrations are made from.
    meta: Any = sender._meta
    for field in meta.local_fields:
        if (field.db_index or isinstance(field, ReferenceField)) and not field.unique:
            field.db_index = False
            index = models.Index(fields=[field.name, meta.pk.name, *getattr(field, "covers", ())])
            index.set_name_with_model(sender)
            meta.indexes.append(index)
    meta.original_attrs["indexes"] = meta.indexes


def _place_shared_attributes(sender: type[models.Model], **_: object) -> None:
    """Order the fields of an entity as described at SharedAttributes."""
    if not issubclass(sender, SharedAttributes):
        return
    lenders = [base for base in sender.__mro__ if issubclass(base, SharedAttributes) and base._meta.abstract]
    lent = {field.creation_counter for base in lenders for field in base._meta.local_fields}
    fields: list[Any] = sender._meta.local_fields
    shared = [field for field in fields if field.creation_counter in lent]
    own = [field for field in fields if field.creation_counter not in lent]
    leading = {field.creation_counter for base in (Entity, PolymorphicRoot) for field in base._meta.local_fields}
    first = sum(field.creation_counter in leading or _leads(field) for field in own)
    for field in sorted(shared, key=lambda field: (field.is_relation, field.name)):
        same_kind = [index for index in range(first, len(own)) if own[index].is_relation == field.is_relation]
        lesser = [index for index in same_kind if own[index].name < field.name]
        nothing_lesser = same_kind[0] if same_kind else len(own) if field.is_relation else first
        own.insert(lesser[-1] + 1 if lesser else nothing_lesser, field)
    fields[:] = own


def _leads(field: Any) -> bool:
    """Whether the field is the key, a link to the base table or the reference to the owner: these come first."""
    return bool(field.primary_key or getattr(field, "owner", False))


def unique(table: str, *fields: str) -> models.UniqueConstraint:
    """A unique constraint over the fields, named after the table and the fields."""
    return models.UniqueConstraint(fields=fields, name="_".join((table, *fields, "key")))


class SharedAttributes(models.Model):
    """Base of abstract models with attributes that several entities share.

    Each entity has these attributes among its own, sorted by name, references last.
    """

    class Meta:
        abstract = True


class AggregateRoot(Entity):
    """Base of aggregate roots: version and time of the last update change when anything in the aggregate changes."""

    external_id = models.CharField(max_length=254, null=True, blank=True)
    external_system = models.CharField(max_length=64, null=True, blank=True)
    # Indexed for clients that poll for changes since their last request.
    aggregate_last_update_time_utc = models.DateTimeField(null=True, editable=False, db_index=True)
    additional_data_json = JsonDocumentField(max_length=32_000, null=True, blank=True)

    class Meta:
        abstract = True


class PolymorphicRoot(AggregateRoot):
    """A root with derived repositories by multi-table inheritance (Parties, Documents).

    `concrete_repository` names the repository of the row's actual type.
    """

    concrete_repository = models.CharField(max_length=128, editable=False, db_index=True)

    class Meta:
        abstract = True


# Indexes are named after fields, so the fields must be in their final order.
class_prepared.connect(_place_shared_attributes)
class_prepared.connect(_end_indexes_in_key)


class CacheVersion(models.Model):
    """The cache version of one source (foundation.cache_versions).

    The row `wal_timeline` belongs to identity.session_positions.
    """

    name = models.CharField(max_length=64, primary_key=True)
    value = models.BigIntegerField(default=0)

    objects: ClassVar[models.Manager[CacheVersion]]


__all__ = ["AggregateRoot", "Entity", "GuidField", "PolymorphicRoot", "SharedAttributes", "CacheVersion", "unique"]
