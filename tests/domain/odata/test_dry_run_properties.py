"""Random dry runs leave nothing, and answer what the same request then answers (spec 12, 12.1)."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.dataset.tables.models import DomainTransaction
from domain.odata.message.dry_run_report import DRY_RUN
from foundation import write_behind
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, PRODUCTS, order_body
from tests.jobs.cast import make_job
from tests.rules.cast import World, dataset, fail, set_value, warn, write_rule
from tests.scripts.cast import make_script
from tests.support.api import Answer, Api, id_of
from webhooks import announcer

SALES_ORDERS = "Crm.Sales.SalesOrders"
#: Tables that every request may write, a dry run too: the use of the caller's session and credentials.
OF_THE_REQUEST = frozenset({"identity_session"})
#: Newest rows that requests choose from.
CHOSEN = 12


def checksums() -> dict[str, str]:
    """Table → digest of its rows, in every database: the broker is one of them."""
    result = {}
    for alias in connections:
        connection = connections[alias]
        with connection.cursor() as cursor:
            names = sorted(connection.introspection.table_names(cursor))
            if connection.vendor == "sqlite":
                names.append("sqlite_sequence")
            for name in names:
                if name in OF_THE_REQUEST:
                    continue
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(name)}")
                rows = sorted(map(repr, cursor.fetchall()))
                result[f"{alias}.{name}"] = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    return result


_VARYING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "ID32"),
    (re.compile(r"batchresponse_\w+|changesetresponse_\w+"), "BOUNDARY"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r'(durationMs|runId)\\*": ?\d+'), "DURATION"),
)


def comparable(answer: Answer) -> tuple[Any, ...]:
    """Status, headers and body of an answer without ids, times and the report."""
    body = answer.content.decode()
    if body.startswith("{"):
        parsed = json.loads(body)
        parsed.pop("@erpnet.dryRun", None)
        body = json.dumps(parsed)
    headers = {name: answer.headers[name] for name in ("ETag", "Location", "X-Warnings", "Content-Type", "Allow")
               if name in answer.headers}  # fmt: skip
    shown = json.dumps([answer.status_code, headers, body])
    for pattern, text in _VARYING:
        shown = pattern.sub(text, shown)
    return tuple(json.loads(shown))


# --- requests -----------------------------------------------------------------------------------------------------

#: Sends a request with further headers.
Send = Callable[..., Answer]


class Requests:
    """Random requests of every kind on the stored entities."""

    def __init__(self, api: Api, world: World, rng: random.Random) -> None:
        self.api, self.world, self.rng = api, world, rng

    def any(self) -> Send:
        """One of the kinds, outside of Domain transactions."""
        kinds = sorted(name for name in dir(self) if name.startswith(("a_", "an_")))
        made: Send = getattr(self, self.rng.choice(kinds))()
        return made

    def _key(self, repository: str) -> str:
        """One of the newest entities, or none."""
        found = dataset(self.world.context).find_all(repository, order_by=("-id",), limit=CHOSEN)
        keys = [record.id for record in found] or [self.world.product]
        return str(self.rng.choice([*keys, "0189a1b2-0000-7000-8000-00000000000a"]))

    def _order(self) -> str:
        return f"{ORDERS}({self._key(SALES_ORDERS)})"

    def _text(self) -> Any:
        return self.rng.choice(["A", "B", "STOP", "x" * 25, "", None, 5])

    def _sent(self, method: str, path: str, body: Any = None, **headers: str) -> Send:
        return lambda **more: self.api.request(method, path, body, **headers, **more)

    def _body(self) -> dict[str, Any]:
        lines = [
            {"Quantity": {"Value": quantity, "Unit": "pcs"}}
            for quantity in self.rng.choices(range(-1, 4), k=self.rng.randint(0, 3))
        ]
        return order_body(self.world, *lines, ReferenceDocumentNo=self._text())

    def a_post(self) -> Send:
        prefer = self.rng.choice(["", ", return=minimal"])
        body = self._body()
        return lambda **more: self.api.post(ORDERS, body, Prefer=f"{more.get('Prefer', 'x')}{prefer}")

    def a_post_of_a_currency(self) -> Send:
        sign = self.rng.choice(["EUR", "USD", "GBP", "X", "TOO LONG A SIGN"])
        return self._sent("POST", CURRENCIES, {"CurrencySign": sign, "Name": sign})

    def a_patch(self) -> Send:
        headers = self.rng.choice([{}, {"If_Match": 'W/"1"'}, {"If_Match": "*"}])
        return self._sent("PATCH", self._order(), {"ReferenceDocumentNo": self._text()}, **headers)

    def a_patch_of_lines(self) -> Send:
        lines = [{"Product@odata.bind": f"{PRODUCTS}({self.world.product})"}] * self.rng.randint(0, 2)
        return self._sent("PATCH", self._order(), {"Lines@odata.delta": lines})

    def a_put(self) -> Send:
        return self._sent("PUT", self._order(), self._body())

    def a_delete(self) -> Send:
        return self._sent("DELETE", self.rng.choice([self._order(), f"{PRODUCTS}({self.world.product})"]))

    def a_state(self) -> Send:
        state = self.rng.choice(["Planned", "FirmPlanned", "Released", "Nonsense"])
        return self._sent("POST", f"{self._order()}/ChangeState", {"newState": state})

    def a_void(self) -> Send:
        return self._sent("POST", f"{self._order()}/MakeVoid", {"reason": "Why not"})

    def a_recalculation(self) -> Send:
        return self._sent("POST", f"{self._order()}/Recalculate", {})

    def a_copy(self) -> Send:
        return self._sent("POST", f"{self._order()}/CreateCopy", {})

    def a_started_rule(self) -> Send:
        return self._sent("POST", f"{self._order()}/StartRule", {"rule": self.rng.choice(["START", "NO"])})

    def a_script(self) -> Send:
        source = self.rng.choice(_SCRIPTS).replace("KEY", self._key(SALES_ORDERS))
        return self._sent("POST", "ExecuteScript", source, Content_Type="text/plain")

    def a_managed_script(self) -> Send:
        given = self.rng.choice([{}, {"arguments": {}}, {"arguments": 5}])
        return self._sent("POST", f"Systems_Core_Scripts({self._key('Systems.Core.Scripts')})/Execute", given)

    def a_job(self) -> Send:
        return self._sent("POST", f"Systems_Config_Jobs({self._key('Systems.Config.Jobs')})/RunNow", {})

    def a_multipart_batch(self) -> Send:
        text = json.dumps({"ReferenceDocumentNo": self._text()})
        part = f"Content-Type: application/http\r\n\r\nPATCH {self._order()} HTTP/1.1\r\n"
        part += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}"
        body = "".join(f"--b\r\n{part}\r\n" for _ in range(self.rng.randint(1, 3))) + "--b--\r\n"
        return self._sent("POST", "$batch", body, Content_Type="multipart/mixed; boundary=b")

    def an_import(self) -> Send:
        signs = self.rng.choices(["EUR", "USD", "GBP", "X", "BGN"], k=self.rng.randint(0, 4))
        objects = [
            {"@odata.type": "Erp.General_Currencies_Currency", "CurrencySign": sign, "Name": f"The {sign}"}
            for sign in signs
        ]
        mode = self.rng.choice(["per-object", "all-objects"])
        return self._sent("POST", "Import", {"transaction": mode, "objects": objects})

    def a_batch(self) -> Send:
        group = self.rng.choice([True, False])
        parts: list[dict[str, Any]] = []
        for number in range(self.rng.randint(1, 4)):
            part: dict[str, Any] = {"id": str(number), "headers": {}}
            if group:
                part["atomicityGroup"] = "g"
            part |= self.rng.choice([
                {"method": "POST", "url": ORDERS, "body": self._body()},
                {"method": "PATCH", "url": self._order(), "body": {"ReferenceDocumentNo": self._text()}},
                {"method": "DELETE", "url": self._order()},
                {"method": "POST", "url": f"{self._order()}/ChangeState", "body": {"newState": "Planned"}},
            ])  # fmt: skip
            parts.append(part)
        prefer = self.rng.choice(["", ", continue-on-error"])
        body = {"requests": parts}
        return lambda **more: self.api.post("$batch", body, Prefer=f"{more.get('Prefer', 'x')}{prefer}")

    def a_configuration(self) -> Send:
        """Writes that the instance's caches depend on."""
        return self.rng.choice([
            self._sent("PATCH", f"Systems_Bpm_UserBusinessRules({self._key('Systems.Bpm.UserBusinessRules')})",
                       {"Notes": self._text()}),
            self._sent("POST", "Systems_Bpm_CustomProperties",
                       {"Code": "tint", "Name": {"EN": "Tint"}, "EntityName": SALES_ORDERS, "PropertyType": "Text"}),
            self._sent("POST", "Systems_Security_Users", {"Login": "eva", "Name": {"EN": "Eva"}}),
        ])  # fmt: skip

    def a_mistake(self) -> Send:
        return self.rng.choice([
            self._sent("POST", ORDERS, "{nonsense"),
            self._sent("POST", "Nothing_There", {}),
            self._sent("POST", CURRENCIES, {"Nope": 1}),
            self._sent("DELETE", ORDERS),
            self._sent("POST", "EndTransaction", {}),
        ])  # fmt: skip


