"""Domain transactions on the real instance: four server processes, several clients, processes killed at random.

What every request shows is compared with a plain-Python model of the same operations: a committed dict, and for each
open transaction a copy of what it has changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.platform import LivePlatform, start_platform

CURRENCIES = "General_Currencies_Currencies"
PREFIX = "tx:"
KILLS = int(os.environ.get("KILLS", "2"))

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def four() -> Iterator[LivePlatform]:
    """An instance of four web processes."""
    with start_platform(settings={"WEB_PROCESSES": "4"}) as platform:
        yield platform


class Caller:
    """A service application's token, and a way to send that tries again where the server says so or is gone."""

    def __init__(self, platform: LivePlatform) -> None:
        self.platform = platform
        self.http = requests.Session()
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
        answer = self._sent("POST", f"{platform.base_url}/id/connect/token", data={**form, "scope": "read update"})
        self.http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def send(self, method: str, path: str, body: Any = None, transaction: str | None = None) -> requests.Response:
        """One request; 503 (database busy) is tried again as it asks."""
        headers = {"TransactionId": transaction} if transaction else {}
        return self._sent(method, self.platform.odata_url + path, json=body, headers=headers)

    def _sent(self, method: str, url: str, **given: Any) -> requests.Response:
        for _ in range(50):
            answer = self.http.request(method, url, timeout=60, **given)
            if answer.status_code != 503:
                return answer
            time.sleep(0.1)
        raise AssertionError("the server stays busy")

    def begin(self, **options: Any) -> str:
        """A new transaction."""
        answer = self.send("POST", "BeginTransaction", options)
        assert answer.status_code == 200, answer.text
        return answer.text

    def shown(self, transaction: str | None = None) -> dict[str, str]:
        """guid → name of the test's currencies, by a filter, in order of their names."""
        found: dict[str, str] = {}
        url = f"{CURRENCIES}?$filter=startswith(Name,'{PREFIX}')&$orderby=Name&$select=Name"
        while url:
            answer = self.send("GET", url, transaction=transaction)
            assert answer.status_code == 200, answer.text
            page = answer.json()
            for row in page["value"]:
                found[row["@odata.id"].partition("(")[2][:-1]] = row["Name"]
            url = page.get("@odata.nextLink", "").removeprefix(self.platform.odata_url)
        assert list(found.values()) == sorted(found.values())
        return found


_platform: LivePlatform | None = None
_callers: list[Caller] = []
_numbers = iter(range(10**9))


