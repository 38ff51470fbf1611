"""Several callers write at once, each on a database connection of its own; nobody is refused for being second.

On SQLite writers wait for each other before their first look. On PostgreSQL they do not, so there these tests count.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test import Client
from pytest_django import Settings

from domain.database import time_limit
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.tables.row_storage import row_storage_of
from domain.model.registry import repositories
from foundation.guids import new_guid
from tests.domain.odata.test_writing import CURRENCIES, GROUPS, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World, dataset, new_product, set_value, write_rule
from tests.support.api import Api, error_of, id_of

CALLERS = 6
TURNS = 8
SYSTEMS = "General_Products_CodingSystems"
MESSAGES = "Systems_Monitoring_InformationMessages"


@pytest.fixture
def committed(transactional_db: None, api: Api) -> Api:
    """A caller whose entities other connections see."""
    return api


def at_once(api: Api, work: Callable[[Api, int], Any], callers: int = CALLERS) -> list[Any]:
    """What `work` gives each caller (its own client, its number), in order of the numbers; all begin together."""
    start = threading.Barrier(callers)
    given: list[Any] = [None] * callers
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            own = Api(Client(), api.token)
            start.wait()
            given[number] = work(own, number)
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    return given


def body_of(answer: Any, *statuses: int) -> Any:
    """The JSON of an answer with one of the statuses."""
    assert answer.status_code in statuses, answer.content
    return answer.json() if answer.content else None


# --- find or create -----------------------------------------------------------------------------------------------

#: How the same entity is described, turn by turn, by each of the callers.
DESCRIPTIONS: dict[str, Callable[[int], dict[str, Any]]] = {
    "ExternalId": lambda turn: {"ExternalId": f"X{turn}", "ExternalSystem": "shop", "Name": {"EN": "Any"}},
    "Name": lambda turn: {"Name": {"EN": f"X{turn}", "BG": f"Х{turn}"}},
    "annotation": lambda turn: {"@erpnet.findBy": {"ExternalId": f"X{turn}"}, "ExternalId": f"X{turn}",
                                "Name": {"EN": "Any"}},
    "Id": lambda turn: {"Id": f"01890000-0000-7000-8000-{turn:012d}", "Name": {"EN": "Any"}},
}  # fmt: skip


@pytest.mark.parametrize("action", ["merge", "findOrCreate"])
@pytest.mark.parametrize("described", DESCRIPTIONS)
def test_what_all_look_for_is_made_once(committed: Api, described: str, action: str) -> None:
    def post(own: Api, number: int) -> list[str]:
        bodies = [{"@erpnet.action": action, **DESCRIPTIONS[described](turn)} for turn in range(TURNS)]
        return [id_of(body_of(own.post(SYSTEMS, body), 200, 201)) for body in bodies]

    made = at_once(committed, post)
    assert len(committed.read(SYSTEMS)["value"]) == TURNS
    assert made == [made[0]] * CALLERS


def test_what_several_entities_refer_to_is_made_once(committed: Api, world: World) -> None:
    def patch(own: Api, number: int) -> None:
        for turn in range(TURNS):
            system = {"@erpnet.action": "merge", "ExternalId": f"X{turn}", "Name": {"EN": "System"}}
            code = {"ProductCodeField": f"{number}/{turn}", "CodingSystem": system}
            body_of(own.patch(f"{PRODUCTS}({world.product})", {"Codes": [code]}), 204)

    at_once(committed, patch)
    assert len(committed.read(SYSTEMS)["value"]) == TURNS
    codes = committed.read(f"{PRODUCTS}({world.product})?$expand=Codes")["Codes"]
    assert len(codes) == CALLERS * TURNS


def test_a_part_that_all_look_for_is_made_once(committed: Api, world: World) -> None:
    system = committed.create(SYSTEMS, {"Name": {"EN": "System"}})["@odata.id"]
    product = f"{PRODUCTS}({world.product})"

    def patch(own: Api, number: int) -> None:
        for turn in range(TURNS):
            code = {"@erpnet.action": "merge", "ProductCodeField": f"C{turn}", "CodingSystem@odata.bind": system}
            body_of(own.patch(product, {"Codes": [code]}), 204)

    at_once(committed, patch)
    codes = committed.read(f"{product}?$expand=Codes($orderby=ProductCodeField)")["Codes"]
    assert [code["ProductCodeField"] for code in codes] == [f"C{turn}" for turn in range(TURNS)]


@pytest.mark.parametrize("mode", ["per-object", "all-objects"])
def test_imports_of_the_same_objects_make_each_once(committed: Api, mode: str) -> None:
    objects = [
        {"@odata.type": "Erp.General_Products_CodingSystem", "ExternalId": f"X{turn}", "Name": {"EN": "System"}}
        for turn in range(3 * TURNS)
    ]  # fmt: skip

    def post(own: Api, number: int) -> None:
        # In different orders: nobody may wait for somebody who waits for them.
        given = objects[number:] + objects[:number]
        body = {"objects": given, "transaction": mode, "model": "common", "loggingLevel": 0}
        answer = body_of(own.post("Import", body), 200)
        assert answer["@erpnet.result"] == "success", answer

    at_once(committed, post)
    found = committed.read(f"{SYSTEMS}?$select=ExternalId")["value"]
    assert sorted(entity["ExternalId"] for entity in found) == sorted(f"X{turn}" for turn in range(3 * TURNS))


def test_an_import_of_all_objects_and_merges_beside_it_make_each_once(committed: Api) -> None:
    def work(own: Api, number: int) -> None:
        described = [{"ExternalId": f"X{turn}", "Name": {"EN": f"by {number}"}} for turn in range(250)]
        if number == 0:
            objects = [{"@odata.type": "Erp.General_Products_CodingSystem", **body} for body in described]
            body = {"objects": objects, "transaction": "all-objects", "model": "common", "loggingLevel": 0}
            assert body_of(own.post("Import", body), 200)["@erpnet.result"] == "success"
        else:
            for entry in reversed(described[-TURNS:] + described[:TURNS]):
                body_of(own.post(SYSTEMS, {"@erpnet.action": "merge", **entry}), 200, 201)

    at_once(committed, work)
    assert committed.get(f"{SYSTEMS}/$count").content == b"250"


def test_changesets_that_look_for_the_same_in_opposite_orders_both_hold(committed: Api) -> None:
    def post(own: Api, number: int) -> None:
        for turn in range(TURNS):
            names = [f"A{turn}", f"B{turn}", f"C{turn}"]
            parts = [
                {
                    "id": name, "atomicityGroup": "g", "method": "POST", "url": SYSTEMS,
                    "body": {"@erpnet.action": "merge", "ExternalId": name, "Name": {"EN": name}},
                }
                for name in (names if number % 2 else reversed(names))
            ]  # fmt: skip
            answers = body_of(own.post("$batch", {"requests": parts}), 200)["responses"]
            assert {answer["status"] for answer in answers} <= {200, 201}, answers

    at_once(committed, post, callers=4)
    assert committed.get(f"{SYSTEMS}/$count").content == str(3 * TURNS).encode()


def test_a_request_that_looks_for_very_many_values_holds_beside_others(committed: Api, world: World) -> None:
    """Beyond a hundred values the whole repository is claimed, which those wait for who claim one of its values."""

    def post(own: Api, number: int) -> None:
        codes = [
            {
                "@erpnet.action": "create", "ProductCodeField": f"{number}/{turn}",
                "CodingSystem": {"@erpnet.action": "merge", "ExternalId": f"X{turn}", "Name": {"EN": "System"}},
            }
            for turn in range(150)
        ]  # fmt: skip
        body_of(own.patch(f"{PRODUCTS}({world.product})", {"Codes": codes if number < 2 else codes[::10]}), 204)

    at_once(committed, post, callers=4)
    assert committed.get(f"{SYSTEMS}/$count").content == b"150"


def test_a_key_that_all_give_to_a_new_entity_is_made_once(committed: Api) -> None:
    keys = [new_guid() for _ in range(TURNS)]

    def patch(own: Api, number: int) -> list[int]:
        return [own.patch(f"{SYSTEMS}({key})", {"Name": {"EN": f"by {number}"}}).status_code for key in keys]

    statuses = at_once(committed, patch)
    assert Counter(status for each in statuses for status in each) == {201: TURNS, 204: TURNS * (CALLERS - 1)}


@pytest.mark.parametrize("first", ["a transaction", "a plain request"])
def test_what_somebody_else_made_meanwhile_is_a_conflict_at_the_end_of_a_transaction(api: Api, first: str) -> None:
    body = {"@erpnet.action": "merge", "ExternalId": "X", "ExternalSystem": "shop", "Name": {"EN": "System"}}
    inside, other = api.begin(), api.begin() if first == "a transaction" else api
    body_of(inside.post(SYSTEMS, body), 201)
    body_of(other.post(SYSTEMS, body), 201)
    if other is not api:
        assert other.end().status_code == 204
    refused = inside.end()
    error = error_of(refused)
    assert (refused.status_code, error["type"]) == (412, "MadeMeanwhile")
    assert error["parameters"] == ["General_Products_CodingSystem", "ExternalId X, ExternalSystem shop"]
    # Nothing is lost, and the transaction can be mended: what was made is given another identity.
    made = inside.read(f"{SYSTEMS}?$filter=ExternalId eq 'X'")["value"]
    assert len(made) == 2
    (mine,) = [entity for entity in made if api.get(entity["@odata.id"]).status_code == 404]
    assert inside.patch(mine["@odata.id"], {"ExternalId": "Y"}).status_code == 204
    assert inside.end().status_code == 204
    assert {entity["ExternalId"] for entity in api.read(f"{SYSTEMS}?$select=ExternalId")["value"]} == {"X", "Y"}


def test_a_part_that_somebody_else_added_meanwhile_is_a_conflict_only_where_it_is_the_same(
    api: Api, world: World
) -> None:
    product = f"{PRODUCTS}({world.product})"
    system = api.create(SYSTEMS, {"Name": {"EN": "System"}})["@odata.id"]

    def code(number: int) -> dict[str, Any]:
        return {"@erpnet.action": "merge", "ProductCodeField": f"C{number}", "CodingSystem@odata.bind": system}

    different, same = api.begin(), api.begin()
    for inside, number in ((different, 2), (same, 1)):
        assert inside.patch(product, {"Codes": [code(number)]}).status_code == 204
    assert api.patch(product, {"Codes": [code(1)]}).status_code == 204
    assert different.end().status_code == 204
    refused = same.end()
    assert (refused.status_code, error_of(refused)["type"]) == (412, "MadeMeanwhile")
    assert same.end(commit=False).status_code == 204


def test_what_a_transaction_deleted_may_be_made_anew_in_it(api: Api) -> None:
    body = {"@erpnet.action": "merge", "ExternalId": "X", "Name": {"EN": "Old"}}
    old = body_of(api.post(SYSTEMS, body), 201)["@odata.id"]
    inside = api.begin()
    assert inside.delete(old).status_code == 204
    body_of(inside.post(SYSTEMS, body), 201)
    assert inside.end().status_code == 204
    assert len(api.read(SYSTEMS)["value"]) == 1


def test_transactions_that_end_at_once_make_what_they_looked_for_once(committed: Api) -> None:
    def work(own: Api, number: int) -> list[str]:
        ended = []
        for turn in range(TURNS):
            inside = own.begin()
            for name in (f"A{turn}", f"B{turn}"):
                body_of(
                    inside.post(SYSTEMS, {"@erpnet.action": "merge", "ExternalId": name, "Name": {"EN": name}}),
                    200,
                    201,
                )
            answer = inside.end()
            ended.append("made" if answer.status_code == 204 else error_of(answer)["type"])
            if answer.status_code != 204:
                assert inside.end(commit=False).status_code == 204
        return ended

    ended = Counter(each for mine in at_once(committed, work, callers=4) for each in mine)
    assert ended.keys() <= {"made", "MadeMeanwhile", "VersionConflict"}
    assert committed.get(f"{SYSTEMS}/$count").content == str(2 * TURNS).encode()


def test_a_code_that_is_to_be_unique_is_given_once(committed: Api, world: World) -> None:
    system = committed.create(SYSTEMS, {"Name": {"EN": "EAN"}, "IsUnique": True})["@odata.id"]
    ds = dataset(world.context)
    products = [new_product(ds, world, f"N{number}").id for number in range(CALLERS)]
    ds.commit()

    def post(own: Api, number: int) -> Counter[str]:
        told: Counter[str] = Counter()
        for turn in range(TURNS):
            code = {"ProductCodeField": f"{turn}", "CodingSystem@odata.bind": system}
            answer = own.post(f"{PRODUCTS}({products[number]})/Codes", code)
            told["made" if answer.status_code == 201 else str(error_of(answer)["type"])] += 1
        return told

    told = sum(at_once(committed, post), Counter[str]())
    assert told == {"made": TURNS, "DuplicateValue": TURNS * (CALLERS - 1)}


# --- one entity ---------------------------------------------------------------------------------------------------


def test_patches_of_one_entity_all_hold(committed: Api) -> None:
    key = committed.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})["@odata.id"]

    def patch(own: Api, number: int) -> str:
        for turn in range(20):
            body_of(own.patch(key, {"Name": f"{number}/{turn}"}), 204)
        return f"{number}/19"

    last = at_once(committed, patch)
    stored = committed.read(f"{key}?$select=Name,ObjectVersion")
    assert stored["ObjectVersion"] == 1 + CALLERS * 20
    assert stored["Name"] in last


def test_of_those_who_name_the_version_that_they_saw_one_is_first(committed: Api) -> None:
    key = committed.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})["@odata.id"]
    for turn in range(TURNS):
        tag = committed.get(key)["ETag"]

        def patch(own: Api, number: int, turn: int = turn, tag: str = tag) -> int:
            if number % 2:
                return int(own.patch(key, {"Name": f"{number}/{turn}"}, If_Match=tag).status_code)
            version = int(tag[3:-1])
            return int(own.patch(key, {"ObjectVersion": version, "Name": f"{number}/{turn}"}).status_code)

        assert Counter(at_once(committed, patch)) == {204: 1, 412: CALLERS - 1}


def test_deep_patches_line_patches_and_new_lines_of_one_order_all_hold(committed: Api, world: World) -> None:
    line = {"Quantity": 1, "UnitPrice": 10}
    made = committed.create(f"{ORDERS}?$expand=Lines($orderby=LineNo)", order_body(world, *[line] * CALLERS))
    order, lines = made["@odata.id"], [entry["@odata.id"] for entry in made["Lines"]]
    product = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}

    def patch(own: Api, number: int) -> None:
        for turn in range(1, TURNS + 1):
            match number % 3:
                case 0:
                    body = {"DocumentNotes": f"{number}", "Lines": [{"@odata.id": lines[number], "Quantity": turn}]}
                    body_of(own.patch(order, body), 204)
                case 1:
                    body_of(own.patch(lines[number], {"Quantity": turn}), 204)
                case 2:
                    body_of(own.post(f"{order}/Lines", {**product, **line}), 201)

    at_once(committed, patch)
    after = committed.read(f"{order}?$select=TotalLineAmount&$expand=Lines($orderby=LineNo)")
    quantities = [entry["Quantity"]["Value"] for entry in after["Lines"]]
    assert quantities[:CALLERS] == [TURNS, TURNS, 1, TURNS, TURNS, 1]
    assert quantities[CALLERS:] == [1] * (2 * TURNS)
    assert after["TotalLineAmount"]["Value"] == 10 * sum(quantities)
    numbers = [entry["LineNo"] for entry in after["Lines"]]
    assert len(set(numbers)) == len(numbers)


def test_an_order_is_released_once_and_then_closed_to_edits(committed: Api, world: World) -> None:
    for _ in range(3):
        made = committed.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1}))
        order, line = made["@odata.id"], made["Lines"][0]["@odata.id"]

        def work(own: Api, number: int, order: str = order, line: str = line) -> list[str]:
            told = []
            for turn in range(4):
                if number % 2:
                    answer = own.post(f"{order}/ChangeState", {"newState": "Released"})
                else:
                    answer = own.patch(line if turn % 2 else order, {"Notes" if turn % 2 else "DocumentNotes": "x"})
                told.append("done" if answer.status_code == 204 else error_of(answer)["type"])
            return told

        told = at_once(committed, work)
        releases, edits = told[1::2], told[::2]
        assert Counter(each for mine in releases for each in mine) == {"done": 12}
        assert {each for mine in edits for each in mine} <= {"done", "DocumentLocked"}
        states = committed.read(f"{order}?$expand=StateChanges&$select=State")
        assert (states["State"], len(states["StateChanges"])) == ("Released", 1)


def test_of_those_who_delete_one_entity_the_others_find_nothing(committed: Api) -> None:
    for turn in range(TURNS):
        key = committed.create(CURRENCIES, {"CurrencySign": f"U{turn}", "Name": "Dollar"})["@odata.id"]

        def delete(own: Api, number: int, key: str = key) -> int:
            if number % 3 == 2:
                answer = own.patch(key, {"Name": f"by {number}"})
                # An update where nothing is left to update asks for what it does not give.
                assert answer.status_code in (204, 404) or error_of(answer)["type"] == "RequiredAttributeMissing"
                return 204
            return int(own.delete(key).status_code)

        assert Counter(at_once(committed, delete)) == {204: 3, 404: CALLERS - 3}
        assert committed.get(key).status_code == 404


def test_what_is_deleted_while_somebody_refers_to_it_is_told_as_if_one_came_after_the_other(
    committed: Api, world: World
) -> None:
    stored = committed.read(f"{PRODUCTS}({world.product})")
    for turn in range(TURNS):
        group = committed.create(GROUPS, {"Code": f"D{turn}", "Name": {"EN": "Group"}})["@odata.id"]

        def work(own: Api, number: int, group: str = group) -> str:
            answer = own.patch(stored["@odata.id"], {"ProductGroup@odata.bind": group}) if number else own.delete(group)
            return "done" if answer.status_code == 204 else str(error_of(answer)["type"])

        deleted, *referred = at_once(committed, work, callers=2)
        assert (deleted, referred) in (("done", ["ReferencedEntityNotFound"]), ("ReferenceInUse", ["done"]))


def test_groups_of_patches_in_opposite_orders_all_hold(committed: Api) -> None:
    keys = [committed.create(CURRENCIES, {"CurrencySign": f"U{n}", "Name": "x"})["@odata.id"] for n in range(4)]

    def post(own: Api, number: int) -> None:
        for turn in range(TURNS):
            order = keys[number % 4 :] + keys[: number % 4]
            parts = [
                {"id": str(position), "atomicityGroup": "g", "method": "PATCH", "url": key,
                 "body": {"Name": f"{number}/{turn}"}}
                for position, key in enumerate(order if number % 2 else reversed(order))
            ]  # fmt: skip
            answers = body_of(own.post("$batch", {"requests": parts}), 200)["responses"]
            assert [answer["status"] for answer in answers] == [204] * 4, answers

    at_once(committed, post)
    stored = [committed.read(f"{key}?$select=Name,ObjectVersion") for key in keys]
    assert [entity["ObjectVersion"] for entity in stored] == [1 + CALLERS * TURNS] * 4
    assert len({entity["Name"] for entity in stored}) == 1


def test_a_transaction_that_adds_lines_ends_beside_edits_of_the_order(committed: Api, world: World) -> None:
    order = committed.create(ORDERS, order_body(world, {"Quantity": 1}))["@odata.id"]
    line = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}

    def work(own: Api, number: int) -> None:
        for turn in range(TURNS):
            if number % 2:
                body_of(own.patch(order, {"DocumentNotes": f"{number}/{turn}"}), 204)
                continue
            inside = own.begin()
            body_of(inside.post(f"{order}/Lines", line), 201)
            body_of(inside.end(), 204)

    at_once(committed, work)
    lines = committed.read(f"{order}?$expand=Lines")["Lines"]
    numbers = [entry["LineNo"] for entry in lines]
    assert len(lines) == 1 + 3 * TURNS
    assert len(set(numbers)) == len(numbers)


# --- rules and numbers --------------------------------------------------------------------------------------------


def test_a_script_that_counts_in_one_entity_for_all_who_write_others_counts_right(committed: Api, world: World) -> None:
    write_rule(
        world, "General.Currencies.Currencies", ["COMMIT"], ScriptLanguage="JavaScript", Layer="Common",
        ScriptText="const [group] = Domain.General.Products.ProductGroupsRepository.query({ Code: 'G1' });"
        "group.ExternalSystem = String(Number(group.ExternalSystem || 0) + 1);",
    )  # fmt: skip

    def post(own: Api, number: int) -> None:
        for turn in range(4):
            body_of(own.post(CURRENCIES, {"CurrencySign": f"{number}{turn}", "Name": "Any"}), 201)

    at_once(committed, post)
    group = committed.read(f"{GROUPS}({world.group})?$select=ExternalSystem,ObjectVersion")
    assert (group["ExternalSystem"], group["ObjectVersion"]) == (str(4 * CALLERS), 1 + 4 * CALLERS)


def test_rules_after_the_commit_hold_beside_those_who_write_the_same(committed: Api, world: World) -> None:
    write_rule(
        world, "General.Currencies.Currencies", ["COMMITTED"],
        actions=[set_value("ExternalSystem", "Name", kind="Attribute")],
    )  # fmt: skip
    key = committed.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})["@odata.id"]

    def patch(own: Api, number: int) -> None:
        for turn in range(TURNS):
            body_of(own.patch(key, {"Name": f"{number}/{turn}"}), 204)

    at_once(committed, patch)
    stored = committed.read(f"{key}?$select=default,ExternalSystem")
    assert stored["ExternalSystem"] == stored["Name"]
    assert committed.get(f"{MESSAGES}/$count").content == b"0"


def test_numbers_that_others_give_by_hand_are_left_out(committed: Api, world: World) -> None:
    """Those by hand come in the order that the sequence has, so that it meets some that are not committed yet."""

    def post(own: Api, number: int) -> list[str]:
        made = []
        for turn in range(TURNS):
            given = {"DocumentNo": f"{number * TURNS + turn + 3:010d}"} if number < 2 else {}
            answer = own.post(f"{ORDERS}?$select=DocumentNo", {**order_body(world, {"Quantity": 1}), **given})
            if given and answer.status_code != 201:
                assert error_of(answer)["type"] == "DuplicateValue", answer.content
            else:
                made.append(body_of(answer, 201)["DocumentNo"])
        return made

    numbers = [number for mine in at_once(committed, post) for number in mine]
    assert len(set(numbers)) == len(numbers)
    assert len(numbers) >= 4 * TURNS


# --- waiting too long ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite's lock is on the whole database: test_faults")
@pytest.mark.parametrize("held", ["row", "value"])
def test_who_waits_too_long_for_another_is_told_that_the_database_is_busy(
    committed: Api, settings: Settings, held: str
) -> None:
    body = {"@erpnet.action": "merge", "ExternalId": "X", "Name": {"EN": "System"}}
    key = id_of(body_of(committed.post(SYSTEMS, body), 201))
    settings.QUERY_SECONDS = 0.3

    def post(own: Api, number: int) -> Any:
        time_limit.limit_connection(connection)
        return own.post(SYSTEMS, {**body, "Name": {"EN": "Other"}})

    with transaction.atomic():
        if held == "row":
            row_storage_of(repositories["General.Products.CodingSystems"]).lock_versions([key])
        else:
            AdvisoryLocks(whole=True).take(repositories["General.Products.CodingSystems"], ["ExternalId=Y"])
        (answer,) = at_once(committed, post, callers=1)
    assert (answer.status_code, error_of(answer)["type"]) == (503, "DatabaseBusy")
    assert answer["Retry-After"] == "1"
    body_of(committed.post(SYSTEMS, body), 200)
