"""Model fields of the domain's own types.

How each is stored matters to the query engine (domain.query), which reads columns without Django's converters:

field               SQLite                                   PostgreSQL
GuidField           char(36), canonical text                 uuid
ExactDecimalField   bigint: the value × 10^decimal_places    numeric
AmountField         as ExactDecimalField                     as ExactDecimalField
MultilanguageField  text, compact JSON {"EN":"…"}            text, the same
EnumField           varchar, the member's name               varchar
StateField          smallint, the member's number            smallint
JsonTextField       text, compact JSON                       text
EncryptedTextField     text, encrypted (foundation.encryption)          text
DateTimeField       Django's own ("YYYY-MM-DD HH:MM:SS[.ffffff]", UTC) · timestamptz

Decimals are scaled integers on SQLite because its NUMERIC columns are binary floating point: equality, order and sums
would not be exact there (spec 02, 2.2 "decimals exact").
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import orjson
from django import forms
from django.core.exceptions import ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext

from foundation.encryption import decrypt, encrypt
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.guids import is_guid, new_guid, parse_guid
from foundation.kinds import Kind
from foundation.messages import quoted

if TYPE_CHECKING:
    _TextField = models.TextField[Any, Any]
    _CharField = models.CharField[Any, Any]
    _DecimalField = models.DecimalField[Any, Any]
    _SmallIntegerField = models.PositiveSmallIntegerField[Any, Any]
    _ForeignKey = models.ForeignKey[Any, Any]
else:
    # Django's fields cannot be subscripted at run time.
    _TextField = models.TextField
    _CharField = models.CharField
    _DecimalField = models.DecimalField
    _SmallIntegerField = models.PositiveSmallIntegerField
    _ForeignKey = models.ForeignKey


class GuidField(models.Field[Any, Any]):
    """A guid, held as canonical text in Python."""

    kind = Kind.GUID
    description = "Guid"
    empty_strings_allowed = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["max_length"] = 36
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("max_length", None)
        return name, path, args, kwargs

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "uuid" if connection.vendor == "postgresql" else "char(36)"

    def to_python(self, value: Any) -> str | None:
        if value is None or value == "":
            return None
        try:
            return parse_guid(str(value))
        except ValueError as exc:
            raise ValidationError(gettext("{0} is not a guid.").format(quoted(value)), code="invalid") from exc

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> str | None:
        return None if value is None else str(value)

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return self.to_python(value)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"max_length": 36, **kwargs})


def guid_primary_key() -> GuidField:
    """The primary key of every entity: time-ordered, so that inserts and keyset paging stay local (spec 08, 8.1)."""
    return GuidField(primary_key=True, default=new_guid, editable=False)


class MultilanguageField(_TextField):
    """Texts by language: {"EN": "Chair", "BG": "Стол"}. Codes are upper case; max_length bounds each text."""

    kind = Kind.MULTILANGUAGE
    description = "Multilanguage text"

    def __init__(self, *args: Any, max_length: int | None = None, **kwargs: Any) -> None:
        kwargs["max_length"] = max_length
        super().__init__(*args, **kwargs)

    def to_python(self, value: Any) -> dict[str, str] | None:
        if value is None or value == "":
            return None
        if isinstance(value, str):
            try:
                value = orjson.loads(value) if value.lstrip().startswith("{") else {"EN": value}
            except orjson.JSONDecodeError as exc:
                raise ValidationError(
                    gettext("Not a JSON object of language codes and texts."), code="invalid"
                ) from exc
        if not isinstance(value, dict):
            raise ValidationError(gettext("Not an object of language codes and texts."), code="invalid")
        return {str(language).upper(): str(text) for language, text in value.items() if text is not None}

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> dict[str, str] | None:
        return None if value is None else orjson.loads(value)

    def get_prep_value(self, value: Any) -> str | None:
        texts = self.to_python(value)
        return None if texts is None else orjson.dumps(texts).decode()

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""


class JsonTextField(_TextField):
    """Any JSON value as compact text, which the read path copies into responses without parsing, on both databases."""

    kind = Kind.STRING
    description = "JSON"

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return None if value is None else orjson.loads(value)

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str):
            try:
                return orjson.loads(value)
            except orjson.JSONDecodeError as exc:
                raise ValidationError(gettext("Not valid JSON."), code="invalid") from exc
        return value

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else orjson.dumps(value).decode()


class JsonDocumentField(_TextField):
    """A text that must be JSON (domain.dataset.checks.limits); callers read and write it as a text."""

    kind = Kind.STRING
    description = "JSON text"


class EncryptedJsonField(JsonTextField):
    """JSON with encrypted secrets inside (foundation.encryption); a key rotation encrypts them again."""

    is_encrypted = True


class EncryptedTextField(_TextField):
    """A text that is encrypted in the database. Queries can read it and compare it with null only."""

    kind = Kind.STRING
    is_encrypted = True
    description = "Encrypted text"

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> str | None:
        return None if value is None else decrypt(value)

    def get_prep_value(self, value: Any) -> str | None:
        return None if value is None else encrypt(value if isinstance(value, str) else str(value))

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None


class ExactDecimalField(_DecimalField):
    """A decimal that is exact on SQLite too; see the module's table."""

    kind = Kind.DECIMAL

    def __init__(self, max_digits: int = 18, decimal_places: int = 6, **kwargs: Any) -> None:
        kwargs["max_digits"] = max_digits
        kwargs["decimal_places"] = decimal_places
        super().__init__(**kwargs)

    @property
    def quantum(self) -> Decimal:
        """The smallest step, 10^-decimal_places."""
        return Decimal(1).scaleb(-self.decimal_places)

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        if connection.vendor == "sqlite":
            return "bigint"
        return f"numeric({self.max_digits}, {self.decimal_places})"

    def get_internal_type(self) -> str:
        # Not "DecimalField": Django's SQLite converters for that type read binary floats.
        return "ExactDecimalField"

    def to_python(self, value: Any) -> Decimal | None:
        if value is None or value == "":
            return None
        try:
            return Decimal(str(value)) if not isinstance(value, Decimal) else value
        except InvalidOperation as exc:
            raise ValidationError(gettext("{0} is not a number.").format(quoted(value)), code="invalid") from exc

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Decimal | None:
        if value is None:
            return None
        if connection.vendor == "sqlite":
            return Decimal(value).scaleb(-self.decimal_places)
        return Decimal(value)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        number = self.to_python(value)
        if number is None:
            return None
        rounded = number.quantize(self.quantum, ROUND_HALF_UP)
        return int(rounded.scaleb(self.decimal_places)) if connection.vendor == "sqlite" else rounded


