"""The form of a spreadsheet's mapping: what a change of a field does; forms that no page sends (spec 11, 11.2)."""

from __future__ import annotations

import io
import json
import re
from html import unescape
from typing import Any

import pytest

from tests.domain.conftest import api, fresh_process, world
from tests.domain.odata.sheets.test_import_sheets import SET, named, workbook
from tests.domain.security.conftest import caller, give_role, person
from tests.identity.flows import fields_of
from tests.support.api import Api

__all__ = ["api", "fresh_process", "world"]

pytestmark = pytest.mark.once

FORM = "/api/import/sheets"
PAYMENTS = "Finance_Payments_PaymentTypes"
CSV = "Zeichen,Name,Notiz\nUSD,Dollar,x\n"


def post(api: Api, **fields: Any) -> Any:
    """The response to the form; a field may have several values."""
    return api.client.post(FORM, fields, headers={"Authorization": f"Bearer {api.token}"})


def draw(api: Api, file: io.BytesIO | None, mapping: dict[str, Any] | None = None, **fields: Any) -> tuple[str, Any]:
    """The form as it is drawn again, and its mapping."""
    if file is not None:
        file.seek(0)
        fields["file"] = file
    response = post(api, mapping=json.dumps(mapping or {}), **fields)
    assert response.status_code == 200, response.content
    html = response.content.decode()
    return html, json.loads(fields_of(html)["mapping"])


def problems(html: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'<p class="problem">(.*?)</p>', html)]


def test_a_csv_file_is_of_the_set_that_it_is_named_after(api: Api) -> None:
    html, mapping = draw(api, named(f"{SET.lower()} (2).csv", "CurrencySign,Name\nUSD,Dollar\n"))
    assert mapping == {"repository": SET}
    assert "data-ready" in html
    assert "Rows read: 1." in html
    html, mapping = draw(api, named("other.csv", "CurrencySign,Name\nUSD,Dollar\n"))
    assert (mapping, "data-ready" in html) == ({}, False)


def test_each_change_is_made_in_the_mapping(api: Api) -> None:
    file = named("money.csv", CSV)
    fields: dict[str, Any] = {"sheet-0": "", "set-0": SET, "column-0-0": "CurrencySign"}
    html, mapping = draw(api, file, **fields, do="set-0")
    assert mapping == {"repository": SET}
    assert len(problems(html)) == 2
    names: dict[str, Any] = {f"header-0-{number}": header for number, header in enumerate(("Zeichen", "Name", "Notiz"))}
    html, mapping = draw(api, file, mapping, **fields, **names, do=["column-0-0", "leave-0-2"])
    assert mapping == {"repository": SET, "columns": {"Zeichen": "CurrencySign", "Notiz": None}}
    assert problems(html) == []
    assert re.findall(r"<td>([^<]*)</td>", html)[-3:] == ["USD", "Dollar", "x"]
    _html, mapping = draw(api, file, mapping, empty="clear", do="empty")
    assert mapping["empty"] == "clear"
    _html, mapping = draw(api, file, mapping, **{"set-0": PAYMENTS, "sheet-0": ""}, do="set-0")
    assert mapping == {"repository": PAYMENTS, "empty": "clear"}


def test_sheets_are_left_out_and_taken_again(api: Api) -> None:
    file = io.BytesIO(workbook({"Notes": [["a"], ["b"]], SET: [["CurrencySign", "Name"], ["USD", "Dollar"]]}))
    file.name = "book.xlsx"
    html, mapping = draw(api, file)
    assert ("there is no repository 'Notes'" in problems(html)[0], mapping) == (True, {})
    html, mapping = draw(api, file, mapping, **{"sheet-0": "Notes"}, do="include-0")
    assert (mapping, "data-ready" in html) == ({"sheets": {"Notes": None}}, True)
    _html, mapping = draw(api, file, mapping, **{"sheet-0": "Notes", "include-0": "1"}, do="include-0")
    assert mapping == {"sheets": {}}


def test_texts_of_the_file_are_escaped(api: Api) -> None:
    attack = '"><img src=x onerror=alert(1)>'
    file = named(f"{attack}.csv", f'"{attack.replace(chr(34), chr(34) * 2)}",Name\n"<b>",x\n')
    html, _mapping = draw(api, file, {"repository": PAYMENTS, "columns": {attack: None, "<i>": attack}})
    assert "<img" not in html
    assert "<b>" not in html
    assert "<i>" not in html


HOSTILE: list[dict[str, Any]] = [
    {"mapping": "["},
    {"mapping": "[]"},
    {"mapping": "null"},
    {"mapping": '"x"'},
    {"mapping": "[" * 100_000},
    {"mapping": '{"sheets": 1}', "do": "set-0", "sheet-0": "x", "set-0": "y"},
    {"mapping": '{"sheets": {"x": 1}}'},
    {"mapping": '{"columns": 1}', "do": "column-0-0", "header-0-0": "a", "column-0-0": "b"},
    {"mapping": '{"columns": {"a": {}}}'},
    {"mapping": '{"empty": []}'},
    {"mapping": '{"repository": {}}'},
    {"mapping": '{"key": "\\ud800"}'},
    {"do": ["-", "--", "column", "column-", "set-", "include-0", "save-", "delete", "saved", "leave-9-9", "\0"]},
    {"do": "save", "saved-name": "\0"},
    {"do": "save", "saved-name": "x" * 10_000},
    {"do": "save", "saved-name": "{}"},
    {"do": "delete", "saved": "\0"},
    {"do": "saved", "saved": "x" * 10_000},
    {"model": "x"},
    {"sheet-0": "\0", "do": "set-0", "set-0": "\0"},
]


@pytest.mark.parametrize("form", HOSTILE, ids=[json.dumps(each)[:60] for each in HOSTILE])
@pytest.mark.parametrize(
    "file",
    [
        None,
        ("a.csv", CSV),
        (f"{SET}.csv", CSV),
        ("a.xlsx", b"PK\x03\x04"),
        ("a.csv", b"\xff\xfe\x00"),
        ("a.csv", ""),
        ("x", ""),
    ],
    ids=["none", "csv", "of a set", "broken", "utf-16", "empty", "nameless"],
)
def test_no_form_is_an_internal_error(api: Api, form: dict[str, Any], file: tuple[str, str | bytes] | None) -> None:
    response = post(api, **form, **({} if file is None else {"file": named(*file)}))
    assert response.status_code in (200, 400, 404, 415) or response.json()["error"]["type"] == "ValidationFailed", (
        response.content
    )


def test_a_preview_tells_what_its_caller_may_not_do(api: Api) -> None:
    user = person("reader-of-forms")
    give_role(user, {"General.Currencies.*": "r"})
    reader = caller(user)
    html, _mapping = draw(reader, named(f"{SET}.csv", "CurrencySign,Name\nUSD,Dollar\n"))
    assert "may not" in html
