"""What webhooks send, as the receiver sees it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest
from tests.support.waiting import eventually

DELIVERY_TIMEOUT_SECONDS = 90


@dataclass(slots=True)
class Hooks:
    """One receiver for all tests; each uses paths of its own."""

    receiver: LoopbackReceiver

    @property
    def url(self) -> str:
        """Root address, without a trailing slash."""
        return self.receiver.url

    def answer(self, path: str, statuses: Iterable[int]) -> None:
        """Answer the requests of a path with these statuses, in order and then with 200."""
        before = self.receiver.respond_with
        waiting = list(statuses)

        def respond(request: ReceivedRequest) -> Answer:
            if request.path.startswith(path):
                return Answer(waiting.pop(0) if waiting else 200)
            return before(request) if before is not None else Answer(200)

        self.receiver.respond_with = respond

    def at(self, path: str) -> list[ReceivedRequest]:
        """The requests that came to this path so far."""
        return [request for request in self.receiver.requests if request.path.startswith(path)]

    def wait(self, path: str, count: int = 1) -> list[ReceivedRequest]:
        """The first `count` requests of a path."""
        came = eventually(lambda: len(self.at(path)) >= count, DELIVERY_TIMEOUT_SECONDS)
        assert came, f"{len(self.at(path))} of {count} requests came to {path}"
        return self.at(path)[:count]
