"""The tables of the Table API: one for each repository, and that of the custom properties' values (spec 11, 11.1).

A table has its repository's stored entity name (`Declaration.base_table`, else the set's name), and the columns that
the repository itself stores. A derived repository's table has its own columns, Id, and the key by the names of its
bases; `Document_Reference` leads to the base's table, to the row of the same entity.

=====================  =========================================================
attribute              columns
=====================  =========================================================
Id, DocumentId         `Id`, `Document_Id`
a reference Customer   `Customer_Id`, and in filters `Customer_Reference/…`
the document of lines  also `Document_Id`, and in filters `Document_Reference/…`
an amount Price        `Price_Value`, `Price_Currency_Id`
a quantity Weight      `Weight_Value`, `Weight_Unit_Id`
an enum, a state       the member's number
a multilanguage Name   `Name`, a JSON text; on demand `Name_EN` for each language
a calculated Margin    on demand `Calculated_Attribute_Margin`
others                 the name split at capitals
=====================  =========================================================

A response contains columns on demand only if $select names them. Encrypted texts, DisplayText, which is not stored, and
calculated attributes that the database cannot compute have no column. Values of custom properties are rows of
`Gen_Property_Values`. Database views have tables as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings

from domain.model.attributes import Attribute
from domain.model.calculated_attributes import definitions
from domain.model.custom_properties import CACHE_VERSION
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import Sort, ValueType
from domain.query.bind.calculated_types import operator_without_sql, value_types
from domain.table_api.names import split_at_capitals
from domain.table_api.table_query import ColumnType
from foundation.kinds import Kind
from foundation.versioned_cache import VersionedCache

PROPERTY_VALUES = "Gen_Property_Values"
_DOCUMENT = "Document"

_TYPES = {
    Kind.GUID: ColumnType.GUID,
    Kind.REFERENCE: ColumnType.GUID,
    Kind.STRING: ColumnType.STRING,
    Kind.MULTILANGUAGE: ColumnType.JSON,
    Kind.INT: ColumnType.INTEGER,
    Kind.ENUM: ColumnType.INTEGER,
    Kind.STATE: ColumnType.INTEGER,
    Kind.BOOL: ColumnType.BOOL,
    Kind.DECIMAL: ColumnType.DECIMAL,
    Kind.AMOUNT: ColumnType.DECIMAL,
    Kind.QUANTITY: ColumnType.DECIMAL,
    Kind.DATE: ColumnType.DATE,
    Kind.DATETIME: ColumnType.DATETIME,
    Kind.BINARY: ColumnType.BINARY,
}
_SORTS = {
    Sort.GUID: ColumnType.GUID,
    Sort.REFERENCE: ColumnType.GUID,
    Sort.TEXTS: ColumnType.JSON,
    Sort.ENUM: ColumnType.INTEGER,
    Sort.STATE: ColumnType.INTEGER,
    Sort.BOOL: ColumnType.BOOL,
    Sort.DATE: ColumnType.DATE,
    Sort.DATETIME: ColumnType.DATETIME,
    Sort.BINARY: ColumnType.BINARY,
}
#: Suffix of an amount's or quantity's reference.
_MEASURES = {Kind.AMOUNT: "Currency_Id", Kind.QUANTITY: "Unit_Id"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    path       API names that lead to its value from the repository's row
    on_demand  only in responses to a $select that names it
    precision and scale are those of a DECIMAL, max_length that of a STRING
    """

    name: str
    path: tuple[str, ...]
    type: ColumnType
    is_nullable: bool
    on_demand: bool = False
    precision: int | None = None
    scale: int | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A navigation to another table, in filters.

    path    the API name of the reference; () to a base, which has another part of the same entity
    target  the repository of the other table
    """

    name: str
    path: tuple[str, ...]
    target: Repository[Any]


class Table:
    """A table of the catalogue. repository is None for PROPERTY_VALUES."""

    def __init__(self, name: str, repository: Repository[Any] | None) -> None:
        self.name = name
        self.repository = repository

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns by name, in order, those on demand last."""
        found: dict[str, Column] = {}
        for column in _columns(self.repository) if self.repository is not None else PROPERTY_VALUE_COLUMNS:
            # An own reference such as QuantityUnit precedes the equal column of Quantity's unit.
            found.setdefault(column.name, column)
        return dict(sorted(found.items(), key=lambda item: item[1].on_demand))

    @cached_property
    def references(self) -> Mapping[str, Reference]:
        """The references by name."""
        return {each.name: each for each in _references(self.repository)} if self.repository is not None else {}

    @cached_property
    def _by_lower(self) -> Mapping[str, Column]:
        return {name.lower(): column for name, column in self.columns.items()}

    @cached_property
    def _references_by_lower(self) -> Mapping[str, Reference]:
        return {name.lower(): reference for name, reference in self.references.items()}

    @cached_property
    def _without_sql(self) -> Mapping[str, str]:
        """Column name in lower case → the operator of the calculated attribute that the database lacks."""
        repository = self.repository
        own = _own_calculated(repository) if repository is not None else ()
        return {split_at_capitals(name).lower(): lacking for name, lacking in own if lacking is not None}

    def lacking_operator(self, name: str) -> str | None:
        """The operator that the database lacks to compute this column's calculated attribute; None for other names."""
        return self._without_sql.get(name.lower())

    def column(self, name: str) -> Column | None:
        """The column with this name in any case, or None."""
        return self._by_lower.get(name.lower())

    def reference(self, name: str) -> Reference | None:
        """The reference with this name in any case, or None."""
        return self._references_by_lower.get(name.lower())