class Interleaving(RuleBasedStateMachine):
    """Three clients, each with a transaction or without, against the model."""

    def __init__(self) -> None:
        super().__init__()
        assert _platform is not None
        while len(_callers) < 3:
            _callers.append(Caller(_platform))
        self.callers = _callers
        #: What everybody sees: guid → name.
        self.committed: dict[str, str] = {}
        #: Client → (transaction, changes: guid → name, None for deleted).
        self.open: dict[int, tuple[str, dict[str, str | None]]] = {}

    def _view(self, client: int) -> dict[str, str]:
        changes = self.open[client][1] if client in self.open else {}
        merged = {**self.committed, **changes}
        return {id: name for id, name in merged.items() if name is not None}

    def _taken(self, id: str, client: int) -> bool:
        """Whether another open transaction has changed it: then one of the commits would be a conflict."""
        return any(id in changes for other, (_, changes) in self.open.items() if other != client)

    def _write(self, client: int, id: str, name: str | None) -> None:
        if client in self.open:
            self.open[client][1][id] = name
        elif name is None:
            del self.committed[id]
        else:
            self.committed[id] = name

    @initialize()
    def clean(self) -> None:
        for id in self.callers[0].shown():
            assert self.callers[0].send("DELETE", f"{CURRENCIES}({id})").status_code == 204

    @rule(client=st.integers(0, 2))
    def begin(self, client: int) -> None:
        if client not in self.open:
            self.open[client] = (self.callers[client].begin(), {})

    @rule(client=st.integers(0, 2), text=st.text("abc", min_size=1, max_size=3))
    def create(self, client: int, text: str) -> None:
        number = next(_numbers)
        name = f"{PREFIX}{text}{number}"
        transaction = self.open.get(client, (None,))[0]
        sign = f"{number:03d}"[-8:]
        answer = self.callers[client].send("POST", CURRENCIES, {"CurrencySign": sign, "Name": name}, transaction)
        assert answer.status_code == 201, answer.text
        self._write(client, answer.json()["@odata.id"].partition("(")[2][:-1], name)

    @rule(client=st.integers(0, 2), pick=st.randoms(use_true_random=False), text=st.text("xyz", min_size=1, max_size=3))
    def rename(self, client: int, pick: random.Random, text: str) -> None:
        ids = [id for id in self._view(client) if not self._taken(id, client)]
        if ids:
            id, name = pick.choice(sorted(ids)), f"{PREFIX}{text}{next(_numbers)}"
            transaction = self.open.get(client, (None,))[0]
            answer = self.callers[client].send("PATCH", f"{CURRENCIES}({id})", {"Name": name}, transaction)
            assert answer.status_code == 204, answer.text
            self._write(client, id, name)

    @rule(client=st.integers(0, 2), pick=st.randoms(use_true_random=False))
    def delete(self, client: int, pick: random.Random) -> None:
        ids = [id for id in self._view(client) if not self._taken(id, client)]
        if ids:
            id = pick.choice(sorted(ids))
            transaction = self.open.get(client, (None,))[0]
            answer = self.callers[client].send("DELETE", f"{CURRENCIES}({id})", None, transaction)
            assert answer.status_code == 204, answer.text
            self._write(client, id, None)

    @precondition(lambda self: self.open)
    @rule(client=st.integers(0, 2), commit=st.booleans())
    def end(self, client: int, commit: bool) -> None:
        if client not in self.open:
            return
        transaction, changes = self.open.pop(client)
        answer = self.callers[client].send("POST", "EndTransaction", {"commit": commit}, transaction)
        assert answer.status_code == 204, answer.text
        if commit:
            merged = {**self.committed, **changes}
            self.committed = {id: name for id, name in merged.items() if name is not None}
        again = self.callers[client].send("GET", CURRENCIES, transaction=transaction)
        assert again.status_code == 400

    @invariant()
    def everybody_sees_what_the_model_says(self) -> None:
        outsider = self.callers[0].shown()
        assert outsider == self.committed
        for client, (transaction, _) in self.open.items():
            assert self.callers[client].shown(transaction) == self._view(client)

    def teardown(self) -> None:
        for client, (transaction, _) in self.open.items():
            self.callers[client].send("POST", "EndTransaction", {"commit": False}, transaction)


def test_random_interleavings_are_as_the_model_says(four: LivePlatform) -> None:
    global _platform
    _platform = four
    _callers.clear()
    machine = settings(
        max_examples=int(os.environ.get("INTERLEAVINGS", "3")), stateful_step_count=15, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Interleaving, settings=machine)


# --- killed processes ---------------------------------------------------------------------------------------------


def web_workers(platform: LivePlatform) -> list[int]:
    """Process ids of the web server's worker processes: children of the web server that the supervisor started."""
    children: dict[int, list[int]] = {}
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(stat[1]), []).append(int(entry.name))
                commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    servers = [pid for pid in children.get(platform.process.pid, []) if "platform: web" in commands.get(pid, "")]
    return [pid for server in servers for pid in children.get(server, []) if "resource_tracker" not in commands[pid]]


