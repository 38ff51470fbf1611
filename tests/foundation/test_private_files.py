"""Files that hold keys and secrets are there whole, for this user alone, or not at all."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from pytest_django import Settings

from audit.actors import OPERATOR
from foundation import private_files
from identity.models import SigningKey
from identity.oauth.keys import keys_rotate


def test_a_file_is_replaced_whole_and_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    private_files.write(path, b"first")
    private_files.write(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_never_replaces_one(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    private_files.write(path, b"first", is_new=True)
    with pytest.raises(FileExistsError):
        private_files.write(path, b"second", is_new=True)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_has_one_holder_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []
    asked = threading.Event()

    def second() -> None:
        asked.set()
        with private_files.lock(tmp_path / ".lock"):
            order.append("second")

    thread = threading.Thread(target=second)
    with private_files.lock(tmp_path / ".lock"):
        thread.start()
        assert asked.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


@pytest.mark.django_db
def test_a_full_disk_leaves_no_part_of_a_signing_key(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(os, "fsync", full)
    before = SigningKey.objects.count()
    with pytest.raises(OSError, match="No space"):
        keys_rotate(by=OPERATOR)
    assert SigningKey.objects.count() == before
    assert [path.name for path in (tmp_path / "keys").iterdir()] == [".lock"]
