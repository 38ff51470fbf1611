"""An instance whose pages all have something to show: what worked, what failed, what is broken, what waits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import requests

from tests.support.platform import ROOT, LivePlatform
from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest

APPLICATION = "PagesTest"
#: An application that registered itself (RFC 7591).
SELF_REGISTERED = "PagesTestItself"
#: A user with second factors; login and password alike.
CAREFUL = "careful"

# Run beside the instance, on its database. Its last line is JSON: name → id of what pages are opened for.
_CAST = """
import json
import pyotp
from django_q.models import Failure
from domain.dataset.dataset import Dataset
from domain.entities.crm_sales import SalesOrder
from domain.entities.custom_entities import live
from domain.entities.general_products import Product
from domain.entities.systems_bpm import UserBusinessRule
from domain.entities.systems_core import Script
from domain.entities.systems_monitoring import InformationMessage
from foundation.fields import utc_now
from foundation.guids import new_guid
from identity.factors import authenticator_app, recovery
from identity.models import Passkey, Role, RolePermission, RowPolicy, TrustedApplication, User
from rules import statistics
from rules.trace_switches import switch_trace
from identity.context import AllPermissions, CallContext
from tests.support.calculations import parse_rows
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook
from tests.support.waiting import eventually
from webhooks.models import FINISHED_STATES, WebHookDelivery
from tests.webhooks.cast import deliver_due

# The rights of a rule's and a webhook's author count, so it is a user of this instance.
ADMIN = CallContext(user=User.objects.get(login="admin").as_caller("en"), permissions=AllPermissions())
hook = new_web_hook(URL + "/orders/{CurrencySign}?source=erp", code="PAGES", context=ADMIN, RetryLogic="Retry",
    Headers="Authorization: Bearer s3cret\\nX-Source: platform", Body='{{"name": "{Name}", "sign": "{CurrencySign}"}}')
sent = [new_delivery("PAGES", new_currency(sign, "Currency " + sign)) for sign in ("QPA", "QPB", "QPC")]
deliver_due()
# The instance's worker may have come first with some of them.
unfinished = WebHookDelivery.objects.filter(web_hook_code="PAGES").exclude(state__in=FINISHED_STATES)
assert eventually(lambda: not unfinished.exists())

dataset = Dataset(ADMIN)
rule = dataset.create("Systems.Bpm.UserBusinessRules", {"Code": "PAGES", "Name": {"EN": "Currencies of these pages"},
    "RepositoryName": "General.Currencies.Currencies", "IsActive": True}, by_client=True)
parts = {"Event": {"EventType": "COMMIT"},
    "Condition": {"ConditionNo": 10, "AttributeName": "CurrencySign", "ComparisonType": "Like", "Value": "QP*"},
    "Action": {"ActionNo": 10, "ActionType": "WARNING", "Parameter1Type": "Interpolate", "Parameter1Value": "{Name}"}}
for kind, values in parts.items():
    dataset.create(f"Systems.Bpm.UserBusinessRule{kind}s", values, parent=rule, by_client=True)
dataset.commit()
dataset.set(rule, "Notes", "Tells who has saved one." + "\\nA line." * 20)
dataset.set(dataset.open(hook.repository, hook.id, "update"), "Body", '{{"sign": "{CurrencySign}"}}')
dataset.commit()
switch_trace(rule.id, True)
currency = new_currency("QPD", "Traced")
statistics.pending.flush()
broken = UserBusinessRule.objects.create(code="PAGES-BROKEN", name={"EN": "Of a repository that is gone"},
    repository_name="No.Such.Things", is_active=False)

attribute = dataset.create("Systems.Bpm.CalculatedAttributes", {"Name": "PagesWorth", "Caption": {"EN": "Worth"},
    "RepositoryName": "Crm.Sales.SalesOrders", "IsActive": True}, by_client=True)
rows = ("10: IIF EXP:20 CONST:'large' CONST:'small'", "20: GT EXP:30 CONST:1000", "30: SUM CHILD:Lines EXP:40",
    "40: MULTIPLY ATTRIB:QuantityValue ATTRIB:UnitPriceValue")
for row in (parse_rows(each)[0] for each in rows):
    parameters = {f"Parameter{n}{part}": value for n, each in enumerate(row.parameters, 1)
        for part, value in (("Type", each.type), ("Value", each.value))}
    dataset.create("Systems.Bpm.CalculatedAttributeExpressions",
        {"ExpressionNo": row.number, "Operator": row.operator, **parameters}, parent=attribute, by_client=True)
