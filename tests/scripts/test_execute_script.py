"""ExecuteScript over HTTP (spec 04, 4.3)."""

from __future__ import annotations

import json

import pytest
from django.test import override_settings

from identity.models import Licence
from scripts import history
from scripts.models import ScriptRun
from tests.rules.cast import PRODUCTS, World, dataset, new_product, write_rule
from tests.scripts.cast import console, execute, make_script
from tests.support.api import Api, error_of


def test_the_answer_is_exactly_this(api: Api) -> None:
    response = execute(api, "console.log('a', 1); console.warn({b: 2})")
    body = json.loads(response.content)
    assert set(body) == {"ok", "sessionId", "transactionId", "durationMs", "console"}
    assert body["ok"] is True
    assert body["transactionId"] is None
    assert body["console"] == 'a 1\n{"b":2}'
    assert type(body["durationMs"]) is int
    assert 0 <= body["durationMs"] < 60_000
    assert len(body["sessionId"]) == 36


@pytest.mark.parametrize("body", ["", "  \n\t "])
def test_a_blank_body_is_refused(api: Api, body: str) -> None:
    response = api.post("ExecuteScript", body or None, Content_Type="text/plain")
    assert response.status_code == 400
    assert error_of(response)["code"] == 3100


def test_invalid_utf_8_is_refused(api: Api) -> None:
    response = api.post("ExecuteScript", b"'\xff\xfe'", Content_Type="text/plain")
    assert response.status_code == 400
    assert error_of(response)["code"] == 3101


def test_a_json_body_is_refused(api: Api) -> None:
    response = api.post("ExecuteScript", {"script": "1"})
    assert response.status_code == 415
    assert error_of(response)["code"] == 224


def test_a_syntax_error_tells_its_place(api: Api) -> None:
    error = error_of(execute(api, "let a = 1;\nlet b = ;"))
    assert error["code"] == 3102
    assert error["parameters"][1:] == ["2", "9"]


@pytest.mark.parametrize("source, place", [("foo(", ["1", "5"]), ("let a = [1,\n  ", ["2", "3"]), ("`${", ["1", "4"])])
def test_a_source_that_ends_too_early_tells_what_is_missing(api: Api, source: str, place: list[str]) -> None:
    missing = "the source ends where an expression is expected"
    assert error_of(execute(api, source))["parameters"] == [missing, *place]
    body = {"Code": "S1", "Name": "S", "ScriptText": source}
    assert missing in error_of(api.post("Systems_Core_Scripts", body))["message"]


def test_a_refused_member_is_the_place(api: Api) -> None:
    source = "let a = 1; const P = Domain.General.Products.ProductsRepository; P.query({Nope: 1})"
    assert f"line 1, column {source.index('Nope') + 1}\n" in error_of(execute(api, source))["info"]


def test_an_exception_tells_its_place_and_the_console_so_far(api: Api) -> None:
    response = execute(api, "console.log('so far');\n\n  throw new RangeError('too far');")
    error = error_of(response)
    assert response.status_code == 500
    assert error["code"] == 3103
    assert error["parameters"] == ["RangeError: too far", "3", "3"]
    assert "line 3, column 3" in error["info"]
    assert "so far" in error["info"]


@pytest.mark.parametrize(
    "source, parameters",
    [
        ("Promise.reject(new RangeError('lost')); 1", ["RangeError: lost", "1", "16"]),
        ("async function work() {\n  throw new Error('lost');\n}\nwork();\n1", ["lost", "2", "3"]),
        (
            "Promise.resolve().then(() => {\n  Domain.Library.BooksRepository.query({Nix: 1});\n}); 1",
            None,
        ),
    ],
)
def test_a_rejection_that_nothing_handles_is_the_scripts_error(
    api: Api, source: str, parameters: list[str] | None
) -> None:
    response = execute(api, f"{source}; console.log('so far')")
    error = error_of(response)
    assert response.status_code >= 400
    assert "so far" in error["info"]
    if parameters is None:
        assert "line 2" in error["info"]
        assert "Nix" in error["message"]
    else:
        assert (error["code"], error["parameters"]) == (3103, parameters)


