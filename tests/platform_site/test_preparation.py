"""What a start does, and what it leaves out because a cheap look says that it is done."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from identity.demo import seed_identity
from platform_site.management.commands import serve
from platform_site.serving import preparation
from platform_site.serving.preparation import Prepared
from tests.support.platform import free_port


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings) -> list[str]:
    """The commands that a start runs, recorded instead of run."""
    settings.DATA_DIR = tmp_path
    settings.STATIC_ROOT = tmp_path / "static"
    recorded: list[str] = []

    def record(name: str, *arguments: Any, **options: Any) -> None:
        place = [options["database"]] if "database" in options else []
        recorded.append(" ".join([name, *place, *arguments]))
        if name == "collectstatic":
            (tmp_path / "static").mkdir(exist_ok=True)

    monkeypatch.setattr(preparation, "call_command", record)
    monkeypatch.setattr(
        preparation, "run_in_child_process", lambda work: work()
    )  # another process could not record here
    monkeypatch.setattr("platform_site.serving.preparation.connections.close_all", lambda: None)
    monkeypatch.setattr(preparation, "get_commands", dict)
    monkeypatch.setattr(preparation, "key_set", lambda: recorded.append("key_set"))
    return recorded


def silent(text: str) -> None:
    """Nobody listens."""


def test_a_first_start_does_everything_and_the_next_one_nothing(db: None, calls: list[str], settings: Settings) -> None:
    preparation.prepare(silent)
    broker = ["migrate broker django_q"] if "broker" in settings.DATABASES else []
    assert calls == ["migrate default", *broker, "key_set", "collectstatic"]
    calls.clear()
    preparation.prepare(silent)
    assert calls == ["key_set"]  # which looks for a file


def test_it_says_what_it_does_and_how_long_it_took(db: None, calls: list[str]) -> None:
    said: list[str] = []
    preparation.prepare(said.append)
    assert said[0] == "Preparing the database ..."
    assert said[1].startswith("Preparing the database: done in ")


def test_a_changed_migration_is_noticed(db: None, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    preparation.prepare(silent)
    calls.clear()
    monkeypatch.setattr(preparation, "migrations_digest", lambda: "another")
    preparation.prepare(silent)
    assert "migrate default" in calls
    assert "collectstatic" not in calls


def test_another_database_is_noticed(db: None, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    preparation.prepare(silent)
    calls.clear()
    monkeypatch.setattr(preparation, "_database_states", lambda: {"default": ["3", "yesterday"]})
    preparation.prepare(silent)
    assert "migrate default" in calls


def test_a_database_of_another_version_is_said_in_a_sentence(
    db: None, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise InconsistentMigrationHistory("Migration domain.0001 is applied before its dependency.")

    monkeypatch.setattr(preparation, "call_command", refuse)
    with pytest.raises(RuntimeError, match="made by another version of the platform"):
        preparation.prepare(silent)


def test_a_database_made_before_the_first_release_is_refused(
    db: None, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its migrations had other names, so platform_site's, which runs before the domain's, is not recorded."""
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(
        preparation, "run_in_child_process", lambda work: work()
    )  # another process would not see this change
    MigrationRecorder(connection).record_unapplied("platform_site", "0001_initial")
    with pytest.raises(RuntimeError, match="made by another version of the platform"):
        preparation.prepare(silent)