cars = {"Name": "Custom.Pages.Cars", "CodeAttribute": "Code"}
entity = dataset.create("Systems.Bpm.CustomEntities", cars, by_client=True)
for name, values in {"Code": {"MaxLength": 10}, "Price": {"AttributeType": "Amount", "MeasureReference": "Currency"},
        "Currency": {"AttributeType": "Reference", "TargetRepository": "General.Currencies.Currencies"}}.items():
    dataset.create("Systems.Bpm.CustomEntityAttributes", {"Name": name, **values}, parent=entity, by_client=True)
dataset.commit()
live.follow()
cars = Dataset(ADMIN)
cars.create("Custom.Pages.Cars", {"Code": "C1"}, by_client=True)
cars.commit()

now = utc_now()
message = InformationMessage.objects.create(machine_name="node-1", process_description="rule PAGES-BROKEN",
    message="The repository No.Such.Things is gone.", information_message_type="Error", user_name="system",
    information_message_time=now)
task = Failure.objects.create(id=new_guid().replace("-", ""), name="nightly-prune", func="webhooks.tasks.prune",
    started=now, stopped=now, success=False, result="Traceback (most recent call last): DatabaseError: disk full")
role = Role.objects.get(name__contains="Sales")
RowPolicy.objects.create(role=role, repository="Crm.Sales.SalesOrders", filter="Responsible/Id eq $user.Id",
    on_read=True, is_active=False, notes="Salespeople see what is theirs.")
careful = User.objects.create_user("careful", "careful")
authenticator_app.app_add(careful, secret := authenticator_app.secret_make(), pyotp.TOTP(secret).now())
recovery.codes_make(careful)
Passkey.objects.create(user=careful, name="Phone", credential_id="AAAA", credential="AAAA", rp_id="localhost")
TrustedApplication.objects.filter(application_uri="PagesTestItself").update(registration_source="dcr")
print(json.dumps({
    "careful": str(careful.pk), "calculation": str(attribute.id), "entity": str(entity.id),
    "hook": str(hook.id), "failed": str(sent[1].pk), "rule": str(rule.id), "broken": str(broken.pk),
    "currency": str(currency.id), "message": str(message.pk), "task": str(task.pk), "role": str(role.pk),
    "script": str(Script.objects.get(code="DEMO-ORDER-TOTAL").pk),
    "order": str(SalesOrder.objects.get(document_no="0000000002").pk),
    "product": str(Product.objects.get(part_number="AC-0001").pk),
    "application": str(TrustedApplication.objects.get(application_uri="WebDemoClient").pk),
    "service": str(TrustedApplication.objects.get(application_uri="ServiceDemoClient").pk),
    "user": str(User.objects.get(login="demo").pk),
}))
"""


@dataclass(frozen=True, slots=True)
class Cast:
    """The instance, what its pages are opened for (name → id), and an application that people sign in to."""

    platform: LivePlatform
    ids: Mapping[str, str]
    application_url: str


@contextmanager
def everything_shown(platform: LivePlatform) -> Iterator[Cast]:
    """Fill the instance. The application, which also receives webhooks, answers as long as the block runs."""
    with LoopbackReceiver().running() as receiver:
        receiver.respond_with = _answer
        redirect = f"{receiver.url}/callback"
        _manage(platform, "register_app", APPLICATION, "--scope", "openid read", "--login-url", redirect)
        _manage(platform, "register_app", SELF_REGISTERED, "--scope", "openid read", "--login-url", redirect)
        printed = _manage(platform, "shell", "-v0", "-c", f"URL = {receiver.url!r}\n{_CAST}")
        _open_session(platform)
        yield Cast(platform, json.loads(printed.splitlines()[-1]), redirect)


def _answer(request: ReceivedRequest) -> Answer:
    """One of the deliveries arrives, whichever is sent first."""
    if request.path.startswith("/orders/QPA"):
        return Answer(200, b'{"ok": true}', {"Content-Type": "application/json"})
    return Answer(410, b"no longer wanted", {"Content-Type": "text/plain"})


def _open_session(platform: LivePlatform) -> None:
    """A service asks for something, and is connected from then on."""
    asked = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    answer = requests.post(f"{platform.base_url}/id/connect/token", {**asked, "scope": "read"}, timeout=60)
    token = {"Authorization": f"Bearer {answer.json()['access_token']}"}
    requests.get(f"{platform.odata_url}General_Currencies_Currencies", headers=token, timeout=60).raise_for_status()


def _manage(platform: LivePlatform, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**platform.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
