"""Gives a process that has loaded all code the settings of a tenant.

Settings are read from the environment when platform_site.settings is imported. A forked process of the pool imports
that module anew, and renews what other modules have derived from the former settings. Django's own receivers of
`setting_changed` do most of that; they are Django's for tests, and exist for this very purpose. A test compares such a
process with a plain instance that has the same environment, and finds values of the pool that remain.
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
#: Settings whose receivers only warn; `_renew` does it.
_OURS = frozenset({"DATABASES"})


def apply(environment: Mapping[str, str]) -> None:
    """Make `environment` that of this process, and use the settings that it gives. Raises ImproperlyConfigured."""
    os.environ.clear()
    os.environ.update(environment)
    before = _values(settings)
    # Not `reload`, which leaves names that the new settings do not have.
    sys.modules.pop(_MODULE, None)
    settings._wrapped = Settings(_MODULE)
    after = _values(settings)
    for name in sorted(before.keys() | after.keys()):
        if name not in _OURS and before.get(name) != after.get(name):
            setting_changed.send(sender=Settings, setting=name, value=after.get(name), enter=True)
    _renew()


def _values(chosen: Any) -> dict[str, Any]:
    return {name: getattr(chosen, name) for name in dir(chosen) if name.isupper()}


def _renew() -> None:
    connections.close_all()
    connections.__dict__.pop("settings", None)  # a cached property
    connections.__init__()  # type: ignore[misc]
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
    for name, value in _task_settings().items():
        setattr(task_conf.Conf, name, value)
    oauth_conf.USER_SETTINGS = settings.OAUTH2_PROVIDER
    renew_shared_numbers()
    # Reading the counters closes the former process's files, which all its forks have mapped, and opens new ones.
    list(REGISTRY.collect())


def _task_settings() -> dict[str, Any]:
    """The settings of django-q2, which it derives in the body of a class that many modules have imported."""
    spec = importlib.util.find_spec(task_conf.__name__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module.Conf).items() if not name.startswith("__")}
