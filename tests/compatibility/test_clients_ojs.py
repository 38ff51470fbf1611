"""o.js (npm: odata)"""

from __future__ import annotations

import pytest

from tests.compatibility.node_clients import seen_by, service_token
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]


def test_batches(live_platform: LivePlatform) -> None:
    """Multipart batches, plain and with a changeset: read, create, change, a key that is not there."""
    seen = seen_by(
        "odata", "ojs_batch.cjs", ODATA_URL=live_platform.odata_url, ODATA_TOKEN=service_token(live_platform)
    )
    assert seen == {"plain": [200, 201], "grouped": [201, 204], "read": [200, 404], "rows": 1, "name": "Patched"}
