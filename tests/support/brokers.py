"""Message brokers that tests deliver to, and what these have got. Each test has destinations of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import amqp
import nats
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.platform import free_port
from tests.support.programs import requires_program

#: Boots of RabbitMQ take half a minute on a busy machine.
_BOOT_SECONDS = 90


@dataclass(frozen=True)
class Got:
    """A message as a consumer gets it."""

    name: str
    body: bytes
    content_type: str
    id: str = ""
    key: str = ""

    @property
    def event(self) -> dict[str, Any]:
        """The CloudEvent."""
        result: dict[str, Any] = json.loads(self.body)
        return result


# --- NATS ---------------------------------------------------------------------------------------------------------


@dataclass
class NatsServer:
    """A NATS server with JetStream of a test's own, which can be killed and started again with what it has stored."""

    directory: Path
    options: tuple[str, ...] = ()
    credentials: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    broker = "NATS"

    def __post_init__(self) -> None:
        self.destination = f"t{uuid4().hex[:12]}"
        self.start()

    @property
    def servers(self) -> str:
        """For a sink."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        program = requires_program("nats-server", "/usr/sbin/nats-server")
        command = [program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.directory), *self.options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_port(self.port)

    def kill(self) -> None:
        """End it as a power failure does."""
        self._process.kill()
        self._process.wait()

    def make_stream(self) -> None:
        """A stream that stores what a sink sends."""

        async def add(client: Any) -> None:
            await client.jetstream().add_stream(name=self.destination, subjects=[f"{self.destination}.>"])

        self._with_client(add)

    def got(self) -> list[Got]:
        """All messages of the stream, in its order."""
        found: list[Got] = []

        async def read(client: Any) -> None:
            jetstream = client.jetstream()
            count = (await jetstream.stream_info(self.destination)).state.messages
            subscription = await jetstream.subscribe(f"{self.destination}.>", ordered_consumer=True)
            for _ in range(count):
                message = await subscription.next_msg(10)
                name = message.subject.removeprefix(f"{self.destination}.")
                headers = message.headers
                found.append(Got(name, message.data, headers["content-type"], headers["Nats-Msg-Id"]))

        self._with_client(read)
        return found

    def _with_client(self, work: Any) -> None:
        async def run() -> None:
            client = await nats.connect(f"nats://127.0.0.1:{self.port}", **self.credentials)
            try:
                await work(client)
            finally:
                await client.close()

        # In a thread of its own: a test with a browser has an event loop in its.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, run()).result()


@contextmanager
def nats_server(*options: str, **credentials: str) -> Iterator[NatsServer]:
    """A server of the test's own."""
    with tempfile.TemporaryDirectory() as directory:
        server = NatsServer(Path(directory), options, credentials)
        try:
            yield server
        finally:
            server.kill()


# --- RabbitMQ -----------------------------------------------------------------------------------------------------


class RabbitQueue:
    """An exchange of a test's own, and a queue that gets all of its messages."""

    broker = "RabbitMQ"

    def __init__(self, port: int) -> None:
        self.port = port
        self.servers = f"127.0.0.1:{port}"
        self.destination = f"t{uuid4().hex[:12]}"
        self._connection = amqp.Connection(host=self.servers)
        self._connection.connect()
        self._channel = self._connection.channel()
        self._found: list[Got] = []

    def make_stream(self) -> None:
        """The queue. A sink makes the exchange, if it is first."""
        self._channel.exchange_declare(self.destination, "topic", durable=True, auto_delete=False)
        self._channel.queue_declare(self.destination, durable=True, auto_delete=False)
        self._channel.queue_bind(self.destination, self.destination, "#")

    def got(self) -> list[Got]:
        """All messages that the queue has had."""
        while (message := self._channel.basic_get(self.destination, no_ack=True)) is not None:
            name, values = message.delivery_info["routing_key"], message.properties
            body = message.body if isinstance(message.body, bytes) else message.body.encode()
            self._found.append(Got(name, body, values["content_type"], values["message_id"]))
        return self._found

    def close(self) -> None:
        """Remove both."""
        with suppress(amqp.AMQPError, OSError):
            self._channel.queue_delete(self.destination)
            self._channel.exchange_delete(self.destination)
        self._connection.close()


