"""The eight steps. Each sends real requests and insists on real answers; nothing here knows the product's code."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.story.narrator import Narrator, StoryFailed
from tests.story.signin import SignedIn, sign_in, sign_out
from tests.support.receiver import Answer, LoopbackReceiver, ReceivedRequest

ORDERS = "Crm_Sales_SalesOrders"
# The first retry comes after some five seconds; a busy machine may take longer.
RETRY_TIMEOUT_SECONDS = 60.0
# More sign-ins than any licence of a demo instance has slots: the loop must end.
MOST_SESSIONS = 500
PUBLIC_APP = "PublicDemoClient"
REDIRECT_URI = "http://localhost:5080/signin-callback"


@dataclass
class Story:
    """What the steps hand on to each other. `mark` makes the codes of this telling its own."""

    base_url: str
    narrator: Narrator
    receiver: LoopbackReceiver
    cleanup: ExitStack
    mark: str = field(default_factory=lambda: secrets.token_hex(3).upper())
    sites: dict[str, dict[str, Any]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    token: str = ""
    template: dict[str, Any] = field(default_factory=dict)
    order: str = ""

    @property
    def odata(self) -> str:
        """The OData root, as discovered."""
        root: str = self.sites["API"]["AdditionalProperties"]["ODataServiceRoot"]
        return root

    def call(self, method: str, path: str, **options: Any) -> requests.Response:
        """A request to the Domain API with the service's token."""
        headers = {"Authorization": f"Bearer {self.token}", **options.pop("headers", {})}
        return self.narrator.send(method, self.odata + path, headers=headers, **options)

    def create(self, entity_set: str, body: dict[str, Any], **options: Any) -> str:
        """POST; the reference of the new entity (`Set(guid)`). It is deleted when the story ends."""
        created: str = self.call("POST", entity_set, json_body=body, expect=201, **options).json()["@odata.id"]
        self.later(lambda: self.delete(created))
        return created

    def later(self, undo: Callable[[], object]) -> None:
        """Undo something when the story ends, the last first. What cannot be undone is said and stops nothing."""

        def run() -> None:
            try:
                undo()
            except (StoryFailed, requests.RequestException) as error:
                self.narrator.say(f"left behind: {error}")

        self.cleanup.callback(run)

    def delete(self, reference: str) -> None:
        """Remove what a step made."""
        self.call("DELETE", reference, expect=(200, 204), quiet=True)


def discover(story: Story) -> None:
    """1."""
    answer = story.narrator.send("GET", f"{story.base_url}/sys/auto-discovery").json()
    story.sites = {site["Type"]: site for site in answer["WebSites"]}
    story.narrator.check({"ID", "API"} <= set(story.sites), "the instance names its ID and API sites")
    for name in ("ID", "API"):
        story.narrator.check(story.sites[name]["Status"] == "Working", f"{name} works")
    identity = story.sites["ID"]["Url"].rstrip("/")
    story.metadata = story.narrator.send("GET", f"{identity}/.well-known/openid-configuration").json()
    story.narrator.check(story.metadata["issuer"] == identity, "the metadata's issuer is the ID site")


def get_token(story: Story) -> None:
    """2."""
    tokens = story.narrator.send(
        "POST",
        story.metadata["token_endpoint"],
        form={
            "grant_type": "client_credentials",
            "client_id": "ServiceDemoClient",
            "client_secret": "DEMO",
            "scope": "read update exec",
        },
    ).json()
    story.token = tokens["access_token"]
    granted = set(tokens["scope"].split())
    story.narrator.check(granted == {"read", "update", "exec"}, "the token has the scopes asked for")
    story.narrator.check("refresh_token" not in tokens, "a service gets no refresh token")
    story.later(
        lambda: story.narrator.send(
            "POST",
            story.metadata["revocation_endpoint"],
            form={"client_id": "ServiceDemoClient", "client_secret": "DEMO", "token": story.token},
            quiet=True,
        )
    )


