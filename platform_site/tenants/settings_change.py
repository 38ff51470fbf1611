"""Applies the settings of a tenant to a process that has already loaded all code.

Settings are read from the environment when platform_site.settings is imported. A forked process of the pool imports
that module again, and resets the values that other modules have derived from the former settings. Django's receivers of
`setting_changed`, which it has for tests, do most of that. A test compares such a process with a plain instance of the
same environment, and so finds values of the pool that remain.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from typing import Any

import django.test.signals  # noqa: F401  (connects its receivers)
from django.conf import Settings, settings
from django.core.signals import setting_changed
from django.db import connections
from django.utils.log import configure_logging
from django_q import conf as task_conf
from oauth2_provider import settings as oauth_conf
from prometheus_client import REGISTRY

from foundation.cluster import renew_shared_numbers

_MODULE = "platform_site.settings"
#: Settings whose receivers only warn; `_reset_derived` handles them.
_RESET_HERE = frozenset({"DATABASES"})


def apply(environment: Mapping[str, str]) -> None:
    """Replace the environment of this process, and apply its settings. Raises ImproperlyConfigured."""
    os.environ.clear()
    os.environ.update(environment)
    before = _values(settings)
    # Not `importlib.reload`, which keeps names that the new settings do not have.
    sys.modules.pop(_MODULE, None)
    settings._wrapped = Settings(_MODULE)
    after = _values(settings)
    for name in sorted(before.keys() | after.keys()):
        if name not in _RESET_HERE and before.get(name) != after.get(name):
            setting_changed.send(sender=Settings, setting=name, value=after.get(name), enter=True)
    _reset_derived()


def _values(chosen: Any) -> dict[str, Any]:
    return {name: getattr(chosen, name) for name in dir(chosen) if name.isupper()}


def _reset_derived() -> None:
    connections.close_all()
    connections.__dict__.pop("settings", None)  # a cached property
    connections.__init__()  # type: ignore[misc]
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
    for name, value in _task_settings().items():
        setattr(task_conf.Conf, name, value)
    oauth_conf.USER_SETTINGS = settings.OAUTH2_PROVIDER
    renew_shared_numbers()
    # Collecting closes the counter files of the parent process, which all its forks have mapped, and opens new ones.
    list(REGISTRY.collect())


def _task_settings() -> dict[str, Any]:
    """The settings of django-q2, which derives them in the body of a class that many modules have imported."""
    spec = importlib.util.find_spec(task_conf.__name__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module.Conf).items() if not name.startswith("__")}
