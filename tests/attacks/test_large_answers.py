"""A caller asks for an answer that is many times larger than the data: what refers to one another, expanded in turn.

Who: anybody with the scope read. What: to fill the memory of a process and keep others waiting by one GET. What
prevents it: domain.query.run.row_json.AnswerSize: the JSON of an answer is made from the inside out and measured
meanwhile. A page that would be too large ends earlier, and what cannot end earlier is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.caller import Caller, answered, error_of
from tests.acceptance.people import token_request
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

ORDERS = "Crm_Sales_SalesOrders"
LINES = "Crm_Sales_SalesOrderLines"
MAX_BYTES = 16 * 1024 * 1024
#: Context, links and brackets around the rows.
MARGIN_BYTES = 10_000
#: Rows, their JSON from the inside out, the answer and its copy in the server.
MAX_MEMORY = 8 * MAX_BYTES


@pytest.fixture
def reader(live_platform: LivePlatform) -> Iterator[Caller]:
    """A client with the scope read. Its answers must not cost a process more than MAX_MEMORY."""
    site = Caller(live_platform.base_url)
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "scope": "DomainApi read"}
    before = {pid: forget_peak(pid) for pid in web_processes(live_platform)}
    yield site.with_token(token_request(site, **form).json()["access_token"])
    taken = {pid: peak_bytes(pid) - bytes_before for pid, bytes_before in before.items()}
    print(taken)
    assert all(each < MAX_MEMORY for each in taken.values()), taken


def in_turn(levels: int) -> str:
    """$expand of an order's lines, of their order, of its lines …"""
    text = "Lines($select=*)"
    for level in reversed(range(levels - 1)):
        text = f"{('Lines', 'SalesOrder')[level % 2]}($expand={text})"
    return text


def test_a_page_ends_before_it_is_too_large(reader: Caller) -> None:
    url, ids, pages = f"{ORDERS}?$select=Id&$expand={in_turn(7)}", list[str](), 0
    while url:
        answer = answered(reader.get(url), 200)
        assert len(answer.content) < MAX_BYTES + MARGIN_BYTES
        body = answer.json()
        ids += [row["Id"] for row in body["value"]]
        url = body.get("@odata.nextLink", "").partition("/odata/")[2]
        pages += 1
    assert pages > 1
    assert ids == [row["Id"] for row in reader.rows(f"{ORDERS}?$select=Id")]


@pytest.mark.parametrize("options", ["", "&options=skipnulls"])
def test_what_cannot_end_earlier_is_refused(reader: Caller, options: str) -> None:
    most = reader.rows(f"{LINES}?$apply=groupby((SalesOrder),aggregate($count as N))&$orderby=N desc&$top=1")[0]
    assert most["N"] ** 6 * 1500 > MAX_BYTES
    order = f"{ORDERS}({most['SalesOrder']['Id']})"
    refused = error_of(reader.get(f"{order}?$expand={in_turn(11)}{options}"), 413)
    assert refused["type"] == "AnswerTooLarge"
    answered(reader.get(order), 200)


def test_expanded_groups_are_measured(reader: Caller) -> None:
    asked = f"{LINES}?$apply=groupby((SalesOrder),aggregate($count as N))&$expand=SalesOrder($expand={in_turn(9)})"
    answer = answered(reader.get(asked), 200, 413)
    assert len(answer.content) < MAX_BYTES + MARGIN_BYTES
