"""A request id that a caller was given, in the log of the running instance (spec 09, 9.3)."""

from __future__ import annotations

import pytest
import requests

from tests.support.platform import LivePlatform
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process]


def test_the_request_id_of_an_error_finds_its_lines_in_the_log(live_platform: LivePlatform) -> None:
    refused = requests.get(f"{live_platform.odata_url}Crm_Sales_SalesOrders", timeout=60)
    request_id = refused.headers["X-Request-Id"]
    assert len(request_id) == 32
    assert request_id in refused.json()["error"]["info"]
    assert eventually(lambda: any(request_id in line for line in list(live_platform.output)))