_SCRIPTS = (
    "console.log(1)",
    "throw new Error('no')",
    "Domain.Crm.Sales.SalesOrdersRepository.getById('KEY').ReferenceDocumentNo = 'S'; Transaction.commit();",
    "Domain.General.Currencies.CurrenciesRepository.createNew({CurrencySign: 'CHF', Name: 'x'}); Transaction.commit();"
    " throw new Error('late')",
    "Domain.Crm.Sales.SalesOrdersRepository.getById('KEY').ReferenceDocumentNo = 'T'; Transaction.rollback();",
)


def configure(world: World) -> None:
    """Rules that change, warn, refuse, notify and run after the commit; a webhook."""
    ds = dataset(world.context)
    hook = {"Code": "HOOK", "Name": {"EN": "Hook"}, "RepositoryName": SALES_ORDERS, "URL": "https://example.com/in",
            "Body": "{DocumentNo}", "IsActive": True}  # fmt: skip
    ds.create("Systems.Config.WebHooks", hook, by_client=True)
    ds.commit()
    stop = [("ReferenceDocumentNo", "Equals", "STOP")]
    write_rule(world, SALES_ORDERS, ["COMMIT"], code="STOP", conditions=stop, actions=[fail("Stopped.")])
    write_rule(world, SALES_ORDERS, ["COMMIT"], code="SEND", actions=[("WEBHOOK", ("Constant", "HOOK"))])
    write_rule(
        world, SALES_ORDERS, ["COMMIT"], code="CHANGE", conditions=[("ReferenceDocumentNo", "Equals", "B")],
        actions=[set_value("ReferenceDocumentNo", "C"), warn("Changed {DocumentNo}")],
    )  # fmt: skip
    notify = ("NOTIFYUSER", ("Constant", "anna"), ("Constant", "Saved"))
    write_rule(world, SALES_ORDERS, ["COMMITTED"], code="LATER", actions=[notify])
    write_rule(world, SALES_ORDERS, ["COMMIT"], code="START", actions=[warn("Started")], UserStartable=True)


