"""spec 09 Operations"""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered, error_of
from tests.acceptance.objects import APPLICATIONS, ORDERS, PRODUCTS, RULES, SCRIPTS, USERS, WEBHOOKS
from tests.acceptance.people import Browser
from tests.acceptance.statements import statement
from tests.support.platform import ROOT, LivePlatform

#: Each command that the specification names.
COMMANDS = [
    "seed_demo", "register_app", "issue_token", "revoke_tokens", "rotate_keys", "list_sessions", "close_session",
    "expire_sessions", "export_config", "import_config", "validate_rules", "run_script", "import_data",
    "redeliver_webhooks", "prune", "error_codes", "doctor",
]  # fmt: skip
#: Those that list, and so have --json.
LISTING = ["list_sessions", "export_config", "validate_rules", "redeliver_webhooks", "error_codes", "doctor"]
# As manage.py does, one after the other in one process: starting Python takes longer than most commands.
RUN = """
import contextlib, io, json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
from django.core.management import execute_from_command_line
told = []
for line in json.loads(sys.argv[1]):
    out, status = io.StringIO(), 0
    with contextlib.redirect_stdout(out):
        try:
            execute_from_command_line(["manage.py", *line])
        except SystemExit as exit:
            status = exit.code or 0
    told.append((status, out.getvalue()))
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def admin(anyone: Caller) -> Browser:
    """A browser in which `admin` is signed in."""
    signed_in = Browser(anyone)
    answered(signed_in.log_in("admin"), 302)
    return signed_in


class TestDemo:
    @pytest.mark.parametrize(
        "uri, values",
        [
            ("ServiceDemoClient", {"SystemUserAllowed": True, "Scope": "read update exec"}),
            ("PublicDemoClient", {"ClientType": "Public", "ImpersonateAsInternalUserAllowed": True}),
            ("WebDemoClient", {"ClientType": "Confidential", "ImpersonateAsInternalUserAllowed": True}),
            ("DualDemoClient", {"SystemUserAllowed": True, "ImpersonateAsInternalUserAllowed": True}),
        ],
    )
    @statement("spec 09", "The demo has the trusted application {uri}")
    def test_applications(self, service: Caller, uri: str, values: dict[str, Any]) -> None:
        (found,) = service.rows(f"{APPLICATIONS}?$filter=ApplicationUri eq '{uri}'")
        assert {name: found[name] for name in values} == values
        if found["ImpersonateAsInternalUserAllowed"]:
            assert "http://localhost:5080/" in found["ImpersonateLoginUrl"]
            assert "http://localhost:5080/" in found["ImpersonateLogoutUrl"]

    @pytest.mark.parametrize(
        "login, kind, is_admin",
        [
            ("admin", "InternalUser", True),
            ("demo", "InternalUser", False),
            ("customer", "ExternalCommunityUser", False),
        ],
    )
    @statement("spec 09", "The demo has the user {login}/{login}: {kind}")
    def test_users(self, anyone: Caller, service: Caller, login: str, kind: str, is_admin: bool) -> None:
        (found,) = service.rows(f"{USERS}?$filter=Login eq '{login}'")
        assert (found["UserType"], found["IsAdmin"]) == (kind, is_admin)
        answered(Browser(anyone).log_in(login), 302)

    @pytest.mark.parametrize(
        "what, entity_set, least, most",
        [
            ("products", PRODUCTS, 180, 240),
            ("customers", "Crm_Sales_Customers", 45, 60),
            ("sales orders", ORDERS, 90, 1000),
            ("product groups", "General_Products_ProductGroups", 2, 100),
            ("product prices", "Crm_Pricing_ProductPrices", 100, 1000),
            ("units", "General_Products_MeasurementUnits", 2, 100),
            ("company locations", "General_Contacts_CompanyLocations", 1, 20),
            ("user statuses", "Systems_Documents_DocumentTypeUserStatuses", 1, 50),
            ("webhook templates", WEBHOOKS, 1, 5),
            ("managed scripts", SCRIPTS, 1, 5),
            ("rules", RULES, 2, 10),
        ],
    )
    @statement("spec 09", "The demo has {what}")
    def test_data(self, service: Caller, what: str, entity_set: str, least: int, most: int) -> None:
        assert least <= service.count(entity_set) <= most

    @statement("spec 09", "The demo has a EUR company and the currencies EUR, USD, GBP and BGN")
    def test_currencies(self, service: Caller) -> None:
        signs = {row["CurrencySign"] for row in service.rows("General_Currencies_Currencies?$select=CurrencySign")}
        assert {"EUR", "USD", "GBP", "BGN"} <= signs
        (company,) = service.rows("General_EnterpriseCompanies?$expand=BaseCurrency($select=CurrencySign)")
        assert company["BaseCurrency"]["CurrencySign"] == "EUR"

    @statement("spec 09", "The demo's orders are in several states; its example rules are inactive")
    def test_states(self, service: Caller) -> None:
        assert len({row["State"] for row in service.rows(f"{ORDERS}?$select=State")}) >= 4
        examples = service.rows(f"{RULES}?$filter=RepositoryName eq 'Crm.Sales.SalesOrders'&$select=Code,IsActive")
        assert {row["Code"]: row["IsActive"] for row in examples} == {"DEMO-REFERENCE": False, "DEMO-TELL": False}

    @statement("spec 09", "The start prints the addresses, the demo logins and a curl line")
    def test_printed(self, anyone: Caller, acceptance_instance: LivePlatform) -> None:
        printed = "".join(acceptance_instance.output)
        for part in (anyone.base_url, "admin/admin", "demo/demo", "curl "):
            assert part in printed, part

    @statement("spec 09", "Secrets and keys lie in DATA_DIR for their owner only")
    def test_permissions(self, anyone: Caller, acceptance_instance: LivePlatform) -> None:
        secrets = [acceptance_instance.data_dir / "secret_key", *(acceptance_instance.data_dir / "keys").iterdir()]
        assert len(secrets) > 1
        assert [file.name for file in secrets if stat.S_IMODE(file.stat().st_mode) & 0o077] == []

    @pytest.mark.once
    @statement("spec 09", "Demo mode refuses an address that other machines reach; wrong settings are refused in words")
    def test_refused(self, acceptance_instance: LivePlatform) -> None:
        for values, named in (({"HOST": "0.0.0.0"}, "--i-know"), ({"LICENSE_SESSIONS": "many"}, "LICENSE_SESSIONS")):
            environment = {**acceptance_instance.environment, **values}
            command = [sys.executable, "manage.py", "serve"]
            ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
            assert ended.returncode != 0
            assert named in ended.stderr
            assert "Traceback" not in ended.stderr


@pytest.mark.once
@pytest.mark.parametrize(
    "path",
    [".ci/run", "deploy/Dockerfile", "deploy/compose.yaml", "deploy/systemd", "deploy/nginx", "deploy/Caddyfile",
     "docs/reference/settings.md", "docs/decisions.md", "docs/security-model.md", "docs/operations.md",
     "docs/reference/error-codes.md", "docs/guides/cookbook.md", "CHANGELOG.md"],
)  # fmt: skip
@statement("spec 09", "The repository has {path}")
def test_files(path: str) -> None:
    assert (ROOT / path).exists()


class TestObservability:
    @statement("spec 09", "A request is known by its id, also one that the caller gives")
    def test_request_id(self, service: Caller, mark: str) -> None:
        assert re.fullmatch(r"[0-9a-f]{32}", service.get("").headers["X-Request-Id"])
        assert error_of(service.get("Nothing"), 400)["info"]

    @pytest.mark.parametrize(
        "name",
        ["requests_total", "request_seconds", "sessions", "session_slots", "transactions", "script_runs_total",
         "rule_firings_total", "webhook_deliveries", "webhook_lag_seconds", "queue_tasks"],
    )  # fmt: skip
    @statement("spec 09", "/metrics has platform_{name} for Prometheus")
    def test_metrics(self, metrics: str, name: str) -> None:
        assert f"# TYPE platform_{name} " in metrics

    @pytest.fixture(scope="class")
    @classmethod
    def metrics(cls, anyone: Caller, service: Caller) -> str:
        """The exposition as a scraper on this machine reads it, once a script has run."""
        service.run("1")
        return answered(anyone.get("/metrics"), 200).text

    @statement("spec 09", "/metrics is guarded: who comes through a proxy is refused")
    def test_guarded(self, anyone: Caller) -> None:
        answered(anyone.get("/metrics", X_Forwarded_For="203.0.113.7"), 401, 403, 404)


class TestCommands:
    @pytest.fixture(scope="class")
    @classmethod
    def ran(cls, acceptance_instance: LivePlatform) -> dict[str, tuple[int, str]]:
        """(exit status, output) of each command line on the running instance."""
        lines = [[name, "--help"] for name in COMMANDS]
        lines += [[name, "--json", *(["--dry-run"] if name == "redeliver_webhooks" else [])] for name in LISTING]
        lines += [["issue_token", "ServiceDemoClient"], ["issue_token", "WebDemoClient"]]
        command = [sys.executable, "-c", RUN, json.dumps(lines)]
        environment = dict(acceptance_instance.environment)
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        told = json.loads(ended.stdout.splitlines()[-1])
        return {f"{line[0]} {line[1]}": (status, out) for line, (status, out) in zip(lines, told, strict=True)}

    @pytest.mark.once
    @pytest.mark.parametrize("name", COMMANDS)
    @statement("spec 09", "manage.py {name} --help has an example")
    def test_help(self, ran: dict[str, tuple[int, str]], name: str) -> None:
        status, text = ran[f"{name} --help"]
        assert status == 0
        assert f"manage.py {name}" in text

    @pytest.mark.once
    @pytest.mark.parametrize("name", LISTING)
    @statement("spec 09", "manage.py {name} --json prints JSON")
    def test_json(self, ran: dict[str, tuple[int, str]], name: str) -> None:
        status, text = ran[f"{name} --json"]
        assert json.loads(text) is not None
        assert status == 0 or name == "doctor"

    @pytest.mark.once
    @statement("spec 01", "manage.py issue_token makes a service's token; an application that allows none gets none")
    def test_issue_token(self, ran: dict[str, tuple[int, str]], anyone: Caller) -> None:
        status, text = ran["issue_token ServiceDemoClient"]
        assert status == 0
        found = re.search(r"enrt_[0-9a-f]{64}\b", text)
        assert found is not None
        assert anyone.with_token(found[0]).rows(f"{ORDERS}?$top=1")
        status, text = ran["issue_token WebDemoClient"]
        assert (status != 0, "enrt_" in text) == (True, False)


PAGES = ["/api/", "/api/query", "/api/builder", "/api/domain/import", "/api/model"]


class TestPages:
    @pytest.mark.parametrize("path", [*PAGES, "/admin/", "/profile/", "/id/account/login", "/"])
    @statement("spec 09", "{path} has a strict Content-Security-Policy and no asset of another host")
    def test_page(self, admin: Browser, path: str) -> None:
        page = admin.get(path)
        while page.is_redirect:
            page = admin.get(page.headers["Location"])
        answered(page, 200)
        policy = dict(part.strip().partition(" ")[::2] for part in page.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'self'"
        assert policy.get("script-src", "'self'") == "'self'"
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//(?!127\.0\.0\.1)', page.text)
        assert not re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", page.text), "inline script"

    @statement("spec 09", "The admin is for those who signed in")
    def test_admin(self, anyone: Caller) -> None:
        assert "/id/account/login" in _end(anyone)


def _end(anyone: Caller) -> str:
    """Where the admin leads somebody who is not signed in."""
    browser = Browser(anyone)
    page = browser.get("/admin/")
    while page.is_redirect:
        page = browser.get(page.headers["Location"])
    return str(page.url)
