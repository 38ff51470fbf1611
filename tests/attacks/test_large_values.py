"""A body of a few bytes for each value, which take many times as much as objects in memory.

Who: anybody with the scope read, or update for Import. What: to fill the memory of a process by one request. What
prevents it: a body that is read as a whole has at most 16 MB (domain.odata.http.views); JSON is refused by its brackets
and commas before objects are made of it (domain.odata.message.json_body); a multipart batch is read part by part, and
an import object by object.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings

from tests.acceptance.caller import Caller, error_of
from tests.acceptance.people import token_request
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

JSON = "application/json"
MULTIPART = "multipart/mixed; boundary=b"
#: The body, its text and what is made of it until it is refused.
MAX_MEMORY = 12 * settings.MAX_BODY_BYTES


@pytest.fixture
def caller(live_platform: LivePlatform) -> Iterator[Caller]:
    """A client whose requests must not cost a process more than MAX_MEMORY."""
    site = Caller(live_platform.base_url)
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "scope": "DomainApi read update"}
    token = token_request(site, **form, client_secret="DEMO").json()["access_token"]
    before = {pid: forget_peak(pid) for pid in web_processes(live_platform)}
    yield site.with_token(token)
    taken = {pid: peak_bytes(pid) - bytes_before for pid, bytes_before in before.items()}
    print(taken)
    assert all(each < MAX_MEMORY for each in taken.values()), taken


def filled(before: str, unit: str, after: str) -> bytes:
    """As many units as a body of a whole may have."""
    return (before + unit * ((settings.MAX_BODY_BYTES - 1000) // len(unit)) + after).encode()


@pytest.mark.parametrize("unit", ["[],", '{"a":1},'])
@pytest.mark.parametrize("path,member", [("$batch", "requests"), ("Import", "objects"), ("Import", "model")])
def test_json_of_many_values(caller: Caller, path: str, member: str, unit: str) -> None:
    # For Import all of them within one object.
    body = filled(f'{{"{member}":[{{"a":[', unit, "0]}]}")
    expected = "InvalidBody" if member == "model" else "TooManyValues"
    assert error_of(caller.post(path, body, Content_Type=JSON), 400, 413)["type"] == expected


def test_json_of_many_names(caller: Caller) -> None:
    members = ",".join(f'"{number:x}":0' for number in range(1_200_000))
    assert error_of(caller.post("$batch", f"{{{members}}}", Content_Type=JSON), 413)["type"] == "TooManyValues"


@pytest.mark.parametrize("unit", ["--b\r\n", "--b\r\nContent-Type: application/http\r\n\r\nGET x\r\n", ":\r\n"])
def test_a_multipart_batch_of_many_parts_or_headers(caller: Caller, unit: str) -> None:
    refused = caller.post("$batch", filled("--b\r\n", unit, "--b--"), Content_Type=MULTIPART)
    assert error_of(refused, 400)["type"] == "InvalidBody"


def test_a_changeset_of_many_parts(caller: Caller) -> None:
    part = "--c\r\nContent-Type: application/http\r\n\r\nDELETE x\r\n"
    body = filled("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n", part, "--c--\r\n--b--")
    assert error_of(caller.post("$batch", body, Content_Type=MULTIPART), 400)["type"] == "InvalidBody"


def test_a_deep_insert_of_thousands_of_lines_is_read(caller: Caller) -> None:
    lines = ",".join(["{" + ",".join(f'"Attribute{number}":"{number}"' for number in range(20)) + "}"] * 10_000)
    refused = caller.post("Crm_Sales_SalesOrders", f'{{"Nothing":1,"Lines":[{lines}]}}', Content_Type=JSON)
    assert error_of(refused, 400)["type"] == "UnknownProperty"
