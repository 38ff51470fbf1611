"""Callers of the Table API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from tests.support.api import Answer, Api

ROOT = "/tableapi/odata/"


@dataclass(slots=True)
class Tables:
    """A caller with a bearer token. Paths are relative to the service root and not yet encoded."""

    client: Client
    token: str

    def get(self, path: str, **headers: str) -> Answer:
        """GET."""
        sent = {"Authorization": f"Bearer {self.token}"} | {name.replace("_", "-"): v for name, v in headers.items()}
        return self.client.get(ROOT + quote(path, safe="=&$,()/;:'?%@"), headers=sent)

    def read(self, path: str, **headers: str) -> Any:
        """The JSON of a GET that must succeed."""
        answer = self.get(path, **headers)
        assert answer.status_code == 200, (answer.status_code, body_of(answer))
        return json.loads(body_of(answer))

    def rows(self, path: str, **headers: str) -> list[dict[str, Any]]:
        """The rows of a GET that must succeed."""
        found: list[dict[str, Any]] = self.read(path, **headers)["value"]
        return found


def body_of(answer: Answer) -> bytes:
    """The whole body, streamed or not."""
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def tables_of(api: Api) -> Tables:
    """The same caller at the Table API."""
    return Tables(api.client, api.token)


@pytest.fixture
def tables(api: Api) -> Tables:
    """A service application that may read everything."""
    return tables_of(api)
