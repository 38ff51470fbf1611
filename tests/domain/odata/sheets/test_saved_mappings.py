"""Saved mappings: own and shared ones, bounds, who may not, and imports that name them (spec 11, 11.2).

They are saved, listed and deleted by the form of the import page.
"""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from domain.model.saved_settings import MOST_OF_USER, SavedMapping
from identity.models import User
from tests.domain.odata.sheets.test_import_sheets import SET, run, send, states
from tests.domain.security.conftest import caller, give_role
from tests.domain.site.test_saved_queries import Person
from tests.identity.flows import fields_of
from tests.support.api import Api, error_of

FORM = "/api/import/sheets"
MAPPING: dict[str, Any] = {"repository": SET, "columns": {"Zeichen": "CurrencySign", "Titel": "Name", "Notiz": None}}
TEXT = "Zeichen,Titel,Notiz\nUSD,Dollar,x\n"
#: Names are no paths, whatever they look like.
ODD_NAMES = ["../../etc/passwd", "C:\\x", "a/b", "<script>", "%00", "'; drop table x; --", "..", "Ü 😀"]


def post(person: Person, **fields: str) -> Any:
    """The form, sent with the token of the person's page."""
    token = person.send("POST", "/api/session").json()["accessToken"]
    return person.client.post(FORM, fields, headers={"Authorization": f"Bearer {token}"})


def save(person: Person, name: str, mapping: Any = MAPPING, *, shared: bool = False) -> Any:
    fields = {"saved-name": name, "mapping": json.dumps(mapping), "do": "save"}
    return post(person, **fields, **({"saved-shared": "1"} if shared else {}))


def listed(person: Person) -> dict[str, str]:
    """The mappings to choose from: title → id."""
    html = post(person).content.decode()
    found = re.findall(r'<option value="([0-9a-f-]{36})"[^>]*>([^<]*)</option>', html)
    return {unescape(title): id for id, title in found}


def names(person: Person) -> list[str]:
    return [*listed(person)]


@pytest.fixture
def anna(db: None) -> Person:
    return Person("anna-maps")


@pytest.fixture
def boris(db: None) -> Person:
    return Person("boris-maps")


def test_own_mappings_come_first_and_others_only_if_shared(anna: Person, boris: Person) -> None:
    assert save(anna, "Z").status_code == 200
    save(anna, "A", shared=True)
    save(boris, "Mine")
    save(anna, "Z", {"empty": "clear"})
    assert names(anna) == ["A (shared)", "Z"]
    assert names(boris) == ["Mine", "A (anna-maps)"]
    shared = listed(anna)["A (shared)"]
    used = post(boris, saved=shared, do="saved").content.decode()
    assert json.loads(unescape(fields_of(used)["mapping"])) == MAPPING
    for missing in (shared, "x"):
        assert post(boris, saved=missing, do="delete").status_code == 404
    assert post(anna, saved=shared, do="delete").status_code == 200
    assert names(boris) == ["Mine"]


def test_what_is_no_mapping_is_not_saved(anna: Person) -> None:
    wrong: list[Any] = [None, [], "x", {"sheet": {}}, {"columns": {"a": 1}}, {"empty": "fill"}, {"columns": []}]
    for mapping in wrong:
        assert save(anna, "x", mapping).status_code == 400, mapping
    for name in ("", " ", "{}", "x" * 81):
        assert save(anna, name).status_code == 400, name
    assert save(anna, "x", {"columns": {"x" * 70_000: None}}).status_code == 400
    SavedMapping.objects.bulk_create(
        SavedMapping(user=anna.user, name=f"{number}", mapping={}) for number in range(MOST_OF_USER)
    )
    assert error_of(save(anna, "one more"))["type"] == "ValidationFailed"
    assert save(anna, "7").status_code == 200
    assert SavedMapping.objects.count() == MOST_OF_USER


