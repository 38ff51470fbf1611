"""Requests as a client in any language makes them: addresses, headers, JSON. Knows nothing of the product's code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import requests

TIMEOUT_SECONDS = 60
ODATA = "/api/domain/odata/"
REQUIRED_OF_AN_ERROR = {"message": str, "code": int, "type": str, "info": str}
OPTIONAL_OF_AN_ERROR = {"messageFormat": str, "parameters": list, "target": str, "details": list}


@dataclass(frozen=True, slots=True)
class Caller:
    """A client of one instance. Paths are relative to the OData root; with a leading slash, to the instance's root."""

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    http: requests.Session = field(default_factory=requests.Session)

    def with_headers(self, **headers: str) -> Caller:
        """The same client with more headers; an underscore in a name stands for a hyphen."""
        return replace(self, headers={**self.headers, **_names(headers)})

    def with_token(self, token: str) -> Caller:
        """A client of the same instance with this access token and no cookies."""
        return Caller(self.base_url, {"Authorization": f"Bearer {token}"})

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"{self.base_url}{path}" if path.startswith("/") else f"{self.base_url}{ODATA}{path}"

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        """A request. An object or array is sent as JSON; text and bytes as they are, with the Content_Type given."""
        sent = {**self.headers, **_names(headers)}
        is_raw = isinstance(body, str | bytes)
        data = body.encode() if isinstance(body, str) else body
        return self.http.request(
            method,
            self.url(path),
            headers=sent,
            data=data if is_raw else None,
            json=None if is_raw else body,
            timeout=TIMEOUT_SECONDS,
            allow_redirects=False,
        )

    def get(self, path: str, **headers: str) -> requests.Response:
        """GET."""
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> requests.Response:
        """POST."""
        return self.send("POST", path, body, **headers)

    def patch(self, path: str, body: Any, **headers: str) -> requests.Response:
        """PATCH."""
        return self.send("PATCH", path, body, **headers)

    def delete(self, path: str, **headers: str) -> requests.Response:
        """DELETE."""
        return self.send("DELETE", path, **headers)

    def form(self, path: str, **fields: str) -> requests.Response:
        """A form-encoded POST."""
        return self.http.post(
            self.url(path), data=fields, headers=dict(self.headers), timeout=TIMEOUT_SECONDS, allow_redirects=False
        )

    def is_refused(self) -> bool:
        """Whether the token opens nothing any more; asked once, since it holds for the very next request."""
        return self.get("").status_code == 401

    def read(self, path: str, **headers: str) -> Any:
        """The JSON of a GET that succeeds."""
        return answered(self.get(path, **headers), 200).json()

    def rows(self, path: str, **headers: str) -> list[dict[str, Any]]:
        """The rows of a GET of a collection."""
        found: list[dict[str, Any]] = self.read(path, **headers)["value"]
        return found

    def count(self, path: str) -> int:
        """The number that a GET of …/$count answers."""
        return int(answered(self.get(f"{path}/$count"), 200).content.decode("utf-8-sig"))

    def create(self, entity_set: str, body: Any, **headers: str) -> dict[str, Any]:
        """The new entity's representation."""
        made: dict[str, Any] = answered(self.post(entity_set, body, **headers), 201).json()
        return made

    def change(self, entity: str, body: Any, **headers: str) -> None:
        """PATCH that succeeds."""
        answered(self.patch(entity, body, **headers), 204)

    def script(self, source: str, **headers: str) -> requests.Response:
        """ExecuteScript."""
        return self.post("ExecuteScript", source, Content_Type="text/plain", Accept="application/json", **headers)

    def run(self, source: str, **headers: str) -> dict[str, Any]:
        """The answer of a script that succeeds."""
        answer: dict[str, Any] = answered(self.script(source, **headers), 200).json()
        return answer

    def begin(self, **body: Any) -> Caller:
        """The same client inside a new Domain transaction."""
        return self.with_headers(TransactionId=answered(self.post("BeginTransaction", body), 200).text)

    def end(self, *, commit: bool) -> None:
        """End the Domain transaction that this client works in."""
        answered(self.post("EndTransaction", {"commit": commit}), 204)


def answered(response: requests.Response, *statuses: int) -> requests.Response:
    """The response, which has one of these statuses."""
    assert response.status_code in statuses, f"{response.status_code} {response.request.url}\n{response.text}"
    return response


def error_of(response: requests.Response, *statuses: int) -> dict[str, Any]:
    """The error object of a response with one of these statuses, its shape checked to the letter (section 7.1)."""
    answered(response, *statuses)
    assert response.headers["Content-Type"].partition(";")[0] == "application/json"
    body = response.json()
    assert list(body) == ["error"], body
    error: dict[str, Any] = body["error"]
    for name, kind in REQUIRED_OF_AN_ERROR.items():
        assert type(error[name]) is kind, (name, error)
    for name, kind in OPTIONAL_OF_AN_ERROR.items():
        assert name not in error or type(error[name]) is kind, (name, error)
    assert all(isinstance(value, str) for value in error.get("parameters", []))
    assert not set(error) - set(REQUIRED_OF_AN_ERROR) - set(OPTIONAL_OF_AN_ERROR), error
    return error


def id_of(entity: Mapping[str, Any]) -> str:
    """The guid in an entity's @odata.id."""
    return str(entity["@odata.id"]).partition("(")[2].rstrip(")")


def _names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