def _kills(platform: LivePlatform, caller: Caller, kills: int) -> None:
    """Rename and create in a transaction, killing the worker processes at random moments; the model knows what holds.

    A request whose answer is lost has either left all that it did or nothing; what it left is looked up by key.
    """
    randomness = random.Random(kills)
    base = caller.send("POST", CURRENCIES, {"CurrencySign": "KIL", "Name": f"{PREFIX}base"})
    key = base.json()["@odata.id"]
    committed = f"{PREFIX}base"
    transaction, pending = caller.begin(), committed
    for turn in range(kills):
        wanted = f"{PREFIX}{turn}"
        killer = threading.Timer(randomness.random() * 0.02, _kill_workers, [platform])
        killer.start()
        try:
            answer = caller.http.patch(
                platform.odata_url + key, json={"Name": wanted}, headers={"TransactionId": transaction}, timeout=60
            )
            outcome = answer.status_code
        except requests.RequestException:
            outcome = 0
        killer.join()
        inside = _again(caller, "GET", key, transaction).json()["Name"]
        assert inside in ((wanted,) if outcome == 204 else (wanted, pending)), (turn, outcome, inside, pending)
        pending = inside
        assert _again(caller, "GET", key).json()["Name"] == committed
        if turn % 4 == 3:
            killer = threading.Timer(randomness.random() * 0.02, _kill_workers, [platform])
            killer.start()
            try:
                outcome = caller.send("POST", "EndTransaction", {"commit": True}, transaction).status_code
            except requests.RequestException:
                outcome = 0
            killer.join()
            # A PostgreSQL server that had the whole commit goes on with it although its client is dead. Who asks in the
            # transaction waits for that; who asks outside of it would not.
            again = _again(caller, "GET", key, transaction)
            outside = _again(caller, "GET", key).json()["Name"]
            if again.status_code == 400:
                # Committed, all of it.
                assert outside == pending
                transaction = _again(caller, "POST", "BeginTransaction", None, {}).text
            else:
                assert outcome != 204
                assert outside == committed
                assert again.json()["Name"] == pending
            committed = outside


