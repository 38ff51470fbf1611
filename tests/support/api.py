"""A client of the Domain API for tests: a token from the demo's service application, JSON in and out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

from django.test import Client

from identity.demo import seed_identity
from tests.support.prepared import Prepared

#: What Django's test client answers; its stubs have no public name for it.
Answer = Any

ROOT = "/api/domain/odata/"
TOKEN_URL = "/id/connect/token"


@dataclass(slots=True)
class Api:
    """Requests with a bearer token. Paths are relative to the service root."""

    client: Client
    token: str
    headers: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """A request; a dict or list as body is sent as JSON, text and bytes as they are (give Content_Type)."""
        sent = {"Authorization": f"Bearer {self.token}", **self.headers}
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        content_type = sent.pop("Content-Type", "application/json")
        data = body if isinstance(body, str | bytes) else ("" if body is None else json.dumps(body))
        return self.client.generic(method, ROOT + path, data, content_type=content_type if data else "", headers=sent)

    def get(self, path: str, **headers: str) -> Answer:
        """GET."""
        return self.request("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        """POST."""
        return self.request("POST", path, body, **headers)

    def patch(self, path: str, body: Any, **headers: str) -> Answer:
        """PATCH."""
        return self.request("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Answer:
        """DELETE."""
        return self.request("DELETE", path, **headers)

    def read(self, path: str, **headers: str) -> Any:
        """The JSON of a GET that must succeed."""
        response = self.get(path, **headers)
        assert response.status_code == 200, (response.status_code, response.content)
        return json.loads(response.content)

    def create(self, path: str, body: Any, **headers: str) -> Any:
        """The JSON of a POST that must create."""
        response = self.post(path, body, **headers)
        assert response.status_code == 201, (response.status_code, response.content)
        return json.loads(response.content)

    def within(self, transaction_id: str) -> Api:
        """The same caller inside a Domain transaction."""
        return Api(self.client, self.token, {**self.headers, "TransactionId": transaction_id})

    def begin(self, **body: Any) -> Api:
        """Open a Domain transaction and speak inside it."""
        response = self.post("BeginTransaction", body)
        assert response.status_code == 200, response.content
        return self.within(response.content.decode())

    def end(self, *, commit: bool = True) -> Answer:
        """End the Domain transaction that this caller speaks in."""
        return self.post("EndTransaction", {"commit": commit})


def error_of(response: Answer) -> dict[str, Any]:
    """The error object of a failing answer."""
    assert response["Content-Type"].startswith("application/json"), response.content
    return cast(dict[str, Any], json.loads(response.content)["error"])


def id_of(entity: dict[str, Any]) -> str:
    """The guid in an entity's @odata.id."""
    return str(entity["@odata.id"]).partition("(")[2].rstrip(")")


def service_api(client: Client, *, application: str = "ServiceDemoClient", scope: str = "read update exec") -> Api:
    """A caller with a service token; needs the demo's applications (identity.demo.seed_identity)."""
    response = client.post(
        TOKEN_URL,
        f"grant_type=client_credentials&client_id={application}&client_secret=DEMO&scope={scope.replace(' ', '+')}",
        content_type="application/x-www-form-urlencoded",
    )
    assert response.status_code == 200, response.content
    return Api(client, str(response.json()["access_token"]))


def _demo_token() -> str:
    seed_identity()
    return service_api(Client()).token


#: A token of the demo's service application, which may do everything; the demo's users and applications with it.
prepared_token = Prepared(_demo_token)
