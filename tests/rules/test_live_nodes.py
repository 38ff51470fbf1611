"""Two instances on one database: a rule activated on one acts there at once, on the other within five seconds."""

from __future__ import annotations

import itertools
import json
import time
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
MAX_SECONDS = 5.0
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
            with urllib.request.urlopen(request, timeout=30) as response:
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
            # The rule may arrive between the two; then it refuses the second.
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
        first, second = (stack.enter_context(start_platform(directory, settings=settings)) for _ in range(2))
        yield Node(first), Node(second)


def seconds_until(node: Node, refused: bool) -> float:
    began = time.monotonic()
    while node.is_refused() is not refused:
        assert time.monotonic() - began < MAX_SECONDS + 5, "the change never arrived"
        time.sleep(0.05)
    return time.monotonic() - began


@pytest.mark.parametrize("here, there", [(0, 1), (1, 0)])
def test_a_rule_acts_at_once_here_and_soon_there(nodes: tuple[Node, Node], here: int, there: int) -> None:
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
    assert seconds_until(other, refused=True) <= MAX_SECONDS
    assert one.call("PATCH", path, {"IsActive": False})[0] in (200, 204)
    assert not one.is_refused()
    assert seconds_until(other, refused=False) <= MAX_SECONDS
