"""Brokers to deliver to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.brokers import KafkaTopic, NatsServer, RabbitQueue, kafka_topic, nats_server, rabbit_queue

AnyBroker = NatsServer | RabbitQueue | KafkaTopic


@pytest.fixture
def nats_broker() -> Iterator[NatsServer]:
    with nats_server() as server:
        yield server


@pytest.fixture(params=[nats_server, rabbit_queue, kafka_topic], ids=["NATS", "RabbitMQ", "Kafka"])
def broker(request: pytest.FixtureRequest) -> Iterator[AnyBroker]:
    with request.param() as made:
        yield made
