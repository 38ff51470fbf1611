"""Abstract bases of every entity table (spec 08, 8.1)."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models.signals import class_prepared

from foundation.fields import GuidField, JsonTextField, ReferenceField, guid_primary_key


class Entity(models.Model):
    """What every entity has. Rows are written by the dataset (domain.dataset) and nothing else."""

    id = guid_primary_key()
    object_version = models.PositiveIntegerField(default=1, editable=False)
    custom_property_values = JsonTextField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True


def _end_indexes_in_key(sender: type[models.Model], **_: object) -> None:
    """Give each indexed column and each reference of an entity an index that ends in the key.

    Sets are read in the order of their keys, a page at a time. By an index of the column alone the database would have
    to fetch all rows with the value, and sort them, to find the first fifty; the larger the set, the more.

    Fields that a reference covers (ReferenceField) follow the key: there they order nothing and cost no index more.

    Models of migrations have other bases, and say the same by the indexes that are written down there.
    """
    if not issubclass(sender, Entity):
        return
    # Django's stubs know nothing of db_index and of original_attrs, which migrations are made from.
    meta: Any = sender._meta
    for field in meta.local_fields:
        if (field.db_index or isinstance(field, ReferenceField)) and not field.unique:
            field.db_index = False
            index = models.Index(fields=[field.name, meta.pk.name, *getattr(field, "covers", ())])
            index.set_name_with_model(sender)
            meta.indexes.append(index)
    meta.original_attrs["indexes"] = meta.indexes


class_prepared.connect(_end_indexes_in_key)


class AggregateRoot(Entity):
    """The head of an aggregate: its version and stamp move when anything inside the aggregate changes."""

    external_id = models.CharField(max_length=64, null=True, blank=True)
    external_system = models.CharField(max_length=64, null=True, blank=True)
    aggregate_last_update_time_utc = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True


class PolymorphicRoot(AggregateRoot):
    """A root that other repositories inherit from by table (Parties, Documents).

    `concrete_repository` names the repository of the row's own type, so that a row of the base is known for what it is.
    """

    concrete_repository = models.CharField(max_length=128, editable=False, db_index=True)

    class Meta:
        abstract = True


class VersionStamp(models.Model):
    """A counter that says that something cached in processes has changed: see foundation.stamps."""

    name = models.CharField(max_length=64, primary_key=True)
    value = models.BigIntegerField(default=0)

    objects: ClassVar[models.Manager[VersionStamp]]


__all__ = ["AggregateRoot", "Entity", "GuidField", "PolymorphicRoot", "VersionStamp"]
