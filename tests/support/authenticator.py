"""An authenticator in software: answers WebAuthn ceremonies as a browser with a passkey does, or as a forger."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256
from fido2.utils import sha256, websafe_decode, websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

FLAGS = AuthenticatorData.FLAG
ORIGIN = "http://localhost"


def ceremony_of(page: str, kind: str = "get") -> dict[str, Any]:
    """The options that a page gives to navigator.credentials."""
    found = page.partition(f'data-passkey="{kind}"')[2].partition('data-options="')[2].partition('"')[0]
    options: dict[str, Any] = json.loads(unescape(found))
    return options


@dataclass
class Authenticator:
    """Holds one key. The fields are what a test may forge.

    counter  sent with the next response; raised by each unless `counts` is False
    """

    rp_id: str = "localhost"
    origin: str = ORIGIN
    counter: int = 1
    counts: bool = True
    flags: FLAGS = FLAGS.UP | FLAGS.UV
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    user_handle: str = ""

    def register(self, options: dict[str, Any], **changes: Any) -> str:
        """The response to creation options, as JSON."""
        self.user_handle = options["user"]["id"]
        client_data = self._client_data("webauthn.create", options, changes)
        credential = AttestedCredentialData.create(
            bytes(16),
            self.credential_id,
            ES256.from_cryptography_key(self.key.public_key()),  # type: ignore[no-untyped-call]
        )
        data = self._data(FLAGS.AT, bytes(credential))
        attestation = AttestationObject.create("none", data, {})
        response = {"clientDataJSON": client_data.b64, "attestationObject": websafe_encode(attestation)}
        return self._response({**response, "transports": ["internal", "of the future"]})

    def prove(self, options: dict[str, Any], **changes: Any) -> str:
        """The response to request options, as JSON. changes: members of the client data; `user_handle`."""
        handle = changes.pop("user_handle", self.user_handle)
        client_data = self._client_data("webauthn.get", options, changes)
        data = self._data()
        signature = self.key.sign(bytes(data) + client_data.hash, ec.ECDSA(hashes.SHA256()))
        return self._response(
            {
                "clientDataJSON": client_data.b64,
                "authenticatorData": websafe_encode(data),
                "signature": websafe_encode(signature),
                "userHandle": handle,
            }
        )

    def _client_data(self, kind: str, options: dict[str, Any], changes: dict[str, Any]) -> CollectedClientData:
        members = {"type": kind, "challenge": websafe_decode(options["challenge"]), "origin": self.origin, **changes}
        return CollectedClientData.create(**members)

    def _data(self, flags: int = 0, credential: bytes = b"") -> AuthenticatorData:
        data: AuthenticatorData = AuthenticatorData.create(
            sha256(self.rp_id.encode()), self.flags | flags, self.counter, credential
        )
        self.counter += self.counts
        return data

    def _response(self, response: dict[str, Any]) -> str:
        raw = websafe_encode(self.credential_id)
        return json.dumps({"id": raw, "rawId": raw, "type": "public-key", "response": response})