@contextmanager
def rabbit_queue() -> Iterator[RabbitQueue]:
    """At the RabbitMQ that runs on this machine, else at one of the test's own."""
    with _rabbit_port() as port:
        queue = RabbitQueue(port)
        try:
            yield queue
        finally:
            queue.close()


@contextmanager
def _rabbit_port() -> Iterator[int]:
    if _answers(5672):
        yield 5672
        return
    port = free_port()
    with rabbit_server(port, f"listeners.tcp.default = 127.0.0.1:{port}\n"):
        yield port


@contextmanager
def rabbit_server(port: int, configuration: str, *files: Path) -> Iterator[None]:
    """A RabbitMQ of the test's own that listens on the port by its configuration.

    files: copied to where its user can read them, which the configuration calls DIRECTORY
    """
    program = requires_program("rabbitmq-server", "/usr/sbin/rabbitmq-server")
    # Not in the tests' own directory, which only this user may enter: Debian's script changes to another one.
    with tempfile.TemporaryDirectory(prefix="rabbitmq-") as directory:
        Path(directory).chmod(0o777)
        (Path(directory) / "rabbitmq.conf").write_text(configuration.replace("DIRECTORY", directory))
        for file in files:
            (Path(directory) / file.name).write_bytes(file.read_bytes())
        values = {
            "HOME": directory,
            "RABBITMQ_CONFIG_FILE": f"{directory}/rabbitmq",
            "RABBITMQ_NODENAME": f"test{port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": f"{directory}/data",
            "RABBITMQ_LOG_BASE": f"{directory}/log",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{directory}/plugins",
            "RABBITMQ_PID_FILE": f"{directory}/pid",
        }
        with server_process([program], port, values, _BOOT_SECONDS):
            try:
                yield
            finally:
                # As root, Debian's script has changed to another user and session.
                os.kill(int((Path(directory) / "pid").read_text()), signal.SIGKILL)


@contextmanager
def server_process(
    command: list[str], port: int, environment: Mapping[str, str] | None = None, seconds: float = 60
) -> Iterator[None]:
    """A server that runs during the block, from when it accepts connections."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for_port(port, seconds)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# --- Kafka --------------------------------------------------------------------------------------------------------


class KafkaTopic:
    """A topic of librdkafka's mock cluster: it speaks Kafka's protocol on a port, and stores in memory.

    No package of a broker can be installed where only Debian's and PyPI's are.
    """

    broker = "Kafka"

    def __init__(self) -> None:
        self._cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
        (server,) = self._cluster.list_topics(timeout=60).brokers.values()
        self.port = server.port
        self.servers = f"{server.host}:{server.port}"
        self.destination = f"t{uuid4().hex[:12]}"

    def make_stream(self) -> None:
        """The mock makes topics as they are used."""

    def got(self) -> list[Got]:
        """All messages so far, those of each partition in its order."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test", "log_level": 0})
        found: list[Got] = []
        try:
            partitions = consumer.list_topics(self.destination, timeout=60).topics[self.destination].partitions
            places = [TopicPartition(self.destination, number, 0) for number in partitions]
            count = sum(consumer.get_watermark_offsets(place, timeout=60)[1] for place in places)
            consumer.assign(places)
            deadline = time.monotonic() + 60
            while len(found) < count:
                assert time.monotonic() < deadline
                message = consumer.poll(1)
                if message is not None and not message.error():
                    found.append(self._got(message))
        finally:
            consumer.close()
        return found

    @staticmethod
    def _got(message: Any) -> Got:
        body = message.value()
        content_type = dict(message.headers())["content-type"].decode()
        return Got(json.loads(body)["type"], body, content_type, key=message.key().decode())


@contextmanager
def kafka_topic() -> Iterator[KafkaTopic]:
    """A topic of the test's own."""
    yield KafkaTopic()


# --- ports --------------------------------------------------------------------------------------------------------


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


def wait_for_port(port: int, seconds: float = 60) -> None:
    """Wait until something accepts connections."""
    deadline = time.monotonic() + seconds
    while not _answers(port):
        assert time.monotonic() < deadline, f"nothing listens on {port}"
        time.sleep(0.05)
