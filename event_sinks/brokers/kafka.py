"""Kafka: all events have one topic, with the entity's id as key, so events of an entity are in one partition.

Users authenticate by SASL/PLAIN. The producer is idempotent: its own retries are stored once and in order.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from event_sinks.brokers.target import (
    CONFIRM_SECONDS,
    CONNECT_SECONDS,
    CONTENT_TYPE,
    BrokerFailed,
    EventMessage,
    Publish,
    Target,
    certificates,
)
from foundation.messages import TranslatableMessage as Message

_POLL_SECONDS = 0.5
_logger = logging.getLogger("platform.events")


@contextmanager
def connected(target: Target) -> Iterator[Publish]:
    """Connect; see event_sinks.brokers."""
    problems: list[KafkaError] = []
    producer = Producer({**_settings(target), "error_cb": problems.append, "logger": _quiet_logger()})
    _connect(producer, target.destination, problems)
    try:
        yield lambda messages: _publish(producer, target.destination, messages)
    finally:
        producer.purge()
        producer.poll(0)


def _connect(producer: Producer, topic: str, problems: list[KafkaError]) -> None:
    """Wait for the topic's metadata in short calls: only between them the library reports unreachable servers."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            producer.list_topics(topic, timeout=_POLL_SECONDS)
        except KafkaException as exc:
            producer.poll(0)
            is_down = any(problem.code() == KafkaError._ALL_BROKERS_DOWN for problem in problems)
            if is_down or time.monotonic() >= deadline:
                error_text = (problems[0] if problems else exc.args[0]).str()
                raise BrokerFailed(Message("no server of Kafka accepts a connection: {0}", error_text)) from exc
        else:
            return


def _publish(producer: Producer, topic: str, messages: Sequence[EventMessage]) -> None:
    failed: list[str] = []

    def note(error: Any, _message: Any) -> None:
        if error is not None:
            failed.append(error.str())

    for message in messages:
        producer.produce(
            topic, message.body, key=message.key.encode(), headers={"content-type": CONTENT_TYPE}, on_delivery=note
        )
    if producer.flush(CONFIRM_SECONDS) or failed:
        raise BrokerFailed(Message("Kafka has not confirmed an event: {0}", failed[0] if failed else "timed out"))


def _settings(target: Target) -> dict[str, Any]:
    result: dict[str, Any] = {
        "bootstrap.servers": ",".join(server.name for server in target.servers),
        "client.id": "event-sink",
        "enable.idempotence": True,
        "linger.ms": 0,
        "message.timeout.ms": int(CONFIRM_SECONDS * 900),
        "socket.connection.setup.timeout.ms": int(CONNECT_SECONDS * 1000),
        "security.protocol": f"{'SASL_' if target.user_name else ''}{'SSL' if target.uses_tls else 'PLAINTEXT'}",
    }
    if target.uses_tls:
        # The library's bundled OpenSSL does not find the system's certificates.
        result["ssl.ca.location"] = certificates()
    if target.user_name:
        result |= {"sasl.mechanism": "PLAIN", "sasl.username": target.user_name, "sasl.password": target.password}
    return result


def _quiet_logger() -> logging.Logger:
    """A logger that drops the library's messages about each attempt; BrokerFailed has the error."""
    result = _logger.getChild("kafka")
    result.setLevel(logging.CRITICAL)
    return result
