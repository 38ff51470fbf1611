"""One caller keeps SQLite's only writer.

Who: anybody with the scope exec or update, without any right to data. What: scripts that run for long in a request that
holds the write lock, or imports and batches that do, again and again, so that nobody else can write or sign in. What
prevents it: domain.dataset.transactions.write_lock_time, and the time of a batch, which also ends a change set.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connections

from domain.dataset.transactions import write_lock_time
from domain.odata.service.batch import runner
from identity.lru import GenerationalCache
from tests.domain.security.conftest import caller, person
from tests.support.api import Answer, Api, error_of

TEXT = {"Content_Type": "text/plain"}
ENDLESS = "for (;;);"
on_sqlite = pytest.mark.skipif(connections["default"].vendor != "sqlite", reason="PostgreSQL locks rows")


@pytest.fixture
def nobody(transactional_db: None, demo: None) -> Api:
    """A user without any right."""
    return caller(person("nobody"))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little time, of which nothing is used yet."""
    monkeypatch.setattr(write_lock_time, "BURST_SECONDS", 0.4)
    monkeypatch.setattr(write_lock_time, "_restored", GenerationalCache(8))


def grouped(*scripts: str) -> dict[str, Any]:
    """A change set of scripts."""
    return {
        "requests": [
            {
                "id": str(number),
                "atomicityGroup": "g",
                "method": "POST",
                "url": "ExecuteScript",
                "headers": {"content-type": "text/plain"},
                "body": script,
            }
            for number, script in enumerate(scripts)
        ]
    }


def with_a_key(api: Api, script: str) -> Answer:
    return api.post("ExecuteScript", script, **TEXT, Idempotency_Key=f'"{script}"')


def as_a_dry_run(api: Api, script: str) -> Answer:
    return api.post("ExecuteScript", script, **TEXT, Prefer="erpnet.dry-run")


def in_a_transaction(api: Api, script: str) -> Answer:
    return api.begin().post("ExecuteScript", script, **TEXT)


def in_a_change_set(api: Api, script: str) -> Answer:
    return api.post("$batch", grouped(script))


@on_sqlite
@pytest.mark.parametrize("send", [with_a_key, as_a_dry_run, in_a_transaction, in_a_change_set])
def test_scripts_that_keep_others_waiting_have_little_time(nobody: Api, short: None, send: Any) -> None:
    ended = send(nobody, ENDLESS)
    assert "exceeded its limit: wall (0." in ended.content.decode(), ended.content
    refused = send(nobody, "1")
    assert "ScriptTimeUsedUp" in refused.content.decode(), refused.content
    # Where nobody waits, and for others, all is as before.
    assert nobody.post("ExecuteScript", "1", **TEXT).status_code == 200
    assert b"ScriptTimeUsedUp" not in send(caller(person("anna")), "1").content


@on_sqlite
def test_whose_time_is_used_up_is_told_when_to_come_back(nobody: Api, short: None) -> None:
    with_a_key(nobody, ENDLESS)
    refused = with_a_key(nobody, "1")
    assert (refused.status_code, error_of(refused)["code"]) == (429, 3108)
    assert int(refused.headers["Retry-After"]) >= 1


def test_short_scripts_cost_no_time(nobody: Api, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_lock_time, "_UNCOUNTED_SECONDS", 0.4)
    for number in range(20):
        assert with_a_key(nobody, f"{number}").status_code == 200


def test_a_change_set_ends_when_it_has_taken_long(nobody: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_SECONDS", 0.3)
    for_a_while = "const end = Date.now() + 200; while (Date.now() < end);"
    answers = json.loads(nobody.post("$batch", grouped(*[for_a_while] * 6)).content)["responses"]
    assert {answer["body"]["error"]["type"] for answer in answers} & {"BatchTooLarge"}
    assert all(answer["status"] >= 400 for answer in answers)


# --- requests without a script --------------------------------------------------------------------------------------

REFUSED: dict[str, Any] = {"loggingLevel": 0, "objects": [1] * 1_000}


@on_sqlite
@pytest.mark.parametrize("headers", [{"Idempotency_Key": "k"}, {"Prefer": "erpnet.dry-run"}])
@pytest.mark.parametrize("mode", ["per-object", "all-objects"])
def test_an_import_of_who_may_change_nothing_ends(
    nobody: Api, short: None, headers: dict[str, str], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_lock_time, "_MIN_SECONDS", 0.0)
    monkeypatch.setattr(write_lock_time, "BURST_SECONDS", 0.001)
    refused = nobody.post("Import", REFUSED | {"transaction": mode}, **headers)
    assert (refused.status_code, error_of(refused)["type"]) == (429, "ScriptTimeUsedUp")
    # Where nobody waits, all is as before.
    answer = json.loads(nobody.post("Import", REFUSED).content)
    assert len(answer["objects"]) == 1_000


@on_sqlite
def test_a_batch_of_who_may_change_nothing_ends(nobody: Api, short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_lock_time, "_MIN_SECONDS", 0.0)
    monkeypatch.setattr(write_lock_time, "BURST_SECONDS", 0.001)
    reads = {"requests": [{"id": str(each), "method": "GET", "url": "GetVersion()"} for each in range(50)]}
    answers = json.loads(nobody.post("$batch", reads, Idempotency_Key="k", Prefer="continue-on-error").content)
    assert answers["responses"][-1]["body"]["error"]["type"] == "ScriptTimeUsedUp"
    answers = json.loads(nobody.post("$batch", reads).content)
    assert {answer["status"] for answer in answers["responses"]} == {200}
