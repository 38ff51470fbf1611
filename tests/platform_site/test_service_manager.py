"""What a service manager is told (platform_site.serving.service_manager)."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from platform_site.serving import service_manager


@pytest.mark.parametrize("abstract", [False, True])
def test_a_manager_hears_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    address = f"@{tmp_path}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + address[1:] if abstract else address)
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        service_manager.notify("READY=1")
        assert manager.recv(100) == b"READY=1"


def test_without_a_manager_or_with_one_that_is_gone_nothing_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    service_manager.notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    service_manager.notify("READY=1")
