"""RabbitMQ: an event's routing key is its type. A missing exchange is declared as a durable topic exchange.

The broker drops events without a bound queue; consumers declare their queues.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import amqp
from amqp import Message as Content

from event_sinks.brokers.target import (
    CONFIRM_SECONDS,
    CONNECT_SECONDS,
    CONTENT_TYPE,
    BrokerFailed,
    EventMessage,
    Publish,
    Target,
    certificates,
    error_text,
)
from foundation.messages import TranslatableMessage as Message

_PERSISTENT = 2


@contextmanager
def connected(target: Target) -> Iterator[Publish]:
    """Connect, by the first server that accepts; see event_sinks.brokers."""
    connection = _connect(target)
    try:
        channel = _channel_with_exchange(connection, target.destination)

        def publish(messages: Sequence[EventMessage]) -> None:
            deadline = time.monotonic() + CONFIRM_SECONDS
            for message in messages:
                content = Content(
                    message.body,
                    content_type=CONTENT_TYPE,
                    delivery_mode=_PERSISTENT,
                    message_id=message.id,
                    type=message.name,
                )
                try:
                    channel.basic_publish_confirm(
                        content,
                        exchange=target.destination,
                        routing_key=message.name,
                        confirm_timeout=_seconds_left(deadline),
                    )
                except (amqp.AMQPError, OSError) as exc:
                    raise BrokerFailed(Message("RabbitMQ has not confirmed an event: {0}", error_text(exc))) from exc

        yield publish
    finally:
        with suppress(amqp.AMQPError, OSError):
            connection.close()


def _connect(target: Target) -> Any:
    options: dict[str, Any] = {}
    if target.user_name:
        options = {"userid": target.user_name, "password": target.password}
    problem: Exception | None = None
    deadline = time.monotonic() + CONNECT_SECONDS
    for server in target.servers:
        connection = amqp.Connection(
            host=server.name,
            virtual_host=target.virtual_host,
            login_method="PLAIN",
            ssl=_tls(server.host) if target.uses_tls else False,
            connect_timeout=_seconds_left(deadline) / 2,
            read_timeout=_seconds_left(deadline) / 2,
            write_timeout=CONFIRM_SECONDS,
            confirm_publish=True,
            **options,
        )
        try:
            connection.connect()
        except (amqp.AMQPError, OSError) as exc:
            problem = exc
        else:
            return connection
    raise BrokerFailed(Message("RabbitMQ does not accept a connection: {0}", error_text(problem))) from problem


def _tls(host: str) -> dict[str, Any]:
    return {"context": {"check_hostname": True, "cafile": certificates()}, "server_hostname": host}


def _channel_with_exchange(connection: Any, exchange: str) -> Any:
    try:
        channel = connection.channel()
        try:
            channel.exchange_declare(exchange, "topic", passive=True)
        except amqp.NotFound:
            channel = connection.channel()  # the broker has closed the other one
            channel.exchange_declare(exchange, "topic", durable=True, auto_delete=False)
    except (amqp.AMQPError, OSError) as exc:
        raise BrokerFailed(Message("RabbitMQ has no exchange {0}: {1}", exchange, error_text(exc))) from exc
    return channel


def _seconds_left(deadline: float) -> float:
    """Seconds until the deadline, more than 0, which would mean no limit."""
    return max(0.1, deadline - time.monotonic())
