"""What the sandbox says, as the platform tells it (spec 04, 4.1; 07)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts import services
from scripts.sandbox.errors import SandboxBusy, SandboxUnavailable, ScriptCrashed, ScriptLimitExceeded, ScriptThrew
from tests.scripts.cast import execute
from tests.support.api import Api, error_of


@pytest.mark.parametrize(
    "raised, status, code, said",
    [
        (SandboxBusy(7), 503, 3106, "7 seconds"),
        (SandboxUnavailable("no workers"), 503, 3106, "30 seconds"),
        (ScriptLimitExceeded("wall", 5.0, console="before"), 500, 3104, "wall (5 s)"),
        (ScriptCrashed(-11), 500, 3103, "stopped unexpectedly"),
        (ScriptThrew("x", name="TypeError", line=3, column=4), 500, 3103, "TypeError: x (line 3, column 4)"),
        (ScriptThrew("x"), 500, 3103, "x (line ?, column ?)"),
    ],
)
def test_failures_of_the_sandbox(
    api: Api, monkeypatch: pytest.MonkeyPatch, raised: Exception, status: int, code: int, said: str
) -> None:
    class Pool:
        def run(self, *args: Any, **options: Any) -> None:
            raise raised

    monkeypatch.setattr(services, "pool", Pool)
    response = execute(api, "1")
    error = error_of(response)
    assert (response.status_code, error["code"]) == (status, code)
    assert said in error["message"]
    if status == 503:
        assert int(response["Retry-After"]) in (7, 30)
        assert response["Cache-Control"] == "no-store"
    if isinstance(raised, ScriptLimitExceeded):
        assert "before" in error["info"]


def test_scripts_in_a_batch_answer_like_others(api: Api) -> None:
    parts = [
        {
            "id": str(number),
            "method": "POST",
            "url": "ExecuteScript",
            "headers": {"content-type": "text/plain"},
            "body": body,
            **({"atomicityGroup": "g"} if number > 1 else {}),
        }
        for number, body in enumerate(("console.log(1)", "console.log(2)", "throw new Error('no')"), 1)
    ]
    response = api.post("$batch", {"requests": parts})
    assert response.status_code == 200, response.content
    answers = {answer["id"]: answer for answer in json.loads(response.content)["responses"]}
    assert answers["1"]["body"]["console"] == "1"
    assert answers["3"]["status"] == 500
    assert answers["3"]["body"]["error"]["code"] == 3103


def test_nothing_is_shared_between_runs(api: Api) -> None:
    execute(api, "globalThis.left = 1; Object.prototype.left = 2; Array.prototype.map = null")
    body = json.loads(execute(api, "console.log(typeof left, ({}).left, typeof [].map)").content)
    assert body["console"] == "undefined undefined function"


def test_the_prelude_survives_scripts_that_bend_the_language(api: Api) -> None:
    source = """
        Array.prototype.toJSON = () => 'bent';
        Array.prototype.map = () => { throw new Error('bent') };
        Object.prototype.get = () => 'bent';
        try { Domain.Library.BooksRepository.query() } catch (e) {}
        console.log('still here');
    """
    response = execute(api, source)
    assert response.status_code == 200, response.content
