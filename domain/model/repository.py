"""Repository: a Django model with its declaration, and the members and relations derived from both.

Authors write the attributes of domain.model.declaration; engines read the members and relations below. Functions that
run on writes are in domain.model.behaviours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar

from django.db import models

from domain.model.admin_options import AdminOptions
from domain.model.attributes import Attribute, Child
from domain.model.declaration import Declaration
from domain.model.members import DISPLAY_TEXT, display_text, key_alias, kind_of, stored
from domain.model.naming import pascal_case
from foundation.kinds import Kind
from foundation.models import AggregateRoot

M = TypeVar("M", bound=models.Model)

#: Name at the start of a declared path for the reference to the aggregate parent.
OWNER = "Owner"
_UNPUBLISHED = frozenset({"custom_property_values", "concrete_repository"})
#: Suffix of a name → kinds of attributes with such a part (Repository.attribute_behind).
_PARTS = {"value": frozenset({Kind.AMOUNT, Kind.QUANTITY}), "id": frozenset({Kind.REFERENCE})}


class Registry(Protocol):
    """The registry's interface for repositories (domain.model.registry.Registry)."""

    def __iter__(self) -> Iterator[Repository[Any]]: ...
    def __getitem__(self, name: str) -> Repository[Any]: ...
    def for_model(self, model: type[models.Model]) -> Repository[Any]: ...


