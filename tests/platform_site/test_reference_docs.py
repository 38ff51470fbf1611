"""Pages made from the source say what the source says."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from foundation import errors
from platform_site import reference_docs
from platform_site.environment import SETTINGS


def test_the_committed_pages_are_up_to_date() -> None:
    assert not [path.name for path, _ in reference_docs.outdated()], "run manage.py generate_docs"


def test_every_error_code_and_setting_is_documented() -> None:
    codes, settings = reference_docs.error_codes_page(), reference_docs.settings_page()
    assert all(f"| {entry.number} | `{entry.type}` |" in codes for entry in errors.error_codes_by_number())
    assert all(f"| `{setting.name}` |" in settings for setting in SETTINGS)


def test_every_guide_is_in_the_navigation() -> None:
    root = reference_docs.DIRECTORY.parent
    navigation = (root.parent / "mkdocs.yml").read_text()
    assert not [page for page in root.rglob("*.md") if str(page.relative_to(root)) not in navigation]


def test_the_command_writes_what_differs_and_its_check_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "docs" / "reference"
    monkeypatch.setattr(reference_docs, "DIRECTORY", directory)
    monkeypatch.setattr("platform_site.management.commands.generate_docs.DIRECTORY", directory)
    with pytest.raises(CommandError, match=r"outdated: error-codes\.md, settings\.md"):
        call_command("generate_docs", "--check")
    call_command("generate_docs", stdout=StringIO())
    call_command("generate_docs", "--check")
    assert (directory / "settings.md").read_text() == reference_docs.settings_page()


def test_error_codes_as_a_table_and_as_json() -> None:
    table, machine = StringIO(), StringIO()
    call_command("error_codes", stdout=table)
    call_command("error_codes", "--json", stdout=machine)
    rows = {row["code"]: row for row in json.loads(machine.getvalue())}
    assert rows[8] == {
        "code": 8,
        "type": "NoLicence",
        "status": 503,
        "messageFormat": errors.NO_LICENCE.message_format,
    }
    assert "DuplicateValue" in table.getvalue()
    assert len(table.getvalue().splitlines()) == len(rows) + 1
