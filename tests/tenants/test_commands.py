"""`manage.py tenants`: what it makes, changes, refuses and says."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from platform_site.tenants import archives, directory
from platform_site.tenants.directory import Tenant, TenantError
from platform_site.tenants.memory import running_by_memory
from tests.support.postgresql_servers import replicated_servers
from tests.support.tenants import Pool, new_pool


@pytest.fixture
def root(tmp_path: Path, settings: Settings) -> Path:
    """TENANTS."""
    settings.TENANTS = str(tmp_path / "tenants")
    return tmp_path / "tenants"


def made(name: str, host: str, **settings: str) -> Tenant:
    """A tenant without a database."""
    with directory.changing():
        tenant = directory.add(name, {"ALLOWED_HOSTS": host, **settings})
    tenant.suspend(is_suspended=False)
    return tenant


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints."""
    capsys.readouterr()
    call_command("tenants", *words)
    return capsys.readouterr().out


def refusal(*words: str) -> str:
    """What the command says instead of doing it."""
    with pytest.raises(CommandError) as caught:
        call_command("tenants", *words)
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "-a", "a-", "a.b", "a b", "ä", "x" * 64, ".hidden", "a\n"]
)
def test_a_name_is_never_a_path(root: Path, name: str) -> None:
    with pytest.raises(TenantError):
        directory.check_name(name)
    with pytest.raises(TenantError):
        directory.tenant_get(name)


@pytest.mark.parametrize(
    "given, text",
    [
        ({"DATA_DIR": "/elsewhere"}, "DATA_DIR is not a setting of a tenant"),
        ({"REDIS_URL": "redis://127.0.0.1/0"}, "REDIS_URL is not a setting of a tenant"),
        ({"STATIC_DIR": "/elsewhere"}, "STATIC_DIR is not a setting of a tenant"),
        ({"TENANTS": "/elsewhere"}, "TENANTS is not a setting of a tenant"),
        ({"SECRET_KEY": "known"}, "SECRET_KEY is not a setting of a tenant"),
        ({"LD_PRELOAD": "/x.so"}, "There is no setting LD_PRELOAD"),
        ({"INSTANCE_LOGO": "../bob/data/logo.png"}, "INSTANCE_LOGO of ada must be a file below"),
        ({"DATABASE_URL": "sqlite:////srv/bob/data/platform.sqlite3"}, "DATABASE_URL of ada must be of PostgreSQL"),
        ({"DATABASE_URL": "postgres://h/a?host=other"}, "may not have the parameter host"),
        ({"ALLOWED_HOSTS": "*"}, "'*' of ada is not one host name"),
        ({"ALLOWED_HOSTS": ".example.com"}, "'.example.com' of ada is not one host name"),
        ({"ALLOWED_HOSTS": ""}, "ada needs ALLOWED_HOSTS"),
        ({"ALLOWED_HOSTS": "a.example.com;evil"}, "is not one host name"),
        ({"INSTANCE_NAME": "two\nlines"}, "has a character that tenant.env cannot have"),
    ],
)
def test_settings_that_lead_out_of_a_tenant_are_refused(root: Path, given: dict[str, str], text: str) -> None:
    with pytest.raises(TenantError, match=text.replace("*", r"\*").replace(".", r"\.").replace("(", r"\(")):
        made("ada", "ada.example.com", **given) if "ALLOWED_HOSTS" not in given else _add("ada", given)


def _add(name: str, settings: dict[str, str]) -> None:
    with directory.changing():
        directory.add(name, settings)


