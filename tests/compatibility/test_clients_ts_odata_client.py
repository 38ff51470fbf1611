"""ts-odata-client (npm), and tsc

The library reads only; its queries are compiled by `tsc --strict` with the types of its documentation.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.node_clients import TIMEOUT_SECONDS, packages_of, seen_by, service_token
from tests.support.platform import LivePlatform
from tests.support.programs import requires_program

pytestmark = [pytest.mark.process, pytest.mark.once]


@pytest.fixture(scope="module")
def seen(live_platform: LivePlatform, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the compiled queries print."""
    folder = packages_of("ts_odata")
    out: Path = tmp_path_factory.mktemp("ts_odata")
    compiler = [requires_program("node"), "node_modules/typescript/bin/tsc", "-p", ".", "--outDir", str(out)]
    compiled = subprocess.run(
        compiler, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert compiled.returncode == 0, compiled.stdout
    found: dict[str, Any] = seen_by(
        "ts_odata",
        str(out / "queries.js"),
        ODATA_URL=live_platform.odata_url,
        ODATA_TOKEN=service_token(live_platform),
        NODE_PATH=str(folder / "node_modules"),
    )
    return found


def test_lists(seen: dict[str, Any]) -> None:
    """List: select, order, top, skip, count, read by key, and pages through an async iterator."""
    assert len(seen["numbers"]) == 3
    assert seen["numbers"] == sorted(seen["numbers"], reverse=True)
    assert seen["count"] == 3
    assert seen["one"] == seen["numbers"][0]
    assert seen["walked"] > 20


def test_filters(seen: dict[str, Any]) -> None:
    """Filter: texts, `in`, and, not, references, `any` over a collection; nothing found is an empty list."""
    assert seen["starts"]
    assert all(number.startswith("C") for number in seen["starts"])
    assert seen["nothing"] == 0


def test_expand(seen: dict[str, Any]) -> None:
    """Expand of references and of collections."""
    assert all(seen["groups"])
    assert all(seen["lines"])


def test_refusals(seen: dict[str, Any]) -> None:
    """Bad input: an unknown property rejects with our error."""
    assert "no property 'Nothing'" in seen["refused"]
