"""Parameters of a read besides its query options, and the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from domain.model.repository import Repository

MetadataLevel = Literal["none", "minimal", "full"]
Version = Literal["4.0", "4.01"]

#: In lower case: the namespace of the model, its alias in $metadata, and the one before operations in the reference's
#: documents.
NAMESPACES = ("erp", "self", "default")
#: Names of operations in lower case, which the protocol adds: $select may name them, although they have no values.
OPERATION_NAMES: set[str] = set()


def is_operation(name: str) -> bool:
    """Whether it is the name of an operation, with or without namespace."""
    namespace, _, bare = name.lower().rpartition(".")
    return bare in OPERATION_NAMES and namespace in ("", *NAMESPACES)


class ShapeKey(NamedTuple):
    """The part of a Representation that a plan depends on."""

    metadata: MetadataLevel = "none"
    ieee754: bool = False
    skip_nulls: bool = False
    version: Version = "4.01"
    standard_base64: bool = False


@dataclass(frozen=True, slots=True)
class Representation:
    """JSON format of rows (OData JSON 4.01; spec 02, 2.2).

    metadata       odata.metadata of the media type
    ieee754        IEEE754Compatible: decimals as strings
    skip_nulls     `options=skipnulls`: properties that are null are left out
    language       for display texts, and for ordering and comparing multilanguage texts
    service_root   absolute URL ending in "/", for @odata.context; with metadata=none unused
    version        OData version of the response
    standard_base64   Edm.Binary in the base64 alphabet that clients of OData 4.0 read (RFC 4648, 4), not base64url
    """

    metadata: MetadataLevel = "minimal"
    ieee754: bool = False
    skip_nulls: bool = False
    language: str = "en"
    service_root: str = ""
    version: Version = "4.01"
    standard_base64: bool = False

    @property
    def shape_key(self) -> ShapeKey:
        """The part that a plan depends on; the rest is applied when the plan runs."""
        return ShapeKey(self.metadata, self.ieee754, self.skip_nulls, self.version, self.standard_base64)


@dataclass(frozen=True, slots=True)
class ParentScope:
    """The entity whose owned collection is read: `Set(key)/Collection`."""

    repository: Repository[Any]
    key: str
    collection: str


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """One page. `count` is the number of all matching rows for $count=true, else None."""

    body: bytes
    rows: int
    count: int | None = None
    next_link: str | None = None


@dataclass(frozen=True, slots=True)
class EntityResult:
    """One entity. `etag` is W/"<ObjectVersion>" for aggregate roots, else None."""

    body: bytes
    id: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class ValueResult:
    """One property.

    body      `{"@odata.context": …, "value": …}`; b"" if the value is null (204 No Content)
    raw       the body of `/$value`, None for null
    is_null   the property exists and is null
    """

    body: bytes
    raw: bytes | None
    is_null: bool
