"""Builds attributes of repositories from the fields of Django models."""

from __future__ import annotations

import re
from typing import Any

from django.db import models
from django.db.models.fields import NOT_PROVIDED

from domain.model.attributes import Attribute
from foundation.fields import EncryptedTextField, EnumField, ExactDecimalField, ReferenceField, StateField
from foundation.kinds import Kind

DISPLAY_TEXT = "DisplayText"
_SYSTEM = frozenset(
    {"id", "object_version", "external_id", "external_system", "aggregate_last_update_time_utc", "additional_data_json"}
)
_READ_ONLY = frozenset({"object_version", "aggregate_last_update_time_utc"})

_KINDS: tuple[tuple[type[models.Field[Any, Any]], Kind], ...] = (
    (models.BooleanField, Kind.BOOL),
    (models.DateTimeField, Kind.DATETIME),
    (models.DateField, Kind.DATE),
    (models.IntegerField, Kind.INT),
    (models.CharField, Kind.STRING),
    (models.TextField, Kind.STRING),
    (models.BinaryField, Kind.BINARY),
    (models.OneToOneField, Kind.REFERENCE),
    (models.ForeignKey, Kind.REFERENCE),
)


def kind_of(field: models.Field[Any, Any]) -> Kind | None:
    """The field's kind; None for unsupported field types."""
    kind: Kind | None = getattr(field, "kind", None)
    return kind or next((known for cls, known in _KINDS if isinstance(field, cls)), None)


def stored(
    field: models.Field[Any, Any],
    kind: Kind,
    name: str,
    *,
    target: str,
    measure: tuple[str, ...],
    read_only: bool,
    calculated: bool,
) -> Attribute:
    """The attribute of a field; the arguments are those of Attribute."""
    return Attribute(
        name=name,
        python_name=field.name,
        kind=kind,
        field=field,
        table=field.model._meta.db_table,
        column=field.column or "",
        nullable=field.null,
        required=not field.null and not calculated and field.name not in _SYSTEM,
        unique=_is_unique(field),
        read_only=field.name in _READ_ONLY or read_only or kind is Kind.STATE,
        system=field.name in _SYSTEM,
        calculated=calculated,
        max_length=field.max_length if kind in (Kind.STRING, Kind.MULTILANGUAGE) else None,
        precision=field.max_digits if isinstance(field, ExactDecimalField) else None,
        scale=field.decimal_places if isinstance(field, ExactDecimalField) else None,
        enum=field.enum if isinstance(field, EnumField | StateField) else None,
        measure=measure,
        default=None if field.default is NOT_PROVIDED else field.default,
        target=target,
        owner=isinstance(field, ReferenceField) and field.owner,
        secret=isinstance(field, EncryptedTextField),
    )


def key_alias(model: type[models.Model], parent_link: models.Field[Any, Any] | None) -> Attribute:
    """The key by the name of the model, or of the base model behind the parent link (DocumentId)."""
    base = parent_link.related_model if parent_link is not None else model
    assert isinstance(base, type)
    key = parent_link or model._meta.pk
    assert key.column is not None
    table = (parent_link.model if parent_link is not None else model)._meta.db_table
    name = f"{base.__name__}Id"
    python_name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return Attribute(
        name, python_name, Kind.GUID, parent_link, table, key.column, False, False,
        read_only=True, system=True, key_alias=True,
    )  # fmt: skip


def display_text() -> Attribute:
    """The attribute DisplayText, which every repository has."""
    return Attribute(
        DISPLAY_TEXT, "display_text", Kind.STRING, None, "", "", True, False,
        read_only=True, system=True, calculated=True,
    )  # fmt: skip


def _is_unique(field: models.Field[Any, Any]) -> bool:
    """Whether a unique constraint of the table has only this field and applies to all rows."""
    return field.unique or any(
        isinstance(rule, models.UniqueConstraint) and rule.fields == (field.name,) and rule.condition is None
        for rule in field.model._meta.constraints
    )
