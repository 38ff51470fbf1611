"""A repository: one Django model plus one declaration (spec 08, 8.1).

    @repositories.register
    class Products(Repository[Product]):
        name = "General.Products.Products"
        code_member = "part_number"
        name_member = "name"
        display_format = "{Name:T}"
        search_members = ("part_number", "name")
        children = (Child("Codes", "General.Products.ProductCodes"),)
        late_defaults = (part_number_from_group,)

Members are named in Python (`part_number`) in declarations and in API form (`PartNumber`) everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from django.db import models
from django.db.models.fields import NOT_PROVIDED

from domain.model import extensions
from domain.model.attributes import Attribute, Calculation, Child, LateDefault, Validation
from domain.model.naming import pascal_case, set_name
from foundation.fields import EnumField, ExactDecimalField, ReferenceField, SecretTextField, StateField
from foundation.kinds import Kind
from foundation.models import AggregateRoot, PolymorphicRoot

M = TypeVar("M", bound=models.Model)

DISPLAY_TEXT = "DisplayText"
_SYSTEM = frozenset({"id", "object_version", "external_id", "external_system", "aggregate_last_update_time_utc"})
_UNPUBLISHED = frozenset({"custom_property_values", "concrete_repository"})
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


class Registry(Protocol):
    """What repositories ask of the registry that they belong to (domain.model.registry.Registry)."""

    def __iter__(self) -> Iterator[Repository[Any]]: ...
    def __getitem__(self, name: str) -> Repository[Any]: ...
    def for_model(self, model: type[models.Model]) -> Repository[Any]: ...


class Repository(Generic[M]):
    """Base of every declaration. Class attributes are the declaration; instances (one each, shared) answer questions.

    name             dotted name; the entity set is it with underscores
    type_name        entity type in schema namespace Erp; by rule namespace + "_" + model name
    code_member      attribute that people identify an entity by; with it, upserts by Code work
    name_member      attribute with the name (for findBy Name)
    display_format   interpolation template of DisplayText (spec 05, 5.4)
    search_members   what $search looks at, paths allowed ("party.party_name")
    children         owned collections
    late_defaults    fill missing values at commit, in order
    calculations     dependent values
    validations      refuse at commit, in order
    copied_with_owner   whether CreateCopy of what it belongs to takes it along
    read_only        attributes that callers may not set
    calculated       attributes left out of the default representation
    unpublished      model fields that the API does not show at all (secrets)
    api_names        exceptions from the naming rule: python name → API name
    old_names        former set names, accepted as aliases
    ordering         default order, API names, "-" for descending; ties are broken by Id
    access           ReadWrite | ReadOnly over the API
    admin_only       only administrators may read or write it, whatever their roles say
    decides_access   it says who may do what: administrators alone create, change and delete its entities
    left_to_roles    of a repository that decides access: the attributes that a role is enough to change
    authored         it acts later with the authority of who changed it: the dataset notes whose that is
    is_document      states, numbers and voiding of spec 03, 3.5 apply
    abstract         has no rows of its own type (Parties, Documents)
    stamp            name in foundation.stamps that every commit of an entity or of its children bumps
    """

    name: ClassVar[str] = ""
    type_name: ClassVar[str] = ""
    code_member: ClassVar[str] = ""
    name_member: ClassVar[str] = ""
    display_format: ClassVar[str] = "{Id}"
    search_members: ClassVar[tuple[str, ...]] = ()
    children: ClassVar[tuple[Child, ...]] = ()
    late_defaults: ClassVar[tuple[LateDefault, ...]] = ()
    calculations: ClassVar[tuple[Calculation, ...]] = ()
    validations: ClassVar[tuple[Validation, ...]] = ()
    copied_with_owner: ClassVar[bool] = True
    read_only: ClassVar[frozenset[str]] = frozenset()
    calculated: ClassVar[frozenset[str]] = frozenset()
    unpublished: ClassVar[frozenset[str]] = frozenset()
    api_names: ClassVar[Mapping[str, str]] = {}
    old_names: ClassVar[tuple[str, ...]] = ()
    ordering: ClassVar[tuple[str, ...]] = ()
    access: ClassVar[Literal["ReadWrite", "ReadOnly"]] = "ReadWrite"
    admin_only: ClassVar[bool] = False
    decides_access: ClassVar[bool] = False
    left_to_roles: ClassVar[frozenset[str]] = frozenset()
    authored: ClassVar[bool] = False
    is_document: ClassVar[bool] = False
    abstract: ClassVar[bool] = False
    stamp: ClassVar[str] = ""

    model: type[M]
    #: Set by domain.model.registry.
    registry: ClassVar[Registry]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in getattr(cls, "__orig_bases__", ()):
            arguments = get_args(base)
            if arguments and isinstance(arguments[0], type):
                cls.model = arguments[0]

    def __repr__(self) -> str:
        return f"Repository({self.name})"

    # --- names ----------------------------------------------------------------------------------------------------

    @cached_property
    def set_name(self) -> str:
        """The entity set's name."""
        return set_name(self.name)

    @cached_property
    def entity_type(self) -> str:
        """The entity type's name without the schema namespace."""
        return self.type_name or f"{set_name(self.name.rpartition('.')[0])}_{self.model.__name__}"

    @cached_property
    def namespace(self) -> str:
        """`General.Products` of `General.Products.Products`."""
        return self.name.rpartition(".")[0]

    # --- tables ---------------------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """(table, key column) from the base to the own table; one pair where nothing is inherited by table."""
        chain: list[tuple[str, str]] = []
        model: type[models.Model] | None = self.model
        while model is not None:
            meta = model._meta
            assert meta.pk is not None
            assert meta.pk.column is not None
            chain.append((meta.db_table, meta.pk.column))
            model = next(iter(meta.parents), None)
        return tuple(reversed(chain))

    @property
    def table(self) -> str:
        """The own table."""
        return self.tables[-1][0]

    @property
    def key_column(self) -> str:
        """The key column of the own table."""
        return self.tables[-1][1]

    @cached_property
    def base(self) -> Repository[Any] | None:
        """The repository this one inherits from by table."""
        parent = next(iter(self.model._meta.parents), None)
        return self.registry.for_model(parent) if parent is not None else None

    @cached_property
    def identity_name(self) -> str:
        """The base-most repository's name: a party and its company are one entity."""
        return self.name if self.base is None else self.base.identity_name

    @cached_property
    def subtypes(self) -> tuple[Repository[Any], ...]:
        """Repositories that inherit from this one, at any depth, itself excluded; by name."""
        return tuple(other for other in self.registry if other is not self and issubclass(other.model, self.model))

    @cached_property
    def is_polymorphic(self) -> bool:
        """Whether rows may be of another, derived type."""
        return issubclass(self.model, PolymorphicRoot)

    # --- members --------------------------------------------------------------------------------------------------

    @cached_property
    def attributes(self) -> Mapping[str, Attribute]:
        """Every attribute and single reference by API name, in declared order, inherited ones first."""
        found: dict[str, Attribute] = {}
        for field in self.model._meta.concrete_fields:
            python_name = field.name
            if python_name in _UNPUBLISHED or python_name in self._all_unpublished:
                continue
            parent_link = getattr(field.remote_field, "parent_link", False) if field.remote_field else False
            attribute = self._key_alias(field) if parent_link else self._attribute(field)
            found[attribute.name] = attribute
        if issubclass(self.model, PolymorphicRoot):
            alias = self._key_alias(None)
            found[alias.name] = alias
        found[DISPLAY_TEXT] = Attribute(
            DISPLAY_TEXT, "display_text", Kind.STRING, None, "", "", True, False,
            read_only=True, system=True, calculated=True,
        )  # fmt: skip
        return found

    @cached_property
    def _all_unpublished(self) -> frozenset[str]:
        return frozenset().union(*(getattr(cls, "unpublished", ()) for cls in type(self).__mro__))

    @cached_property
    def _by_lower(self) -> Mapping[str, Attribute]:
        return {name.lower(): attribute for name, attribute in self.attributes.items()}

    @cached_property
    def by_python_name(self) -> Mapping[str, Attribute]:
        """Every attribute by its Python name."""
        return {attribute.python_name: attribute for attribute in self.attributes.values()}

    def attribute(self, name: str) -> Attribute | None:
        """The attribute with this API name in any case, or None."""
        return self.attributes.get(name) or self._by_lower.get(name.lower())

    @cached_property
    def references(self) -> Mapping[str, Attribute]:
        """The single references by API name."""
        return {name: attribute for name, attribute in self.attributes.items() if attribute.is_reference}

    @cached_property
    def collections(self) -> Mapping[str, Child]:
        """Owned collections by API name, inherited ones first, with their back reference resolved."""
        found: dict[str, Child] = dict(self.base.collections) if self.base is not None else {}
        for child in self.children:
            back = child.back_reference or self.registry[child.repository].owner_attribute.name
            found[child.name] = Child(child.name, child.repository, back)
        return found

    def collection(self, name: str) -> Child | None:
        """The owned collection with this API name in any case, or None."""
        if name in self.collections:
            return self.collections[name]
        lowered = name.lower()
        return next((child for key, child in self.collections.items() if key.lower() == lowered), None)

    @property
    def id(self) -> Attribute:
        """The key."""
        return self.attributes["Id"]

    @cached_property
    def owner(self) -> Attribute | None:
        """The reference to the aggregate parent; None for a root."""
        return next((attribute for attribute in self.attributes.values() if attribute.owner), None)

    @property
    def owner_attribute(self) -> Attribute:
        """As `owner`, for a repository known to be a child. Raises LookupError for a root."""
        if self.owner is None:
            raise LookupError(f"{self.name} has no owner reference")
        return self.owner

    @cached_property
    def is_root(self) -> bool:
        """Whether it heads an aggregate."""
        return self.owner is None and issubclass(self.model, AggregateRoot)

    @cached_property
    def code(self) -> Attribute | None:
        """The code member, where it is an own attribute."""
        return self.by_python_name.get(self.code_member)

    @cached_property
    def label(self) -> Attribute | None:
        """The name member, where it is an own attribute."""
        return self.by_python_name.get(self.name_member)

    @cached_property
    def default_members(self) -> tuple[Attribute, ...]:
        """What an entity carries when nothing is selected (spec 02, 2.2)."""
        return tuple(
            attribute
            for attribute in self.attributes.values()
            if attribute.name != "Id" and not attribute.calculated and not attribute.key_alias
        )

    def behaviours(self, kind: Literal["late_defaults", "calculations", "validations"]) -> tuple[Any, ...]:
        """Inherited behaviours first, then the own ones, then those that apps above the domain have added."""
        inherited = self.base.behaviours(kind) if self.base is not None else ()
        own = type(self).__dict__.get(kind, ())
        return (*inherited, *own, *extensions.added(kind, self.name))

    def needs_administrator(self, operation: str, attribute: str | None = None) -> bool:
        """Whether the write decides what somebody may do, so that no role is enough for it.

        attribute is an API name, or `@code` of a custom property. Without one the question is about the entity: an
        update of which some attributes are left to roles does not need an administrator.
        """
        if operation == "read" or not self.decides_access:
            return False
        if operation != "update" or not self.left_to_roles:
            return True
        return attribute is not None and attribute not in self._left_to_roles and not attribute.startswith("@")

    @cached_property
    def _left_to_roles(self) -> frozenset[str]:
        return frozenset(self.by_python_name[name].name for name in self.left_to_roles)

    # --- building -------------------------------------------------------------------------------------------------

    def _api_name(self, python_name: str) -> str:
        for cls in type(self).__mro__:
            names: Mapping[str, str] = cls.__dict__.get("api_names", {})
            if python_name in names:
                return names[python_name]
        if self.base is not None and python_name in {f.name for f in self.base.model._meta.concrete_fields}:
            return self.base._api_name(python_name)
        return pascal_case(python_name)

    def _declared(self, declaration: str, python_name: str) -> bool:
        own: frozenset[str] = getattr(self, declaration)
        return python_name in own or (self.base is not None and self.base._declared(declaration, python_name))

    def _key_alias(self, parent_link: models.Field[Any, Any] | None) -> Attribute:
        base = parent_link.related_model if parent_link is not None else self.model
        assert isinstance(base, type)
        own_key = self.model._meta.pk
        column = parent_link.column if parent_link is not None else own_key.column
        assert column is not None
        table = parent_link.model._meta.db_table if parent_link is not None else self.model._meta.db_table
        name = f"{base.__name__}Id"
        python_name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        return Attribute(
            name, python_name, Kind.GUID, parent_link, table, column, False, False,
            read_only=True, system=True, key_alias=True,
        )  # fmt: skip

    def _attribute(self, field: models.Field[Any, Any]) -> Attribute:
        kind: Kind | None = getattr(field, "kind", None)
        if kind is None:
            kind = next((known for cls, known in _KINDS if isinstance(field, cls)), None)
        if kind is None:
            raise TypeError(f"{self.name}: the field {field.name} has a type that repositories do not know")
        target = ""
        if kind is Kind.REFERENCE:
            assert isinstance(field.related_model, type)
            target = self.registry.for_model(field.related_model).name
        measure: str = getattr(field, "measure", "")
        calculated = self._declared("calculated", field.name)
        return Attribute(
            name=self._api_name(field.name),
            python_name=field.name,
            kind=kind,
            field=field,
            table=field.model._meta.db_table,
            column=field.column or "",
            nullable=field.null,
            required=not field.null and not calculated and field.name not in _SYSTEM,
            unique=_is_unique(field),
            read_only=field.name in _READ_ONLY or self._declared("read_only", field.name) or kind is Kind.STATE,
            system=field.name in _SYSTEM,
            calculated=calculated,
            max_length=field.max_length if kind in (Kind.STRING, Kind.MULTILANGUAGE) else None,
            precision=field.max_digits if isinstance(field, ExactDecimalField) else None,
            scale=field.decimal_places if isinstance(field, ExactDecimalField) else None,
            enum=field.enum if isinstance(field, EnumField | StateField) else None,
            measure=tuple(measure.split(".")) if measure else (),
            default=None if field.default is NOT_PROVIDED else field.default,
            target=target,
            owner=isinstance(field, ReferenceField) and field.owner,
            secret=isinstance(field, SecretTextField),
        )


def _is_unique(field: models.Field[Any, Any]) -> bool:
    """Whether a unique rule of the table is about this field alone and holds for all rows."""
    return field.unique or any(
        isinstance(rule, models.UniqueConstraint) and rule.fields == (field.name,) and rule.condition is None
        for rule in field.model._meta.constraints
    )
