"""A flood of logins delays nobody and is no way around the limits of failures (spec 01, 1.9).

Who: an anonymous caller. What: to send many logins at once, so that hashes use up processors, memory and threads, or
so that more passwords are tried than one after the other. What prevents it: identity.password_checks counts an attempt
before the password is hashed, and identity.password_hashing computes one hash at a time in each process, for addresses
in turn; the process serves other requests meanwhile.
"""

from __future__ import annotations

import http.client
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from urllib.parse import urlencode

import pytest
from django.contrib.auth.hashers import make_password
from django.test import Client, override_settings

from foundation import errors
from identity import password_checks
from identity.password_hashing import HashQueue
from tests.support.measuring import assert_within, seconds_of
from tests.support.memory import forget_peak, peak_bytes, web_processes
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually

AT_ONCE = 30
#: A hash has 46 MiB; the rest is what connections and pages need.
MEMORY_BYTES = 128 * 1024 * 1024
LOGIN = "/id/account/login"
_PROOF = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def connection(platform: LivePlatform, address: str) -> http.client.HTTPConnection:
    """A connection from one of the addresses of this machine, 127.0.0.0/8."""
    host, _, port = platform.base_url.removeprefix("http://").partition(":")
    return http.client.HTTPConnection(host, int(port), timeout=60, source_address=(address, 0))


def login_form(platform: LivePlatform, address: str) -> Callable[[str, str], int]:
    """Sends the login page's form once more each time; returns the status."""
    with closing(connection(platform, address)) as page:
        page.request("GET", LOGIN)
        answer = page.getresponse()
        cookie = str(answer.getheader("Set-Cookie")).partition(";")[0]
        proof = _PROOF.search(answer.read().decode())
    assert proof is not None

    def send(login: str, password: str) -> int:
        form = urlencode({"csrfmiddlewaretoken": proof[1], "login": login, "password": password})
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        with closing(connection(platform, address)) as sent:
            sent.request("POST", LOGIN, form, headers)
            answer = sent.getresponse()
            answer.read()
            return answer.status

    return send


@contextmanager
def flood(platform: LivePlatform, address: str) -> Iterator[Counter[int]]:
    """AT_ONCE callers at one address send logins of their own, one after the other; status → answers so far."""
    send = login_form(platform, address)
    over = threading.Event()
    statuses: Counter[int] = Counter()

    def attack(number: int) -> None:
        sent = 0
        while not over.is_set():
            sent += 1
            statuses[send(f"nobody-{number}-{sent}", "wrong")] += 1

    with ThreadPoolExecutor(AT_ONCE) as pool:
        attacks = [pool.submit(attack, number) for number in range(AT_ONCE)]
        try:
            yield statuses
        finally:
            over.set()
    for each in attacks:
        each.result()


@pytest.mark.process
@pytest.mark.once
@pytest.mark.alone
def test_a_flood_of_logins_holds_up_no_request_and_no_login_from_elsewhere(live_platform: LivePlatform) -> None:
    send = login_form(live_platform, "127.0.0.3")
    processes = web_processes(live_platform)
    before = {pid: forget_peak(pid) for pid in processes}

    def read() -> None:
        with closing(connection(live_platform, "127.0.0.3")) as other:
            other.request("GET", "/id/.well-known/openid-configuration")
            assert other.getresponse().read()

    def log_in() -> None:
        assert send("demo", "demo") == 302

    with flood(live_platform, "127.0.0.2") as statuses:
        assert eventually(lambda: statuses[429] > 0)
        # Others use this machine too: medians, and not the worst.
        assert_within(0.25, lambda: statistics.median(seconds_of(read) for _ in range(20)))
        assert_within(1, lambda: statistics.median(seconds_of(log_in) for _ in range(5)))
    assert set(statuses) <= {200, 429}, statuses
    grown = {pid: peak_bytes(pid) - before[pid] for pid in processes}
    assert max(grown.values()) < MEMORY_BYTES, grown


