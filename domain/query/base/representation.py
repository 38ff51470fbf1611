"""What the engine is asked for besides the query itself, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from domain.model.repository import Repository

MetadataLevel = Literal["none", "minimal", "full"]
ShapeKey = tuple[MetadataLevel, bool, bool, str]


@dataclass(frozen=True, slots=True)
class Representation:
    """How rows become JSON (OData JSON 4.01; spec 02, 2.2).

    metadata       odata.metadata of the media type
    ieee754        IEEE754Compatible: decimals as strings
    skip_nulls     `options=skipnulls`: properties that are null are left out
    language       for display texts and for ordering and comparing multilanguage texts as one text
    service_root   absolute URL ending in "/", for @odata.context; with metadata=none unused
    version        OData version of the response
    """

    metadata: MetadataLevel = "minimal"
    ieee754: bool = False
    skip_nulls: bool = False
    language: str = "en"
    service_root: str = ""
    version: Literal["4.0", "4.01"] = "4.01"

    @property
    def shape_key(self) -> ShapeKey:
        """What of this is compiled into a plan; the rest is filled in when it runs."""
        return self.metadata, self.ieee754, self.skip_nulls, self.version


@dataclass(frozen=True, slots=True)
class ParentScope:
    """The entity whose owned collection is read: `Set(key)/Collection`."""

    repository: Repository[Any]
    key: str
    collection: str


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """One page. `count` is the number of all matching rows where $count=true asked for it, else None."""

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

    body      `{"@odata.context": …, "value": …}`; b"" where the value is null (204 No Content)
    raw       what `/$value` answers, None for null
    is_null   the property exists and is null
    """

    body: bytes
    raw: bytes | None
    is_null: bool
