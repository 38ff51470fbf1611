"""The connection of a generated client: entity sets, transactions, errors and tokens.

`manage.py generate_client` copies this module beside the generated types; the product itself does not import it. It
needs httpx and pydantic.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer


def _decode(value: object) -> object:
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)) if isinstance(value, str) else value


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


#: Edm.Binary: base64url in JSON (OData JSON Format 4.01, 7.1).
Binary = Annotated[bytes, BeforeValidator(_decode), PlainSerializer(_encode, when_used="json")]
#: A text in several languages, by language code.
MultilanguageString = dict[str, str]
#: A JSON value without a declared type.
Json = Any


class Complex(BaseModel):
    """A value of a complex type. Members that a newer instance adds are kept in `model_extra`."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)


class Entity(Complex):
    """An entity. A member that was not selected is None; a reference that was not expanded has `odata_id` alone."""

    entity_set: ClassVar[str] = ""

    odata_id: str | None = Field(default=None, alias="@odata.id")

    def reference(self) -> dict[str, str]:
        """The JSON that refers to this entity in another entity's body. Raises ValueError without `odata_id`."""
        if self.odata_id is None:
            raise ValueError("the entity has no @odata.id: it was not read from the instance")
        return {"@odata.id": self.odata_id}


E = TypeVar("E", bound=Entity)
#: Identifies an entity: its Id, or an Entity that was read.
Key = UUID | str | Entity