def settle() -> None:
    """What the request before has left for later is done: its statistics, and its message to the workers."""
    write_behind.flush_all()
    waking = announcer.announcer()
    waking.stop()
    waking._thread.join()
    announcer.announcer.forget()


def check_leaves_nothing(api: Api, send: Send) -> None:
    """Send as a dry run, then in earnest."""
    settle()
    before = checksums()
    tried = send(Prefer=DRY_RUN)
    after = checksums()
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert before.keys() == after.keys()
    assert DRY_RUN in tried.headers.get("Preference-Applied", ""), tried.content
    real = send()
    assert comparable(tried) == comparable(real)


def run_steps(filled: tuple[Api, World], seed: int) -> None:
    """One request; in a Domain transaction one or two, and its end.

    What is drawn depends on the stored rows, which hypothesis cannot draw from: it chooses the seed.
    """
    api, world = filled
    rng = random.Random(seed)
    if rng.randrange(4):
        check_leaves_nothing(api, Requests(api, world, rng).any())
        return
    inside = Requests(api.begin(model=rng.choice(["common", "frontend"])), world, rng)
    for _ in range(rng.randint(1, 2)):
        check_leaves_nothing(api, rng.choice([inside.a_patch, inside.a_post, inside.a_state])())
    check_leaves_nothing(api, inside._sent("POST", "EndTransaction", {"commit": rng.choice([True, False])}))
    DomainTransaction.objects.all().delete()


@pytest.fixture
def filled(transactional_db: None, api: Api, world: World) -> tuple[Api, World]:
    """A filled instance, whose transactions are real ones."""
    configure(world)
    make_script(api, "parameters.x = 1; Transaction.commit(); return 5;")
    make_job(api)
    for text in ("A", "B", "C", None):
        id_of(api.create(ORDERS, order_body(world, {}, ReferenceDocumentNo=text)))
    return api, world


_SEEDS = st.integers(0, 2**32)
_FIXTURE = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(suppress_health_check=_FIXTURE, max_examples=40)
@given(seed=_SEEDS)
def test_a_dry_run_leaves_nothing_and_answers_as_the_real_request(filled: tuple[Api, World], seed: int) -> None:
    run_steps(filled, seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(8))
@settings(suppress_health_check=_FIXTURE, max_examples=950, derandomize=False)
@given(seed=_SEEDS)
def test_ten_thousand_dry_runs_leave_nothing(filled: tuple[Api, World], part: int, seed: int) -> None:
    """1.4 dry runs for each example; in parts, because a token lives for an hour and tables grow."""
    run_steps(filled, seed)