def _again(caller: Caller, method: str, path: str, transaction: str | None = None, body: Any = None) -> Any:
    """Until a process answers: the supervisor starts new ones."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return caller.send(method, path, body, transaction)
        except requests.RequestException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _kill_workers(platform: LivePlatform) -> None:
    for pid in web_workers(platform):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def threads(platform: LivePlatform) -> int:
    """Threads of all web processes."""
    return sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in web_workers(platform))


def test_killed_processes_lose_and_halve_nothing(four: LivePlatform) -> None:
    caller = Caller(four)
    for id in caller.shown():
        caller.send("DELETE", f"{CURRENCIES}({id})")
    assert len(web_workers(four)) == 4, json.dumps(web_workers(four))
    _kills(four, caller, KILLS)


@pytest.mark.fuzz
def test_a_hundred_kills(four: LivePlatform) -> None:
    caller = Caller(four)
    for id in caller.shown():
        caller.send("DELETE", f"{CURRENCIES}({id})")
    _kills(four, caller, 100)


# --- long polls ---------------------------------------------------------------------------------------------------


class Waiter:
    """A client that asks for changes and has not been told any yet."""

    def __init__(self, caller: Caller, transaction: str) -> None:
        address = urlsplit(caller.platform.odata_url)
        self._answer = b""
        self._socket = socket.create_connection((address.hostname or "", address.port or 80), timeout=60)
        self._socket.sendall(
            f"GET {address.path}WaitForChanges() HTTP/1.1\r\nHost: {address.netloc}\r\nTransactionId: {transaction}\r\n"
            f"Authorization: {caller.http.headers['Authorization']!s}\r\nConnection: close\r\n\r\n".encode()
        )
        # The status comes before the waiting, so from here on it waits.
        while b"\r\n\r\n" not in self._answer:
            self._receive()
        assert self._answer.startswith(b"HTTP/1.1 200 "), self._answer

    def _receive(self) -> bool:
        part = self._socket.recv(65536)
        self._answer += part
        return bool(part)

    def fileno(self) -> int:
        """For select."""
        return self._socket.fileno()

    def has_all(self) -> bool:
        """After select: whether the answer has ended; white space says only that it will come."""
        return not self._receive()

    def told(self) -> Any:
        """What it is told at last; waits for it."""
        while self._receive():
            pass
        self._socket.close()
        parts = self._answer.partition(b"\r\n\r\n")[2].split(b"\r\n")
        return json.loads(b"".join(parts[1::2]))


@pytest.mark.alone
def test_two_hundred_waiting_clients_hold_nobody_up(four: LivePlatform) -> None:
    caller = Caller(four)
    key = caller.send("POST", CURRENCIES, {"CurrencySign": "WAI", "Name": f"{PREFIX}waited for"}).json()["@odata.id"]
    transactions = [caller.begin(trackChanges=True) for _ in range(10)]
    before = threads(four)
    waiters = {transaction: [Waiter(caller, transaction) for _ in range(20)] for transaction in transactions}
    assert threads(four) - before < 50, "a waiting client has no thread"
    # More ordinary requests than threads that are left for them in all.
    for number in range(80):
        assert caller.send("GET", key).json()["Name"] == f"{PREFIX}waited for", number
    # A change made by whichever process is told by whichever process, once, to one of those who wait for it.
    told = []
    for number in range(2):
        changed = caller.send("PATCH", key, {"Name": f"{PREFIX}{number}"}, transactions[0])
        assert changed.status_code == 204, changed.text
        first: list[Waiter] = []
        while not first:
            readable, _, _ = select.select(waiters[transactions[0]], [], [], 60)
            assert readable
            first = [waiter for waiter in readable if waiter.has_all()]
        (one,) = first
        waiters[transactions[0]].remove(one)
        told.append(one.told())
    guid = key.partition("(")[2][:-1]
    assert told == [
        {"insert": {}, "update": {CURRENCIES: {guid: {"Name": f"{PREFIX}{number}"}}}, "delete": {}}
        for number in range(2)
    ]
    assert caller.send("PATCH", key, {"Name": f"{PREFIX}last"}, transactions[9]).status_code == 204
    for transaction in transactions:
        assert caller.send("POST", "EndTransaction", {"commit": False}, transaction).status_code == 204
    answers = [waiter.told() for transaction in transactions for waiter in waiters[transaction]]
    assert len(answers) == 198
    # The end of a transaction ends the waiting; the last change was told unless the end came first.
    assert sum(answer != {} for answer in answers) <= 1
    assert caller.send("DELETE", key).status_code == 204


# --- several at once ----------------------------------------------------------------------------------------------


def at_once(platform: LivePlatform, callers: int, work: Callable[[Caller, int], None]) -> None:
    """Let so many callers work side by side, each with its number."""
    failures: list[str] = []

    def run(number: int) -> None:
        try:
            work(Caller(platform), number)
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_patches_and_merges_of_eight_callers_all_hold(four: LivePlatform) -> None:
    """tests.domain.odata.test_concurrent_writes, with processes that serve one request at a time."""
    caller, systems = Caller(four), "General_Products_CodingSystems"
    key = caller.send("POST", CURRENCIES, {"CurrencySign": "CON", "Name": "Any"}).json()["@odata.id"]
    version = caller.send("GET", f"{key}?$select=ObjectVersion").json()["ObjectVersion"]

    def work(own: Caller, number: int) -> None:
        for turn in range(10):
            assert own.http.patch(four.odata_url + key, json={"Name": f"{number}/{turn}"}).status_code == 204
            body = {"@erpnet.action": "merge", "ExternalId": f"live {turn}", "Name": {"EN": f"{number}"}}
            assert own.http.post(four.odata_url + systems, json=body).status_code in (200, 201)

    at_once(four, 8, work)
    assert caller.send("GET", f"{key}?$select=ObjectVersion").json()["ObjectVersion"] == version + 80
    made = caller.send("GET", f"{systems}?$filter=startswith(ExternalId,'live ')&$select=ObjectVersion").json()["value"]
    assert [entity["ObjectVersion"] for entity in made] == [8] * 10
    for path in (key, *(entity["@odata.id"] for entity in made)):
        assert caller.send("DELETE", path).status_code == 204


# --- numbers ------------------------------------------------------------------------------------------------------


def test_eight_creators_leave_no_gap_in_the_numbers(four: LivePlatform) -> None:
    """Each makes orders, and between them one that is refused after its number was taken."""
    caller = Caller(four)
    template = caller.send("GET", "Crm_Sales_SalesOrders?$top=1&$expand=Lines($top=1)").json()["value"][0]
    order = {name: template[name] for name in ("DocumentType", "Customer", "EnterpriseCompany")}
    product = {"Product": template["Lines"][0]["Product"]}
    made: list[str] = []

    def create(own: Caller, number: int) -> None:
        for turn in range(4):
            refused = own.send("POST", "Crm_Sales_SalesOrders", {**order, "Lines": [{"Quantity": 1}]})
            assert refused.status_code == 500, refused.text
            body = {**order, "DocumentNotes": f"{number}/{turn}", "Lines": [product]}
            answer = own.send("POST", "Crm_Sales_SalesOrders?$select=DocumentNo", body)
            assert answer.status_code == 201, answer.text
            made.append(answer.json()["DocumentNo"])

    at_once(four, 8, create)
    numbers = sorted(int(number) for number in made)
    assert numbers == list(range(numbers[0], numbers[0] + 32))
