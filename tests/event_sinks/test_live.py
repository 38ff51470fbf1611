"""Sinks of a running instance: made in a browser, served by its workers, through kills of both ends (spec 13, 13.5)."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.domain.odata.test_live_transactions import CURRENCIES, Caller
from tests.event_sinks.conftest import AnyBroker
from tests.support.accessibility import violations
from tests.support.brokers import NatsServer, kafka_topic, nats_server, rabbit_queue
from tests.support.chromium import PHONE, administrators_page, fits
from tests.support.platform import LivePlatform, free_port, start_platform
from tests.support.processes import children_of, processes_below
from tests.support.waiting import eventually

pytestmark = pytest.mark.process

ADD, LIST = "/admin/event_sinks/eventsink/add/", "/admin/event_sinks/eventsink/"
NAME = "General.Currencies.Currencies"
ENTITIES, TURNS = 4, 15


@pytest.fixture(scope="module")
def platform() -> Iterator[LivePlatform]:
    with start_platform(settings={"EGRESS_ALLOW": "127.0.0.1"}) as started:
        yield started


def fill(page: Page, broker: AnyBroker, name: str, **values: str) -> None:
    """The form of a sink."""
    page.goto(ADD)
    page.fill("#id_name", name)
    page.select_option("#id_broker", broker.broker)
    page.fill("#id_servers", values.get("servers", broker.servers))
    page.get_by_label("TLS").uncheck()
    page.fill("#id_destination", broker.destination)
    page.fill("#id_repositories", values.get("repositories", NAME))
    page.locator(".field-reader .select2-selection").click()
    page.keyboard.type("admin")
    page.locator(".select2-results__option", has_text="Administrator").first.click()
    page.click("[name=_continue] >> nth=0")


def create(caller: Caller, name: str) -> str:
    answer = caller.send("POST", CURRENCIES, {"CurrencySign": name[-3:], "Name": name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["@odata.id"].rpartition("(")[2].rstrip(")"))


def names_of(broker: AnyBroker, id: str) -> list[str]:
    """New names that the changes of an entity tell, in order, without what is told again."""
    told: list[str] = []
    for each in broker.got():
        event = each.event
        if id in event["subject"]:
            change = (event["data"]["changes"] or {}).get("Name", [None, None])[1]
            if change is not None and change not in told:
                told.append(change)
    return told


@pytest.mark.browser
def test_the_page_makes_a_sink_and_tells_how_it_is(platform: LivePlatform, chromium: Browser) -> None:
    with nats_server() as broker, administrators_page(chromium, platform.base_url) as page:
        broker.make_stream()
        page.goto(ADD)
        assert violations(page) == []
        fill(page, broker, "Away", servers=f"127.0.0.1:{free_port()}")
        expect(page.locator("body")).to_contain_text("Away cannot be used yet: no server of NATS accepts")
        page.fill("#id_servers", broker.servers)
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("body")).to_contain_text("Away answers.")
        assert violations(page) == []
        page.set_viewport_size(PHONE)
        assert fits(page)
        create(Caller(platform), "Seen P01")
        assert eventually(lambda: bool(broker.got()), 60)
        page.goto(LIST)
        expect(page.locator("#result_list tbody tr").first).to_contain_text("all delivered")
        assert violations(page) == []
        count = len(broker.got())
        page.locator("#result_list tbody .action-select").first.check()
        page.select_option("[name=action]", "check_sinks")
        page.get_by_role("button", name="Run").first.click()
        expect(page.locator("body")).to_contain_text("Away answers.")
        assert len(broker.got()) == count


@pytest.mark.browser
def test_what_cannot_be_is_told_at_its_field(platform: LivePlatform, chromium: Browser) -> None:
    with nats_server() as broker, administrators_page(chromium, platform.base_url) as page:
        fill(page, broker, "Inside", servers="10.0.0.1:4222")
        expect(page.locator(".field-servers")).to_contain_text("The setting EGRESS_ALLOW must list 10.0.0.1")
        fill(page, broker, "Unknown", repositories="General.Currencies.Currenci")
        expect(page.locator(".field-repositories")).to_contain_text("General.Currencies.Currencies")
        broker.destination = "a.>"
        fill(page, broker, "Wild")
        expect(page.locator(".field-destination")).to_contain_text("Letters, digits")


@pytest.mark.browser
def test_a_password_is_not_sent_to_servers_that_it_was_not_entered_for(
    platform: LivePlatform, chromium: Browser
) -> None:
    with (
        nats_server("--user", "erp", "--pass", "s3cret", user="erp", password="s3cret") as broker,
        administrators_page(chromium, platform.base_url) as page,
    ):
        fill(page, broker, "Locked")
        expect(page.locator("body")).to_contain_text("Locked cannot be used yet: ")
        page.fill("#id_user_name", "erp")
        page.fill("#id_password", "s3cret")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("body")).to_contain_text("Locked answers.")
        page.fill("#id_destination", "other")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator("body")).to_contain_text("Locked answers.")
        assert "s3cret" not in page.content()
        page.fill("#id_servers", "127.0.0.1:1")
        page.click("[name=_continue] >> nth=0")
        expect(page.locator(".field-password")).to_contain_text("Enter it again")


@pytest.mark.browser
def test_every_change_reaches_every_broker_in_order_through_kills(platform: LivePlatform, chromium: Browser) -> None:
    """Writers change the same entities; workers are killed, and the NATS server is, too."""
    with ExitStack() as stack:
        nats = stack.enter_context(nats_server())
        brokers: list[AnyBroker] = [nats, stack.enter_context(rabbit_queue()), stack.enter_context(kafka_topic())]
        with administrators_page(chromium, platform.base_url) as page:
            for broker in brokers:
                broker.make_stream()
                fill(page, broker, f"All to {broker.broker}")
                expect(page.locator("body")).to_contain_text("answers.")
        caller = Caller(platform)
        ids = [create(caller, f"begin T{number:02}") for number in range(ENTITIES)]
        expected: dict[str, list[str]] = defaultdict(list)

        def write(id: str) -> None:
            own = Caller(platform)
            for turn in range(TURNS):
                answer = own.send("PATCH", f"{CURRENCIES}({id})", {"Name": f"{id[-6:]} {turn}"})
                assert answer.status_code in (200, 204), answer.text
                expected[id].append(f"{id[-6:]} {turn}")

        is_over = threading.Event()
        disturber = threading.Thread(target=_disturb, args=(platform, nats, is_over))
        disturber.start()
        with ThreadPoolExecutor(ENTITIES) as pool:
            list(pool.map(write, ids))
        is_over.set()
        disturber.join()
        for broker in brokers:
            for id in ids:
                # Workers begin anew, and a broker that was away is tried again after some seconds.
                eventually(partial(_has_all, broker, id, expected[id]), 120)
                assert names_of(broker, id)[-TURNS:] == expected[id]


def _has_all(broker: AnyBroker, id: str, expected: list[str]) -> bool:
    return names_of(broker, id)[-TURNS:] == expected


def _disturb(platform: LivePlatform, nats: NatsServer, is_over: threading.Event) -> None:
    """Kill processes of the task cluster now and then, and the broker twice."""
    chance = random.Random(1)
    (cluster,) = (pid for pid in children_of(platform.process.pid) if b"qcluster" in _command(pid))
    turn = 0
    while not is_over.wait(0.7):
        turn += 1
        if turn in (2, 4):
            nats.kill()
        elif turn in (3, 5):
            nats.start()
        else:
            victims = processes_below(cluster)
            with suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
    if turn in (2, 4):
        nats.start()


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
