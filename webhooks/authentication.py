"""Authentication schemes of deliveries (spec 06, 6.2).

The prefix of a template's secret identifies its scheme, as in Standard Webhooks: `whsec_…`. One class adds a scheme to
the admin, the command and the workers:

    @authentication_schemes.register
    class PlainToken(AuthenticationScheme):
        name = "PlainToken"
        prefix = "token_"

        def headers(self, secrets, *, message_id, timestamp, body):
            return [("X-Token", secrets[0])]
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets as random
from collections.abc import Sequence
from typing import ClassVar

from foundation.catalogue import Catalogue
from foundation.egress.headers import Header

#: Standard Webhooks requires keys of 24 to 64 bytes.
KEY_BYTES = range(24, 65)


class AuthenticationScheme:
    """Base of every authentication scheme. `prefix` begins each stored secret, so it never changes.

    reserved_headers   lower-case names of headers that templates may not set
    """

    name: ClassVar[str] = ""
    prefix: ClassVar[str] = ""
    reserved_headers: ClassVar[frozenset[str]] = frozenset()

    def new_secret(self) -> str:
        """A random secret."""
        return self.prefix + base64.b64encode(random.token_bytes(32)).decode()

    def headers(self, secrets: Sequence[str], *, message_id: str, timestamp: int, body: bytes) -> list[Header]:
        """The headers of one request, for each of the secrets: during a rotation there are two, the newest first.

        `timestamp` is in seconds since 1970.
        """
        raise NotImplementedError


class AuthenticationSchemes(Catalogue[AuthenticationScheme]):
    """The catalogue of authentication schemes. The first is the default."""

    def add(self, name: str, item: AuthenticationScheme) -> None:
        """Add a scheme. Raises ValueError for a missing or taken prefix, and as every catalogue does."""
        if not item.prefix or any(item.prefix.startswith(each.prefix) for each in self):
            raise ValueError(f"the {self.kind} {name} has no prefix, or one that is taken")
        super().add(name, item)

    @property
    def default(self) -> AuthenticationScheme:
        """The scheme of new secrets by default, and of secrets without a known prefix."""
        return next(iter(self))

    def of(self, secret: str) -> AuthenticationScheme:
        """The scheme that a secret belongs to."""
        return next((scheme for scheme in self if secret.startswith(scheme.prefix)), self.default)

    def headers(self, secrets: Sequence[str], *, message_id: str, timestamp: int, body: bytes) -> list[Header]:
        """The headers that authenticate one request with the secrets of a template; none without a secret."""
        result: list[Header] = []
        for scheme in self:
            own = [secret for secret in secrets if self.of(secret) is scheme]
            if own:
                result += scheme.headers(own, message_id=message_id, timestamp=timestamp, body=body)
        return result


authentication_schemes = AuthenticationSchemes("webhook authentication scheme")


@authentication_schemes.register
class StandardWebhooks(AuthenticationScheme):
    """Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body` in the header webhook-signature, as `v1,<base64>`."""

    name = "StandardWebhooks"
    prefix = "whsec_"
    reserved_headers = frozenset({"webhook-signature"})

    def headers(self, secrets: Sequence[str], *, message_id: str, timestamp: int, body: bytes) -> list[Header]:
        """One signature for each secret, so that receivers can change to a new secret at any time."""
        signed = f"{message_id}.{timestamp}.".encode() + body
        digests = [hmac.digest(self._key(secret), signed, hashlib.sha256) for secret in secrets]
        return [("webhook-signature", " ".join("v1," + base64.b64encode(digest).decode() for digest in digests))]

    def _key(self, secret: str) -> bytes:
        try:
            key = base64.b64decode(secret.removeprefix(self.prefix), validate=True)
        except binascii.Error as exc:
            raise ValueError(f"a signing secret is {self.prefix} followed by base64") from exc
        if len(key) not in KEY_BYTES:
            raise ValueError(f"a signing secret holds 24 to 64 bytes, not {len(key)}")
        return key
