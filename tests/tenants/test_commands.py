"""`manage.py tenants`: what it makes, changes, refuses and says."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import psycopg
import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from platform_site.management.commands import tenants as tenants_command
from platform_site.tenants import archives, directory, process, proxies
from platform_site.tenants.directory import Tenant, review
from platform_site.tenants.memory import max_running_by_memory
from platform_site.tenants.pooled_tenant import fingerprint
from platform_site.tenants.tenant_settings import TenantError, TenantSettings
from tests.support.platform import ROOT, free_port
from tests.support.postgresql_servers import replicated_servers
from tests.support.programs import requires_program
from tests.support.tenants import Pool, new_pool, nginx_configuration
from tests.support.waiting import eventually


@pytest.fixture
def root(tmp_path: Path, settings: Settings) -> Path:
    """TENANTS."""
    settings.TENANTS = str(tmp_path / "tenants")
    return tmp_path / "tenants"


def made(name: str, host: str, **settings: str) -> Tenant:
    """A tenant with an empty database."""
    with directory.directory_lock():
        tenant = directory.add(name, {"ALLOWED_HOSTS": host, **settings})
    return finished(tenant)


def finished(tenant: Tenant) -> Tenant:
    """The tenant with the files without which none is served."""
    for name in ("secret_key", "platform.sqlite3"):
        (tenant.data / name).touch(mode=0o600)
    tenant.mark_unfinished("")
    return tenant


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints."""
    capsys.readouterr()
    call_command("tenants", *words)
    return capsys.readouterr().out


def _tenants_of(root: Path) -> list[str]:
    """All files of the directory but those that are of no tenant."""
    return sorted(path.name for path in root.iterdir() if path.name not in (".owners", ".owners.lock", ".lock"))


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
        (
            {"OTEL_EXPORTER_OTLP_CERTIFICATE": "../bob/data/secret_key"},
            "OTEL_EXPORTER_OTLP_CERTIFICATE of ada must be a",
        ),
        ({"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": "/srv/bob/key"}, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY of ada must"),
        ({"EMAIL_URL": "filemail:////srv/bob/data"}, "EMAIL_URL of ada must be of a mail server"),
        ({"EMAIL_URL": "smtp://[mail"}, "A setting of ada cannot be read: EMAIL_URL"),
        ({"DATABASE_URL": "sqlite:////srv/bob/data/platform.sqlite3"}, "DATABASE_URL of ada must be of PostgreSQL"),
        ({"DATABASE_URL": "postgres://h/a?host=other"}, "may not have the parameter host"),
        ({"DATABASE_URL": "postgres://u:p#w@h/a?host=other"}, "may not have the parameter host"),
        ({"DATABASE_URL": f"postgres://h/{'x' * 64}"}, "must name a database, in at most 63 bytes"),
        ({"DATABASE_URL": "postgres://h"}, "must name a database"),
        ({"PORT": "²"}, "PORT must be a whole number, not '²'"),
        ({"PORT": "70000"}, "PORT of ada must be between 1 and 65535"),
        ({"ALLOWED_HOSTS": "*"}, "'*' of ada is not one host name"),
        ({"ALLOWED_HOSTS": ".example.com"}, "'.example.com' of ada is not one host name"),
        ({"ALLOWED_HOSTS": ""}, "ada needs ALLOWED_HOSTS"),
        ({"ALLOWED_HOSTS": "a.example.com;evil"}, "is not one host name"),
        ({"ALLOWED_HOSTS": ".".join(["x" * 63] * 4)}, "is not one host name"),
        ({"INSTANCE_NAME": "two\nlines"}, "has a character that tenant.env cannot have"),
    ],
)
def test_settings_that_lead_out_of_a_tenant_are_refused(root: Path, given: dict[str, str], text: str) -> None:
    with pytest.raises(TenantError, match=text.replace("*", r"\*").replace(".", r"\.").replace("(", r"\(")):
        made("ada", "ada.example.com", **given) if "ALLOWED_HOSTS" not in given else _add("ada", given)


