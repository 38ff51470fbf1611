"""OData clients that others have written work unchanged against a running instance; see tests/clients/odata."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.platform import ROOT, LivePlatform
from tests.support.programs import missing, requires_program

CLIENTS = ROOT / "tests" / "clients" / "odata"
#: Writing a client for a thousand members takes some 20 seconds of CPU.
TIMEOUT_SECONDS = 400

pytestmark = [pytest.mark.process, pytest.mark.once]


def _node() -> str:
    node = requires_program("node")
    if not (CLIENTS / "node_modules").exists():
        missing("needs the packages of tests/clients/odata (make clients)")
    return node


def _token(platform: LivePlatform) -> str:
    answered = requests.post(
        f"{platform.base_url}/id/connect/token",
        data={
            "grant_type": "client_credentials",
            "client_id": "ServiceDemoClient",
            "client_secret": "DEMO",
            "scope": "read update exec",
        },
        timeout=30,
    )
    answered.raise_for_status()
    return str(answered.json()["access_token"])


def _seen_by(script: str, **environment: str) -> Any:
    """What a client's script prints."""
    run = subprocess.run(
        [_node(), script],
        cwd=CLIENTS,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


def test_ojs_sends_batches(live_platform: LivePlatform) -> None:
    seen = _seen_by("ojs_batch.cjs", ODATA_URL=live_platform.odata_url, ODATA_TOKEN=_token(live_platform))
    assert seen == {"plain": [200, 201], "grouped": [201, 204], "read": [200, 404], "rows": 1, "name": "Patched"}


def test_odata2ts_writes_a_client_from_the_metadata_and_uses_it(live_platform: LivePlatform, tmp_path: Path) -> None:
    seen = _seen_by(
        "odata2ts.cjs",
        ODATA_URL=live_platform.odata_url.rstrip("/"),
        ODATA_TOKEN=_token(live_platform),
        WORK_DIR=str(tmp_path),
        # What is generated lies elsewhere and finds its libraries here.
        NODE_PATH=str(CLIENTS / "node_modules"),
    )
    assert seen["version"]
    assert seen["created"]["status"] == 201
    assert seen["found"] == {"count": 1, "names": ["Test"]}
    assert (seen["patched"], seen["read"], seen["deleted"]) == (204, "Patched", 204)
    assert seen["gone"]["status"] == 404
    assert "There is no" in seen["gone"]["message"]
    assert len(seen["products"]) == 3
    assert [part for part, _ in seen["products"]] == sorted((part for part, _ in seen["products"]), reverse=True)
    assert all(group for _, group in seen["products"])
    assert all(count >= 1 for count in seen["orders"])
