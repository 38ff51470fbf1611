"""Connections that clients keep open are spread over the web processes (platform_site.serving.connection_balance)."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from functools import partial

import pytest

from bench.load import Request, measure_responses
from bench.shares import requests_by_process, shares
from platform_site.serving.connection_balance import ConnectionBalance, SharedCounts
from tests.support.platform import LivePlatform, start_platform

PATH = "/api/domain/odata/General_Products_Products?$top=20"


def access_token(platform: LivePlatform) -> str:
    """A token of the demo's service application."""
    form = b"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO"
    with urllib.request.urlopen(f"{platform.base_url}/id/connect/token", form) as answer:
        return str(json.load(answer)["access_token"])


def shares_of(platform: LivePlatform, token: str, *, connections: int, seconds: float) -> list[float]:
    """The share of each of the two processes while so many connections ask, once they had time to spread.

    Each connection is opened again whenever the server ends it, and sees no error. They take little of the machine
    (bench.load): 64 threads of a Python client took a core, and with it the share of the process that ran there.
    """
    before: Counter[int] = Counter()
    request = Request("GET", platform.base_url + PATH, {"Authorization": f"Bearer {token}"})
    begin = partial(_note, platform, before)
    answered = measure_responses(request, seconds=seconds, connections=connections, begin=begin).count
    assert answered > connections
    return shares(before, requests_by_process(platform.data_dir), 2)


def _note(platform: LivePlatform, counted: Counter[int]) -> None:
    counted.update(requests_by_process(platform.data_dir))


@pytest.mark.alone  # beside others, which process works more is the machine's choice
@pytest.mark.process
@pytest.mark.once
def test_eight_connections_are_spread_and_see_no_error(live_platform: LivePlatform) -> None:
    smaller, _ = shares_of(live_platform, access_token(live_platform), connections=8, seconds=6.0)
    assert smaller >= 0.35


@pytest.mark.fuzz
@pytest.mark.process
def test_each_of_twenty_starts_spreads_its_connections() -> None:
    figures = []
    for start in range(20):
        with start_platform() as platform:
            token = access_token(platform)
            for connections in (8, 16, 64):
                smaller, larger = shares_of(platform, token, connections=connections, seconds=4.0)
                figures.append((start, connections, smaller))
                print(f"start {start + 1}, {connections} connections: {smaller:.3f} and {larger:.3f}", flush=True)
    assert not [each for each in figures if each[2] < 0.4]


def balances(*in_use: int) -> list[ConnectionBalance]:
    """Processes with so many connections in use each, which have told one another."""
    counts = SharedCounts(len(in_use))
    made = [ConnectionBalance(counts, number) for number in range(len(in_use))]
    for _ in range(2):
        for balance, connections in zip(made, in_use, strict=True):
            for client in range(connections):
                balance.use(f"127.0.0.1:{client}")
            balance.compare(0)
    return made


def closed(balance: ConnectionBalance) -> int:
    """How many of the next hundred responses end their connections."""
    return sum(balance.closes(f"127.0.0.1:{client}") for client in range(100))


@pytest.mark.once
@pytest.mark.parametrize(
    "in_use, too_many",
    [((8, 0), [4, 0]), ((5, 3), [1, 0]), ((4, 4), [0, 0]), ((5, 4), [0, 0]), ((2, 0), [1, 0]), ((9, 2, 1), [5, 0, 0]),
     ((33, 31), [0, 0]), ((40, 24), [8, 0]), ((7,), [0])],
)  # fmt: skip
def test_a_process_ends_the_connections_above_its_share(in_use: tuple[int, ...], too_many: list[int]) -> None:
    assert [closed(balance) for balance in balances(*in_use)] == too_many


@pytest.mark.once
def test_requests_that_take_long_keep_their_connections_in_use() -> None:
    first, second = balances(0, 0)
    second.compare(0)
    first.compare(8)
    assert closed(first) == 4


@pytest.mark.once
def test_a_process_that_has_ended_gets_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform_site.serving.connection_balance.FRESH_SECONDS", -1.0)
    with pytest.raises(ZeroDivisionError):
        balances(8, 0)


@pytest.mark.once
def test_a_process_that_does_not_run_has_no_share() -> None:
    alone = ConnectionBalance(SharedCounts(2), 0)
    alone.compare(8)
    assert closed(alone) == 0
