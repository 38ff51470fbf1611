"""One caller sends endless scripts, hundreds at a time.

Who: anybody with the scope exec, and whoever may write scripts or rules. What: to take all script workers, and all
threads of the web server that wait for one, from others. What prevents it: the runs of one user that run or wait in a
process are counted, callers take turns for workers, one warm worker is kept for a caller that has nothing running, and
fewer runs may wait than the server has threads.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import requests

from foundation.fair_queue import FairQueue
from rules.engine import _naming_rule
from scripts import services
from scripts.sandbox.errors import CallerBusy, SandboxBusy, SandboxError
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import SandboxPool, Ticket
from tests.acceptance.caller import Caller
from tests.acceptance.people import Person, token_request
from tests.support.api import Api, error_of
from tests.support.measuring import assert_within, seconds_of, slowness
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually

ENDLESS = "for (;;);"
TEXT = {"Content_Type": "text/plain"}
SHORT = Limits(wall_seconds=1.5, cpu_seconds=1.5)


@contextmanager
def attack(pool: SandboxPool, runs: int, caller: str = "attacker") -> Iterator[Counter[str]]:
    """Endless scripts at once; how each of them ended so far."""
    ends: Counter[str] = Counter()

    def send() -> None:
        try:
            pool.run(ENDLESS, caller=caller)
        except SandboxError as error:
            ends[type(error).__name__] += 1

    threads = [threading.Thread(target=send) for _ in range(runs)]
    for thread in threads:
        thread.start()
    try:
        yield ends
    finally:
        for thread in threads:
            thread.join(60)


def test_callers_take_turns() -> None:
    waiting: FairQueue[Ticket] = FairQueue()
    for caller in ("attacker",) * 4 + ("anna", "attacker", "boris", "anna"):
        waiting.put(Ticket(caller))
    order = [ticket.caller for ticket in iter(lambda: waiting.take(lambda caller: True), None)]
    assert order == ["attacker", "anna", "boris", "attacker", "anna", "attacker", "attacker", "attacker"]


def test_a_full_queue_has_room_for_who_has_less_in_it() -> None:
    waiting: FairQueue[Ticket] = FairQueue()
    mine = [Ticket("attacker") for _ in range(3)]
    for ticket in mine:
        waiting.put(ticket)
    assert waiting.evict_for("attacker") is None
    assert waiting.evict_for("anna") is mine[-1]
    waiting.put(Ticket("anna"))
    assert waiting.evict_for("anna") is None
    assert waiting.evict_for("boris") is mine[-2]


def test_runs_put_back_in_front_keep_their_order() -> None:
    waiting: FairQueue[Ticket] = FairQueue()
    waiting.put(Ticket("boris"))
    for caller in ("anna", "boris", "carla"):
        waiting.put_first(Ticket(caller))
    order = [ticket.caller for ticket in iter(lambda: waiting.take(lambda caller: True), None)]
    assert order == ["anna", "boris", "carla", "boris"]


def test_runs_put_back_in_front_count_as_their_callers() -> None:
    waiting: FairQueue[Ticket] = FairQueue()
    first = Ticket("anna")
    waiting.put_first(first)
    waiting.put(Ticket("anna"))
    assert waiting.count_of("anna") == 2
    waiting.remove(first)
    assert waiting.count_of("anna") == 1


@pytest.mark.alone
def test_the_runs_of_one_caller_are_counted_and_others_are_served() -> None:
    with SandboxPool(2, SHORT, max_per_caller=6, wait_seconds=4) as pool:
        pool.run("1")
        with attack(pool, 40) as ends:
            assert eventually(lambda: ends["CallerBusy"] == 34)
            assert pool._at_work == 2  # one warm worker is not for who has two already
            assert_within(1, lambda: seconds_of(lambda: pool.run("1", caller="anna")))
            assert not ends["ScriptLimitExceeded"]
            with pytest.raises(CallerBusy) as refused:
                pool.run("1", caller="attacker")
            assert refused.value.runs == 6
            assert refused.value.retry_after_seconds >= 1
        pool.run("1", caller="attacker")


def test_a_full_queue_gives_a_place_of_the_attacker_to_another_caller() -> None:
    with SandboxPool(1, SHORT, max_waiting=3, wait_seconds=10) as pool:
        pool.run("1")
        with attack(pool, 4) as ends, attack(pool, 1, "second attacker"):
            assert eventually(lambda: len(pool._waiting) == 3 and pool._at_work == 2)
            pool.run("1", caller="anna")
            assert ends["SandboxBusy"] == 1


def test_a_script_that_runs_another_is_never_stopped_by_its_caller_s_limit() -> None:
    with SandboxPool(1, SHORT, max_per_caller=1) as pool:
        inner: list[bytes] = []
        pool.run(
            "host('inner')",
            prelude="globalThis.host = host",
            host_calls=lambda method, given: inner.append(
                pool.run("return 7", mode="function_body", caller="anna").value_json
            ),
            caller="anna",
        )
    assert inner == [b"7"]


def test_too_many_scripts_are_429(administrator: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a rule's script inside somebody's change, which is told as it is and not as a broken rule."""

    def busy(*_given: object, **_named: object) -> None:
        raise CallerBusy(32, 3)

    monkeypatch.setattr(services.pool(), "run", busy)
    answer = administrator.post("ExecuteScript", "1", Content_Type="text/plain")
    error = error_of(answer)
    assert (answer.status_code, error["code"], error["type"]) == (429, 3107, "TooManyScripts"), error
    assert answer.headers["Retry-After"] == "3"
    assert error["parameters"] == ["32", "3"]


def test_a_rule_passes_it_on() -> None:
    told = services._no_worker(CallerBusy(32, 3))
    assert _naming_rule(told, None, None) is told  # type: ignore[arg-type]
    assert services._no_worker(SandboxBusy(3)).status == 503


@pytest.mark.process
@pytest.mark.once
@pytest.mark.alone
def test_an_instance_serves_others_beside_three_hundred_endless_scripts(live_platform: LivePlatform) -> None:
    site = Caller(live_platform.base_url)
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "scope": "DomainApi read exec"}
    attacker = site.with_token(token_request(site, **form).json()["access_token"])

    def send(_number: int) -> int:
        # A connection of its own, so that the attack reaches every process.
        return Caller(attacker.base_url, attacker.headers).post("ExecuteScript", ENDLESS, **TEXT).status_code

    waits: list[float] = []

    def timely(answer: Callable[[], requests.Response]) -> None:
        begun = time.monotonic()
        assert answer().status_code == 200
        waits.append(time.monotonic() - begun)

    with Person.signed_in(site, "demo", client_id="DualDemoClient", scope="openid read exec") as demo:
        product = demo.api.read("General_Products_Products?$top=1")["value"][0]["@odata.id"]
        with ThreadPoolExecutor(300) as threads:
            sent = [threads.submit(send, number) for number in range(300)]
            assert eventually(lambda: any(each.done() for each in sent), 60)
            for _ in range(20):
                timely(lambda: demo.api.get(product))
            timely(lambda: demo.api.post("ExecuteScript", "console.log(1)", **TEXT))
            statuses = Counter(each.result() for each in sent)
    print(statuses, max(waits))
    # Endless scripts run for five seconds and wait for ten; others must not wait behind them.
    assert max(waits) < 4 * slowness(), (waits, statuses)
    assert statuses[429] > 150, statuses
    assert set(statuses) <= {429, 500, 503}, statuses