def configure(story: Story) -> None:
    """3."""
    events = story.call("GET", "GetRepositoryEvents(repositoryName='Crm.Sales.SalesOrders')").json()["events"]
    known = {event["EventType"]: event for event in events}
    story.narrator.check(
        bool(known["STATECHANGING"]["RequiresEventParameter"])
        and not known["AGGREGATECLIENTCOMMIT"]["RequiresEventParameter"],
        "STATECHANGING needs a state, AGGREGATECLIENTCOMMIT nothing",
    )
    webhook = f"STORY-{story.mark}"
    story.create(
        "Systems_Config_WebHooks",
        {
            "Code": webhook,
            "Name": {"EN": "Story: order saved"},
            "RepositoryName": "Crm.Sales.SalesOrders",
            "URL": f"{story.receiver.url}/orders/{{Id}}",
            "Headers": "Content-Type: application/json",
            "Body": '{{"order": "{DocumentNo}", "id": "{Id}", "date": "{DocumentDate}"}}',
            "RetryLogic": "Retry",
        },
    )
    story.create(
        "Systems_Bpm_UserBusinessRules",
        {
            "Code": f"STORY-F-{story.mark}",
            "Name": {"EN": "Story: no release without the customer's number"},
            "RepositoryName": "Crm.Sales.SalesOrders",
            "IsActive": True,
            "Events": [{"EventType": "STATECHANGING", "EventParameter": "RELEASED"}],
            "Conditions": [{"ConditionNo": 10, "AttributeName": "ReferenceDocumentNo", "ComparisonType": "IsNull"}],
            "Actions": [
                {
                    "ActionNo": 10,
                    "ActionType": "FAIL",
                    "Parameter1Type": "Interpolate",
                    "Parameter1Value": "Order {DocumentNo} needs the customer's number (ReferenceDocumentNo).",
                }
            ],
        },
    )
    story.create(
        "Systems_Bpm_UserBusinessRules",
        {
            "Code": f"STORY-W-{story.mark}",
            "Name": {"EN": "Story: tell about saved orders"},
            "RepositoryName": "Crm.Sales.SalesOrders",
            "IsActive": True,
            "Events": [{"EventType": "AGGREGATECLIENTCOMMIT"}],
            "Actions": [
                {"ActionNo": 10, "ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": webhook}
            ],
        },
    )


def order(story: Story) -> None:
    """4."""
    narrator = story.narrator
    found = story.call(
        "GET",
        ORDERS,
        params={
            "$top": "1",
            "$filter": "State eq 'Released' and Void eq false",
            "$orderby": "DocumentNo",
            "$select": "DocumentType,EnterpriseCompany,EnterpriseCompanyLocation,Customer",
            "$expand": "Lines($top=2;$select=Product,Quantity,UnitPrice)",
        },
    ).json()["value"]
    narrator.check(len(found) == 1, "the demo data has an order to take as a pattern")
    story.template = found[0]
    story.receiver.respond_with = _fail_first_attempt_of_each()
    story.order = _create_order(story)
    story.later(lambda: _void(story))
    stored = story.call(
        "GET",
        story.order,
        params={
            "$select": "DocumentNo,State,TotalLineAmount",
            "$expand": "Lines($select=LineNo,Quantity,UnitPrice,LineAmount;$orderby=LineNo)",
        },
    ).json()
    lines = stored["Lines"]
    total = round(sum(line["LineAmount"]["Value"] for line in lines), 2)
    narrator.check(len(lines) == len(story.template["Lines"]), f"the order {stored['DocumentNo']} has its lines")
    narrator.check(stored["TotalLineAmount"]["Value"] == total, f"its total is the sum of its lines: {total}")
    first, second = _deliveries(story, 2)
    for number, delivery in enumerate((first, second), start=1):
        narrator.say(f"the receiver got POST {delivery.path}, attempt {number}: {delivery.body.decode()}")
    narrator.check(first.json()["order"] == stored["DocumentNo"], "a background worker delivered the webhook")
    narrator.check(
        second.headers["webhook-id"] == first.headers["webhook-id"] and second.body == first.body,
        f"after a 500 it came again {second.at - first.at:.1f} s later, with the same webhook-id",
    )


def release(story: Story) -> None:
    """5."""
    refused = story.call("POST", f"{story.order}/ChangeState", json_body={"newState": "Released"}, expect=500)
    error = refused.json()["error"]
    story.narrator.check("needs the customer's number" in error["message"], "the rule's message refuses the release")
    story.narrator.check(_state(story) == "New", "the order is still New")
    story.call("PATCH", story.order, json_body={"ReferenceDocumentNo": f"PO-{story.mark}"}, expect=(200, 204))
    story.call("POST", f"{story.order}/ChangeState", json_body={"newState": "Released"}, expect=(200, 204))
    story.narrator.check(_state(story) == "Released", "with the number given, the order is Released")


