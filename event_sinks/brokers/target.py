"""Target and messages of a delivery to a broker."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import certifi

from event_sinks.models import EventSink
from foundation.egress.policy import POLICY_SETTING, EgressPolicy, destination_of, egress_policy
from foundation.messages import TranslatableMessage as Message
from foundation.messages import reason_of

#: Timeouts of a connection, over all servers, and of the confirmation of a `publish` call.
CONNECT_SECONDS, CONFIRM_SECONDS = 8.0, 8.0
#: Fields of a sink that determine the destination of its password.
SENT_TO = ("broker", "servers", "uses_tls")
#: CloudEvents, structured mode (CloudEvents JSON format 1.0.2, 3).
CONTENT_TYPE = "application/cloudevents+json"
#: Broker → (port, port with TLS) of servers that name none.
_PORTS: Mapping[str, tuple[int, int]] = {
    EventSink.Broker.NATS: (4222, 4222),
    EventSink.Broker.RABBITMQ: (5672, 5671),
    EventSink.Broker.KAFKA: (9092, 9093),
}
#: Broker → pattern of destination names that need no quoting.
_DESTINATIONS: Mapping[str, re.Pattern[str]] = {
    EventSink.Broker.NATS: re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII),
    EventSink.Broker.RABBITMQ: re.compile(r"[\w.:-]+", re.ASCII),
    EventSink.Broker.KAFKA: re.compile(r"(?!\.\.?\Z)[\w.-]+", re.ASCII),
}


class BrokerFailed(Exception):
    """The broker is unreachable, or has not confirmed a message. The argument is a Message for administrators."""


@dataclass(frozen=True, slots=True)
class EventMessage:
    """The message of an event.

    id    unique within the sink, by which brokers discard duplicates
    name  of its type, such as Crm.Sales.SalesOrders.Update
    key   id of the entity, whose events keep their order
    body  CloudEvent as JSON
    """

    id: str
    name: str
    key: str
    body: bytes


Publish = Callable[[Sequence[EventMessage]], None]


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a broker."""

    host: str
    port: int

    @property
    def name(self) -> str:
        """host:port"""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Target:
    """The connection data of a sink; virtual_host: of RabbitMQ."""

    broker: str
    servers: tuple[Server, ...]
    destination: str
    uses_tls: bool
    user_name: str = ""
    password: str = field(default="", repr=False)
    virtual_host: str = "/"


def target_of(sink: EventSink, *, policy: EgressPolicy | None = None) -> Target:
    """The target of a sink. Raises ValueError with a Message."""
    servers, virtual_host = check_servers(sink, policy=policy)
    check_destination(sink.broker, sink.destination)
    return Target(
        sink.broker,
        servers,
        sink.destination,
        sink.uses_tls,
        user_name=sink.user_name,
        password=sink.password or "",
        virtual_host=virtual_host,
    )


def check_servers(sink: EventSink, *, policy: EgressPolicy | None = None) -> tuple[tuple[Server, ...], str]:
    """As `servers_of`, for servers that EGRESS_ALLOW lists. Raises ValueError with a Message."""
    servers, virtual_host = servers_of(sink.broker, sink.servers, uses_tls=sink.uses_tls)
    for server in servers:
        if not _is_listed(server.host, policy or egress_policy()):
            raise ValueError(Message("the setting {0} must list {1}", POLICY_SETTING, server.host))
    return servers, virtual_host


def servers_of(broker: str, text: str, *, uses_tls: bool) -> tuple[tuple[Server, ...], str]:
    """The servers that a text lists, and RabbitMQ's virtual host. Raises ValueError with a Message."""
    listed, slash, virtual_host = text.strip().partition("/")
    if slash and broker != EventSink.Broker.RABBITMQ:
        raise ValueError(Message("only servers of RabbitMQ are followed by a path"))
    servers = []
    for part in listed.split(","):
        try:
            destination = destination_of(f"{'https' if uses_tls else 'http'}://{part.strip()}")
        except ValueError as exc:
            raise ValueError(Message("{0}: {1}", part.strip() or "–", reason_of(exc))) from exc
        has_port = re.search(r":\d+\Z", part.strip()) is not None
        servers.append(Server(destination.host, destination.port if has_port else _PORTS[broker][uses_tls]))
    return tuple(servers), virtual_host or "/"


def check_destination(broker: str, text: str) -> None:
    """Raise ValueError with a Message for an invalid destination name of the broker."""
    if _DESTINATIONS[broker].fullmatch(text) is None:
        raise ValueError(Message("letters, digits, hyphens, underscores and points only, for example erp.events"))


def _is_listed(host: str, policy: EgressPolicy) -> bool:
    """Whether EGRESS_ALLOW lists the host: its name, its address or a network of it.

    Required for public hosts too, unlike for webhooks: broker clients follow addresses that a broker announces.
    """
    if policy.lists(host):
        return True
    try:
        return any(ipaddress.ip_address(host) in network for network in policy.networks)
    except ValueError:
        return False


def certificates() -> str:
    """The CA file for TLS: the system's, or that of SSL_CERT_FILE."""
    return ssl.get_default_verify_paths().cafile or certifi.where()


def error_text(problem: BaseException | None) -> str:
    """The text of a client library's error; its type if it has no text, as timeouts do."""
    return str(problem) or type(problem).__name__