def test_what_runs_apart_leaves_nothing_here_but_its_failure() -> None:
    left: list[str] = []
    preparation.run_in_child_process(lambda: left.append("memory"))
    assert left == []

    def fail() -> None:
        raise RuntimeError("the database is of another version")

    with pytest.raises(RuntimeError, match="the database is of another version"):
        preparation.run_in_child_process(fail)
    with pytest.raises(RuntimeError, match="ended from outside"):
        preparation.run_in_child_process(lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_a_missing_or_broken_memory_means_that_all_is_due(
    db: None, calls: list[str], tmp_path: Path, settings: Settings
) -> None:
    preparation.prepare(silent)
    for content in ("not json", json.dumps({"unknown": 1}), "[]"):
        calls.clear()
        (tmp_path / "prepared.json").write_text(content)
        preparation.prepare(silent)
        assert "migrate default" in calls


def test_a_lost_directory_of_static_files_is_collected_again(db: None, calls: list[str], tmp_path: Path) -> None:
    preparation.prepare(silent)
    calls.clear()
    (tmp_path / "static").rmdir()
    preparation.prepare(silent)
    assert calls == ["key_set", "collectstatic"]


def test_files_of_a_former_version_stay_for_a_week(
    db: None, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes may still run on the same directory, and its pages are open in browsers."""
    source = tmp_path / "source"
    source.mkdir()
    settings.DATA_DIR, settings.STATIC_ROOT = tmp_path, tmp_path / "static"
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }

    def collected(content: str, name: str = "page.css") -> Path:
        """The file of a version's page, after the preparation."""
        for path in source.iterdir():
            path.unlink()
        (source / name).write_text(content * 100)
        os.utime(source / name, (1, 1))  # archives may give all files one time
        preparation._collect_static(Prepared.load(), silent)
        manifest = json.loads((tmp_path / "static" / "staticfiles.json").read_text())
        assert (tmp_path / "static" / name).read_text() == content * 100
        return Path(tmp_path / "static" / manifest["paths"][name])

    first = collected("a { color: red }")
    long_ago = time.time() - 30 * 24 * 3600
    for path in (first, first.with_name(f"{first.name}.gz")):
        os.utime(path, (long_ago, long_ago))  # it was in use for a month
    second = collected("a { color: navy }")
    third = collected("b { color: black }", name="other.css")
    assert first.exists()
    assert first.with_name(f"{first.name}.gz").exists()
    assert second.exists()
    assert third.exists()
    assert not (tmp_path / "static" / "page.css").exists()
    os.utime(first, (long_ago, long_ago))
    collected("i { color: black }")
    assert not first.exists()
    assert second.exists()


def test_setting_up_makes_no_keys_before_there_is_a_database(db: None, calls: list[str]) -> None:
    preparation.generate_keys()
    assert calls == []
    preparation.prepare(silent)
    calls.clear()
    preparation.generate_keys()
    assert calls == ["key_set"]


class TestDemoData:
    """Demo data is loaded once into each database, in demo mode only."""

    @pytest.fixture
    def seeded(self, calls: list[str], monkeypatch: pytest.MonkeyPatch, settings: Settings) -> list[list[str]]:
        """Runs of the seeding process."""
        runs: list[list[str]] = []

        class Done:
            returncode = 0
            stdout = stderr = ""

        def run(command: list[str], **options: Any) -> Done:
            runs.append(command[1:])
            return Done()

        monkeypatch.setattr("platform_site.serving.preparation.subprocess.run", run)
        monkeypatch.setattr(preparation, "get_commands", lambda: {"seed_demo": "domain"})
        settings.DEMO = True
        return runs

    def test_it_is_loaded_once(self, db: None, seeded: list[list[str]]) -> None:
        preparation.prepare(silent)
        preparation.prepare(silent)
        assert seeded == [["manage.py", "seed_demo", "--size", "small"]]
        assert preparation.has_demo_logins()

    def test_it_is_loaded_into_another_database_again(
        self, db: None, seeded: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        preparation.prepare(silent)
        monkeypatch.setattr(preparation, "_database_states", lambda: {"default": ["3", "yesterday"]})
        preparation.prepare(silent)
        assert len(seeded) == 2

    def test_it_is_not_loaded_outside_of_demo_mode(self, db: None, seeded: list[list[str]], settings: Settings) -> None:
        settings.DEMO = False
        preparation.prepare(silent)
        assert seeded == []
        assert not preparation.has_demo_logins()

    def test_a_failure_is_shown_and_not_remembered(
        self, db: None, seeded: list[list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Failed:
            returncode = 1
            stdout, stderr = "", "no such currency"

        monkeypatch.setattr("platform_site.serving.preparation.subprocess.run", lambda *arguments, **options: Failed())
        with pytest.raises(RuntimeError, match="no such currency"):
            preparation.prepare(silent)
        assert Prepared.load().seeded == ""


def test_the_digest_of_migrations_changes_with_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    class App:
        label = "some"
        path = str(tmp_path)

    monkeypatch.setattr("platform_site.serving.preparation.apps.get_app_configs", lambda: [App()])
    (tmp_path / "migrations").mkdir()
    digests = [preparation.migrations_digest()]
    for text in ("one", "two"):
        (tmp_path / "migrations" / "0001_initial.py").write_text(text)
        digests.append(preparation.migrations_digest())
    assert len(set(digests)) == 3


@pytest.mark.parametrize("host, base_url", [("0.0.0.0", ""), ("127.0.0.1", "https://erp.example.com")])
@pytest.mark.parametrize(
    "demo,seeded,words",
    [(True, "", "Demo mode has logins"), (False, "2026-01-01", "comes from demo mode")],
)
def test_known_logins_are_not_served_to_other_machines(
    demo: bool,
    seeded: str,
    words: str,
    host: str,
    base_url: str,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.DATA_DIR, settings.DEMO, settings.BASE_URL = tmp_path, demo, base_url
    Prepared(seeded=seeded).save()
    settings.HOST = host
    monkeypatch.setattr(preparation, "prepare", lambda report: pytest.fail("it prepares before it refuses"))
    with pytest.raises(CommandError, match=words):
        call_command("serve")


def test_demo_data_of_another_node_is_not_served_to_other_machines(
    db: None, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_identity()
    settings.DATA_DIR, settings.HOST = tmp_path, "0.0.0.0"
    monkeypatch.setattr(preparation, "prepare", lambda report: pytest.fail("it prepares before it refuses"))
    with pytest.raises(CommandError, match="comes from demo mode"):
        call_command("serve")


def test_known_logins_are_served_to_other_machines_by_who_knows(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR, settings.DEMO = tmp_path, True
    settings.HOST, settings.PORT = "0.0.0.0", free_port()

    def stop_here(report: preparation.Report) -> None:
        raise RuntimeError("it went on to prepare")

    monkeypatch.setattr(preparation, "prepare", stop_here)
    with pytest.raises(CommandError, match="it went on to prepare"):
        call_command("serve", "--i-know")


def test_ctrl_c_while_preparing_is_no_traceback(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR = tmp_path
    settings.PORT = free_port()

    def interrupted(report: preparation.Report) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(preparation, "prepare", interrupted)
    with pytest.raises(CommandError, match="Stopped before it was started") as stopped:
        call_command("serve")
    assert stopped.value.returncode == 130


@pytest.mark.parametrize("only,names", [(None, ["web", "worker"]), ("web", ["web"]), ("worker", ["worker"])])
def test_a_node_may_run_one_of_the_two(only: str | None, names: list[str]) -> None:
    children = serve._children("127.0.0.1", 8000, only, web_processes=3)
    assert [child.name for child in children] == names