def script_in_transaction(story: Story) -> None:
    """6."""
    narrator = story.narrator
    reference = _create_order(story, quiet=True)
    story.later(lambda: story.delete(reference))
    guid = reference.partition("(")[2].rstrip(")")
    note = f"script {story.mark}"
    transaction = story.call("POST", "BeginTransaction", json_body={}).text.strip()
    inside = {"TransactionId": transaction}
    with _ended(story, transaction) as ended:
        answer = story.call(
            "POST",
            "ExecuteScript",
            headers={**inside, "Accept": "application/json"},
            text=(
                f"const order = Domain.Crm.Sales.SalesOrdersRepository.getById('{guid}');\n"
                f"order.DocumentNotes = '{note}';\n"
                "console.log(order.DocumentNo, order.DocumentNotes, order.ObjectState);"
            ),
        ).json()
        narrator.check(answer["ok"] is True and note in answer["console"], "the script ran and says so on its console")
        narrator.check(answer["transactionId"] == transaction, "it ran in the transaction")
        narrator.check(_count(story, note, inside) == 1, "inside the transaction a filter finds the change")
        narrator.check(_count(story, note, {}) == 0, "outside nobody sees it")
        story.call("POST", "EndTransaction", headers=inside, json_body={"commit": True}, expect=204)
        ended()
    narrator.check(_count(story, note, {}) == 1, "after the commit everybody sees it")


def managed_script(story: Story) -> None:
    """7."""
    reference = story.create(
        "Systems_Core_Scripts",
        {
            "Code": f"STORY-{story.mark}",
            "Name": {"EN": "Story: price with discount"},
            "Language": "JavaScript",
            "IsActive": True,
            "ParameterSchema": (
                '{"price": {"type": "number", "direction": "Input", "required": true},'
                ' "percent": {"type": "number", "direction": "Input", "default": 10},'
                ' "net": {"type": "number", "direction": "Output"}}'
            ),
            "ScriptText": (
                "parameters.net = Math.round(parameters.price * (100 - parameters.percent)) / 100;\n"
                "return `${parameters.percent}% off`;"
            ),
        },
    )
    answer = story.call("POST", f"{reference}/Execute", json_body={"arguments": {"price": 80, "percent": 25}}).json()
    story.narrator.check(
        answer["parameters"] == {"net": 60} and answer["returnValue"] == "25% off",
        "the output parameter and the return value came back",
    )
    wrong = story.call("POST", f"{reference}/Execute", json_body={"arguments": {"prize": 80}}, expect=500).json()
    story.narrator.check("prize" in wrong["error"]["message"], "an argument that it does not know is refused by name")


def exhaust_licences(story: Story) -> None:
    """8."""
    narrator = story.narrator
    signed_in: list[SignedIn] = []
    story.later(lambda: _sign_out_all(story, signed_in))
    for number in range(1, MOST_SESSIONS):
        person = sign_in(
            narrator,
            story.metadata,
            client_id=PUBLIC_APP,
            redirect_uri=REDIRECT_URI,
            login="demo",
            password="demo",
            scope="openid read",
            quiet=number > 1,
        )
        signed_in.append(person)
        response = _read_as(story, person, expect=(200, 503), quiet=number > 1)
        if response.status_code == 503:
            break
        if number == 1:
            narrator.say("demo is signed in and holds a licence slot; more sign-ins follow until none is left ...")
    else:
        raise StoryFailed(f"{MOST_SESSIONS} sign-ins did not use up the licence")
    narrator.say(f"{len(signed_in) - 1} people and this service hold every slot; the next caller gets:")
    refused = _read_as(story, signed_in[-1], expect=503)
    narrator.check(refused.json()["error"]["code"] == 8, "error code 8: no licence")
    narrator.check(1 <= int(refused.headers["Retry-After"]) <= 1200, "Retry-After says when a slot can be free")
    narrator.check(refused.headers["Cache-Control"] == "no-store", "the refusal is not cached")
    sign_out(narrator, story.metadata, signed_in.pop(0))
    _read_as(story, signed_in[-1], expect=200)
    narrator.check(True, "one signed out, and the caller that was refused got the slot at once")


