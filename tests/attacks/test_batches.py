"""A caller sends many requests in one $batch, to pass the rate limits, fill the memory or keep others waiting.

Who: anybody who may call the API. What: the amplification of a small request. What prevents it:
domain.odata.service.batch.runner: parts count as requests, a batch has budgets of bytes and of time, and its parts
defer to other requests.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from domain.odata.service.batch import runner
from foundation import cache_versions
from identity.models import RateLimits
from tests.support.api import Api

SMALL = "General_Currencies?$top=1"


def answers(api: Api, count: int) -> list[dict[str, Any]]:
    parts = [{"id": str(number), "method": "GET", "url": SMALL} for number in range(count)]
    responses: list[dict[str, Any]] = api.post("$batch", {"requests": parts}).json()["responses"]
    return responses


def test_parts_of_a_batch_count_as_requests(administrator: Api) -> None:
    RateLimits.objects.update_or_create(pk=1, defaults={"application_per_minute": 5})
    cache_versions.bump("limits")
    cache_versions.expire()
    assert [answer["status"] for answer in answers(administrator, 8)] == [200] * 5 + [429] * 3
    assert administrator.get(SMALL).status_code == 429


def test_a_batch_ends_when_its_answers_are_many_bytes(administrator: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_ANSWER_BYTES", 1)
    first, *others = answers(administrator, 3)
    assert first["status"] == 200
    assert [(answer["status"], answer["body"]["error"]["type"]) for answer in others] == [(413, "BatchTooLarge")] * 2


def test_a_batch_ends_when_it_has_taken_long(administrator: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_SECONDS", -1.0)
    assert [answer["status"] for answer in answers(administrator, 2)] == [413] * 2


def test_the_parts_of_a_batch_defer_to_other_requests(administrator: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    slot = Mock()
    monkeypatch.setattr("foundation.execution_slot._slot", slot)
    answers(administrator, 4)
    assert slot.defer.call_count >= 4
