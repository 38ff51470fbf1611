"""Two web nodes and two worker nodes on one PostgreSQL and one Redis share the work without duplicates (spec 06, 6.2).

Needs both services: DATABASE_URL of a PostgreSQL server, and a Redis (REDIS_URL, else the one on this machine).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests

from tests.support.instances import instance_environment, prepared_instance
from tests.support.platform import ROOT, start_platform
from tests.support.receiver import LoopbackReceiver
from tests.support.redis_server import redis_of_its_own
from tests.webhooks.workers import wait_until

pytestmark = pytest.mark.process

EVENTS = 120


_TEMPLATE_AND_RULE = """
from tests.rules.cast import write_rule
from tests.webhooks.cast import CURRENCIES, PLATFORM, new_web_hook
from types import SimpleNamespace
from webhooks.models import WebHookDelivery
WebHookDelivery.objects.all().delete()  # those of the demo data, which the worker would deliver, too
new_web_hook({url!r}, code="NODES", Body='{{"sign": "{{CurrencySign}}"}}')
write_rule(SimpleNamespace(context=PLATFORM), CURRENCIES, ["COMMIT"], actions=[("WEBHOOK", ("Constant", "NODES"))])
"""


def token(base_url: str) -> dict[str, str]:
    answer = requests.post(
        f"{base_url}/id/connect/token",
        {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"},
        timeout=60,
    )
    return {"Authorization": f"Bearer {answer.json()['access_token']}"}


def test_work_is_shared_without_duplicates(tmp_path: Path, loopback_receiver: LoopbackReceiver) -> None:
    if not os.environ.get("DATABASE_URL", "").startswith("postgres"):
        pytest.skip("on SQLite there is one node")
    with ExitStack() as stack:
        shared = stack.enter_context(prepared_instance(tmp_path / "0"))
        shutil.copytree(tmp_path / "0", tmp_path / "1")
        settings = {**shared, "REDIS_URL": stack.enter_context(redis_of_its_own()), "WORKER_PROCESSES": "1"}
        code = _TEMPLATE_AND_RULE.format(url=f"{loopback_receiver.url}/{{CurrencySign}}")
        environment = instance_environment(tmp_path / "0", 0, DEMO="1", **settings)
        subprocess.run([sys.executable, "manage.py", "shell", "-v0", "-c", code], cwd=ROOT, env=environment, check=True)
        nodes = [stack.enter_context(_node(tmp_path / str(number), settings)) for number in range(2)]
        headers = token(nodes[0])
        database = stack.enter_context(psycopg.connect(shared["DATABASE_URL"], autocommit=True))

        def count(query: str) -> Any:
            row = database.execute(query).fetchone()
            return row[0] if row else None

        # A node is ready when it serves; its worker comes a moment later.
        wait_until(lambda: count("SELECT COUNT(*) FROM webhooks_workerheartbeat") >= 2, 60)

        def create(number: int) -> int:
            answer = requests.post(
                f"{nodes[number % 2]}/api/domain/odata/General_Currencies_Currencies",
                json={"CurrencySign": f"X{number:03d}", "Name": "x"},
                headers=headers,
                timeout=60,
            )
            return answer.status_code

        with ThreadPoolExecutor(4) as pool:
            statuses = Counter(pool.map(create, range(EVENTS)))
        assert statuses == {201: EVENTS}
        wait_until(
            lambda: count("SELECT COUNT(*) FROM webhooks_webhookdelivery WHERE state = 'Delivered'") == EVENTS, 60
        )
        sent = Counter(request.path for request in loopback_receiver.requests)
        assert sent == {f"/X{number:03d}": 1 for number in range(EVENTS)}
        assert count("SELECT COUNT(*) FROM webhooks_webhookattempt") == EVENTS
        assert count("SELECT MAX(lease_count) FROM webhooks_webhookdelivery") == 1
        workers = database.execute("SELECT worker, COUNT(*) FROM webhooks_webhookattempt GROUP BY 1").fetchall()
        print(f"{EVENTS} events from two web nodes: {dict(workers)}")
        assert len(workers) >= 2, "one worker did it all"


@contextmanager
def _node(directory: Path, settings: dict[str, str]) -> Iterator[str]:
    with start_platform(directory, settings=settings) as platform:
        yield platform.base_url