def test_a_rejection_that_is_handled_later_is_none(api: Api) -> None:
    source = """
        const late = Promise.reject(new Error('x'));
        async function fails() { throw new Error('y') }
        (async () => { try { await fails() } catch (e) { console.log(e.message) } await null; await late.catch(e => console.log(e.message)) })();
        console.log('now');
    """  # noqa: E501
    assert console(api, source) == "now\ny\nx"


def test_what_a_failing_promise_leaves_is_not_committed(api: Api) -> None:
    source = "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'x'}); Promise.reject(new Error('no')); 1"
    assert error_of(execute(api, source))["code"] == 3103
    assert api.get("Library_Books/$count").content == b"0"
    inside = api.begin()
    assert error_of(execute(inside, source))["code"] == 3103
    inside.end(commit=True)
    assert api.get("Library_Books/$count").content == b"0"


@pytest.mark.parametrize(
    "source, message",
    [
        ("throw new Error('\\ud800')", "\ufffd"),
        ("throw '\\udfff'", "\ufffd"),
        ("null['\\ud800']", "TypeError: cannot read property '\ufffd' of null"),
        ("const e = new Error('a\\ud800🙂'); e.name = '\\ud800'; throw e", "\ufffd: a\ufffd🙂"),
        ("Promise.reject(new Error('\\ud800')); 1", "\ufffd"),
        pytest.param("throw new Error('x'.repeat(9999) + '🙂')", "x" * 9999 + "\ufffd", id="cut"),
    ],
)
def test_half_of_a_character_in_an_error_is_told_as_a_replacement(api: Api, source: str, message: str) -> None:
    error = error_of(execute(api, f"console.log('\\ud800');\n{source}"))
    assert error["code"] == 3103
    assert error["parameters"][0] == message
    assert "\ufffd" in error["info"]


def test_half_of_a_character_leaves_a_script_as_a_replacement(api: Api) -> None:
    source = """
        const book = Domain.Library.BooksRepository.createNew({Code: 'a\\ud800', Title: '\\udfffb'});
        book.CustomProperties['\\ud800'] === null;
        Transaction.commit();
        console.log(book.Code, Domain.Library.BooksRepository.query({Code: 'a\\ud800'}).length, '\\ud83d\\ude42');
        try { book['\\ud800'] = 1 } catch (e) { console.log(e.message) }
    """
    first, second = console(api, source).split("\n")
    assert first == "a\ufffd 1 🙂"
    assert "\ufffd" in second
    (row,) = api.read("Library_Books?$select=Code,Title")["value"]
    assert row["Code"] == "a\ufffd"
    error = error_of(execute(api, "Action.cancel('no \\ud800')"))
    assert (error["code"], error["message"]) == (3105, "no \ufffd")


def test_a_limit_is_named(api: Api) -> None:
    error = error_of(execute(api, "const all = []; for (;;) all.push(new Uint8Array(1000000))"))
    assert error["type"] == "ScriptLimitExceeded"
    assert "memory" in error["message"]


def test_the_scope_exec_is_needed(api: Api, client: object) -> None:
    from django.test import Client

    from tests.support.api import service_api

    reader = service_api(Client(), scope="read update")
    response = execute(reader, "1")
    assert response.status_code == 403
    assert error_of(response)["code"] == 110


def test_the_feature_must_be_licensed(api: Api) -> None:
    from foundation import cache_versions
    from identity import licences

    licence = Licence.objects.get()
    licence.features = []
    licence.save()
    cache_versions.bump(licences.CACHE_VERSION)
    cache_versions.expire()
    response = execute(api, "1")
    assert response.status_code == 403
    assert error_of(response)["code"] == 112


def test_it_commits_nothing_by_itself(api: Api) -> None:
    console(api, "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'})")
    assert api.get("Library_Books/$count").content == b"0"