def _add(name: str, settings: dict[str, str]) -> None:
    with directory.directory_lock():
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
        ({"PORT": "25000"}, {"ALLOWED_HOSTS": "b.example.com", "PORT": "025000"}, "the port 25000"),
        *(
            (
                {"DATABASE_URL": f"postgres://a@{server}/victim"},
                {"ALLOWED_HOSTS": "b.example.com", "DATABASE_URL": url},
                f"the database {server or 'localhost'}:5432/victim",
            )
            for server, url in [
                ("h", "postgres://b@h/victim/"),
                ("h", "postgres://b@h/victim#x"),
                ("h", "postgres://b@h./victim"),
                ("h", "postgres://b@h/vict%69m"),
                ("h", "postgres://b@x%2Ch/victim"),
                ("h", "postgres://b@x/victim?application_name=a@y,h/victim"),
                ("", "postgres:////var/run/postgresql/victim"),
                ("", "postgres://b@127.1/victim"),
                ("", "postgres://b@0/victim"),
                ("", "postgres://b@[::ffff:127.0.0.1]/victim"),
            ]
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
    # Also when the file was written by hand, whatever its time and name: the one that had it keeps it.
    for name in ("bob", "aaron"):
        other = made(name, f"{name}.example.com")
        other.write_settings({"PORT": "25001", **mine})
        os.utime(other.settings_file, ns=(1, 1))
        found = review(root)
        assert found.problems == {name: f"{name} may not have {what}, which ada has."}
        assert found.port(name) is None  # the pool must not take it before ada does
        directory.remove(other)
    # Nor is it free while the settings of the one that has it cannot be read.
    directory.tenant_get("ada").settings_file.write_bytes(b"\xff")
    with pytest.raises(TenantError, match="which ada has"):
        _add("bob", mine)
    assert list(problems(root)) == ["ada"]


def problems(root: Path) -> dict[str, str]:
    """Tenant → why it is not served."""
    return review(root).problems


@pytest.mark.parametrize(
    "setting",
    [
        "BASE_URL='https://[cy.example.com'",
        "BASE_URL='cy.example.com'",
        "DATABASE_URL='postgres://h:port/db'",
        "DATABASE_REPLICA_URLS='postgres://a,b/db'",
        "INSTANCE_LOGO='~no-such-user/logo.svg'",
        "INSTANCE_LOGO='{circle}'",
        "PORT='²'",
        "PORT='" + "1" * 5000 + "'",
        "PORT=''",
        "\udcff",
    ],
)
def test_a_mistake_in_one_file_is_told_and_stops_nobody_else(
    root: Path, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    made("bob", "bob.example.com", PORT="25000")
    cy = made("cy", "cy.example.com")
    (cy.path / "circle").symlink_to(cy.path / "circle")
    text = f"ALLOWED_HOSTS='cy.example.com'\nPORT='25001'\n{setting.format(circle=cy.path / 'circle')}\n"
    cy.settings_file.write_bytes(text.encode(errors="surrogateescape"))
    assert list(problems(root)) == ["cy"]
    assert [row["state"] for row in json.loads(run(capsys, "list", "--json"))] == ["active", "refused"]
    assert "bob.example.com 25000" in run(capsys, "proxy", "nginx")
    assert made("dee", "dee.example.com").port


def test_settings_are_a_file(root: Path) -> None:
    """Not what is read without an end, or until somebody writes into it."""
    cy = made("cy", "cy.example.com")
    cy.settings_file.unlink()
    os.mkfifo(cy.settings_file)
    assert "is no file" in problems(root)["cy"]
    cy.settings_file.unlink()
    cy.settings_file.symlink_to("/dev/zero")
    assert "is no file" in problems(root)["cy"]
    cy.settings_file.unlink()
    cy.settings_file.write_bytes(b"#" * 2_000_000)
    assert "is too long" in problems(root)["cy"]


def test_what_a_tenant_gives_up_is_free(root: Path) -> None:
    ada, bob = made("ada", "ada.example.com"), made("bob", "bob.example.com")
    bob.write_settings({**bob.settings(), "ALLOWED_HOSTS": "ada.example.com"})
    assert problems(root) == {"bob": "bob may not have the host ada.example.com, which ada has."}
    ada.write_settings({**ada.settings(), "ALLOWED_HOSTS": "bob.example.com"})
    assert problems(root) == {}


def test_no_command_works_with_settings_that_are_another_s(root: Path, tmp_path: Path) -> None:
    """Neither a backup of the neighbour's database, nor a restore into it, nor any command of manage.py."""
    ada, archive = made("ada", "ada.example.com"), tmp_path / "ada.tar.gz"
    filled(ada, "ada's")
    archives.back_up(ada, archive)
    made("bob", "bob.example.com", DATABASE_URL="postgres://bob@h/victim")
    for setting, text in (
        ({"DATABASE_URL": "postgres://ada@h/victim"}, "ada may not have the database h:5432/victim, which bob has."),
        ({"REDIS_URL": "redis://127.0.0.1/0"}, "REDIS_URL is not a setting of a tenant: the pool decides it."),
    ):
        ada.write_settings({"ALLOWED_HOSTS": "ada.example.com", "PORT": "25000", **setting})
        assert refusal("backup", "ada", str(tmp_path / "other.tar.gz")) == text
        assert refusal("restore", "ada", str(archive)) == text
        assert refusal("run", "ada", "check") == text
    assert said(ada) == ["ada's"]
    assert not (tmp_path / "other.tar.gz").exists()


def test_a_tenant_serves_only_what_the_pool_has_checked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what has been written into the file since."""
    ada = made("ada", "ada.example.com")
    monkeypatch.setattr(sys, "argv", ["manage.py"])
    with socket.socket() as listening, pytest.raises(SystemExit, match="the pool has not checked them yet"):
        process.serve(ada, "digest of others", listening, -1, 1.0)


def test_an_edit_that_looks_like_none_is_noticed(root: Path) -> None:
    ada = made("ada", "ada.example.com")
    before, state = ada.settings_file.stat(), fingerprint(ada)
    text = ada.settings_file.read_text()
    with ada.settings_file.open("r+") as file:
        file.write(text.replace("ada.example", "eva.example"))
    os.utime(ada.settings_file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert fingerprint(ada) != state


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


def test_nginx_accepts_the_longest_host_names_of_500_tenants(tmp_path: Path) -> None:
    requires_program("nginx")
    tail = ".".join(["x" * 63] * 3 + ["y" * 57])
    hosts = [*(f"{number:03}.{tail}" for number in range(500)), "default", "include"]
    served = [TenantSettings({}, (host,), 21_000 + number, frozenset()) for number, host in enumerate(hosts)]
    assert max(map(len, hosts)) == 253
    configuration = nginx_configuration(tmp_path, proxies.nginx(served), free_port())
    words = ["nginx", "-t", "-c", str(configuration), "-p", str(tmp_path)]
    tested = subprocess.run(words, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr
    assert "map_hash" not in tested.stderr + (tmp_path / "error.log").read_text()  # no warning either


def test_delete_needs_the_name_twice(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tenant = made("ada", "ada.example.com")
    assert "nothing was deleted" in refusal("delete", "ada", "--confirm", "bob")
    assert tenant.settings_file.exists()
    assert run(capsys, "delete", "ada", "--confirm", "ada") == "Deleted ada.\n"
    assert _tenants_of(root) == []


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
    with directory.directory_lock():
        archives.restore("ada", archive, root)
    assert said(tenant) == ["before"]
    assert (tenant.data / "secret_key").read_text() == "before"
    assert not (tenant.data / "cache").exists()
    assert tenant.settings()["INSTANCE_NAME"] == "kept"
    assert not tenant.is_suspended
    assert not [path for path in tenant.path.rglob("*") if path.stat().st_mode & 0o077]
    # And after it was deleted.
    directory.remove(tenant)
    with directory.directory_lock():
        archives.restore("ada", archive, root)
    assert said(tenant) == ["before"]
    assert tenant.settings()["ALLOWED_HOSTS"] == "ada.example.com"
    assert _tenants_of(root) == ["ada"]


def killed_at_rename(number: int, work: Callable[[], object]) -> None:
    """Do the work in a process that is killed in place of its rename of a directory with this number, from 0."""
    child = os.fork()
    if child == 0:
        rename, left = Path.rename, number

        def rename_or_die(self: Path, target: Path) -> Path:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return rename(self, target)

        try:
            Path.rename = rename_or_die  # type: ignore[method-assign, assignment]
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("renames", [0, 1])
@pytest.mark.parametrize("next_command", ["restore", "resume"])
def test_a_killed_restore_loses_nothing(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], renames: int, next_command: str
) -> None:
    tenant, archive = made("ada", "ada.example.com"), str(tmp_path / "ada.tar.gz")
    filled(tenant, "before")
    archives.back_up(tenant, Path(archive))
    filled(tenant, "after")

    def restore() -> None:
        with directory.directory_lock():
            archives.restore("ada", Path(archive), root)

    killed_at_rename(renames, restore)
    assert tenant.unfinished
    assert "ada   unfinished" in run(capsys, "list")
    # It would make new data in place of those that are only set aside.
    text = "A command that stopped ada was killed. Run it again, or resume ada."
    assert refusal("run", "ada", "check") == refusal("backup", "ada", archive) == text
    if next_command == "restore":
        restore()
        assert said(tenant) == ["before"]
    else:
        run(capsys, "resume", "ada")
        assert said(tenant) == ["before", "after"]
        assert (tenant.data / "secret_key").read_text() == "after"
    assert tenant.is_available
    assert not (tenant.path / ".data.former").exists()
    assert [path.name for path in root.glob(".restored-*")] == ([] if next_command == "restore" else [ANY])


@pytest.mark.parametrize("missing", ["", "secret_key", "platform.sqlite3"])
def test_a_tenant_without_its_data_is_refused_and_not_made_anew(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Its file system may not be mounted: then `data` is missing, or empty."""
    tenant, archive = made("ada", "ada.example.com"), tmp_path / "ada.tar.gz"
    filled(tenant, "before")
    archives.back_up(tenant, archive)
    state, digest = fingerprint(tenant), review(root).settings["ada"].digest
    (tenant.data / missing).rename(tmp_path / "aside")
    assert fingerprint(tenant) != state  # so the pool notices it
    file = tenant.data / (missing or "secret_key")
    text = f"{file} is missing. ada is not served, since it would begin with new data."
    assert problems(root)["ada"].startswith(text)
    assert refusal("backup", "ada", str(tmp_path / "other.tar.gz")).startswith(text)
    assert refusal("run", "ada", "check").startswith(text)
    monkeypatch.setattr(sys, "argv", ["manage.py"])
    with socket.socket() as listening, pytest.raises(SystemExit, match="is missing"):
        process.serve(tenant, digest, listening, -1, 1.0)
    assert not (tenant.data / missing).exists()
    with directory.directory_lock():
        archives.restore("ada", archive, root)
    assert said(tenant) == ["before"]
    assert problems(root) == {}


def test_a_failed_restore_leaves_the_tenant_as_it_was(root: Path, tmp_path: Path) -> None:
    tenant = made("ada", "ada.example.com")
    filled(tenant, "before")
    with pytest.raises(FileNotFoundError), tenant.stopped():
        tenant.replace_data(tmp_path / "missing")
    assert said(tenant) == ["before"]
    assert tenant.is_available


def test_a_killed_creation_is_unfinished_and_begins_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with directory.directory_lock():
        eve = directory.add("eve", {"ALLOWED_HOSTS": "eve.example.com"})  # the process is killed after that
    assert not eve.is_available
    assert "eve   unfinished" in run(capsys, "list")
    text = "`tenants create` of eve has not finished. If it no longer runs, run it again, or delete eve."
    assert refusal("resume", "eve") == text
    assert refusal("backup", "eve", str(root / "eve.tar.gz")) == text
    assert refusal("run", "eve", "check") == text
    with directory.directory_lock():
        # Another command still creates it.
        with eve.changing(), pytest.raises(TenantError, match="Another command of eve is running"):
            directory.add("eve", {"ALLOWED_HOSTS": "eve.example.com"})
        again = directory.add("eve", {"ALLOWED_HOSTS": "eve.example.com"})
    assert finished(again).is_available
    assert _tenants_of(root) == ["eve"]


def test_a_killed_creation_can_be_deleted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with directory.directory_lock():
        directory.add("eve", {"ALLOWED_HOSTS": "eve.example.com"})
    run(capsys, "delete", "eve", "--confirm", "eve")
    assert made("bob", "eve.example.com").is_available


def test_a_tenant_that_is_suspended_while_it_is_created_stays_so(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(tenant: Tenant, *words: str, **options: Any) -> None:
        call_command("tenants", "suspend", "eve")
        (tenant.data / "secret_key").touch()
        (tenant.data / "platform.sqlite3").touch()

    monkeypatch.setattr(tenants_command, "_run", prepare)
    run(capsys, "create", "eve", "--host", "eve.example.com")
    assert "eve   suspended" in run(capsys, "list")


@pytest.mark.process
@pytest.mark.once
def test_commands_at_once_on_one_tenant(root: Path, tmp_path: Path) -> None:
    """While the process of a restore waits for the tenant's to stop, others are refused, and a suspension is kept."""
    tenant, archive = made("ada", "ada.example.com"), tmp_path / "ada.tar.gz"
    filled(tenant, "before")
    archives.back_up(tenant, archive)
    filled(tenant, "after")
    serving = tenant.lock()
    assert serving is not None
    with serving:
        restore = subprocess.Popen(
            [sys.executable, "manage.py", "tenants", "restore", "ada", str(archive)],
            cwd=ROOT, env=Pool(tmp_path).environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            assert eventually(lambda: not tenant.is_available, 300)
            text = "Another command of ada is running. Try again when it has ended."
            assert refusal("backup", "ada", str(tmp_path / "other.tar.gz")) == text
            assert refusal("run", "ada", "check") == text
            call_command("tenants", "suspend", "ada")
            serving.close()  # the processes have stopped
            assert eventually(lambda: not tenant.unfinished, 300)
        finally:
            os.killpg(restore.pid, signal.SIGKILL)  # it would prepare the database, which is none
            restore.wait()
    assert said(tenant) == ["before"]
    assert tenant.is_suspended


def test_nothing_changes_a_tenant_during_a_backup(root: Path, tmp_path: Path) -> None:
    tenant, archive = made("ada", "ada.example.com"), tmp_path / "ada.tar.gz"
    filled(tenant, "ada's")
    archives.back_up(tenant, archive)
    text = "Another command of ada is running. Try again when it has ended."
    with tenant.used():
        assert refusal("restore", "ada", str(archive)) == text
        assert refusal("delete", "ada", "--confirm", "ada") == text
        archives.back_up(tenant, archive)
    assert tenant.is_available


def test_a_backup_is_restored_as_its_own_tenant_only(root: Path, tmp_path: Path) -> None:
    """The keys are in it: the tokens of one would be accepted by the other."""
    tenant, archive = made("ada", "ada.example.com"), tmp_path / "ada.tar.gz"
    filled(tenant, "ada's")
    archives.back_up(tenant, archive)
    bob = made("bob", "bob.example.com")
    filled(bob, "bob's")
    with directory.directory_lock(), pytest.raises(TenantError, match="is a backup of 'ada'"):
        archives.restore("bob", archive, root)
    assert said(bob) == ["bob's"]
    # Nor beside a tenant that has taken its host meanwhile.
    directory.remove(tenant)
    bob.write_settings({**bob.settings(), "ALLOWED_HOSTS": "ada.example.com"})
    with directory.directory_lock(), pytest.raises(TenantError, match="which bob has"):
        archives.restore("ada", archive, root)
    assert not (root / "ada").exists()


def test_an_archive_does_not_say_which_database_is_emptied(root: Path, tmp_path: Path) -> None:
    archive = tmp_path / "ada.tar.gz"
    tenant_json = json.dumps({"format": 1, "name": "ada", "database": "postgresql"})
    tenant_env = "ALLOWED_HOSTS='ada.example.com'\nPORT='25000'\nDATABASE_URL='postgres://postgres@h/payroll'\n"
    with tarfile.open(archive, "w:gz") as opened:
        for name, text in (("tenant.json", tenant_json), ("tenant.env", tenant_env)):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            opened.addfile(entry, io.BytesIO(text.encode()))
    root.mkdir()
    assert "name its database, which will be emptied, with --database-url" in refusal("restore", "ada", str(archive))
    made("bob", "bob.example.com", DATABASE_URL="postgres://bob@h/bob")
    words = ("--database-url", "postgres://ada@h/bob")
    assert refusal("restore", "ada", str(archive), *words) == "ada may not have the database h:5432/bob, which bob has."
    made("ada", "ada.example.com")
    assert refusal("restore", "ada", str(archive), *words) == "ada keeps its settings: without --database-url."


@pytest.mark.parametrize("name", ["../../outside", "/outside", "data/link"])
def test_an_archive_cannot_write_elsewhere(root: Path, tmp_path: Path, name: str) -> None:
    archive = tmp_path / "bad.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        opened.addfile(entry)
    with directory.directory_lock(), pytest.raises(TenantError, match="is no backup of a tenant"):
        archives.restore("ada", archive, root)
    archive.write_bytes(b"no archive")
    with directory.directory_lock(), pytest.raises(TenantError, match="is no backup of a tenant"):
        archives.restore("ada", archive, root)
    assert _tenants_of(root) == []


@pytest.mark.parametrize(
    "members",
    [
        [("data/files", tarfile.SYMTYPE, "."), ("data/files/key", tarfile.REGTYPE, "")],
        [("data/key", tarfile.REGTYPE, ""), ("data/same", tarfile.LNKTYPE, "data/key")],
        [("data/files", tarfile.DIRTYPE, "")],
        [("data/pipe", tarfile.FIFOTYPE, "")],
        [("data/../tenant.env", tarfile.REGTYPE, "")],
        [("more", tarfile.REGTYPE, "")],
        [("data", tarfile.REGTYPE, "")],
    ],
)
def test_an_archive_has_nothing_but_the_files_of_a_backup(
    root: Path, tmp_path: Path, members: list[tuple[str, bytes, str]]
) -> None:
    """Not even links that stay inside, which chains of them can leave again."""
    archive = tmp_path / "bad.tar.gz"
    with tarfile.open(archive, "w:gz") as opened:
        for name, kind, target in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, target
            opened.addfile(entry)
    with directory.directory_lock(), pytest.raises(TenantError, match="which no backup has"):
        archives.restore("ada", archive, root)
    assert _tenants_of(root) == []


def test_the_default_number_of_running_tenants_follows_from_memory() -> None:
    assert [max_running_by_memory(gigabytes * 10**9) for gigabytes in (0, 1, 2, 4, 64)] == [1, 1, 4, 7, 7]


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
    assert _tenants_of(pool.tenants) == []


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
            assert pool.command("tenants", "restore", "pia", str(archive)).returncode == 1
            again = pool.command("tenants", "restore", "pia", str(archive), "--database-url", f"{url}?sslmode=disable")
            assert again.returncode == 0, again.stderr
            assert pool.command("tenants", "delete", "pia", "--confirm", "pia").returncode == 0


def test_each_action_has_help_with_an_example() -> None:
    from platform_site.management.commands.tenants import _EXAMPLES, Command

    for name, example in _EXAMPLES.items():
        parser = Command().create_parser("manage.py", "tenants")
        with pytest.raises(SystemExit) as caught:
            parser.parse_args([name, "--help"])
        assert caught.value.code == 0
        assert example.startswith(f"tenants {name}")
