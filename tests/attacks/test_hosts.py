"""What the Host header and the settings of an instance give away.

Who: anybody who asks for a password link in somebody else's name, with a Host header of their choice; and who reads
error answers of an instance that was left in DEBUG. What: the link's secret sent to another port of the same host;
stack traces and settings. What prevents it: mailed links have BASE_URL or the instance's own port; DEBUG is not served
to other machines.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.http import HttpRequest
from django.test import Client
from pytest_django import Settings

from identity import password_reset
from identity.instance import link_base_url
from platform_site.serving import preparation
from tests.identity.flows import fields_of


@pytest.mark.parametrize(
    "host, root",
    [
        ("127.0.0.1:6666", "http://127.0.0.1:8000"),
        ("localhost:6666", "http://localhost:8000"),
        ("[::1]:6666", "http://[::1]:8000"),
        ("127.0.0.1:99999999999999999999", "http://127.0.0.1:8000"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("[::1]", "http://[::1]"),
    ],
)
def test_a_mailed_link_has_the_instance_s_port(
    demo: None, settings: Settings, monkeypatch: pytest.MonkeyPatch, host: str, root: str
) -> None:
    settings.ALLOWED_HOSTS, settings.PORT = ["localhost", "127.0.0.1", "[::1]"], 8000
    sent: list[str] = []
    monkeypatch.setattr(password_reset, "_enqueue", lambda login, base: sent.append(base))
    client = Client(headers={"Host": host})
    page = client.get("/id/account/reset").content.decode()
    assert client.post("/id/account/reset", {**fields_of(page), "login": "demo"}).status_code == 200
    assert sent == [root]


def test_a_mailed_link_has_the_base_url(settings: Settings) -> None:
    settings.BASE_URL, settings.ALLOWED_HOSTS = "https://erp.example.com", ["erp.example.com"]
    request = HttpRequest()
    request.META["HTTP_HOST"] = "erp.example.com:6666"
    assert link_base_url(request) == "https://erp.example.com"


@pytest.mark.parametrize(
    "host, base_url",
    [("0.0.0.0", ""), ("::", ""), ("192.0.2.1", ""), ("127.0.0.1", "https://erp.example.com")],
)
def test_debug_is_not_served_to_other_machines(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, base_url: str
) -> None:
    settings.DATA_DIR, settings.DEMO, settings.DEBUG = tmp_path, False, True
    settings.BASE_URL = base_url
    settings.HOST = host
    monkeypatch.setattr(preparation, "prepare", lambda report: pytest.fail("it prepares before it refuses"))
    with pytest.raises(CommandError, match="DEBUG shows stack traces"):
        call_command("serve")