@pytest.mark.process
@pytest.mark.once
@pytest.mark.alone  # a login waits ten seconds at most for its turn, which other tests could use up
def test_two_dozen_logins_at_once_are_all_answered(live_platform: LivePlatform) -> None:
    """Of unknown browsers at four addresses, as when the offices of a company begin their day."""
    forms = [login_form(live_platform, f"127.0.0.{number}") for number in range(11, 15)]
    people = ["admin", "demo", "customer"]
    together = threading.Barrier(24)

    def log_in(number: int) -> int:
        person = people[number // 4 % 3]
        together.wait(60)
        return forms[number % 4](person, person)

    processes = web_processes(live_platform)
    before = {pid: forget_peak(pid) for pid in processes}
    with ThreadPoolExecutor(24) as pool:
        statuses = Counter(pool.map(log_in, range(24)))
    assert statuses == {302: 24}
    grown = {pid: peak_bytes(pid) - before[pid] for pid in processes}
    assert max(grown.values()) < MEMORY_BYTES, grown


@pytest.mark.process
@pytest.mark.once
def test_attempts_at_once_are_counted_before_they_are_checked(live_platform: LivePlatform) -> None:
    send = login_form(live_platform, "127.0.0.4")
    # The window of a minute must not end meanwhile.
    time.sleep(max(0.0, time.time() % 60 - 50))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = Counter(pool.map(lambda _: send("alice", "wrong"), range(AT_ONCE)))
    # Ten are failures, one is the try in five seconds; a refused attempt is not counted.
    assert statuses[200] <= 12, statuses
    assert statuses[200] + statuses[429] == AT_ONCE


def taken(queue: HashQueue, callers: list[str]) -> list[str]:
    """Who gets the turn of a queue that is held while the callers arrive, in order."""
    served: list[str] = []

    def call(caller: str) -> None:
        with queue.turn(caller):
            served.append(caller)

    threads = []
    with queue.turn("first"):
        for caller in callers:
            threads.append(threading.Thread(target=call, args=(caller,)))
            threads[-1].start()
            time.sleep(0.02)
    for thread in threads:
        thread.join()
    return served


def test_addresses_take_turns() -> None:
    assert taken(HashQueue(), ["a", "a", "a", "b"]) == ["a", "b", "a", "a"]


def test_few_attempts_of_one_address_wait() -> None:
    queue = HashQueue(max_waiting=3, max_waiting_per_caller=2, wait_seconds=1)
    with queue.turn("first"), ThreadPoolExecutor(5) as pool:
        waiting = []
        for caller in ("a", "a", "b"):
            waiting.append(pool.submit(taken_once, queue, caller))
            assert eventually(lambda: len(queue._waiting) == len(waiting))
        for is_known in (False, True):
            assert not taken_once(queue, "a", is_known=is_known)
        waiting.append(pool.submit(taken_once, queue, "c"))
        assert waiting[1].result() is False, "in a full queue the address with the most gives way"
        assert not taken_once(queue, "d"), "all have one"
        waiting.append(pool.submit(taken_once, queue, "known", is_known=True))
        assert eventually(lambda: len(queue._waiting) == 4)
        # All give up while the turn is held.
        assert [each.result() for each in waiting] == [False] * 5
    with queue.turn("next"):
        pass


def taken_once(queue: HashQueue, caller: str, *, is_known: bool = False) -> bool:
    try:
        with queue.turn(caller, is_known=is_known):
            return True
    except errors.TooManyRequests:
        return False


def test_an_attempt_that_is_refused_unchecked_is_not_counted(demo: None, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = HashQueue(wait_seconds=0.01)
    monkeypatch.setattr(password_checks, "hash_queue", queue)
    with queue.turn("198.51.100.7"):
        answers = [Client().post(LOGIN, {"login": "demo", "password": "demo"}) for _ in range(15)]
    assert {(answer.status_code, answer.headers["Retry-After"]) for answer in answers} == {(429, "1")}
    assert Client().post(LOGIN, {"login": "demo", "password": "demo"}).status_code == 302


@override_settings(PASSWORD_HASHERS=["identity.password_hashing.PasswordHasher"])
def test_the_hash_has_the_parameters_of_the_cheat_sheet() -> None:
    assert make_password("a-long-Password-9317").startswith("argon2$argon2id$v=19$m=47104,t=1,p=1$")
