"""verify_audit, export_audit and the admin pages, as operators and administrators use them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from audit.hashing import GENESIS, Row, entry_hash
from audit.models import AuditEntry
from identity.models import User
from tests.audit.chains import TABLE, execute, minute_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def chain() -> None:
    """Twenty entries and two heads."""
    for minute in range(2):
        minute_of(10, minute)


class TestVerify:
    def test_an_untouched_chain(self, chain: None, capsys: pytest.CaptureFixture[str]) -> None:
        call_command("verify_audit")
        assert (
            "20 entries and 2 heads verified up to position 20; 0 entries are not chained yet."
            in capsys.readouterr().out
        )
        assert AuditEntry.objects.latest("id").kind == "audit.verified"

    def test_a_changed_entry_is_named_and_the_status_is_1(
        self, chain: None, capsys: pytest.CaptureFixture[str]
    ) -> None:
        execute(f"UPDATE {TABLE} SET actor = 'bob' WHERE position = 7")
        with pytest.raises(CommandError, match="The audit chain is not as it was written: 1 finding"):
            call_command("verify_audit", "--json")
        told = json.loads(capsys.readouterr().out)
        assert (told["ok"], [finding["position"] for finding in told["findings"]]) == (False, [7])

    def test_parts_by_position_and_time(self, chain: None, capsys: pytest.CaptureFixture[str]) -> None:
        execute(f"UPDATE {TABLE} SET actor = 'bob' WHERE position = 7")
        call_command("verify_audit", "--from", "11")
        assert "7" not in capsys.readouterr().out.splitlines()[0]
        for nothing in (["--from", "2999-01-01T00:00Z"], ["--to", "2000-01-01"]):
            with pytest.raises(CommandError, match="nothing was verified"):
                call_command("verify_audit", *nothing)
        with pytest.raises(CommandError, match="'soon' is not a position, a time such as"):
            call_command("verify_audit", "--from", "soon")

    def test_a_day_is_verified_as_a_whole(self, chain: None, tmp_path: Path) -> None:
        days = AuditEntry.objects.filter(position__isnull=False).dates("at", "day")
        first, last = str(min(days)), str(max(days))
        execute(f"UPDATE {TABLE} SET actor = 'bob' WHERE position = 20")
        with pytest.raises(CommandError, match="1 finding"):
            call_command("verify_audit", "--from", first, "--to", last)
        output = tmp_path / "audit.ndjson"
        call_command("export_audit", "--output", str(output), "--from", first, "--to", last)
        assert len(output.read_text().splitlines()) == 20

    def test_heads_that_were_kept_outside(self, chain: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        heads = tmp_path / "heads.ndjson"
        heads.write_bytes(Client().get("/sys/audit/head").content + b"\n\n")
        call_command("verify_audit", "--head", str(heads))
        execute(f"DELETE FROM {TABLE} WHERE position > 10")
        execute("DELETE FROM audit_audithead WHERE position > 10")
        with pytest.raises(CommandError, match="1 finding"):
            call_command("verify_audit", "--head", str(heads))

    @pytest.mark.parametrize("text", ["", "{}", "no head", '{"jws": "a.b.c"}', '{"jws": 1', "[]"])
    def test_what_is_no_head_is_said(self, chain: None, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        with pytest.raises(CommandError, match=r"- has no head|Line 1 of - is no head of this instance: it"):
            call_command("verify_audit", "--head", "-")


class TestExport:
    def exported(self, tmp_path: Path, *options: str) -> list[Any]:
        path = tmp_path / "audit.ndjson"
        call_command("export_audit", "--output", str(path), *options)
        return [json.loads(line) for line in path.read_text().splitlines()]

    def test_others_can_compute_the_hashes(self, chain: None, tmp_path: Path) -> None:
        previous = GENESIS
        for line in self.exported(tmp_path):
            position, hash_ = line.pop("position"), line.pop("hash")
            row = Row(**{**line, "at": line["at"].replace("T", " ").rstrip("Z")}, position=position, hash=hash_)
            previous = entry_hash(previous, row, position)
            assert previous == hash_
        assert position == 20

    def test_a_part_of_one_kind_with_the_fields_of_a_siem(self, chain: None, tmp_path: Path) -> None:
        call_command("verify_audit")
        minute_of(0, 2)
        assert len(self.exported(tmp_path, "--from", "5", "--to", "8")) == 4
        (line,) = self.exported(tmp_path, "--format", "ocsf", "--kind", "audit.verified")
        assert (line["class_uid"], line["category_uid"], line["type_uid"], line["metadata"]["sequence"]) == (
            3004, 3, 300402, 21,
        )  # fmt: skip
        assert line["actor"] == {"user": {"name": "(operator)"}}


class TestPages:
    LIST = "/admin/audit/auditentry/"

    def admin(self) -> Client:
        client = Client()
        client.force_login(User.objects.create(login="root", name="Root", is_admin=True))
        return client

    def test_the_list_has_the_state_above_it(self, chain: None) -> None:
        client = self.admin()
        page = client.get(self.LIST).content.decode()
        assert "position 20" in page
        assert "never" in page
        call_command("verify_audit")
        assert "nothing was changed" in client.get(self.LIST).content.decode()
        found = client.get(f"{self.LIST}?q=alice&kind=audit.verified").content.decode()
        assert "minute 1 thing" not in found

    def test_an_entry_is_shown_and_nothing_can_be_changed(self, chain: None) -> None:
        client, row = self.admin(), AuditEntry.objects.latest("id")
        page = client.get(f"{self.LIST}{row.pk}/change/")
        assert row.hash in page.content.decode()
        assert client.post(f"{self.LIST}{row.pk}/change/", {"actor": "bob"}).status_code == 403
        assert client.post(f"{self.LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
        assert client.get(f"{self.LIST}add/").status_code == 403

    def test_damaged_entries_are_shown_too(self, chain: None) -> None:
        call_command("verify_audit")
        AuditEntry.objects.update(content="{")
        assert self.admin().get(self.LIST).status_code == 200

    def test_others_do_not_see_it(self, chain: None) -> None:
        client = Client()
        client.force_login(User.objects.create(login="anna", name="Anna"))
        assert client.get(self.LIST).status_code in {302, 403}
