"""odata2ts (npm), and tsc"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.compatibility.node_clients import packages_of, seen_by, service_token
from tests.support.platform import ROOT, LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]


def test_a_generated_client_reads_and_writes(live_platform: LivePlatform, tmp_path: Path) -> None:
    """A client from `$metadata`, clean under `tsc --strict`: functions, create, filter, expand, patch, delete, 404."""
    command = [sys.executable, "manage.py", "generate_client", "typescript", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=live_platform.environment, check=True, timeout=120)
    seen = seen_by(
        "odata",
        "odata2ts.cjs",
        ODATA_URL=live_platform.odata_url.rstrip("/"),
        ODATA_TOKEN=service_token(live_platform),
        WORK_DIR=str(tmp_path),
        # What is generated lies elsewhere and finds its libraries here.
        NODE_PATH=str(packages_of("odata") / "node_modules"),
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
    assert seen["strict"] == []