class _MeasuredField(ExactDecimalField):
    """A decimal whose unit or currency is found by a path of references from the entity."""

    measure_argument = ""

    def __init__(self, max_digits: int = 18, decimal_places: int = 6, *, measure: str = "", **kwargs: Any) -> None:
        self.measure = kwargs.pop(self.measure_argument, measure)
        super().__init__(max_digits, decimal_places, **kwargs)


class AmountField(_MeasuredField):
    """Money. `currency` is the path of API names to a Currencies reference: "Owner.DocumentCurrency".

    Owner stands for the reference to the aggregate parent, whatever its name.
    """

    kind = Kind.AMOUNT
    measure_argument = "currency"


class QuantityField(_MeasuredField):
    """A quantity. `unit` is the path of API names to a MeasurementUnits reference: "QuantityUnit"."""

    kind = Kind.QUANTITY
    measure_argument = "unit"


class EnumField(_CharField):
    """A member of an EnumType, stored by name. Choices are for forms only and are not in migrations."""

    kind = Kind.ENUM

    def __init__(self, enum: EnumType | None = None, **kwargs: Any) -> None:
        self.enum = enum
        kwargs.setdefault("max_length", 64)
        if enum is not None:
            # A callable: catalogues add members after the field was declared.
            kwargs["choices"] = enum.choices
        super().__init__(**kwargs)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("choices", None)
        return name, path, args, kwargs


class StateField(_SmallIntegerField):
    """A document's state: its member's name in Python, its number in the database, so that states compare by number."""

    kind = Kind.STATE
    enum = DOCUMENT_STATE

    def __init__(self, **kwargs: Any) -> None:
        # For forms only, as those of EnumField: the database has numbers.
        super().__init__(**{**kwargs, "choices": DOCUMENT_STATE.choices})

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("choices", None)
        return name, path, args, kwargs

    def to_python(self, value: Any) -> str | None:
        if value is None or value == "":
            return None
        try:
            return DOCUMENT_STATE.member(str(value))
        except ValueError as exc:
            raise ValidationError(str(exc), code="invalid") from exc

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> str | None:
        return None if value is None else DOCUMENT_STATE.by_number[value]

    def get_prep_value(self, value: Any) -> int | None:
        name = self.to_python(value)
        return None if name is None else DOCUMENT_STATE.members[name]

    @property
    def validators(self) -> list[Any]:
        # The integer validators of the base class would compare names with numbers.
        return []

    def formfield(self, **kwargs: Any) -> Any:
        return forms.ChoiceField(choices=DOCUMENT_STATE.choices(), required=not self.blank, initial=self.get_default())


class ReferenceField(_ForeignKey):
    """A reference to another entity. Deleting a target in use is refused by the dataset and by the database.

    `owner=True` marks the reference of a child to its aggregate parent: it is required and follows the parent's end.
    The index is the entity's (foundation.models): the reference, the key, then the fields that `covers` names.
    `covers` makes it a covering index: a total by this reference reads those fields from the index alone.
    """

    kind = Kind.REFERENCE

    def __init__(
        self, to: Any, on_delete: Any = None, *, owner: bool = False, covers: tuple[str, ...] = (), **kwargs: Any
    ) -> None:
        self.owner = owner
        self.covers = covers
        kwargs["db_index"] = False
        kwargs.setdefault("related_name", "+")
        if on_delete is None:
            on_delete = models.CASCADE if owner else models.PROTECT
        super().__init__(to, on_delete=on_delete, **kwargs)

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("db_index", None)
        return name, path, args, kwargs

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": _ReferenceChoice, **kwargs})


class _ReferenceChoice(forms.ModelChoiceField[Any]):
    """A choice whose value is a guid: other submitted text is refused, and the chooser is shown empty."""

    def prepare_value(self, value: Any) -> Any:
        # "" stays: it is how `has_changed` compares a reference to nothing.
        return None if isinstance(value, str) and value and not is_guid(value) else super().prepare_value(value)


#: Offset of `utc_now` (clock_set_back).
_set_back = datetime.timedelta()


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) - _set_back


@contextmanager
def clock_set_back(by: datetime.timedelta) -> Iterator[None]:
    """Set `utc_now` back for the whole process: for demo data with times of several days.

    Affects all threads, so it is only for processes such as the command that loads the demo data.
    """
    global _set_back
    before, _set_back = _set_back, by
    try:
        yield
    finally:
        _set_back = before