def test_what_a_script_committed_stays_when_it_throws_later(api: Api) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        books.createNew({Code: 'B1', Title: 'Tea'});
        Transaction.commit();
        books.createNew({Code: 'B2', Title: 'Coffee'});
        throw new Error('no');
    """
    assert error_of(execute(api, source))["code"] == 3103
    assert [book["Code"] for book in api.read("Library_Books")["value"]] == ["B1"]


def test_rollback_and_begin_discard(api: Api) -> None:
    source = """
        const books = Domain.Library.BooksRepository;
        const lost = books.createNew({Code: 'B1', Title: 'Tea'});
        Transaction.rollback();
        books.createNew({Code: 'B2', Title: 'Tea'});
        Transaction.begin();
        books.createNew({Code: 'B3', Title: 'Tea'});
        Transaction.commit();
        console.log(lost.ObjectState, lost.Code);
        try { lost.Code = 'x' } catch (e) { console.log(e.code) }
    """
    assert console(api, source) == "Deleted B1\n231"
    assert [book["Code"] for book in api.read("Library_Books")["value"]] == ["B3"]


def test_in_a_transaction_changes_wait_for_its_end(api: Api) -> None:
    inside = api.begin()
    body = json.loads(execute(inside, "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'})").content)
    assert body["transactionId"] == inside.headers["TransactionId"]
    assert console(inside, "console.log(Domain.Library.BooksRepository.query({Code: 'B1'}).length)") == "1"
    assert inside.get("Library_Books/$count").content == b"1"
    assert api.get("Library_Books/$count").content == b"0"
    assert inside.end().status_code == 204
    assert api.get("Library_Books/$count").content == b"1"


def test_in_a_transaction_commit_writes_and_the_transaction_goes_on(api: Api) -> None:
    inside = api.begin()
    console(inside, "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'}); Transaction.commit()")
    assert api.get("Library_Books/$count").content == b"1"
    console(inside, "Domain.Library.BooksRepository.createNew({Code: 'B2', Title: 'Tea'}); Transaction.rollback()")
    console(inside, "Domain.Library.BooksRepository.createNew({Code: 'B3', Title: 'Tea'})")
    assert inside.end().status_code == 204
    assert sorted(book["Code"] for book in api.read("Library_Books")["value"]) == ["B1", "B3"]


def test_in_a_transaction_what_was_committed_stays_when_the_script_throws(api: Api) -> None:
    inside = api.begin()
    source = """
        Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'});
        Transaction.commit();
        Domain.Library.BooksRepository.createNew({Code: 'B2', Title: 'Tea'});
        throw new Error('no');
    """
    response = execute(inside, source)
    assert response.status_code == 500
    assert error_of(response)["code"] == 3103
    assert inside.end().status_code == 204
    assert [book["Code"] for book in api.read("Library_Books")["value"]] == ["B1"]


def test_in_a_transaction_a_script_that_throws_leaves_what_was_pending(api: Api) -> None:
    inside = api.begin()
    inside.create("Library_Books", {"Code": "B1", "Title": {"EN": "Tea"}})
    source = "Domain.Library.BooksRepository.query()[0].Code = 'B9'; throw new Error('no')"
    assert error_of(execute(inside, source))["code"] == 3103
    assert inside.end().status_code == 204
    assert [book["Code"] for book in api.read("Library_Books")["value"]] == ["B1"]


@pytest.mark.parametrize("verb", ["rollback", "begin"])
def test_in_a_transaction_what_was_discarded_stays_so_when_the_script_throws(api: Api, verb: str) -> None:
    inside = api.begin()
    inside.create("Library_Books", {"Code": "B1", "Title": {"EN": "Tea"}})
    source = f"Transaction.{verb}(); Domain.Library.BooksRepository.createNew({{Code: 'B2', Title: 'Tea'}}); throw 1;"
    assert error_of(execute(inside, source))["code"] == 3103
    inside.create("Library_Books", {"Code": "B3", "Title": {"EN": "Tea"}})
    assert inside.end().status_code == 204
    assert [book["Code"] for book in api.read("Library_Books")["value"]] == ["B3"]


def test_in_a_transaction_what_a_managed_script_committed_stays_when_its_caller_throws(api: Api) -> None:
    make_script(api, "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'}); Transaction.commit();")
    inside = api.begin()
    source = """
        Domain.Systems.Core.ScriptsRepository.query({Code: 'S1'})[0].Execute({});
        throw new Error('no');
    """
    assert error_of(execute(inside, source))["code"] == 3103
    assert inside.end().status_code == 204
    assert [book["Code"] for book in api.read("Library_Books")["value"]] == ["B1"]


@pytest.mark.parametrize("in_transaction", [True, False])
@pytest.mark.parametrize("ending", ["for (;;);", "for (;;) Transaction.begin()", "'a'.repeat(2 ** 29)"])
@override_settings(SCRIPT_WALL_SECONDS=0.8, SCRIPT_HOST_CALLS=50, SCRIPT_MEMORY_BYTES=60_000_000)
def test_a_script_that_is_killed_leaves_what_was_committed_and_nothing_of_its_own(
    api: Api, ending: str, in_transaction: bool
) -> None:
    caller = api.begin() if in_transaction else api
    source = """
        const books = Domain.Library.BooksRepository;
        books.createNew({Code: 'B1', Title: 'Tea'});
        Transaction.commit();
        books.createNew({Code: 'B2', Title: 'Tea'});
        books.query({Code: 'B1'})[0].Code = 'B9';
    """
    assert error_of(execute(caller, source + ending))["code"] == 3104
    # The transaction goes on.
    assert console(caller, "console.log(Domain.Library.BooksRepository.query().map(b => b.Code).join())") == "B1"
    if in_transaction:
        assert caller.end().status_code == 204
    assert [book["Code"] for book in api.read("Library_Books")["value"]] == ["B1"]


def test_errors_of_the_platform_surface_with_their_own_code(api: Api) -> None:
    source = "\n".join(
        [
            "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'});",
            "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'});",
            "Transaction.commit();",
        ]
    )
    error = error_of(execute(api, source))
    assert error["code"] == 2129
    assert "line 3" in error["info"]


def test_errors_of_the_platform_can_be_caught(api: Api) -> None:
    source = """
        const book = Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'});
        try { book.Pages = 'many' } catch (e) { console.log(e instanceof Error, e.code, e.type, e.message) }
        try { book.Pagse = 1 } catch (e) { console.log(e.code, e.message) }
        console.log(book.Pages)
    """
    lines = console(api, source).split("\n")
    assert lines[0].startswith("true 209 InvalidLiteral 'many'")
    assert lines[1].startswith("203 Library_Book has no property 'Pagse'")
    assert lines[2] == "null"


def test_runs_are_noted_also_when_they_fail(api: Api, world: World) -> None:
    execute(api, "console.log('hello')")
    execute(api.begin(), "throw new Error('no')")
    api.post(make_script(api, "return 1", Code="M1").rpartition("/")[2] + "/Execute", {})
    write_rule(world, PRODUCTS, ["COMMIT"], code="JS", ScriptLanguage="JavaScript", ScriptText="console.log('rule')")
    product = dataset(world.context)
    new_product(product, world)
    product.commit()
    history.pending.flush()
    runs = list(ScriptRun.objects.order_by("started"))
    assert [(run.kind, run.name, run.outcome) for run in runs] == [
        ("ExecuteScript", "", "Succeeded"),
        ("ExecuteScript", "", "ScriptThrew"),
        ("Managed", "M1", "Succeeded"),
        ("Rule", "JS", "Succeeded"),
    ]
    assert (runs[3].console_head, runs[3].user_login) == ("rule", "anna")
    assert runs[0].console_head == "hello"
    assert runs[0].session_id
    assert runs[1].transaction_id


def test_the_history_is_in_english_whoever_called(api: Api) -> None:
    told = execute(api, "let let", Accept_Language="de").content.decode()
    history.pending.flush()
    (run,) = ScriptRun.objects.all()
    assert "Skript" in told
    assert run.message.startswith("The script cannot be read: ")
