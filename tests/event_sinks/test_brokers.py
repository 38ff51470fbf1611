"""What a broker stores of what it is sent, and what it says if it cannot (spec 13, 13.5)."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from event_sinks.admin import EventSinkForm
from event_sinks.brokers import connected
from event_sinks.brokers.target import (
    CONTENT_TYPE,
    BrokerFailed,
    EventMessage,
    Target,
    servers_of,
    target_of,
)
from event_sinks.models import EventSink
from foundation.egress.policy import EgressPolicy
from tests.event_sinks.conftest import AnyBroker
from tests.support.brokers import NatsServer, nats_server
from tests.support.certificates import certificate_for
from tests.support.platform import free_port

ALLOWED = EgressPolicy.parse(["127.0.0.1", "*.brokers.example"])
MESSAGES = [
    EventMessage(f"s-{number}", f"Crm.Sales.{'AB'[number % 2]}.Update", f"key {number % 3}", b'{"type": "x"}')
    for number in range(9)
]


def target_to(broker: AnyBroker, **changed: object) -> Target:
    values = {"broker": broker.broker, "servers": broker.servers, "destination": broker.destination, "uses_tls": False}
    return target_of(EventSink(**values | changed), policy=ALLOWED)


def failure_of(target: Target, messages: list[EventMessage] = MESSAGES) -> str:
    with pytest.raises(BrokerFailed) as raised, connected(target) as publish:
        publish(messages)
    return str(raised.value)


def test_messages_are_stored_in_order_with_what_they_are(broker: AnyBroker) -> None:
    broker.make_stream()
    with connected(target_to(broker)) as publish:
        for number in range(0, len(MESSAGES), 3):
            publish(MESSAGES[number : number + 3])
    got = broker.got()
    assert sorted(each.body for each in got) == sorted(message.body for message in MESSAGES)
    assert {each.content_type for each in got} == {CONTENT_TYPE}
    if broker.broker == "Kafka":
        assert sorted(each.key for each in got) == sorted(message.key for message in MESSAGES)
    else:
        assert [each.name for each in got if each.id in ("s-0", "s-3", "s-6")] == [
            MESSAGES[number].name for number in (0, 3, 6)
        ]
        order = [each.id for each in got]
        for key in range(3):
            of_key = [f"s-{number}" for number in range(key, 9, 3)]
            assert [id for id in order if id in of_key] == of_key


def test_nobody_listens(broker: AnyBroker) -> None:
    told = failure_of(target_to(broker, servers=f"127.0.0.1:{free_port()}"))
    assert "accept" in told
    assert re.search("refused|failed", told)


def test_the_next_server_is_tried(broker: AnyBroker) -> None:
    broker.make_stream()
    with connected(target_to(broker, servers=f"127.0.0.1:{free_port()}, {broker.servers}")) as publish:
        publish(MESSAGES[:1])
    assert len(broker.got()) == 1


def test_something_else_listens(broker: AnyBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("nats", "rabbitmq", "kafka"):
        monkeypatch.setattr(f"event_sinks.brokers.{module}.CONNECT_SECONDS", 1.0)
        monkeypatch.setattr(f"event_sinks.brokers.{module}.CONFIRM_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "accept" in failure_of(target_to(broker, servers=f"127.0.0.1:{silent.getsockname()[1]}"))


def test_a_subject_that_no_stream_stores(nats_broker: NatsServer) -> None:
    told = failure_of(target_to(nats_broker))
    assert told == f"no stream of JetStream stores the subject {nats_broker.destination}.Crm.Sales.A.Update"


def test_an_event_that_is_sent_again_is_stored_once(nats_broker: NatsServer) -> None:
    nats_broker.make_stream()
    with connected(target_to(nats_broker)) as publish:
        publish(MESSAGES)
        publish(MESSAGES)
    assert len(nats_broker.got()) == len(MESSAGES)


def test_a_password() -> None:
    with nats_server("--user", "erp", "--pass", "s3cret", user="erp", password="s3cret") as server:
        server.make_stream()
        assert "Authorization" in failure_of(target_to(server, user_name="erp", password="wrong"))
        with connected(target_to(server, user_name="erp", password="s3cret")) as publish:
            publish(MESSAGES[:1])


def test_a_wrong_password_for_rabbitmq(broker: AnyBroker) -> None:
    if broker.broker == "RabbitMQ":
        assert "ACCESS_REFUSED" in failure_of(target_to(broker, user_name="guest", password="wrong"))
        assert "vhost nowhere" in failure_of(target_to(broker, servers=f"{broker.servers}/nowhere"))


def test_the_server_must_be_who_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certificate_for("127.0.0.1", tmp_path)
    with nats_server("--tls", "--tlscert", str(certificate), "--tlskey", str(certificate)) as server:
        told = failure_of(target_to(server, uses_tls=True))
        assert "certificate" in told.lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert "no stream" in failure_of(target_to(server, uses_tls=True))


@pytest.mark.parametrize(
    "broker, text, found, virtual_host",
    [
        ("NATS", "a.example, b.example:9", [("a.example", 4222), ("b.example", 9)], "/"),
        ("RabbitMQ", "A.example/erp", [("a.example", 5671)], "erp"),
        ("Kafka", "[::1]:80,10.0.0.1", [("::1", 80), ("10.0.0.1", 9093)], "/"),
        ("Kafka", "a.example:443", [("a.example", 443)], "/"),
    ],
)
def test_servers(broker: str, text: str, found: list[tuple[str, int]], virtual_host: str) -> None:
    servers, path = servers_of(broker, text, uses_tls=True)
    assert ([(server.host, server.port) for server in servers], path) == (found, virtual_host)


@pytest.mark.parametrize("text", ["", "a b", "user:secret@a.example", "a.example:0", "a.example:x", ",", "a.example,"])
def test_servers_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|port|valid|space|name"):
        servers_of("NATS", text, uses_tls=False)


@pytest.mark.parametrize("host", ["127.0.0.2", "10.0.0.1", "broker.example", "brokers.example", "8.8.8.8"])
def test_the_operator_lists_the_hosts(host: str) -> None:
    with pytest.raises(ValueError, match="EGRESS_ALLOW"):
        target_of(EventSink(broker="Kafka", servers=f"127.0.0.1,{host}", destination="t"), policy=ALLOWED)
    listed = EgressPolicy.parse([host, "127.0.0.0/8"])
    target = target_of(EventSink(broker="Kafka", servers=f"127.0.0.1,{host}", destination="t"), policy=listed)
    assert [server.host for server in target.servers] == ["127.0.0.1", host]


@pytest.mark.parametrize(
    "broker, text", [("NATS", "a.>"), ("NATS", "a..b"), ("NATS", "a b"), ("Kafka", ".."), ("RabbitMQ", "a/b")]
)
def test_destinations_that_a_broker_cannot_have(broker: str, text: str) -> None:
    with pytest.raises(ValueError, match="letters"):
        target_of(EventSink(broker=broker, servers="127.0.0.1", destination=text), policy=ALLOWED)


def test_the_form_tells_every_fault_and_asks_for_the_password_again(db: None) -> None:
    form = EventSinkForm(
        {"name": "x", "broker": "NATS", "servers": "a b", "destination": "two words", "password": "geheim"}
    )
    assert {"servers", "destination", "password", "reader"} <= form.errors.keys()
    assert str(form.errors["destination"][0]).startswith("Letters, digits")
    assert "stays" not in EventSinkForm().fields["password"].help_text, "there is none yet"
