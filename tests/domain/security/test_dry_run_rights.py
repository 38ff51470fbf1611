"""The report of a dry run has what its caller may read (spec 12, 12.1; 01, 1.7)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.domain.security.conftest import BOOKS as BOOKS_NAME
from tests.domain.security.conftest import COMPANIES, MARK, Library, caller, give_role, person
from tests.rules.cast import set_value, write_rule
from tests.support.api import Api

BOOKS = "Library_Books"
DRY_RUN = "erpnet.dry-run"


@pytest.fixture
def rules(library: Library) -> None:
    """Rules of an administrator that touch what others may not see."""
    hidden = library.companies["hidden"]
    write_rule(
        library.world, BOOKS_NAME, ["COMMIT"], code="ASSIGN", conditions=[("Pages", "Equals", "111")],
        actions=[set_value("Publisher", hidden, "Reference")],
    )  # fmt: skip
    write_rule(
        library.world, BOOKS_NAME, ["COMMIT"], code="COMPARE",
        conditions=[("Publisher.PartyName", "Like", "Nothing like it*")],
        actions=[("WARNING", ("Constant", "Never"))],
    )  # fmt: skip
    write_rule(
        library.world, BOOKS_NAME, ["COMMIT"], code="TELL",
        actions=[("NOTIFYUSER", ("Constant", "anna"), ("Interpolate", "{Publisher.PartyName:EN}"))],
    )  # fmt: skip


def tried(api: Api, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The report of a PATCH."""
    answer = api.patch(path, body, Prefer=f"return=representation, {DRY_RUN}")
    assert answer.status_code == 200, answer.content
    report: dict[str, Any] = answer.json()["@erpnet.dryRun"]
    return report


def test_references_to_hidden_rows_and_hidden_values_are_not_told(
    library: Library, rules: None, administrator: Api
) -> None:
    bob = person("bob")
    give_role(bob, {"Library.*": "crud", "General.*": "r"}, {COMPANIES: f"not contains(PartyName/EN,'{MARK}')"})
    path = f"{BOOKS}({library.books['A1']})"
    shown = tried(caller(bob), path, {"Pages": 111})
    (change,) = shown["changes"]
    assert change["attributes"]["Pages"] == {"old": 100, "new": 111}
    assert change["attributes"]["Publisher"]["new"] is None
    assert {entry["Rule"] for entry in shown["rules"]} >= {"ASSIGN", "TELL"}
    assert not any("Conditions" in entry for entry in shown["rules"])
    text = json.dumps(shown)
    assert MARK not in text
    assert library.companies["hidden"] not in text
    whole = tried(administrator, path, {"Pages": 111})
    assert library.companies["hidden"] in json.dumps(whole["changes"])
    assert "Systems_Core_Notifications" in {each["set"] for each in whole["changes"]}


def test_hidden_rows_that_a_rule_compares_are_masked_for_readers_of_rules(
    library: Library, rules: None, restricted: Api, administrator: Api
) -> None:
    path = f"{BOOKS}({library.books['A2']})"  # visible itself, its publisher is not
    shown = tried(restricted, path, {"Pages": 5})
    compared = [entry for entry in shown["rules"] if entry["Rule"] == "COMPARE"]
    assert [entry["Conditions"][0]["Actual"] for entry in compared] == ["…"] * len(compared)
    assert compared
    assert MARK not in json.dumps(shown)
    whole = tried(administrator, path, {"Pages": 5})
    assert MARK in json.dumps(whole["rules"])


def test_rows_that_are_hidden_and_deleted_with_their_owner_are_not_told(
    library: Library, restricted: Api, administrator: Api
) -> None:
    path = f"{BOOKS}({library.books['A2']})"
    reports = {}
    for name, api in (("some", restricted), ("all", administrator)):
        answer = api.delete(path, Prefer=DRY_RUN)
        link = answer.headers["X-Dry-Run-Report"].partition("/api/")[2]
        headers = {"Authorization": f"Bearer {api.token}"}
        reports[name] = (answer.status_code, api.client.get(f"/api/{link}", headers=headers).json())
        stranger = administrator if api is restricted else restricted
        foreign = {"Authorization": f"Bearer {stranger.token}"}
        assert stranger.client.get(f"/api/{link}", headers=foreign).status_code == 404
    hidden = library.chapters["A2"][1]
    assert hidden in json.dumps(reports["all"])
    assert hidden not in json.dumps(reports["some"])
