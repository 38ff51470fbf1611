"""Two nodes on one database: a rule saved on one acts on the next write on the other, too (spec 05, 5.2).

On PostgreSQL each has a DATA_DIR of its own, as on another machine: nothing but the database tells the other.
"""

from __future__ import annotations

import itertools
import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.instances import prepared_instance
from tests.support.platform import LivePlatform, start_platform

pytestmark = pytest.mark.process
SET = "General_Currencies_Currencies"
_numbers = itertools.count()


class Node:
    """A caller of one of the two."""

    def __init__(self, platform: LivePlatform) -> None:
        self.platform = platform
        body = b"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO&scope=read+update+exec"
        self.token = json.loads(self._send("POST", f"{platform.base_url}/id/connect/token", body, None)[1])[
            "access_token"
        ]

    def _send(self, method: str, url: str, body: bytes | None, token: str | None) -> tuple[int, bytes]:
        kind = "application/json" if token else "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, **({"Authorization": f"Bearer {token}"} if token else {})}
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON."""
        data = None if body is None else json.dumps(body).encode()
        status, content = self._send(method, self.platform.odata_url + path, data, self.token)
        return status, json.loads(content) if content else None

    def is_refused(self) -> bool:
        """Whether the rule acts here."""
        sign = f"Z{next(_numbers) % 256:02X}"
        status, answer = self.call("POST", SET, {"CurrencySign": sign, "Name": "live"})
        if status == 201:
            status, answer = self.call("DELETE", answer["@odata.id"])
        if status == 204:
            return False
        assert answer["error"]["message"] == "Refused on every node.", answer
        return True


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    directory: Path = tmp_path_factory.mktemp("nodes") / "data"
    settings = {"WEB_PROCESSES": "1", "WORKER_PROCESSES": "1"}
    with ExitStack() as stack:
        settings |= stack.enter_context(prepared_instance(directory))
        own = directory
        if "DATABASE_URL" in settings:
            own = shutil.copytree(directory, directory.with_name("another"))
        first, second = (stack.enter_context(start_platform(each, settings=settings)) for each in (directory, own))
        yield Node(first), Node(second)


@pytest.mark.parametrize("here, there", [(0, 1), (1, 0)])
def test_a_rule_acts_on_the_next_write_of_each_node(nodes: tuple[Node, Node], here: int, there: int) -> None:
    one, other = nodes[here], nodes[there]
    rule = {
        "Code": f"LIVE{here}",
        "Name": {"EN": "Live"},
        "RepositoryName": "General.Currencies.Currencies",
        "IsActive": False,
        "Events": [{"EventType": "COMMIT"}],
        "Conditions": [{"AttributeName": "Name", "ComparisonType": "Equals", "Value": "live"}],
        "Actions": [{"ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "Refused on every node."}],
    }
    status, created = one.call("POST", "Systems_Bpm_UserBusinessRules", rule)
    assert status == 201, created
    assert not one.is_refused()
    assert not other.is_refused()
    path = created["@odata.id"]
    assert one.call("PATCH", path, {"IsActive": True})[0] in (200, 204)
    assert one.is_refused()
    assert other.is_refused()
    assert one.call("PATCH", path, {"IsActive": False})[0] in (200, 204)
    assert not one.is_refused()
    assert not other.is_refused()
