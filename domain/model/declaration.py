"""Declaration: class attributes that the author of a repository sets (spec 08, 8.1).

    @repositories.register
    class Products(Repository[Product]):
        name = "General.Products.Products"
        code_member = "part_number"
        name_member = "name"
        children = (Child("Codes", "General.Products.ProductCodes"),)
        late_defaults = (part_number_from_group,)

Members are named in Python (`part_number`) in declarations and in API form (`PartNumber`) everywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Generic, Literal, TypeVar, get_args

from django.db import models

from domain.model.admin_options import AdminOptions
from domain.model.attributes import Calculation, Child, DescribedEntity, LateDefault, Validation
from domain.model.former_attributes import FormerAttributes
from domain.model.naming import set_name
from foundation.models import PolymorphicRoot

M = TypeVar("M", bound=models.Model)


class Declaration(Generic[M]):
    """Class attributes of a declaration.

    name             dotted name; the entity set is it with underscores
    type_name        entity type in schema namespace Erp; by rule namespace + "_" + model name
    base_table       its name in stored entity names (EntityName); by default that of the entity set
    code_member      attribute that identifies an entity for people; enables upserts by Code
    name_member      attribute with the name (for findBy Name)
    display_format   template of DisplayText (spec 05, 5.4); by default name_member, else code_member, else the key
    search_members   attributes that $search reads, paths allowed ("party.party_name"); by default code and name
    children         owned collections
    late_defaults    fill missing values at commit, in order
    filled_from      required attributes that a late default derives from another attribute, which errors name instead
    filled_late      required attributes that late defaults fill from other values, so callers may omit them
    calculations     dependent values
    validations      may refuse the commit, in order
    copied_with_owner   whether CreateCopy of the owner copies it
    read_only        attributes that callers may not set
    calculated       attributes left out of the default representation
    unpublished      model fields that the API does not show at all (secrets)
    api_names        exceptions from the naming rule: python name → API name
    old_names        former set name → version that renamed it; former names are accepted as aliases
    ordering         default order, API names, "-" for descending; ties are broken by Id
    category         the kind of its data, if no other declaration determines it
    access           ReadWrite | ReadOnly over the API
    view_of          name of the repository of which this one is a view: the model is that of a database view, whose
                     rows have the keys of that repository's rows, and values of them and their owners. A caller
                     sees a row if the row with this key and its owners are visible
    describes        its rows describe entities of other repositories: a caller sees a row and its parts only if the
                     entity is visible
    visible_through  an owned collection: a caller sees a row only if an entity of the collection is visible
    belongs_to       a reference to a user, by API name: only that user and administrators read, change and delete a row
    admin_only       only administrators may read or write it; roles cannot permit it
    decides_access   it defines access rights: only administrators create, change and delete its entities
    left_to_roles    with decides_access: attributes that roles may permit to change
    authored         it runs later with its author's authority: the dataset stores the author and keeps versions
    is_document      states, numbers and voiding of spec 03, 3.5 apply
    abstract         has no rows of its own type (Parties, Documents)
    definition_version, former_attributes   of a custom entity: the version of its definition, and API name of each
                     attribute that was changed → what it was, the oldest first
    cache_version    name in foundation.cache_versions that each commit of an entity or of its children bumps
    admin            options of its admin pages
    """

    name: ClassVar[str] = ""
    type_name: ClassVar[str] = ""
    base_table: ClassVar[str] = ""
    code_member: ClassVar[str] = ""
    name_member: ClassVar[str] = ""
    search_members: ClassVar[tuple[str, ...]] = ()
    children: ClassVar[tuple[Child, ...]] = ()
    late_defaults: ClassVar[tuple[LateDefault, ...]] = ()
    filled_from: ClassVar[Mapping[str, str]] = {}
    filled_late: ClassVar[frozenset[str]] = frozenset()
    calculations: ClassVar[tuple[Calculation, ...]] = ()
    validations: ClassVar[tuple[Validation, ...]] = ()
    copied_with_owner: ClassVar[bool] = True
    read_only: ClassVar[frozenset[str]] = frozenset()
    calculated: ClassVar[frozenset[str]] = frozenset()
    unpublished: ClassVar[frozenset[str]] = frozenset()
    api_names: ClassVar[Mapping[str, str]] = {}
    old_names: ClassVar[Mapping[str, str]] = {}
    ordering: ClassVar[tuple[str, ...]] = ()
    category: ClassVar[Literal["", "Definitions", "Documents", "Settings", "SystemData", "Views"]] = ""
    access: ClassVar[Literal["ReadWrite", "ReadOnly"]] = "ReadWrite"
    view_of: ClassVar[str] = ""
    describes: ClassVar[DescribedEntity | None] = None
    visible_through: ClassVar[str] = ""
    belongs_to: ClassVar[str] = ""
    admin_only: ClassVar[bool] = False
    decides_access: ClassVar[bool] = False
    left_to_roles: ClassVar[frozenset[str]] = frozenset()
    authored: ClassVar[bool] = False
    is_document: ClassVar[bool] = False
    definition_version: ClassVar[int] = 0
    former_attributes: ClassVar[FormerAttributes] = {}
    abstract: ClassVar[bool] = False
    cache_version: ClassVar[str] = ""
    admin: ClassVar[AdminOptions] = AdminOptions()

    model: type[M]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in getattr(cls, "__orig_bases__", ()):
            arguments = get_args(base)
            if arguments and isinstance(arguments[0], type):
                cls.model = arguments[0]
        if cls.name and not any("search_members" in vars(base) for base in cls.__mro__ if base is not Declaration):
            cls.search_members = tuple(member for member in (cls.code_member, cls.name_member) if member)

    def __repr__(self) -> str:
        return f"Repository({self.name})"

    # --- names ----------------------------------------------------------------------------------------------------

    @cached_property
    def set_name(self) -> str:
        return set_name(self.name)

    @property
    def entity_name(self) -> str:
        """The base table's name, as attributes such as EntityName store it (spec 14.1): `Crm_Sales_Orders`."""
        # Not inherited: a subclass of a declaration is a separate repository.
        own: str = vars(type(self)).get("base_table", "")
        return own or self.set_name

    @cached_property
    def entity_type(self) -> str:
        return self.type_name or f"{set_name(self.name.rpartition('.')[0])}_{self.model.__name__}"

    @cached_property
    def namespace(self) -> str:
        """`General.Products` of `General.Products.Products`."""
        return self.name.rpartition(".")[0]

    # --- tables ---------------------------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """(table, key column) from the base's table to its own; one pair without inheritance."""
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
        return self.tables[-1][0]

    @property
    def key_column(self) -> str:
        return self.tables[-1][1]

    @cached_property
    def is_polymorphic(self) -> bool:
        """Whether rows may have a derived type."""
        return issubclass(self.model, PolymorphicRoot)
