"""The brokers: a module for each, with a context manager for a connection.

    with connected(target) as publish:
        publish(messages)

The block begins once the broker has accepted the connection, after CONNECT_SECONDS at most. `publish` sends messages of
different keys, and returns when the broker has confirmed all of them; it raises BrokerFailed if one is not confirmed
after CONFIRM_SECONDS. There is no reconnection: the next attempt connects again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from django.utils.module_loading import import_string

from event_sinks.brokers.target import Publish, Target
from event_sinks.models import EventSink

#: Modules of this package, imported on demand, since the client libraries are large.
_MODULES: Mapping[str, str] = {
    EventSink.Broker.NATS: "nats",
    EventSink.Broker.RABBITMQ: "rabbitmq",
    EventSink.Broker.KAFKA: "kafka",
}


def connected(target: Target) -> AbstractContextManager[Publish]:
    """Connect to the broker of a target. Raises BrokerFailed."""
    result: AbstractContextManager[Publish] = import_string(f"{__name__}.{_MODULES[target.broker]}.connected")(target)
    return result
