"""NATS JetStream: an event's subject is the destination and its type, which a stream must store."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import NoStreamResponseError

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


@contextmanager
def connected(target: Target) -> Iterator[Publish]:
    """Connect; see event_sinks.brokers."""
    with asyncio.Runner() as runner:
        client = runner.run(_connect(target))
        jetstream = client.jetstream(timeout=CONFIRM_SECONDS)

        def publish(messages: Sequence[EventMessage]) -> None:
            runner.run(_publish(jetstream, target.destination, messages))

        try:
            yield publish
        finally:
            with suppress(Exception):
                runner.run(client.close())


async def _connect(target: Target) -> Client:
    problems: list[Exception] = []

    async def note(problem: Exception) -> None:
        problems.append(problem)

    options: dict[str, Any] = {"tls": ssl.create_default_context(cafile=certificates())} if target.uses_tls else {}
    if target.user_name:
        options |= {"user": target.user_name, "password": target.password}
    servers = [f"{'tls' if target.uses_tls else 'nats'}://{server.name}" for server in target.servers]
    try:
        return await asyncio.wait_for(
            nats.connect(
                servers,
                # Without addresses that a server announces: the operator has not listed them.
                allow_reconnect=False,
                # Each server is tried twice; 0 would mean no limit.
                max_reconnect_attempts=1,
                reconnect_time_wait=0.1,
                connect_timeout=CONNECT_SECONDS / len(servers),
                error_cb=note,
                **options,
            ),
            CONNECT_SECONDS,
        )
    except (Error, OSError) as exc:  # TimeoutError is one
        problem = problems[-1] if problems else exc
        raise BrokerFailed(Message("no server of NATS accepts a connection: {0}", error_text(problem))) from exc


async def _publish(jetstream: JetStreamContext, prefix: str, messages: Sequence[EventMessage]) -> None:
    sent = [
        jetstream.publish(
            f"{prefix}.{message.name}",
            message.body,
            headers={"Nats-Msg-Id": message.id, "content-type": CONTENT_TYPE},
        )
        for message in messages
    ]
    for message, result in zip(messages, await asyncio.gather(*sent, return_exceptions=True), strict=True):
        if isinstance(result, BaseException):
            raise _failure(f"{prefix}.{message.name}", result) from result


def _failure(subject: str, problem: BaseException) -> BaseException:
    if isinstance(problem, NoStreamResponseError):
        return BrokerFailed(Message("no stream of JetStream stores the subject {0}", subject))
    if isinstance(problem, (Error, OSError)):
        return BrokerFailed(Message("NATS has not confirmed an event: {0}", error_text(problem)))
    return problem
