"""A webhook authentication scheme."""

from collections.abc import Sequence

from foundation.egress.headers import Header
from webhooks.authentication import AuthenticationScheme, authentication_schemes


@authentication_schemes.register
class PlainToken(AuthenticationScheme):
    """The secret itself, in a header; two during a rotation, the newest first."""

    name = "PlainToken"
    prefix = "token_"
    reserved_headers = frozenset({"x-token"})

    def headers(self, secrets: Sequence[str], *, message_id: str, timestamp: int, body: bytes) -> list[Header]:
        """One header for each secret."""
        return [("X-Token", secret) for secret in secrets]
