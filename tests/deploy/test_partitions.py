"""deploy/postgresql/partition.sql: what grows with time, in partitions, serves as before (spec 13, 13.7)."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.caller import ODATA, Caller, answered
from tests.acceptance.people import token_request
from tests.deploy.dockerfile import DEPLOY
from tests.support.instances import instance_environment
from tests.support.platform import ROOT, LivePlatform, start_platform
from tests.support.postgresql_servers import Server, replicated_servers
from tests.support.receiver import LoopbackReceiver
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.once]

CURRENCIES = "General_Currencies_Currencies"
DELIVERIES = "Systems_Config_WebHookDeliveries"
CHANGES = "Systems_Core_ObjectChanges"
PARTITIONED = (
    "domain_changefeedentry",
    "domain_objectchange",
    "domain_objectchangeset",
    "webhooks_webhookattempt",
    "webhooks_webhookdelivery",
)


#: A webhook for each new currency, made as an administrator would.
_CAST = """
from types import SimpleNamespace
from tests.rules.cast import write_rule
from tests.webhooks.cast import CURRENCIES, PLATFORM, new_web_hook
new_web_hook("URL", code="PART")
write_rule(SimpleNamespace(context=PLATFORM), CURRENCIES, ["COMMIT"], actions=[("WEBHOOK", ("Constant", "PART"))])
"""


class Instance:
    """A running instance, and a client of it."""

    def __init__(self, platform: LivePlatform) -> None:
        site = Caller(platform.base_url)
        form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "scope": "read update exec"}
        self.caller = site.with_token(answered(token_request(site, **form), 200).json()["access_token"])

    def currency(self, sign: str) -> str:
        """The guid of a new one, when its webhook has been delivered."""
        guid = str(self.caller.create(CURRENCIES, {"CurrencySign": sign, "Name": sign})["Id"])
        assert eventually(lambda: self.deliveries().get(guid) == "Delivered")
        return guid

    def deliveries(self) -> dict[str, str]:
        """Guid of an entity → state of its delivery."""
        return {
            row["EntityId"]: row["State"]
            for row in self.caller.rows(f"{DELIVERIES}?$filter=WebHookCode eq 'PART'&$expand=Attempts")
        }

    def changes(self) -> set[str]:
        """Guids of the currencies whose creation the history has."""
        condition = "RepositoryName eq 'General.Currencies.Currencies' and Operation eq 'Create'"
        return {row["EntityItemId"] for row in self.caller.rows(f"{CHANGES}?$filter={condition}&$expand=Changeset")}

    def told(self, link: str) -> tuple[list[str], str]:
        """(signs of the currencies that were made since, the next link)."""
        body = self.caller.read(link)
        return [row["CurrencySign"] for row in body["value"]], relative(body["@odata.deltaLink"])


def until_done(server: Server, text: str) -> None:
    """Again where the server breaks it off, as the documentation says: it and the instance waited for each other."""
    while True:
        try:
            server.query(text)
        except psycopg.errors.DeadlockDetected:
            continue
        return


def relative(link: str) -> str:
    """The link from the service root."""
    return link.partition(ODATA)[2]


def test_an_instance_goes_on_with_partitions_and_drops_old_ones(
    loopback_receiver: LoopbackReceiver, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    with replicated_servers(0) as (server, _):
        settings = {"DATABASE_URL": server.url, "EGRESS_ALLOW": "127.0.0.1"}
        environment = instance_environment(data_dir, 1, **settings)

        def manage(*arguments: str) -> None:
            subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment, check=True)

        with start_platform(data_dir, settings=settings) as platform:
            manage("shell", "-v0", "-c", _CAST.replace("URL", loopback_receiver.url))
            instance = Instance(platform)
            before = instance.currency("FST")
            tracked = instance.caller.read(f"{CURRENCIES}?$select=CurrencySign", Prefer="odata.track-changes")
            link = relative(tracked["@odata.deltaLink"])
        # New rows belong to the second partition at once.
        begins = f"SET partitions.begin = '{datetime.now(UTC).isoformat()}';"
        server.query(begins + (DEPLOY / "postgresql" / "partition.sql").read_text())
        kinds = server.query("SELECT relname FROM pg_class WHERE relkind = 'p' ORDER BY 1")
        assert [name for (name,) in kinds] == sorted(PARTITIONED)
        with start_platform(data_dir, settings=settings) as platform:
            instance = Instance(platform)
            assert instance.told(link)[0] == []
            after = instance.currency("SND")
            signs, link = instance.told(link)
            assert signs == ["SND"]
            assert instance.deliveries() == {before: "Delivered", after: "Delivered"}
            assert instance.changes() >= {before, after}
            assert all(server.query(f"SELECT count(*) FROM {name}_1") > [(0,)] for name in PARTITIONED)
            # What is older than the retention goes as a whole; attempts refer to deliveries.
            for name in ("domain_changefeedentry", "webhooks_webhookattempt", "webhooks_webhookdelivery"):
                until_done(server, f"ALTER TABLE {name} DETACH PARTITION {name}_first; DROP TABLE {name}_first")
            assert instance.deliveries() == {after: "Delivered"}
            assert instance.told(link)[0] == []
            instance.currency("TRD")
            assert instance.told(link)[0] == ["TRD"]
            manage("prune")
            manage("migrate", "--check")
