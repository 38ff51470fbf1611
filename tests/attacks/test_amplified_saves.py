"""A small text makes the instance work for seconds: rules of 3,000 conditions, $apply of 2,000 branches.

Who: anybody who may write rules, or who may read. What: to keep others waiting, and to fill the log. What prevents it:
numbers of parts are bounded with an error that names the bound; a wrong Host header is one line of the log.
"""

from __future__ import annotations

import logging
import time

import pytest
from django.conf import settings
from django.test import Client

from platform_site.logging import NoTracebackFilter
from tests.attacks.access import RULES, rule_body
from tests.support.api import Api, error_of
from tests.support.measuring import slowness

#: Of the processor: others use this machine, too.
SECONDS = 3.0


@pytest.mark.alone
def test_a_rule_has_a_bounded_number_of_conditions(administrator: Api) -> None:
    body = rule_body("M1", "General.Products.Products", "COMMIT", ("WARNING", "x"))
    body["Conditions"] = [
        {"ConditionNo": number, "AttributeName": "PartNumber", "ComparisonType": "Not_Equals", "Value": str(number)}
        for number in range(3000)
    ]
    begun = time.thread_time()
    error = error_of(administrator.post(RULES, body))
    assert time.thread_time() - begun < SECONDS * slowness()
    assert error["type"] == "RuleInvalid"
    assert "at most 200 Conditions" in error["message"]
    body["Conditions"] = body["Conditions"][:200]
    assert administrator.post(RULES, body).status_code == 201


@pytest.mark.parametrize(
    "apply", ["concat(" + ",".join(["identity"] * 2000) + ")", "/".join(["filter(Id ne null)"] * 2000)]
)
@pytest.mark.alone
def test_apply_has_a_bounded_number_of_transformations(administrator: Api, apply: str) -> None:
    begun = time.thread_time()
    error = error_of(administrator.post("General_Currencies/$query", f"$apply={apply}", Content_Type="text/plain"))
    assert time.thread_time() - begun < SECONDS * slowness()
    assert "More than 200 transformations" in error["message"]


def test_a_rule_that_empties_an_attribute_is_saved_with_a_warning(administrator: Api) -> None:
    answer = administrator.post(RULES, rule_body("M1", "Systems.Security.Users", "COMMIT", ("SETVALUE", "Notes")))
    assert "empties" in answer.headers.get("X-Warnings", ""), answer.headers


def test_a_similar_name_is_offered_with_one_punctuation_mark(administrator: Api) -> None:
    body = rule_body("M1", "General.Products.Products", "COMMIT", ("SETVALUE", "PartNumbr", "x"))
    message = error_of(administrator.post(RULES, body))["message"]
    assert "Did you mean PartNumber?" in message
    assert "?." not in message


@pytest.mark.parametrize("path", ["/healthz", "/id/account/login", "/api/domain/odata/"])
def test_a_wrong_host_is_no_traceback_in_the_log(
    db: None, path: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert "no_traceback" in settings.LOGGING["handlers"]["console"]["filters"]
    caplog.handler.addFilter(NoTracebackFilter())
    with caplog.at_level(logging.INFO):
        assert Client().get(path, headers={"Host": "evil.example"}).status_code == 400
    assert [record for record in caplog.records if record.exc_info] == []
