"""Trusted applications of a running instance, registered through the Domain API."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tests.support.platform import LivePlatform

_SET = "Systems_Security_TrustedApplications"


class Administrator:
    """Calls of the demo's service, which may register applications."""

    def __init__(self, platform: LivePlatform, session: requests.Session) -> None:
        self._root = f"{platform.base_url}/api/domain/odata"
        self._session = session

    def register(self, name: str, **attributes: Any) -> None:
        """Register an application. Raises AssertionError with the refusal."""
        application = {"ApplicationUri": name, "Name": name, **attributes}
        made = self._session.post(f"{self._root}/{_SET}", json=application, timeout=60)
        assert made.status_code == 201, made.text

    def change(self, name: str, **attributes: Any) -> None:
        """Change an application. Raises AssertionError with the refusal."""
        done = self._session.patch(
            f"{self._root}/{self._id(_SET, 'ApplicationUri', name)}", json=attributes, timeout=60
        )
        assert done.ok, done.text

    def user(self, login: str) -> dict[str, str]:
        """A reference to a user."""
        return {"@odata.id": self._id("Systems_Security_Users", "Login", login)}

    def _id(self, entity_set: str, attribute: str, value: str) -> str:
        url = f"{self._root}/{entity_set}"
        found = self._session.get(url, params={"$filter": f"{attribute} eq '{value}'"}, timeout=60).json()["value"]
        assert len(found) == 1, found
        return str(found[0]["@odata.id"])


@contextmanager
def administrator_of(platform: LivePlatform) -> Iterator[Administrator]:
    """The administrator of an instance with demo data."""
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    token = requests.post(f"{platform.base_url}/id/connect/token", data=form, timeout=60).json()["access_token"]
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {token}"
        yield Administrator(platform, session)


def hash_of(secret: str) -> str:
    """ApplicationSecretHash for a secret."""
    return base64.b64encode(hashlib.sha256(secret.encode()).digest()).decode()
