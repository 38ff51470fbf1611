"""The actor of an entry: the cause and its origin. Passed explicitly, like the context of a call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actor:
    """The cause of an entry.

    name         login; "" for an anonymous caller
    address      of the client
    application  ApplicationUri of the trusted application
    session      guid of the licensed session
    request_id   the response's X-Request-Id
    """

    name: str = ""
    address: str = ""
    application: str = ""
    session: str = ""
    request_id: str = ""

    def details(self) -> dict[str, str]:
        """The fields other than the name, for the entry's content."""
        known = {
            "address": self.address,
            "application": self.application,
            "session": self.session,
            "requestId": self.request_id,
        }
        return {name: value for name, value in known.items() if value}


#: Commands and tasks of the platform itself.
PLATFORM = Actor("(platform)")
#: Commands that an operator runs on the machine.
OPERATOR = Actor("(operator)")
