"""Callers send batches that ask for as much as a batch may, several at once.

Who: anybody with the scope read. What: to fill the memory of the web processes. What prevents it: a batch ends at
16 MB of answers (domain.odata.service.batch.runner), an answer has as much at most, and a process works on one request
at a time.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered
from tests.acceptance.people import token_request
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]

AT_ONCE = 6
PARTS = 1000
MAX_ANSWER_BYTES = 16 * 1024 * 1024
#: Answers of several batches may wait to be sent: rows, their JSON, the whole answer and its copy in the server.
MAX_MEMORY = 16 * MAX_ANSWER_BYTES
LARGE = "Crm_Sales_SalesOrders?$expand=Lines($expand=SalesOrder($expand=Lines($select=*)))"


def parts() -> dict[str, Any]:
    return {"requests": [{"id": str(number), "method": "GET", "url": LARGE} for number in range(PARTS)]}


@pytest.mark.parametrize("prefer", ["", "continue-on-error"])
def test_batches_at_once_stay_within_the_memory_of_a_few_answers(live_platform: LivePlatform, prefer: str) -> None:
    site = Caller(live_platform.base_url)
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "scope": "DomainApi read"}
    reader = site.with_token(token_request(site, **form).json()["access_token"])
    answered(reader.get(LARGE), 200)
    before = {pid: forget_peak(pid) for pid in web_processes(live_platform)}

    def batch(_: int) -> Any:
        return reader.post("$batch", parts(), **({"Prefer": prefer} if prefer else {}))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(batch, range(AT_ONCE)))
    for answer in answers:
        assert answer.status_code == 200
        responses = json.loads(answer.content)["responses"]
        assert len(answer.content) < 2 * MAX_ANSWER_BYTES + PARTS * 1000
        statuses = [part["status"] for part in responses]
        assert statuses[0] == 200
        assert statuses[-1] in (413, 429), statuses
    taken = {pid: peak_bytes(pid) - had for pid, had in before.items()}
    print(taken)
    assert max(taken.values()) < MAX_MEMORY, taken