@pytest.mark.parametrize(
    "theirs, mine, what",
    [
        ({}, {"ALLOWED_HOSTS": "ADA.example.com"}, "the host ada.example.com"),
        ({}, {"ALLOWED_HOSTS": "b.example.com", "BASE_URL": "https://ada.example.com"}, "the host ada.example.com"),
        ({"PORT": "25000"}, {"ALLOWED_HOSTS": "b.example.com", "PORT": "25000"}, "the port 25000"),
        (
            {"DATABASE_URL": "postgres://a:x@localhost/one"},
            {"ALLOWED_HOSTS": "b.example.com", "DATABASE_URL": "postgresql://b:y@127.0.0.1:5432/one?sslmode=disable"},
            "the database localhost:5432/one",
        ),
        (
            {"DATABASE_URL": "postgres://a@db-1,db-2:6000/one"},
            {
                "ALLOWED_HOSTS": "b.example.com",
                "DATABASE_REPLICA_URLS": "postgres://b@x/two,postgres://b@DB-2:6000/one",
            },
            "the database db-2:6000/one",
        ),
    ],
)
def test_no_two_tenants_share_hosts_ports_or_databases(
    root: Path, theirs: dict[str, str], mine: dict[str, str], what: str
) -> None:
    made("ada", "ada.example.com", **theirs)
    with pytest.raises(TenantError) as caught:
        _add("bob", mine)
    assert str(caught.value) == f"bob may not have {what}, which ada has."
    assert not (root / "bob").exists()
    # Also when the file was written by hand: the one that had it keeps it.
    bob = made("bob", "bob.example.com")
    os.utime(directory.tenant_get("ada").settings_file, ns=(1, 1))
    bob.write_settings({"PORT": "25001", **mine})
    assert directory.conflicts(directory.tenants(root)) == {"bob": f"bob may not have {what}, which ada has."}


def test_names_differ_in_more_than_case(root: Path) -> None:
    made("ada", "ada.example.com")
    with pytest.raises(TenantError, match="already"):
        _add("ADA", {"ALLOWED_HOSTS": "other.example.com"})


