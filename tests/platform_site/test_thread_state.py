"""Django's state of threads in the web server's processes (platform_site.serving.thread_state)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.core.cache import caches
from django.db import connections
from django.test import override_settings
from django.urls import base as urls
from django.utils import timezone, translation
from django.utils.translation import trans_real

from platform_site.serving.thread_state import use_plain_settings, use_thread_locals


def replace_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call `use_thread_locals` until the end of the test."""
    stores: list[tuple[Any, str]] = [(connections, "_connections"), (caches, "_connections")]
    stores += [(urls, "_prefixes"), (urls, "_urlconfs"), (timezone, "_active"), (trans_real, "_active")]
    for owner, name in stores:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    use_thread_locals()


def in_another_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_thread_keeps_its_connections_and_another_gets_others(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = connections["default"]
    replace_stores(monkeypatch)

    assert connections["default"] is mine
    assert in_another_thread(lambda: connections["default"] is mine) is False


def test_a_language_is_active_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_stores(monkeypatch)
    with translation.override("de"):
        assert translation.get_language() == "de"
        assert in_another_thread(translation.get_language) == settings.LANGUAGE_CODE


def test_plain_settings_follow_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LazySettings, "__getattribute__", LazySettings.__getattribute__)
    use_plain_settings()

    before = settings.BASE_URL
    with override_settings(BASE_URL="https://erp.example.com"):
        assert settings.BASE_URL == "https://erp.example.com"
    assert before == settings.BASE_URL
    with pytest.raises(AttributeError):
        getattr(settings, "NO_SUCH_SETTING")  # noqa: B009
