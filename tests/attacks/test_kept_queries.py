"""Queries that are long, and different each time, stay in no cache of a process.

Who: anybody with the scope read. What: to fill the memory of a process for good. What prevents it: results for long
texts are not kept (foundation.short_texts), and neither are large trees and long statements (domain.query.api.cache); a
query has at most a million characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.caller import Caller, answered, error_of
from tests.acceptance.people import token_request
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

PRODUCTS = "General_Products_Products"
#: Half of what the requests of a test send to a process.
MAX_MEMORY = 30 * 1024 * 1024
MEGABYTE = 1024 * 1024


@pytest.fixture
def reader(live_platform: LivePlatform) -> Caller:
    """A client with the scope read."""
    site = Caller(live_platform.base_url)
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "scope": "DomainApi read"}
    return site.with_token(token_request(site, **form).json()["access_token"])


@pytest.fixture
def kept(live_platform: LivePlatform) -> Iterator[Callable[[], None]]:
    """Call it after some requests: what the processes take in addition from then on must be less than MAX_MEMORY."""
    before: dict[int, int] = {}
    yield lambda: before.update({pid: forget_peak(pid) for pid in web_processes(live_platform)})
    taken = {pid: peak_bytes(pid) - had for pid, had in before.items()}
    print(taken)
    assert taken
    assert all(each < MAX_MEMORY for each in taken.values()), taken


def query(reader: Caller, text: str) -> int:
    return reader.post(f"{PRODUCTS}/$query", text, Content_Type="text/plain").status_code


def test_long_literals(reader: Caller, kept: Callable[[], None]) -> None:
    for number in range(48):
        if number == 4:
            kept()
        text = f"{number:x>900000}"
        assert query(reader, f"$top=1&$filter=PartNumber eq '{text}'") == 200


def test_large_trees(reader: Caller, kept: Callable[[], None]) -> None:
    for number in range(24):
        if number == 4:
            kept()
        names = [f"Nothing{number}x{each}" for each in range(5000)]
        assert query(reader, f"$select={','.join(names)}") == 400


def test_a_query_has_a_million_characters(reader: Caller) -> None:
    refused = reader.post(f"{PRODUCTS}/$query", "$filter=" + "(" * MEGABYTE, Content_Type="text/plain")
    assert error_of(refused, 400)["type"] == "QueryTooLarge"
    parts = {"requests": [{"id": "1", "method": "GET", "url": f"{PRODUCTS}({'9' * MEGABYTE})"}]}
    (part,) = answered(reader.post("$batch", parts), 200).json()["responses"]
    assert (part["status"], part["body"]["error"]["type"]) == (400, "QueryTooLarge")
