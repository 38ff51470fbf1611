"""Commands serve custom entities, though nothing told their process of them before."""

from __future__ import annotations

import subprocess
import sys

import pytest
import requests

from tests.domain.custom_entities.cars import ENTITIES, attribute, entity
from tests.support.platform import LivePlatform

SCRIPT = """
Domain.Custom.Fleet.TrailersRepository.createNew({Code: "T1"});
Transaction.commit();
console.log(Domain.Custom.Fleet.TrailersRepository.query({Code: "T1"}).length);
"""


@pytest.mark.process
@pytest.mark.once
def test_a_script_from_the_command_line_writes_a_custom_entity(live_platform: LivePlatform) -> None:
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    url = f"{live_platform.base_url}/id/connect/token"
    token = requests.post(url, data={**form, "scope": "read update exec"}, timeout=60).json()["access_token"]
    made = requests.post(
        live_platform.odata_url + ENTITIES,
        json=entity("Custom.Fleet.Trailers", attribute("Code")),
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
    )
    assert made.status_code == 201, made.text
    command = [sys.executable, "manage.py", "run_script", "-"]
    environment = dict(live_platform.environment)
    ran = subprocess.run(command, env=environment, input=SCRIPT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr
