"""Runs scripts under tests/clients/, which drive client libraries of other languages."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import requests

from tests.support.platform import ROOT, LivePlatform
from tests.support.programs import missing, requires_program

#: Writing a client for the whole model takes two minutes of a slow processor, and its share while other tests run.
TIMEOUT_SECONDS = 1200


def packages_of(folder: str) -> Path:
    """The folder below tests/clients with its packages installed; without them the test skips (in CI: fails)."""
    found = ROOT / "tests" / "clients" / folder
    if not (found / "node_modules").exists():
        missing(f"needs the packages of tests/clients/{folder} (make clients)")
    return found


def seen_by(folder: str, script: str, **environment: str) -> Any:
    """What a script below tests/clients prints, as JSON; a status that is not zero fails the test."""
    run = subprocess.run(
        [requires_program("node"), script],
        cwd=packages_of(folder),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
    return json.loads(run.stdout)


def service_token(platform: LivePlatform, scope: str = "read update exec") -> str:
    """An access token of the demo data's service application."""
    answered = requests.post(
        f"{platform.base_url}/id/connect/token",
        data={
            "grant_type": "client_credentials",
            "client_id": "ServiceDemoClient",
            "client_secret": "DEMO",
            "scope": scope,
        },
        timeout=60,
    )
    answered.raise_for_status()
    return str(answered.json()["access_token"])