STEPS: tuple[tuple[str, Callable[[Story], None]], ...] = (
    ("The instance says where everything is", discover),
    ("A service gets a token", get_token),
    ("It looks up the events of sales orders, and makes a webhook and two rules", configure),
    ("It creates an order with lines; a worker delivers the webhook, again after a 500", order),
    ("The rule refuses the release until its condition is met", release),
    ("A script works inside a transaction", script_in_transaction),
    ("A managed script takes arguments and gives results", managed_script),
    ("Every licence is taken; signing out frees a slot at once", exhaust_licences),
)


def tell(base_url: str, narrator: Narrator) -> None:
    """Tell the whole story. Raises StoryFailed at the first thing that is not as told; cleans up in any case."""
    with LoopbackReceiver().running() as receiver, ExitStack() as cleanup:
        story = Story(base_url.rstrip("/"), narrator, receiver, cleanup)
        for number, (title, step) in enumerate(STEPS, start=1):
            narrator.step(number, title)
            step(story)
        narrator.say("its rules, its webhook and its script are removed again; the released order stays, void")


def _sign_out_all(story: Story, signed_in: list[SignedIn]) -> None:
    for person in signed_in:
        sign_out(story.narrator, story.metadata, person, quiet=True)


def _create_order(story: Story, *, quiet: bool = False) -> str:
    pattern = story.template
    references = ("DocumentType", "EnterpriseCompany", "EnterpriseCompanyLocation", "Customer")
    body = {
        **{name: pattern[name] for name in references},
        "Lines": [
            {"Product": line["Product"], "Quantity": {**line["Quantity"], "Value": number}}
            for number, line in enumerate(pattern["Lines"], start=2)
        ],
    }
    reference: str = story.call("POST", ORDERS, json_body=body, expect=201, quiet=quiet).json()["@odata.id"]
    return reference


def _void(story: Story) -> None:
    """A released order cannot be deleted; it is voided, and says why."""
    story.call(
        "POST", f"{story.order}/MakeVoid", json_body={"reason": "made by the story"}, expect=(200, 204), quiet=True
    )


def _fail_first_attempt_of_each() -> Callable[[ReceivedRequest], Answer]:
    """500 for the first attempt of each message, 200 from then on."""
    seen: set[str] = set()

    def respond(request: ReceivedRequest) -> Answer:
        message = request.headers["webhook-id"] or ""
        if message in seen:
            return Answer(200)
        seen.add(message)
        return Answer(500, b"not now")

    return respond


def _deliveries(story: Story, count: int) -> list[ReceivedRequest]:
    """What came for the story's order; other orders of the instance may be saved meanwhile."""
    guid = story.order.partition("(")[2].rstrip(")")
    deadline = time.monotonic() + RETRY_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        ours = [request for request in story.receiver.requests if request.path == f"/orders/{guid}"]
        if len(ours) >= count:
            return ours[:count]
        time.sleep(0.05)
    raise StoryFailed(f"{count} deliveries were expected in {RETRY_TIMEOUT_SECONDS:.0f} s, {len(ours)} came")


def _state(story: Story) -> str:
    state: str = story.call("GET", story.order, params={"$select": "State"}).json()["State"]
    return state


def _count(story: Story, note: str, headers: dict[str, str]) -> int:
    params = {"$filter": f"DocumentNotes eq '{note}'", "$select": "DocumentNo,DocumentNotes"}
    return len(story.call("GET", ORDERS, params=params, headers=headers).json()["value"])


def _read_as(story: Story, person: SignedIn, **options: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {person.access_token}"}
    return story.narrator.send(
        "GET", f"{story.odata}{ORDERS}", params={"$top": "1", "$select": "DocumentNo"}, headers=headers, **options
    )


@contextmanager
def _ended(story: Story, transaction: str) -> Iterator[Callable[[], None]]:
    """Discards the transaction unless the block says that it has ended it."""
    done = False

    def ended() -> None:
        nonlocal done
        done = True

    try:
        yield ended
    finally:
        if not done:
            story.call(
                "POST",
                "EndTransaction",
                headers={"TransactionId": transaction},
                json_body={"commit": False},
                expect=(204, 400),
                quiet=True,
            )