PROPERTY_VALUE_COLUMNS = (
    Column("Entity_Item_Id", (), ColumnType.GUID, False),
    Column("Property_Id", (), ColumnType.GUID, False),
    Column("Property_Value", (), ColumnType.STRING, True),
    Column("Description", (), ColumnType.JSON, True),
)


def tables() -> Mapping[str, Table]:
    """Every table by its name in lower case, sorted by name; without regard to permissions."""
    return _tables.get()


def table_of(repository: Repository[Any]) -> Table:
    """The table of a repository."""
    return tables()[repository.entity_name.lower()]


def _load() -> Mapping[str, Table]:
    found = {repository.entity_name: Table(repository.entity_name, repository) for repository in repositories}
    found[PROPERTY_VALUES] = Table(PROPERTY_VALUES, None)
    return {name.lower(): found[name] for name in sorted(found)}


_tables = VersionedCache(_load, CACHE_VERSION, state=lambda: repositories.generation)


def _bases(repository: Repository[Any]) -> Iterator[Repository[Any]]:
    base = repository.base
    while base is not None:
        yield base
        base = base.base


def _own(repository: Repository[Any]) -> Iterator[Attribute]:
    """The attributes that the repository's own table stores."""
    for attribute in repository.attributes.values():
        if attribute.secret or not (attribute.column or attribute.name == "Id"):
            continue
        if attribute.name == "Id" or attribute.key_alias or attribute.table == repository.table:
            yield attribute


def _columns(repository: Repository[Any]) -> Iterator[Column]:
    own = list(_own(repository))
    for attribute in own:
        yield _column(attribute)
    header = _document_of_lines(repository)
    if header is not None:
        yield Column(f"{_DOCUMENT}_Id", (header.name,), ColumnType.GUID, True)
    for attribute in own:
        if attribute.is_measured and attribute.measure:
            name = f"{split_at_capitals(attribute.name)}_{_MEASURES[attribute.kind]}"
            yield Column(name, attribute.measure, ColumnType.GUID, True)
    for attribute in own:
        if attribute.kind is Kind.MULTILANGUAGE:
            for code, _name in settings.LANGUAGES:
                name = f"{split_at_capitals(attribute.name)}_{code.upper()}"
                yield Column(name, (attribute.name, code.upper()), ColumnType.STRING, True, True)
    yield from _calculated(repository)


def _document_of_lines(repository: Repository[Any]) -> Attribute | None:
    """The owner of lines, if it is a document whose reference has a name of its own, such as SalesOrder.

    The model facts give such lines a second reference to it, Document.
    """
    owner = repository.owner
    is_own_name = owner is not None and _DOCUMENT not in repository.attributes
    return owner if owner is not None and is_own_name and repositories[owner.target].is_document else None


def _column(attribute: Attribute) -> Column:
    name = split_at_capitals(attribute.name)
    if attribute.is_reference:
        name += "_Id"
    elif attribute.is_measured:
        name += "_Value"
    is_text = attribute.kind is Kind.STRING
    return Column(
        name,
        (attribute.name,),
        _TYPES[attribute.kind],
        # A reference is also null if its target is hidden from the caller.
        attribute.nullable or attribute.is_reference,
        precision=attribute.precision,
        scale=attribute.scale,
        max_length=attribute.max_length if is_text else None,
    )


def _calculated(repository: Repository[Any]) -> Iterator[Column]:
    """The repository's own calculated attributes that the database can compute."""
    types = value_types(repository)
    for name, lacking in _own_calculated(repository):
        if lacking is None:
            yield Column(
                split_at_capitals(name), (name,), column_type(types[name]), True, True, scale=types[name].scale
            )


def _own_calculated(repository: Repository[Any]) -> Iterator[tuple[str, str | None]]:
    """The repository's own valid calculated attributes, each with the operator that the database lacks, or None."""
    types = value_types(repository)
    for name, definition in definitions(repository).items():
        if name in types and definition.repository == repository.name:
            yield name, operator_without_sql(repository, name)


def column_type(value_type: ValueType) -> ColumnType:
    """The column type for an expression's type."""
    if value_type.sort is Sort.NUMBER:
        if value_type.integer:
            return ColumnType.INTEGER
        return ColumnType.DOUBLE if value_type.scale is None else ColumnType.DECIMAL
    return _SORTS.get(value_type.sort, ColumnType.STRING)


def _references(repository: Repository[Any]) -> Iterator[Reference]:
    for base in _bases(repository):
        yield Reference(f"{split_at_capitals(base.model.__name__)}_Reference", (), base)
    for attribute in _own(repository):
        if attribute.is_reference:
            name = f"{split_at_capitals(attribute.name)}_Reference"
            yield Reference(name, (attribute.name,), repositories[attribute.target])
    header = _document_of_lines(repository)
    if header is not None:
        base = next(_bases(repositories[header.target]))
        yield Reference(f"{_DOCUMENT}_Reference", (header.name,), base)
