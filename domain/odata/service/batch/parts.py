"""One request of a batch, and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from domain.dataset.dataset import Dataset
from domain.odata.message.message import ODataRequest, ODataResponse


class Service(NamedTuple):
    """The functions of domain.odata.service.handler that carry out a part."""

    handle: Callable[[ODataRequest], ODataResponse]
    apply_in: Callable[[ODataRequest, Dataset, str | None], Callable[[], ODataResponse]]
    transaction_id_of: Callable[[ODataRequest], str | None]


@dataclass(slots=True)
class Part:
    """One request of a batch.

    id           request id or Content-ID, by which others refer to it; "" for none
    headers      its own, lower-case names
    group        names its changeset or atomicity group; "" for none
    depends_on   ids and groups that have to succeed first
    condition    the `if` that stands in place of that; None for none
    """

    id: str
    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    group: str = ""
    depends_on: tuple[str, ...] = ()
    condition: str | None = None


@dataclass(slots=True)
class Done:
    """A part and what it was answered."""

    part: Part
    response: ODataResponse
    failed: bool = field(init=False)

    def __post_init__(self) -> None:
        self.failed = self.response.status >= 400
