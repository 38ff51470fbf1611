"""One request of a batch, and its response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from domain.odata.message.message import ODataResponse
from domain.odata.service.steps import Exchange

#: domain.odata.service.handler.serve, which handles a part as a separate request
Serve = Callable[[Exchange], ODataResponse]


@dataclass(slots=True)
class Part:
    """One request of a batch.

    id           request id or Content-ID, by which other parts refer to it; "" for none
    headers      its own headers, lower-case names
    group        its changeset or atomicity group; "" for none
    depends_on   ids and groups that must succeed first
    condition    the `if`, instead of depends_on; None for none
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
    """A part and its response."""

    part: Part
    response: ODataResponse
    failed: bool = field(init=False)

    def __post_init__(self) -> None:
        self.failed = self.response.status >= 400
