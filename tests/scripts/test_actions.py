"""`Action` and scripts of rules (spec 04, 4.2; 05, 5.2)."""

from __future__ import annotations

import json

import pytest

from domain.entities.systems_monitoring import InformationMessage
from foundation.egress import policy
from scripts import history
from tests.rules.cast import World, write_rule
from tests.scripts.cast import console, execute, make_script
from tests.support.api import Api, error_of
from tests.support.receiver import Answer, LoopbackReceiver


def test_log_and_error_leave_messages_also_when_the_script_fails(api: Api) -> None:
    execute(api, "Action.log('one', 1); Action.error('two'); throw new Error('no')")
    history.pending.flush()
    rows = InformationMessage.objects.order_by("information_message_type").values_list(
        "information_message_type", "message", "process_description"
    )
    assert sorted(rows) == [("Error", "two", "ExecuteScript"), ("Information", "one 1", "ExecuteScript")]


def test_cancel_ends_the_script_and_nothing_catches_it(api: Api) -> None:
    error = error_of(execute(api, "try { Action.cancel('Not today.') } catch (e) {} console.log('after')"))
    assert error["code"] == 3105
    assert error["message"] == "Not today."
    error = error_of(execute(api, "Action.cancel()"))
    assert error["code"] == 3105
    assert error["message"]


def test_nothing_is_done_after_cancel(api: Api) -> None:
    source = """
        try { Action.cancel() } catch (e) {}
        try { Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'x'}); } catch (e) {}
        try { Transaction.commit() } catch (e) {}
    """
    assert error_of(execute(api, source))["code"] == 3105
    assert api.get("Library_Books/$count").content == b"0"


def test_user_and_session(api: Api) -> None:
    said = json.loads(
        console(api, "console.log([Action.user, Action.session, Action.session.startedAt instanceof Date])")
    )
    assert set(said[0]) == {"id", "name", "login", "roles", "locale", "email"}
    assert len(said[0]["id"]) == 36
    assert len(said[1]["id"]) == 36
    assert said[2] is True


def test_notifications_go_with_the_commit(api: Api, world: World) -> None:
    console(api, f"Action.notify.user('{world.user}', 'Hello')")
    assert api.get("Systems_Core_Notifications/$count").content == b"0"
    console(api, f"Action.notify.user('{world.user}', 'Hello'); Transaction.commit()")
    (found,) = api.read("Systems_Core_Notifications?$select=Subject,NotificationClass")["value"]
    assert found["Subject"] == "Hello"


def test_http_is_held_to_the_egress_rules(api: Api) -> None:
    said = console(
        api,
        "console.log(Action.http.get('http://169.254.169.254/latest')); console.log(Action.http.get('ftp://x').isSuccess)",
    )
    first, second = said.split("\n")
    answer = json.loads(first)
    assert (answer["isSuccess"], answer["statusCode"], answer["body"]) == (False, 0, "")
    assert "not allowed" in answer["errorMessage"]
    assert second == "false"


def test_http_sends_and_answers(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = policy.EgressPolicy.parse(["127.0.0.1"])
    monkeypatch.setattr("foundation.egress.client.egress_policy", lambda: allowed)
    with LoopbackReceiver().running() as receiver:
        receiver.respond_with = lambda request: Answer(201, b'{"made": true}')
        answer = json.loads(
            console(api, f"console.log(Action.http.post('{receiver.url}/x', {{a: 1}}, {{'X-Key': 'k'}}))")
        )
        assert answer.pop("headers")["Content-Length"] == "14"
        assert answer == {"isSuccess": True, "statusCode": 201, "body": '{"made": true}', "errorMessage": ""}
        assert receiver.requests[0].body == b'{"a":1}'
        assert receiver.requests[0].headers["x-key"] == "k"
        assert receiver.requests[0].headers["content-type"] == "application/json"


def test_http_headers_of_the_connection_and_line_breaks_are_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = policy.EgressPolicy.parse(["127.0.0.1"])
    monkeypatch.setattr("foundation.egress.client.egress_policy", lambda: allowed)
    forged = [
        {"Host": "inside"}, {"Content-Length": "1"}, {"Transfer-Encoding": "chunked"}, {"Connection": "close"},
        {"Upgrade": "h2c"}, {"TE": "trailers"}, {"X": "y\r\nZ: 1"}, {"X Y": "z"},
    ]  # fmt: skip
    with LoopbackReceiver().running() as receiver:
        source = f"""
            for (const headers of {json.dumps(forged)})
                console.log(JSON.stringify(Action.http.post('{receiver.url}/', 'a', headers)));
        """
        answers = [json.loads(line) for line in console(api, source).split("\n")]
        assert receiver.requests == []
    assert len(answers) == len(forged)
    assert not any(answer["isSuccess"] for answer in answers)
    assert "the header Host is set by the platform" in answers[0]["errorMessage"]


def test_http_sends_well_formed_texts(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = policy.EgressPolicy.parse(["127.0.0.1"])
    monkeypatch.setattr("foundation.egress.client.egress_policy", lambda: allowed)
    with LoopbackReceiver().running() as receiver:
        source = f"""
            Action.http.post('{receiver.url}/', {{'\\ud800': '\\udc00🙂\\\\ud800'}});
            Action.http.post('{receiver.url}/', 'a\\ud800');
        """
        console(api, source)
        assert [request.body.decode() for request in receiver.requests] == [
            '{"\\ufffd":"\\ufffd🙂\\\\ud800"}',
            "a\ufffd",
        ]


def test_files_come_and_go_with_the_transaction(api: Api, world: World) -> None:
    order = api.create(
        "Crm_Sales_SalesOrders",
        {
            name: {"@odata.id": f"{target}({id})"}
            for name, target, id in (
                ("DocumentType", "Systems_Documents_DocumentTypes", world.document_type),
                ("EnterpriseCompany", "General_EnterpriseCompanies", world.company),
                ("Customer", "Crm_Sales_Customers", world.customer),
            )
        },
    )
    guid = order["@odata.id"].partition("(")[2].rstrip(")")
    path = make_script(
        api,
        "const order = Domain.Crm.Sales.SalesOrdersRepository.getById(id);"
        "return Action.files.create(order, 'note.txt', 'Hello').FileName",
        {"id": {"type": "string"}},
    )
    for commit, count in ((False, b"0"), (True, b"1")):
        inside = api.begin()
        response = inside.post(f"{path}/Execute", {"arguments": {"id": guid}})
        assert json.loads(response.content)["returnValue"] == "note.txt", response.content
        assert inside.end(commit=commit).status_code == 204
        assert api.get("General_Documents_DocumentFileAttachments/$count").content == count


def test_rules_run_scripts_with_subject_and_event(api: Api, world: World) -> None:
    write_rule(
        world,
        "Library.Books",
        ["COMMIT"],
        ScriptLanguage="JavaScript",
        ScriptText="if (subject.Pages > 100) Action.cancel('Too long.'); if (subject.Pages < 9) subject.Pages = 9;"
        "try { Transaction.commit() } catch (e) { if (subject.Code === 'B1') subject.Code = 'B1!' }",
    )
    made = api.create("Library_Books", {"Code": "B1", "Title": {"EN": "Tea"}, "Pages": 5})
    assert (made["Pages"], made["Code"]) == (9, "B1!")
    error = error_of(api.post("Library_Books", {"Code": "B2", "Title": {"EN": "Tea"}, "Pages": 500}))
    assert error["code"] == 3105
    assert error["message"] == "Too long."