def test_strangers_external_users_and_other_scopes_have_none(api: Api, anna: Person) -> None:
    save(anna, "A", shared=True)
    assert Client().post(FORM, {}).status_code == 401
    assert anna.client.post(FORM, {}).status_code == 401  # the cookie alone, which another site could send, too
    outsider = User.objects.create_user(login="external-maps")
    outside, reader = caller(outsider), caller(anna.user, scopes="read")
    User.objects.filter(pk=outsider.pk).update(user_type="ExternalCommunityUser")
    for client, status in ((outside, 401), (reader, 403)):
        bearer = {"Authorization": f"Bearer {client.token}"}
        response = client.client.post(FORM, {"do": "save", "saved-name": "x"}, headers=bearer)
        assert response.status_code == status
    assert SavedMapping.objects.count() == 1


def caller_as(user: User) -> Api:
    give_role(user, {"General.*": "crud"})
    return caller(user)


def test_an_import_names_a_saved_mapping(api: Api, anna: Person, boris: Person) -> None:
    save(anna, "Money", shared=True)
    save(anna, "Secret")
    assert states(run(caller_as(anna.user), TEXT, mapping="Secret")) == ["Added"]
    other = caller_as(boris.user)
    assert states(run(other, TEXT, mapping="Money")) == ["Unchanged"]
    for name in ("Secret", "Nothing"):
        refused = send(other, TEXT, mapping=name)
        assert (refused.status_code, name in error_of(refused)["message"]) == (400, True)
    save(boris, "Money", {**MAPPING, "columns": {"Zeichen": "CurrencySign", "Titel": None, "Notiz": "Name"}})
    (answer,) = run(other, TEXT, mapping="Money")["objects"]
    assert answer["@erpnet.state"] == "Modified"  # the own one comes first


def test_names_are_no_paths(api: Api, anna: Person, tmp_path: Path) -> None:
    mine = caller_as(anna.user)
    for name in ODD_NAMES:
        assert save(anna, name).status_code == 200, name
        assert states(run(mine, TEXT, mapping=name))[0] in ("Added", "Unchanged"), name
    assert sorted(names(anna)) == sorted(ODD_NAMES)
    assert send(mine, TEXT, mapping="../../../etc/hostname").status_code == 400


def test_the_command_takes_a_saved_mapping(
    api: Api, anna: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give_role(anna.user, {"General.*": "crud"})
    save(anna, "Money")
    file = tmp_path / "geld.csv"
    file.write_text(TEXT)
    with pytest.raises(CommandError, match="no saved mapping 'Money'"):
        call_command("import_data", str(file), "--mapping", "Money")
    call_command("import_data", str(file), "--mapping", "Money", "--user", "anna-maps")
    assert "1 succeeded, 0 failed" in capsys.readouterr().out
    missing = tmp_path / "none.json"
    with pytest.raises(CommandError, match=r"none\.json"):
        call_command("import_data", str(file), "--mapping", str(missing))
    missing.write_text(json.dumps(MAPPING))
    call_command("import_data", str(file), "--mapping", str(missing))


def test_the_commands_have_the_rights_of_the_user(
    api: Api, anna: Person, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give_role(anna.user, {"General.*": "r"}, {"General.Currencies.Currencies": "CurrencySign ne 'EUR'"})
    run(api, "CurrencySign,Name\nUSD,Dollar\n", repository=SET)
    file = tmp_path / f"{SET}.csv"
    call_command("export_data", SET, "--user", "anna-maps", "--output", str(file))
    assert "Dollar" in file.read_text("utf-8-sig")
    assert "EUR" not in file.read_text("utf-8-sig")
    with pytest.raises(CommandError):
        call_command("export_data", "Crm_Sales_Customers", "--user", "anna-maps", "--output", str(tmp_path / "c.csv"))
    assert not (tmp_path / "c.csv").exists()
    file.write_text("CurrencySign,Name\nUSD,Buck\n")
    with pytest.raises(CommandError):
        call_command("import_data", str(file), "--user", "anna-maps")
    assert "may not update" in capsys.readouterr().err