def test_list_suspend_and_resume(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made("ada", "ada.example.com", BASE_URL="https://ada.example.com")
    made("bob", "bob.example.com")
    assert run(capsys, "suspend", "bob") == "Suspended bob.\n"
    rows = json.loads(run(capsys, "list", "--json"))
    assert [(row["name"], row["state"], row["hosts"], row["database"]) for row in rows] == [
        ("ada", "active", "ada.example.com", "SQLite"),
        ("bob", "suspended", "bob.example.com", "SQLite"),
    ]
    assert rows[0]["port"] != rows[1]["port"]
    run(capsys, "resume", "bob")
    assert "bob   active" in run(capsys, "list")
    assert refusal("suspend", "nobody") == "There is no tenant 'nobody'."


def test_maps_for_proxies(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made("ada", "ada.example.com,www.ada.example.com", PORT="25000")
    made("bob", "bob.example.com", PORT="25001")
    assert run(capsys, "proxy", "nginx").splitlines() == [
        "map $host $tenant_port {",
        "    default 0;",
        "    ada.example.com 25000;",
        "    bob.example.com 25001;",
        "    www.ada.example.com 25000;",
        "}",
    ]
    assert "bob.example.com {\n\timport tenant 25001\n}" in run(capsys, "proxy", "caddy")


def test_delete_needs_the_name_twice(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tenant = made("ada", "ada.example.com")
    assert "nothing was deleted" in refusal("delete", "ada", "--confirm", "bob")
    assert tenant.settings_file.exists()
    assert run(capsys, "delete", "ada", "--confirm", "ada") == "Deleted ada.\n"
    assert [path.name for path in root.iterdir()] == [".lock"]


def test_nothing_is_deleted_while_a_process_serves_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = made("ada", "ada.example.com")
    monkeypatch.setattr(directory, "STOP_TIMEOUT_SECONDS", 0.2)
    lock = tenant.lock()
    assert lock is not None
    with lock:
        assert refusal("delete", "ada", "--confirm", "ada") == "The processes of ada did not stop."
    assert tenant.settings_file.exists()
    assert not tenant.is_suspended


def test_without_a_directory_the_command_says_what_to_set(settings: Settings) -> None:
    settings.TENANTS = ""
    assert refusal("list").startswith("Set TENANTS to the directory of tenants")


def filled(tenant: Tenant, text: str) -> None:
    """A database with a row, a key, and what a backup leaves out."""
    with closing(sqlite3.connect(tenant.data / "platform.sqlite3")) as database:
        database.execute("CREATE TABLE IF NOT EXISTS said (text)")
        database.execute("INSERT INTO said VALUES (?)", [text])
        database.commit()
    for name in ("keys", "cache", "metrics", "files"):
        (tenant.data / name).mkdir(exist_ok=True)
        (tenant.data / name / "file").write_text(text)
    (tenant.data / "secret_key").write_text(text)


def said(tenant: Tenant) -> Any:
    with closing(sqlite3.connect(tenant.data / "platform.sqlite3")) as database:
        return [row[0] for row in database.execute("SELECT text FROM said")]


def test_a_backup_restores_database_keys_and_files(root: Path, tmp_path: Path) -> None:
    tenant, archive = made("ada", "ada.example.com"), tmp_path / "ada.tar.gz"
    filled(tenant, "before")
    archives.back_up(tenant, archive)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    assert names == [
        "tenant.json",
        "tenant.env",
        "data/platform.sqlite3",
        "data/files/file",
        "data/keys/file",
        "data/secret_key",
    ]
    filled(tenant, "after")
    tenant.write_settings({**tenant.settings(), "INSTANCE_NAME": "kept"})
    with directory.changing():
        archives.restore("ada", archive, root)
    assert said(tenant) == ["before"]
    assert (tenant.data / "secret_key").read_text() == "before"
    assert not (tenant.data / "cache").exists()
    assert tenant.settings()["INSTANCE_NAME"] == "kept"
    assert not tenant.is_suspended
    assert not [path for path in tenant.path.rglob("*") if path.stat().st_mode & 0o077]
    # And after it was deleted.
    directory.remove(tenant)
    with directory.changing():
        archives.restore("ada", archive, root)
    assert said(tenant) == ["before"]
    assert tenant.settings()["ALLOWED_HOSTS"] == "ada.example.com"
    assert sorted(path.name for path in root.iterdir()) == [".lock", "ada"]


def test_a_backup_is_restored_as_its_own_tenant_only(root: Path, tmp_path: Path) -> None:
    """The keys are in it: the tokens of one would be accepted by the other."""
    tenant, archive = made("ada", "ada.example.com"), tmp_path / "ada.tar.gz"
    filled(tenant, "ada's")
    archives.back_up(tenant, archive)
    bob = made("bob", "bob.example.com")
    filled(bob, "bob's")
    with directory.changing(), pytest.raises(TenantError, match="is a backup of 'ada'"):
        archives.restore("bob", archive, root)
    assert said(bob) == ["bob's"]
    # Nor beside a tenant that has taken its host meanwhile.
    directory.remove(tenant)
    bob.write_settings({**bob.settings(), "ALLOWED_HOSTS": "ada.example.com"})
    with directory.changing(), pytest.raises(TenantError, match="which bob has"):
        archives.restore("ada", archive, root)
    assert not (root / "ada").exists()


@pytest.mark.parametrize("name", ["../../outside", "/outside", "data/link"])
def test_an_archive_cannot_write_elsewhere(root: Path, tmp_path: Path, name: str) -> None:
    archive = tmp_path / "bad.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        opened.addfile(entry)
    with directory.changing(), pytest.raises(TenantError, match="is no backup of a tenant"):
        archives.restore("ada", archive, root)
    archive.write_bytes(b"no archive")
    with directory.changing(), pytest.raises(TenantError, match="is no backup of a tenant"):
        archives.restore("ada", archive, root)
    assert [path.name for path in root.iterdir()] == [".lock"]


def test_the_default_number_of_running_tenants_follows_from_memory() -> None:
    assert [running_by_memory(gigabytes * 10**9) for gigabytes in (0, 1, 2, 4, 64)] == [1, 1, 4, 7, 7]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    with new_pool(tmp_path_factory.mktemp("pool"), LICENSE_SESSIONS="99", BASE_URL="https://pool.example.com") as (
        found,
        _,
    ):
        yield found


@pytest.mark.process
@pytest.mark.once
def test_a_tenant_from_creation_to_deletion(pool: Pool, tmp_path: Path) -> None:
    words = ("--host", "eve.example.com", "--admin", "eve", "--set", "LICENSE_SESSIONS=7", "--json")
    created = pool.command("tenants", "create", "eve", *words)
    assert created.returncode == 0, created.stderr
    told = json.loads(created.stdout)
    assert (told["name"], told["hosts"], told["admin"]) == ("eve", "eve.example.com", "eve")
    eve = Tenant(pool.tenants / "eve")
    script = (
        "from django.conf import settings; from identity.models import User;"
        "user = User.objects.get(login='eve');"
        f"print(user.is_admin, user.check_password({told['password']!r}), settings.LICENSE_SESSIONS, settings.BASE_URL)"
    )
    shown = pool.command("tenants", "run", "eve", "shell", "--no-imports", "--command", script)
    assert shown.stdout.strip() == "True True 7 https://eve.example.com"
    assert pool.command("tenants", "run", "eve", "no_such_command").returncode == 1
    assert pool.command("tenants", "run", "eve", "serve").returncode == 1
    again = pool.command("tenants", "create", "eve", "--host", "other.example.com")
    assert (again.returncode, again.stdout) == (1, "")
    assert "There is a tenant 'eve' already" in again.stderr
    assert "Traceback" not in again.stderr
    archive = tmp_path / "eve.tar.gz"
    assert pool.command("tenants", "backup", "eve", str(archive)).returncode == 0
    with pool.serving():
        ask = {"X-Forwarded-Proto": "https"}
        assert pool.request(eve, "GET", "/healthz", headers=ask).status_code == 200
        keys = pool.request(eve, "GET", "/id/.well-known/openid-configuration/jwks", headers=ask).json()
        # While the pool serves it: it is stopped, and serves what was restored.
        assert pool.command("tenants", "run", "eve", "rotate_keys").returncode == 0
        restored = pool.command("tenants", "restore", "eve", str(archive))
        assert restored.returncode == 0, restored.stderr
        assert pool.request(eve, "GET", "/id/.well-known/openid-configuration/jwks", headers=ask).json() == keys
        deleted = pool.command("tenants", "delete", "eve", "--confirm", "eve")
        assert deleted.returncode == 0, deleted.stderr
        assert pool.running() == []
    assert sorted(path.name for path in pool.tenants.iterdir()) == [".lock"]


@pytest.mark.process
@pytest.mark.once
def test_a_tenant_on_postgresql_has_a_database_of_its_own(pool: Pool, tmp_path: Path) -> None:
    with replicated_servers(0) as (server, _):
        server.query("CREATE DATABASE one TEMPLATE template0 LOCALE 'C.UTF-8'")
        url = f"postgres://postgres:never%20shown@127.0.0.1:{server.port}/one"
        created = pool.command("tenants", "create", "pia", "--host", "pia.example.com", "--database-url", url)
        assert created.returncode == 0, created.stderr
        # Refused before anything is written into the database of the other.
        second = pool.command("tenants", "create", "quo", "--host", "quo.example.com", "--database-url", url)
        assert f"quo may not have the database localhost:{server.port}/one, which pia has." in second.stderr
        pia, archive = Tenant(pool.tenants / "pia"), tmp_path / "pia.tar.gz"
        assert not (pia.data / "platform.sqlite3").exists()
        saved = pool.command("tenants", "backup", "pia", str(archive))
        assert saved.returncode == 0, saved.stderr
        ask = {"X-Forwarded-Proto": "https"}
        users = f"postgres://postgres@127.0.0.1:{server.port}/one"
        with pool.serving():
            keys = pool.request(pia, "GET", "/id/.well-known/openid-configuration/jwks", headers=ask).json()
            assert pool.command("tenants", "run", "pia", "rotate_keys").returncode == 0
            with psycopg.connect(users, autocommit=True) as connection:
                connection.execute("CREATE TABLE made_later AS SELECT * FROM identity_user")
                connection.execute("DELETE FROM identity_signingkey")
            restored = pool.command("tenants", "restore", "pia", str(archive))
            assert restored.returncode == 0, restored.stderr
            assert pool.request(pia, "GET", "/id/.well-known/openid-configuration/jwks", headers=ask).json() == keys
            with psycopg.connect(users, autocommit=True) as connection:
                assert connection.execute("SELECT to_regclass('made_later')").fetchone() == (None,)
            deleted = pool.command("tenants", "delete", "pia", "--confirm", "pia")
        assert deleted.stdout == "Deleted pia. Its database in PostgreSQL is left; drop it there.\n"


def test_each_action_has_help_with_an_example() -> None:
    from platform_site.management.commands.tenants import _EXAMPLES, Command

    for name, example in _EXAMPLES.items():
        parser = Command().create_parser("manage.py", "tenants")
        with pytest.raises(SystemExit) as caught:
            parser.parse_args([name, "--help"])
        assert caught.value.code == 0
        assert example.startswith(f"tenants {name}")
