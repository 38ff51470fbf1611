"""The samples of brokers for event sinks, started as they are but for addresses, certificates and passwords."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import nats
import pytest

from event_sinks.brokers import connected
from event_sinks.brokers.target import BrokerFailed, EventMessage, Server, Target
from tests.support.brokers import rabbit_server, server_process
from tests.support.certificates import certificate_for
from tests.support.platform import free_port
from tests.support.programs import requires_program

pytestmark = [pytest.mark.process, pytest.mark.once]

DEPLOY = Path(__file__).parents[2] / "deploy"
ORDER = EventMessage("1-1", "Crm.Sales.SalesOrders.Update", "a", b"{}")


def with_values(text: str, values: dict[str, str]) -> str:
    """The sample with other values; each must be in it."""
    for pattern, value in values.items():
        text, replaced = re.subn(pattern, value, text, flags=re.MULTILINE)
        assert replaced, pattern
    return text


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = certificate_for("127.0.0.1", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made))
    return made


def test_nats(tmp_path: Path, certificate: Path) -> None:
    port = free_port()
    values = {
        "^listen: .*": f"listen: 127.0.0.1:{port}",
        "/var/lib/nats": str(tmp_path / "store"),
        "/etc/nats/tls.pem": str(certificate),
        "/etc/nats/tls.key": str(certificate),
        r"\$NATS_OPERATOR_PASSWORD": "operates",
        r"\$NATS_PLATFORM_PASSWORD": "publishes",
    }
    (tmp_path / "nats.conf").write_text(with_values((DEPLOY / "nats.conf").read_text(), values))
    program = requires_program("nats-server", "/usr/sbin/nats-server")

    async def make_stream() -> None:
        client = await nats.connect(f"tls://127.0.0.1:{port}", user="operator", password="operates")
        await client.jetstream().add_stream(name="ERP", subjects=["erp.events.>"])
        await client.close()

    def target(destination: str) -> Target:
        server = Server("127.0.0.1", port)
        return Target("NATS", (server,), destination, uses_tls=True, user_name="platform", password="publishes")

    with server_process([program, "-c", str(tmp_path / "nats.conf")], port):
        asyncio.run(make_stream())
        with connected(target("erp.events")) as publish:
            publish([ORDER])
        with pytest.raises(BrokerFailed), connected(target("erp.other")) as publish:
            publish([ORDER])


def test_rabbitmq(tmp_path: Path, certificate: Path) -> None:
    """The definitions have the exchange, and a queue for orders."""
    port = free_port()
    values = {
        "^listeners.ssl.default = .*": f"listeners.ssl.default = 127.0.0.1:{port}",
        "/etc/rabbitmq/tls.pem": f"DIRECTORY/{certificate.name}",
        "/etc/rabbitmq/tls.key": f"DIRECTORY/{certificate.name}",
        "/etc/rabbitmq": "DIRECTORY",
    }
    definitions = DEPLOY / "rabbitmq" / "definitions.json"
    text = with_values((DEPLOY / "rabbitmq" / "rabbitmq.conf").read_text(), values)
    password = json.loads(definitions.read_text())["users"][0]["password"]
    with rabbit_server(port, text, certificate, definitions):
        servers = (Server("127.0.0.1", port),)
        target = Target("RabbitMQ", servers, "events", True, "platform", password, virtual_host="erp")
        with connected(target) as publish:
            publish([ORDER])
        other = Target("RabbitMQ", servers, "others", True, "platform", password, virtual_host="erp")
        with pytest.raises(BrokerFailed, match="ACCESS_REFUSED"), connected(other):
            pass
