"""How DATABASE_URL becomes Django's settings (platform_site.environment)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from platform_site.environment import Environment
from tests.support.instances import instance_environment
from tests.support.platform import ROOT


def test_one_server() -> None:
    found = Environment().database("postgres://user:p%40ss@db.example:6432/platform?sslmode=require")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db.example", 6432, "platform")
    assert (found["PASSWORD"], found["OPTIONS"]) == ("p@ss", {"sslmode": "require"})


def test_several_servers_of_which_the_driver_finds_the_primary() -> None:
    url = "postgres://user:p%40ss@db-1.example,db-2.example:6432/platform?target_session_attrs=read-write"
    found = Environment().database(url)
    assert (found["HOST"], found["PORT"]) == ("db-1.example,db-2.example", "5432,6432")
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("user", "p@ss", "platform")
    assert found["OPTIONS"] == {"target_session_attrs": "read-write"}


def test_a_replica_has_the_options_of_its_url(tmp_path: Path) -> None:
    urls = {
        "DATABASE_URL": "postgres://user@db-1/platform",
        "DATABASE_REPLICA_URLS": "postgres://user@db-2/platform?sslmode=verify-full&connect_timeout=5",
    }
    options = options_of("replica1", tmp_path, urls)
    assert "'sslmode': 'verify-full'" in options
    assert "'tcp_user_timeout': 2000" in options


def test_a_primary_whose_machine_is_lost_is_not_waited_for_long(tmp_path: Path) -> None:
    url = "postgres://user@db-1,db-2/platform?target_session_attrs=read-write&connect_timeout=3"
    options = options_of("default", tmp_path, {"DATABASE_URL": url})
    for option in (
        "'connect_timeout': 3",
        "'tcp_user_timeout': 10000",
        "'keepalives_idle': 5",
        "'keepalives_interval': 2",
        "'keepalives_count': 3",
        "'target_session_attrs': 'read-write'",
    ):
        assert option in options


def options_of(alias: str, data_dir: Path, settings: dict[str, str]) -> str:
    """What psycopg is given for the database, in an instance with these settings."""
    code = f"from platform_site.settings import DATABASES; print(DATABASES['{alias}']['OPTIONS'])"
    environment = instance_environment(data_dir, 0, **settings)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    "name, value, told",
    [
        ("DATABASE_URL", "foo://x", "DATABASE_URL must begin with postgres:// or sqlite://, not 'foo"),
        ("DATABASE_URL", "foo", "DATABASE_URL must be a URL such as scheme://…, not 'foo'."),
        *(
            ("DATABASE_REPLICA_URLS", value, f"one server each, with commas between them; '{none}' is none.")
            for value, none in {
                "foo": "foo",
                "postgres://a@h1/d,postgres://a@h2,h3/d": "h3/d",
                "sqlite:///x": "sqlite:///x",
            }.items()
        ),
        ("DATABASE_REPLICA_URLS", "postgres://a@h1/d", "DATABASE_REPLICA_URLS needs a DATABASE_URL of PostgreSQL."),
        ("REDIS_URL", "foo://x", "REDIS_URL must be a URL such as redis://…"),
        (
            "EGRESS_ALLOW",
            "erp.local,zzz/99",
            "EGRESS_ALLOW must have hosts or networks such as 10.0.0.0/8, not 'zzz/99'.",
        ),
    ],
)
def test_a_wrong_value_ends_the_start_with_a_sentence(tmp_path: Path, name: str, value: str, told: str) -> None:
    command = [sys.executable, "manage.py", "check"]
    environment = instance_environment(tmp_path, 0, **{name: value})
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert told in done.stdout + done.stderr


def test_what_cannot_be_read_names_its_setting() -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_REPLICA_URLS"):
        Environment().database("postgres://user@db:port/platform", of="DATABASE_REPLICA_URLS")
