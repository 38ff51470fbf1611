"""A custom property whose value is a hidden entity reads as null, as a reference to it does (spec 01, 1.7; 08, 8.2).

Who: a reader of an entity that has such a value; the author of a rule. What: to read code, name and id of an entity
that a policy hides, by any way to the value; to look entities up by a rule that sets the property. What prevents it:
the read engine checks the entity behind ValueId wherever a value is read, records do alike, and SETVALUE takes only
entities that the rule's author may see.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from foundation import cache_versions
from foundation.fields import utc_now
from identity.models import User
from tests.attacks.access import RULES, rule_body, save_rule
from tests.domain.calculations.conftest import SET as CALCULATED
from tests.domain.calculations.conftest import body as calculated
from tests.domain.security.conftest import BOOKS as BOOKS_NAME
from tests.domain.security.conftest import MARK, READ_POLICIES, Library, caller, give_role, person
from tests.domain.security.test_read_paths import text_of
from tests.domain.table_api.conftest import body_of
from tests.support.api import Api, error_of

BOOKS = "Library_Books"
SEQUEL = "CustomProperty_sequel"


@pytest.fixture
def sequels(library: Library, administrator: Api, monkeypatch: pytest.MonkeyPatch) -> Library:
    """Books have a sequel: that of A1 is visible, those of A2 and A4 are confidential."""
    monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 0)
    level = {"RepositoryName": BOOKS_NAME, "TrackingLevel": "TrackObjectAndAttributeChanges"}
    administrator.create("Systems_Core_RepositoryTracking", level)
    body = {
        "Code": "sequel", "Name": {"EN": "Sequel"}, "EntityName": BOOKS_NAME, "PropertyType": "Reference",
        "AllowedValuesEntityName": BOOKS_NAME, "IsSearchable": True,
    }  # fmt: skip
    administrator.create("Systems_Bpm_CustomProperties", body)
    for code, sequel in (("A1", "A6"), ("A2", "A3"), ("A4", "A5")):
        answer = administrator.patch(f"{BOOKS}({library.books[code]})", {SEQUEL: {"Value": sequel}})
        assert answer.status_code == 204, answer.content
    return library


def of(api: Api, library: Library, code: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = api.read(f"{BOOKS}({library.books[code]})?$select={SEQUEL}")[SEQUEL]
    return found


def test_a_value_is_null_if_its_entity_is_hidden(sequels: Library, administrator: Api, restricted: Api) -> None:
    for api in (administrator, restricted):
        shown = of(api, sequels, "A1")
        assert shown is not None
        assert (shown["Value"], shown["ValueId"]) == ("A6", sequels.books["A6"])
    assert of(administrator, sequels, "A2")
    assert of(restricted, sequels, "A2") is None


def test_it_is_null_for_whoever_may_not_read_the_repository_of_its_entity(
    library: Library, administrator: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 0)
    body = {"Code": "sequel", "Name": {"EN": "Printer"}, "EntityName": BOOKS_NAME, "PropertyType": "Text",
            "AllowedValuesEntityName": "General.Currencies.Currencies"}  # fmt: skip
    administrator.create("Systems_Bpm_CustomProperties", body)
    currency = administrator.read("General_Currencies_Currencies?$top=1&$select=CurrencySign")["value"][0]
    path = f"{BOOKS}({library.books['A1']})"
    assert administrator.patch(path, {SEQUEL: currency["CurrencySign"]}).status_code == 204
    assert administrator.patch(f"{BOOKS}({library.books['A4']})", {SEQUEL: "another"}).status_code == 204
    carol = person("carol")
    give_role(carol, {"Library.*": "r"})
    assert of(administrator, library, "A1")
    assert of(caller(carol), library, "A1") is None
    # A text that names no entity is a text.
    written = of(caller(carol), library, "A4")
    assert written is not None
    assert written["Value"] == "another"


#: Each finds A2 for an administrator, or tells of the confidential A3.
WAYS = {
    "text": f"?$select=Code&$filter={SEQUEL} eq 'A3'",
    "value": f"?$select=Code&$filter={SEQUEL}/Value eq 'A3'",
    "reversed": f"?$select=Code&$filter='A3' eq {SEQUEL}/Value",
    "list": f"?$select=Code&$filter={SEQUEL}/Value in ('A3')",
    "part of the value": f"?$select=Code&$filter=startswith({SEQUEL}/Value,'A3')",
    "id": f"?$select=Code&$filter={SEQUEL}/ValueId eq '{{A3}}'",
    "guid": f"?$select=Code&$filter={SEQUEL} eq {{A3}}",
    "not null": f"?$select=Code&$filter={SEQUEL} ne null",
    "search": f"?$select=Code&$search={MARK}",
    "computed": f"?$select=Code,X&$filter=Code eq 'A2'&$compute={SEQUEL}/Value as X",
    "grouped": f"?$apply=groupby(({SEQUEL}/Value))",
    "greatest": f"?$apply=filter(Code eq 'A2')/aggregate({SEQUEL}/Value with max as X)",
    "another row": f"?$select=Code&$filter=$root/{BOOKS}({{A2}})/{SEQUEL}/Value eq 'A3'",
    "as of now": f"?$select=Code,{SEQUEL}&$filter=Code eq 'A2'&$at={{now}}",
    "as of now, filtered": f"?$select=Code&$filter={SEQUEL}/Value eq 'A3'&$at={{now}}",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_query_tells_of_the_hidden_entity(sequels: Library, administrator: Api, restricted: Api, way: str) -> None:
    query = way.format(now=quote(utc_now().isoformat()), **sequels.books)

    def told(api: Api) -> str:
        answer = api.get(f"{BOOKS}{query}")
        assert answer.status_code == 200, answer.content
        return json.dumps(json.loads(text_of(answer))["value"])

    assert any(trace in told(administrator) for trace in ('"A2"', '"A3"'))
    shown = told(restricted)
    assert MARK not in shown
    assert sequels.books["A3"] not in shown
    assert '"A3"' not in shown
    if "$filter=Code eq" not in query and "filter(Code eq" not in query:
        assert '"A2"' not in shown


def test_rows_are_ordered_without_it(sequels: Library, restricted: Api) -> None:
    rows = restricted.read(f"{BOOKS}?$select=Code&$orderby={SEQUEL}/Value desc,Code")["value"]
    assert [row["Code"] for row in rows] == ["A1", "A2", "A4", "A6"]


def test_the_table_api_has_no_row_of_it(sequels: Library, administrator: Api, restricted: Api) -> None:
    def values(api: Api) -> set[str]:
        path = "/tableapi/odata/Gen_Property_Values?$select=Property_Value"
        answer = api.client.get(path, headers={"Authorization": f"Bearer {api.token}"})
        assert answer.status_code == 200, answer.content
        return {each["Property_Value"] for each in json.loads(body_of(answer))["value"]}

    assert values(administrator) == {"A3", "A5", "A6"}
    assert values(restricted) == {"A6"}


def test_no_script_reads_it(sequels: Library, administrator: Api, restricted: Api) -> None:
    source = (
        f"const o = Domain.Library.BooksRepository.getById('{sequels.books['A2']}');"
        "console.log(JSON.stringify([o.CustomProperties['sequel'], o.toJSON()]));"
    )
    for api, is_told in ((administrator, True), (restricted, False)):
        answer = api.post("ExecuteScript", source, Content_Type="text/plain")
        assert answer.status_code == 200, answer.content
        console = answer.json()["console"]
        assert '"Code":"A2"' in console.replace(" ", "")
        assert (sequels.books["A3"] in console or '"A3"' in console) is is_told


def test_no_history_and_no_dry_run_tells_of_it(sequels: Library, administrator: Api, restricted: Api) -> None:
    path = f"{BOOKS}({sequels.books['A2']})"
    changes = f"Systems_Core_ObjectChanges?$filter=EntityItemId eq {sequels.books['A2']}"
    tried = {SEQUEL: "A1"}
    for api, is_told in ((administrator, True), (restricted, False)):
        answer = api.patch(path, tried, Prefer="return=representation, erpnet.dry-run")
        assert answer.status_code == 200, answer.content
        assert (MARK in json.dumps(answer.json()["@erpnet.dryRun"]["changes"])) is is_told
        assert (MARK in json.dumps(api.read(changes))) is is_told
    assert administrator.patch(path, tried).status_code == 204
    for api, is_told in ((administrator, True), (restricted, False)):
        told = api.read(f"{changes}&$orderby=ItemVersion desc&$top=1")["value"][0]
        assert (MARK in json.dumps(told)) is is_told


@pytest.mark.parametrize("address", ["{A2}/change/", "?columns=code&columns=CustomProperty_sequel", "{A2}/versions/"])
def test_no_page_shows_it(sequels: Library, administrator: Api, restricted: Api, address: str) -> None:
    for login, is_told in (("alice", True), ("bob", False)):
        browser = Client()
        browser.force_login(User.objects.get(login=login))
        page = browser.get(
            f"/admin/sample_library/book/{address.format(**sequels.books)}", follow=True
        ).content.decode()
        assert "A2" in page
        traces = (MARK, sequels.books["A3"], ">A3<", '"A3"')
        assert any(trace in page for trace in traces) is is_told


def test_saving_an_entity_keeps_what_is_hidden(sequels: Library, administrator: Api, restricted: Api) -> None:
    assert restricted.patch(f"{BOOKS}({sequels.books['A2']})", {"Pages": 9}).status_code == 204
    kept = of(administrator, sequels, "A2")
    assert kept is not None
    assert kept["Value"] == "A3"


# --- rules ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def author(sequels: Library) -> Api:
    """Writes rules and books, and does not see confidential ones."""
    user = person("mallory")
    give_role(user, {"Library.*": "crud", "Systems.Bpm.*": "crud"}, {BOOKS_NAME: READ_POLICIES[BOOKS_NAME]})
    return caller(user)


def test_a_rule_looks_up_no_entity_that_its_author_may_not_see(
    sequels: Library, author: Api, administrator: Api
) -> None:
    """Whoever triggers it: the value comes from the title, and the property would tell of the entity."""
    action = {"ActionNo": 10, "ActionType": "SETVALUE", "Parameter1Type": "Attribute", "Parameter1Value": "@sequel",
              "Parameter2Type": "Interpolate", "Parameter2Value": "A{Pages}"}  # fmt: skip
    save_rule(author, "ENUM", BOOKS_NAME, "COMMIT", Actions=[action])
    path = f"{BOOKS}({sequels.books['A1']})"
    assert author.patch(path, {"Pages": 2}).status_code == 204
    shown = of(author, sequels, "A1")
    assert shown is not None
    assert shown["Value"] == "A2"
    refusals = [error_of(author.patch(path, {"Pages": pages}))["message"] for pages in (3, 99)]
    assert refusals[0].replace("A3", "…") == refusals[1].replace("A99", "…")
    assert "is not one of" in refusals[0]
    assert administrator.patch(path, {"Pages": 3}).status_code >= 400


def test_nor_does_saving_a_rule(sequels: Library, author: Api) -> None:
    def saved(value: str) -> str:
        action = {"ActionNo": 10, "ActionType": "SETVALUE", "Parameter1Type": "Attribute", "Parameter1Value": "@sequel",
                  "Parameter2Type": "Constant", "Parameter2Value": value}  # fmt: skip
        answer = author.post(RULES, rule_body(f"R{value}", BOOKS_NAME, "COMMIT", Actions=[action]))
        return "" if answer.status_code == 201 else str(error_of(answer)["message"]).replace(value, "…")

    assert saved("A2") == ""
    assert saved("A3") == saved("A99") != ""


def test_the_rule_of_an_administrator_sets_every_entity(sequels: Library, administrator: Api, restricted: Api) -> None:
    action = {"ActionNo": 10, "ActionType": "SETVALUE", "Parameter1Type": "Attribute", "Parameter1Value": "@sequel",
              "Parameter2Type": "Constant", "Parameter2Value": "A3"}  # fmt: skip
    save_rule(administrator, "SET", BOOKS_NAME, "COMMIT", Actions=[action])
    assert restricted.patch(f"{BOOKS}({sequels.books['A1']})", {"Pages": 9}).status_code == 204
    shown = of(administrator, sequels, "A1")
    assert shown is not None
    assert shown["Value"] == "A3"
    assert of(restricted, sequels, "A1") is None


def test_a_text_does_not_tell_of_it(sequels: Library, author: Api, administrator: Api, restricted: Api) -> None:
    """Neither the author of a rule nor whoever triggers one reads it in a message."""
    warn = {"ActionNo": 10, "ActionType": "WARNING", "Parameter1Type": "Interpolate",
            "Parameter1Value": "next is {@sequel}."}  # fmt: skip
    save_rule(administrator, "WARN", BOOKS_NAME, "COMMIT", Actions=[warn])
    path = f"{BOOKS}({sequels.books['A2']})"
    for api, text in ((administrator, "next is A3."), (restricted, "next is .")):
        answer = api.patch(path, {"Pages": 9 if api is restricted else 8}, Prefer="return=representation")
        assert text in answer.content.decode() + str(answer.headers)
    note = {"ActionNo": 10, "ActionType": "NOTIFYUSER", "Parameter1Type": "Constant", "Parameter1Value": "mallory",
            "Parameter2Type": "Interpolate", "Parameter2Value": "{Code} before {@sequel}"}  # fmt: skip
    save_rule(author, "NOTE", BOOKS_NAME, "COMMIT", Actions=[note])
    for code in ("A1", "A2"):
        assert administrator.patch(f"{BOOKS}({sequels.books[code]})", {"Pages": 10}).status_code == 204
    rows = administrator.read("Systems_Core_Notifications?$select=Subject")["value"]
    assert [row["Subject"] for row in rows] == ["A1 before A6"]


def test_nor_does_a_calculated_attribute_in_a_text(sequels: Library, author: Api, administrator: Api) -> None:
    administrator.create(CALCULATED, calculated("10: TOUPPER ATTRIB:@sequel", name="Next", repository=BOOKS_NAME))
    note = {"ActionNo": 10, "ActionType": "NOTIFYUSER", "Parameter1Type": "Constant", "Parameter1Value": "mallory",
            "Parameter2Type": "Interpolate", "Parameter2Value": "{Code} before {#Next}"}  # fmt: skip
    answer = author.post(RULES, rule_body("NOTE", BOOKS_NAME, "COMMIT", Actions=[note]))
    assert f"{BOOKS_NAME}, which its author may not read" in error_of(answer)["message"]