class Repository(Declaration[M]):
    """Base of every declaration; each has one shared instance."""

    #: Set by domain.model.registry.
    registry: ClassVar[Registry]

    # --- relations between repositories ---------------------------------------------------------------------------

    @cached_property
    def base(self) -> Repository[Any] | None:
        """The repository that this one inherits from."""
        parent = next(iter(self.model._meta.parents), None)
        return self.registry.for_model(parent) if parent is not None else None

    @cached_property
    def identity_name(self) -> str:
        """Name of the outermost base repository: a party and its company are one entity."""
        return self.name if self.base is None else self.base.identity_name

    @cached_property
    def subtypes(self) -> tuple[Repository[Any], ...]:
        """Repositories that inherit from this one, at any depth, without itself; by name."""
        return tuple(other for other in self.registry if other is not self and issubclass(other.model, self.model))

    @cached_property
    def lineage(self) -> tuple[Repository[Any], ...]:
        """Repositories whose entities may have the same attributes: itself, its subtypes, its bases."""
        result = [self, *self.subtypes]
        base = self.base
        while base is not None:
            result.append(base)
            base = base.base
        return tuple(result)

    @cached_property
    def viewed(self) -> tuple[Repository[Any], ...]:
        """For a view: the repository whose rows it shows, then those of their owners up to the root; () for no view."""
        result: list[Repository[Any]] = []
        current = self.registry[self.view_of] if self.view_of else None
        while current is not None and current not in result:
            result.append(current)
            current = self.registry[current.owner.target] if current.owner is not None else None
        return tuple(result)

    @cached_property
    def describing_repository(self) -> Repository[Any] | None:
        """This repository or its nearest owner whose rows describe other entities (describes), or None."""
        seen: list[Repository[Any]] = []
        current: Repository[Any] | None = self
        while current is not None and current.describes is None and current not in seen:
            seen.append(current)
            current = self.registry[current.owner.target] if current.owner is not None else None
        return current if current is not None and current.describes is not None else None

    # --- members --------------------------------------------------------------------------------------------------

    @cached_property
    def attributes(self) -> Mapping[str, Attribute]:
        """Every attribute and single reference by API name, in declared order, inherited ones first."""
        result: dict[str, Attribute] = {}
        for field in self.model._meta.concrete_fields:
            python_name = field.name
            if python_name in _UNPUBLISHED or python_name in self._all_unpublished:
                continue
            parent_link = getattr(field.remote_field, "parent_link", False) if field.remote_field else False
            attribute = key_alias(self.model, field) if parent_link else self._attribute(field)
            result[attribute.name] = attribute
        if self.is_polymorphic:
            alias = key_alias(self.model, None)
            result[alias.name] = alias
        result[DISPLAY_TEXT] = display_text()
        return result

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

    def attribute_behind(self, name: str) -> Attribute | None:
        """The amount or quantity whose number is `QuantityValue`, the reference whose guid is `SalesPersonId`.

        None for other names, and for names of attributes.
        """
        for suffix, kinds in _PARTS.items():
            if name.lower().endswith(suffix) and self.attribute(name) is None:
                found = self.attribute(name[: -len(suffix)])
                if found is not None and found.kind in kinds:
                    return found
        return None

    @cached_property
    def references(self) -> Mapping[str, Attribute]:
        """The single references by API name."""
        return {name: attribute for name, attribute in self.attributes.items() if attribute.is_reference}

    @cached_property
    def collections(self) -> Mapping[str, Child]:
        """Owned collections by API name, inherited ones first, with their back reference resolved."""
        result: dict[str, Child] = dict(self.base.collections) if self.base is not None else {}
        for child in self.children:
            back = child.back_reference or self.registry[child.repository].owner_attribute.name
            result[child.name] = Child(child.name, child.repository, back)
        return result

    def collection(self, name: str) -> Child | None:
        """The owned collection with this API name in any case, or None."""
        if name in self.collections:
            return self.collections[name]
        lowered = name.lower()
        return next((child for key, child in self.collections.items() if key.lower() == lowered), None)

    @property
    def id(self) -> Attribute:
        return self.attributes["Id"]

    @cached_property
    def owner(self) -> Attribute | None:
        """The reference to the aggregate parent; None for a root."""
        return next((attribute for attribute in self.attributes.values() if attribute.owner), None)

    @cached_property
    def owner_identity(self) -> str:
        """`identity_name` of the aggregate parent's repository; "" for a root."""
        return "" if self.owner is None else self.registry[self.owner.target].identity_name

    @property
    def owner_attribute(self) -> Attribute:
        """As `owner`, for a child repository. Raises LookupError for a root."""
        if self.owner is None:
            raise LookupError(f"{self.name} has no owner reference")
        return self.owner

    @cached_property
    def is_root(self) -> bool:
        """Whether it is an aggregate root."""
        return self.owner is None and issubclass(self.model, AggregateRoot)

    @cached_property
    def code(self) -> Attribute | None:
        """The code member, if it is an own attribute."""
        return self.by_python_name.get(self.code_member)

    @cached_property
    def label(self) -> Attribute | None:
        """The name member, if it is an own attribute."""
        return self.by_python_name.get(self.name_member)

    @cached_property
    def code_path(self) -> tuple[str, ...]:
        """API names of the path to the code member: `("Company", "RegistrationNumber")`; () for none."""
        return self._member_path(self.code_member)

    @cached_property
    def label_path(self) -> tuple[str, ...]:
        """API names of the path to the name member; () for none."""
        return self._member_path(self.name_member)

    def _member_path(self, python_path: str) -> tuple[str, ...]:
        names: list[str] = []
        current: Repository[Any] = self
        for python_name in python_path.split(".") if python_path else ():
            attribute = current.by_python_name.get(python_name)
            if attribute is None:
                return ()  # reported by domain.model.checks
            names.append(attribute.name)
            if attribute.is_reference:
                current = self.registry[attribute.target]
        return tuple(names)

    @cached_property
    def default_members(self) -> tuple[Attribute, ...]:
        """Members of an entity's default representation: neither system attributes nor calculated ones (spec 14.1)."""
        return tuple(
            attribute
            for attribute in self.attributes.values()
            if not (attribute.system or attribute.calculated or attribute.key_alias)
        )

    @cached_property
    def admin_options(self) -> AdminOptions:
        """The declared options of the admin pages, with those of the bases."""
        return self.admin if self.base is None else self.admin.added_to(self.base.admin_options)

    @cached_property
    def display_format(self) -> str:
        """The default template of DisplayText, for declarations without one."""
        placeholder = ""
        current: Repository[Any] = self
        for python_name in (self.name_member or self.code_member or "id").split("."):
            attribute = current.by_python_name.get(python_name)
            if attribute is None:
                return "{Id}"  # reported by domain.model.checks
            if attribute.is_reference:
                placeholder += f"{attribute.name}."
                current = self.registry[attribute.target]
            else:
                placeholder += f"{attribute.name}:T" if attribute.kind is Kind.MULTILANGUAGE else attribute.name
        return f"{{{placeholder}}}"

    def fills_late(self, attribute: Attribute) -> bool:
        """Whether a late default, own or inherited, fills the required attribute."""
        return self._declared("filled_late", attribute.python_name)

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

    def _attribute(self, field: models.Field[Any, Any]) -> Attribute:
        kind = kind_of(field)
        if kind is None:
            raise TypeError(f"{self.name}: the field {field.name} has a type that repositories do not know")
        target = ""
        if kind is Kind.REFERENCE:
            assert isinstance(field.related_model, type)
            target = self.registry.for_model(field.related_model).name
        return stored(
            field,
            kind,
            self._api_name(field.name),
            target=target,
            measure=self._measure(getattr(field, "measure", "")),
            read_only=self._declared("read_only", field.name),
            calculated=self._declared("calculated", field.name),
        )

    def _measure(self, path: str) -> tuple[str, ...]:
        first, *rest = path.split(".")
        if first == OWNER:
            owner = next(field for field in self.model._meta.concrete_fields if getattr(field, "owner", False))
            first = self._api_name(owner.name)
        return (first, *rest) if path else ()