class ApiError(Exception):
    """An error of the instance. `code`, `kind` and `details` are those of the error's JSON; `status` is HTTP's."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", f"HTTP {status}"))
        self.status = status
        self.code: Any = error.get("code")
        self.kind: str = str(error.get("type", ""))
        self.details: list[dict[str, Any]] = error.get("details", [])


class ClientCredentials(httpx.Auth):
    """Access tokens of a service application (RFC 6749, 4.4), renewed a minute before they expire."""

    requires_response_body = True

    def __init__(self, instance: str, client_id: str, client_secret: str, scope: str = "") -> None:
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        self._request = httpx.Request(
            "POST", f"{instance.rstrip('/')}/id/connect/token", data=form | ({"scope": scope} if scope else {})
        )
        self._token, self._ends = "", 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the token, which is fetched first if none is valid."""
        if time.monotonic() > self._ends:
            response = yield self._request
            _check(response)
            answer = response.json()
            self._token, self._ends = answer["access_token"], time.monotonic() + answer["expires_in"] - 60
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class Connection:
    """A connection to the Domain API of one instance.

    instance   base URL, such as https://platform.example
    auth       ClientCredentials, or an access token
    """

    def __init__(self, instance: str, auth: httpx.Auth | str, *, timeout_seconds: float = 60) -> None:
        headers = {"Accept": "application/json;IEEE754Compatible=true", "OData-MaxVersion": "4.01"}
        if isinstance(auth, str):
            headers["Authorization"] = f"Bearer {auth}"
        self._http = httpx.Client(
            base_url=f"{instance.rstrip('/')}/api/domain/odata/",
            auth=None if isinstance(auth, str) else auth,
            headers=headers,
            timeout=timeout_seconds,
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, method: str, path: str, *, query: dict[str, str] | None = None, body: Any = None) -> Any:
        """Send a request; returns the response's JSON, its text if it is not JSON, or None. Raises ApiError."""
        content = None if body is None else json.dumps(body, default=str)
        headers = {} if body is None else {"Content-Type": "application/json;IEEE754Compatible=true"}
        text = "&".join(f"{name}={quote(value, safe='')}" for name, value in (query or {}).items())
        response = self._http.request(method, f"{path}?{text}" if text else path, content=content, headers=headers)
        _check(response)
        if not response.content:
            return None
        if "json" in response.headers.get("Content-Type", ""):
            return json.loads(response.content, parse_float=Decimal)
        return response.text

    @contextmanager
    def transaction(self, model: str = "common") -> Iterator[None]:
        """Send the requests inside the block in one transaction: committed at its end, rolled back on an exception."""
        identifier = self.send("POST", "BeginTransaction", body={"model": model})
        identifier = identifier["value"] if isinstance(identifier, dict) else identifier
        self._http.headers["TransactionId"] = identifier
        try:
            yield
        except BaseException:
            self.send("POST", "EndTransaction", body={"commit": False})
            raise
        else:
            self.send("POST", "EndTransaction", body={"commit": True})
        finally:
            del self._http.headers["TransactionId"]

    def call(self, path: str, *, is_function: bool, arguments: dict[str, Any]) -> Any:
        """Call an operation. Arguments that are None are left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        if not is_function:
            return _value(self.send("POST", path, body={name: _member(value) for name, value in given.items()}))
        aliases = ",".join(f"{name}=@{name}" for name in given)
        query = {f"@{name}": literal(value) for name, value in given.items()}
        return _value(self.send("GET", f"{path}({aliases})", query=query))


class EntitySet(Generic[E]):
    """The entities of one set."""

    def __init__(self, connection: Connection, entity_type: type[E]) -> None:
        self._connection = connection
        self._type = entity_type
        self._path = entity_type.entity_set

    def get(self, key: Key, *, select: str = "", expand: str = "") -> E:
        """The entity with the key. Raises ApiError with status 404 when there is none."""
        query = {"$select": select, "$expand": expand}
        return self._type.model_validate(self._connection.send("GET", self._at(key), query=_given(query)))

    def query(
        self,
        *,
        filter: str = "",
        orderby: str = "",
        select: str = "",
        expand: str = "",
        search: str = "",
        top: int | None = None,
        skip: int | None = None,
    ) -> Iterator[E]:
        """The entities that match; pages are fetched while iterating. Strings are OData; `literal` quotes values."""
        query = _given(
            {
                "$filter": filter, "$orderby": orderby, "$select": select, "$expand": expand, "$search": search,
                "$top": "" if top is None else str(top), "$skip": "" if skip is None else str(skip),
            }
        )  # fmt: skip
        page = self._connection.send("GET", self._path, query=query)
        while True:
            yield from map(self._type.model_validate, page["value"])
            following = page.get("@odata.nextLink")
            if following is None:
                return
            page = self._connection.send("GET", following)

    def count(self, *, filter: str = "") -> int:
        """The number of entities that match."""
        return int(self._connection.send("GET", f"{self._path}/$count", query=_given({"$filter": filter})))

    def create(self, entity: E) -> E:
        """Create an entity with the members that were set; returns it as the instance has stored it."""
        return self._type.model_validate(self._connection.send("POST", self._path, body=to_json(entity)))

    def update(self, key: Key, changes: E) -> None:
        """Change the members that were set."""
        self._connection.send("PATCH", self._at(key), body=to_json(changes))

    def delete(self, key: Key) -> None:
        """Delete an entity."""
        self._connection.send("DELETE", self._at(key))

    def _at(self, key: Key) -> str:
        return key.reference()["@odata.id"] if isinstance(key, Entity) else f"{self._path}({key})"

    def _call(self, key: Key, name: str, *, is_function: bool, arguments: dict[str, Any]) -> Any:
        return self._connection.call(f"{self._at(key)}/{name}", is_function=is_function, arguments=arguments)


def literal(value: object) -> str:
    """The value as a literal of $filter and of function arguments (OData ABNF); an entity is its reference."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, Decimal, UUID)):
        return str(value)
    if isinstance(value, datetime):
        return (value.isoformat() if value.tzinfo else f"{value.isoformat()}Z").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (BaseModel, dict, list)):
        return json.dumps(_member(value), default=str)
    return "'" + str(value).replace("'", "''") + "'"


def to_json(value: Any) -> Any:
    """The value as request JSON: a model's members that were set; nested entities that were read become references."""
    if isinstance(value, BaseModel):
        names = [name for name in sorted(value.model_fields_set) if name != "odata_id" and not name.startswith("@")]
        return {name: _member(getattr(value, name)) for name in names}
    if isinstance(value, (list, tuple)):
        return [_member(item) for item in value]
    if isinstance(value, dict):
        return {name: _member(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return _encode(value)
    if isinstance(value, datetime):
        return literal(value)
    return str(value) if isinstance(value, (StrEnum, Decimal, UUID, date)) else value


def _member(value: Any) -> Any:
    return value.reference() if isinstance(value, Entity) and value.odata_id else to_json(value)


def _given(query: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _value(answer: Any) -> Any:
    return answer["value"] if isinstance(answer, dict) and "value" in answer else answer


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    response.read()
    try:
        error = response.json().get("error")
    except ValueError:
        error = None
    raise ApiError(response.status_code, error if isinstance(error, dict) else {"message": response.text[:500] or None})
