"""Who is named as the cause of an entry, and where from. Passed explicitly, as the context of a call is."""

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
        """What is known beside the name, as the entry's content has it."""
        known = {
            "address": self.address,
            "application": self.application,
            "session": self.session,
            "requestId": self.request_id,
        }
        return {name: value for name, value in known.items() if value}


#: Commands and tasks of the platform itself.
PLATFORM = Actor("(platform)")
#: Whoever runs a command on the machine.
OPERATOR = Actor("(operator)")
