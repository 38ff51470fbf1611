"""The root of an instance, and the sentence for a wrong setting."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.test import Client

from platform_site.environment import BASE_DIR


@pytest.mark.django_db
def test_the_root_leads_on(client: Client) -> None:
    page = client.get("/").content.decode()
    for address in ("/admin/", "/profile/", "/api/", "/id/.well-known/openid-configuration"):
        assert f'href="{address}"' in page


@pytest.mark.process
@pytest.mark.parametrize(
    "name,value",
    [
        ("DEBUG", "perhaps"),
        ("LICENSE_SESSIONS", "many"),
        ("BASE_URL", "ftp://erp.example.com"),
        ("BASE_URL", "https://"),
        ("BASE_URL", "https://erp.example.com/erp"),
        ("BASE_URL", "https://erp.example.com:0x50"),
        ("TRUSTED_PROXIES", "127.0.0.1,10.0.0.5/24"),
        ("TRUSTED_PROXIES", "proxy.internal"),
        ("WEB_PROCESSES", "0"),
        ("SECRET_KEY", "x"),
    ],
)
def test_a_wrong_setting_is_one_sentence(name: str, value: str, tmp_path: object) -> None:
    environment = {
        **os.environ,
        "DATA_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "platform_site.settings",
        name: value,
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip().startswith(f"Error: {name} must be ")
    assert len(done.stderr.strip().splitlines()) == 1
