"""The admin pages of scripts without a browser's scripts: trying, checking, history (spec 04, 4.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape

from domain.entities.systems_core import Script
from identity.models import User
from scripts import history
from scripts.argument_form import PREFIX, ArgumentForm
from scripts.models import ScriptRun
from scripts.parameters import read_schema
from tests.scripts.cast import make_script
from tests.support.api import Api

PAGES = "/admin/domain/script/"


@pytest.fixture
def admin(api: Api, client: Client) -> Client:
    client.force_login(User.objects.create(login="root", name={"EN": "Root"}, is_admin=True))  # type: ignore[misc]
    return client


def page_of(path: str) -> str:
    return f"{PAGES}{path.partition('(')[2].rstrip(')')}/"


def run(admin: Client, path: str, *, fragment: bool = True, **fields: Any) -> str:
    headers = {"X-Fragment": "1"} if fragment else {}
    response = admin.post(f"{page_of(path)}run/", fields, headers=headers)
    assert response.status_code == 200, response.content
    return response.content.decode()


def arguments(**given: str) -> dict[str, Any]:
    return {PREFIX + name: value for name, value in given.items()}


SCHEMA = {
    "price": {"type": "number", "required": True, "description": "Before tax"},
    "size": {"enum": ["S", "M", 3], "default": "M"},
    "gross": {"type": "number", "direction": "Output"},
}


def test_the_page_has_a_form_of_the_inputs(api: Api, admin: Client) -> None:
    html = admin.get(page_of(make_script(api, "return 1", SCHEMA)) + "change/").content.decode()
    assert f'name="{PREFIX}price"' in html
    assert "Before tax" in html
    assert f'name="{PREFIX}gross"' not in html
    assert 'data-code="javascript"' in html
    assert "platform_site/editor.js" in html
    assert "<script>" not in html
    assert 'style="' not in html.partition('id="content-main"')[2]


@pytest.mark.parametrize("fragment", [True, False])
def test_a_run_shows_outputs_value_console_and_time(api: Api, admin: Client, fragment: bool) -> None:
    path = make_script(api, "parameters.gross = price * 1.2; console.log('size', size); return [1, size]", SCHEMA)
    html = run(admin, path, fragment=fragment, **{f"{PREFIX}price": "10", f"{PREFIX}size": "3"})
    assert escape('"gross": 12') in html
    assert "Succeeded" in html
    assert "size 3" in html
    assert " ms" in html
    assert ("<html" in html) is not fragment
    # The page's own list of runs is brought up to date with the answer.
    assert ('id="script-runs"' in html) is fragment


def test_a_failure_shows_its_place_and_wrong_arguments_their_names(api: Api, admin: Client) -> None:
    path = make_script(api, "const x = 1;\n  null.boom;", SCHEMA)
    html = run(admin, path, fragment=True, **arguments(price="1"))
    assert 'data-line="2"' in html
    assert 'data-parameter="price"' in run(admin, path, fragment=True, **arguments(price="much"))
    assert 'data-parameter="price"' in run(admin, path)


def test_what_stands_in_the_editor_runs_and_is_not_saved(api: Api, admin: Client) -> None:
    path = make_script(api, "return 'saved'")
    assert "edited" in run(admin, path, script_text="// a line\r\nreturn 'edited'")
    assert Script.objects.get().script_text == "return 'saved'"


def test_nothing_of_a_run_stays_not_even_what_it_commits(api: Api, admin: Client) -> None:
    path = make_script(
        api,
        """
        const books = Domain.Library.BooksRepository;
        books.createNew({Code: 'T1', Title: 'Tea'}); Transaction.commit();
        books.createNew({Code: 'T2', Title: 'Tea'}); Transaction.commit();
        books.createNew({Code: 'T3', Title: 'Tea'});
        return books.query().length
        """,
    )
    assert "<pre>3</pre>" in run(admin, path)
    assert api.get("Library_Books/$count").content == b"0"


def test_runs_are_listed_by_script_and_filtered(api: Api, admin: Client) -> None:
    one, other = make_script(api, "return 1"), make_script(api, "throw new Error('no')", Code="S2")
    run(admin, one)
    run(admin, other)
    history.pending.flush()
    assert set(ScriptRun.objects.values_list("name", "outcome")) == {("S1", "Succeeded"), ("S2", "ScriptThrew")}
    listed = admin.get("/admin/scripts/scriptrun/?kind=Managed&name=S2")
    assert listed.status_code == 200
    assert "ScriptThrew" in (html := listed.content.decode())
    assert ">Succeeded</span>" not in html
    page = admin.get(f"/admin/scripts/scriptrun/{ScriptRun.objects.get(name='S2').pk}/change/").content.decode()
    assert escape("throw new Error('no')") in page
    assert page_of(other).rstrip("/") in page
    assert "ScriptThrew" in admin.get(page_of(other) + "change/").content.decode()
    assert "ScriptThrew" in admin.get(PAGES).content.decode()
    assert admin.post(f"/admin/scripts/scriptrun/{ScriptRun.objects.first().pk}/delete/").status_code == 403  # type: ignore[union-attr]


def test_texts_are_checked_while_they_are_written(admin: Client) -> None:
    given = {"script_text": "return 1;\r\nlet = = 2", "parameter_schema": '{\n"a": }', "language": "JavaScript"}
    problems = json.loads(admin.post(f"{PAGES}check/", given).content)["problems"]
    places = {problem["field"]: (problem["line"], problem["column"]) for problem in problems}
    assert places["script_text"][0] == 2
    assert places["parameter_schema"][0] == 2
    good = {"script_text": "return a", "parameter_schema": '{"a": {}}', "language": "JavaScript"}
    assert json.loads(admin.post(f"{PAGES}check/", good).content) == {"problems": []}


def test_a_refused_save_shows_the_message_at_the_field(api: Api, admin: Client) -> None:
    path = make_script(api, "return 1")
    fields = {"code": "S1", "name_en": "A script", "is_active": "on", "language": "JavaScript"}
    html = admin.post(page_of(path) + "change/", {**fields, "script_text": "let = = 1"}).content.decode()
    assert "line 1" in html
    assert "ScriptText: " not in html  # the page calls it Script text
    assert Script.objects.get().script_text == "return 1"


def test_strangers_get_nothing(api: Api, client: Client) -> None:
    path = make_script(api, "return 1")
    client.force_login(User.objects.create(login="bob", name={"EN": "Bob"}))  # type: ignore[misc]
    for answer in (client.post(f"{page_of(path)}run/"), client.post(f"{PAGES}check/"), client.get(page_of(path))):
        assert answer.status_code in (302, 403)


@pytest.mark.parametrize(
    "spec, text, expected",
    [
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "integer"}, "12345678901234567890", 12345678901234567890),
        ({"type": "number"}, "x", "x"),
        ({"type": "string"}, " x ", " x "),
        ({"type": "boolean"}, "false", False),
        ({"enum": [None, 1]}, "null", None),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({}, "[1]", [1]),
    ],
)
def test_fields_become_arguments(spec: dict[str, Any], text: str, expected: Any) -> None:
    schema = read_schema(json.dumps({"p": spec}))
    form = ArgumentForm(schema, {f"{PREFIX}p": text})
    assert form.is_valid(), form.errors
    assert form.arguments() == {"p": expected}
    form = ArgumentForm(schema, {f"{PREFIX}p": ""})
    assert form.is_valid()
    assert form.arguments() == {}


def test_broken_json_is_told_at_its_field() -> None:
    form = ArgumentForm(read_schema('{"p": {"type": "array"}}'), {f"{PREFIX}p": "[1,"})
    assert not form.is_valid()
    assert "line 1" in str(form.errors)
