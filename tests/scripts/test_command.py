"""`manage.py run_script`, and the retention of runs."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from domain.dataset.dataset import Dataset
from foundation.fields import utc_now
from scripts import history
from scripts.models import ScriptRun
from tests.rules.cast import World


def run(*args: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("run_script", *args, stdout=out, **options)
    return out.getvalue()


def test_a_file_is_run_with_a_users_rights(world: World, fresh_process: None, tmp_path: Path) -> None:
    file = tmp_path / "books.js"
    file.write_text(
        "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'}); console.log(Action.user.login)"
    )
    assert run(str(file), user="anna") == "anna\n"
    assert Dataset(world.context).find_one("Library.Books", code="B1") is None
    run(str(file), user="anna", commit=True)
    assert Dataset(world.context).find_one("Library.Books", code="B1") is not None


def test_a_managed_script_is_run_by_its_code(world: World, fresh_process: None) -> None:
    ds = Dataset(world.context)
    ds.create(
        "Systems.Core.Scripts",
        {
            "Code": "ADD",
            "Name": {"EN": "Add"},
            "ScriptText": "return a + 1",
            "ParameterSchema": '{"a": {"type": "number"}}',
        },
    )
    ds.commit()
    assert '"returnValue": 3' in run("--code", "ADD", "--arguments", '{"a": 2}')
    with pytest.raises(CommandError, match="'b' is not a parameter"):
        run("--code", "ADD", "--arguments", '{"b": 2}')
    with pytest.raises(CommandError, match="no script"):
        run("--code", "NONE")


def test_failures_tell_their_place(world: World, tmp_path: Path) -> None:
    file = tmp_path / "wrong.js"
    file.write_text("1;\nthrow new Error('no')")
    with pytest.raises(CommandError, match=r"ScriptThrew: The script failed: no \(line 2, column 1\)"):
        run(str(file))


def test_old_runs_are_pruned(db: None) -> None:
    for days in (1, 29, 31, 400):
        ScriptRun.objects.create(
            started=utc_now() - timedelta(days=days),
            duration_ms=1,
            kind="Command",
            source_digest="",
            outcome="Succeeded",
        )
    assert history.prune() == 2
    assert ScriptRun.objects.count() == 2
    assert history.prune(days=7) == 1
