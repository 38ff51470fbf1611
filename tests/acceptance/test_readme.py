"""README What the README promises"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.caller import Caller, answered, error_of
from tests.acceptance.objects import Maker, condition, fail
from tests.acceptance.people import Browser
from tests.acceptance.statements import statement
from tests.support.platform import ROOT, LivePlatform
from tests.support.processes import connection_to_each

README = (ROOT / "README.md").read_text(encoding="utf-8")
GROUPS, GROUP_RULES = "General_Products_ProductGroups", "General.Products.ProductGroups"


@pytest.mark.once
@statement("README", "make run and make test are targets of the Makefile, and make help names every other")
def test_make(anyone: Caller) -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("run", "test", "acceptance", "story", "docs", "setup", "lint", "types", "bench", "fuzz"):
        assert re.search(rf"^  make {target} ", told, re.MULTILINE), target
    named = set(re.findall(r"make ([a-z]+)", README)) - {"is"}
    assert named <= set(re.findall(r"^  make ([a-z]+) ", told, re.MULTILINE)) | {"help", "and", "all"}


@pytest.mark.once
@pytest.mark.parametrize(
    "name", ["PORT", "HOST", "DATA_DIR", "DATABASE_URL", "REDIS_URL", "BASE_URL", "LICENSE_SESSIONS"]
)
@statement("README", "{name} overrides a default, as environment and as make variable")
def test_override(anyone: Caller, name: str, tmp_path: Path) -> None:
    assert f"`{name}`" in README
    assert f"| `{name}` |" in (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    # `make` hands its variables on to the commands that it starts.
    (tmp_path / "Makefile").write_text(f"include {ROOT}/Makefile\nshown:\n\t@echo $${name}\n")
    given = ["make", "--no-print-directory", "-f", str(tmp_path / "Makefile"), "shown", f"{name}=seen"]
    assert subprocess.run(given, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() == "seen"


@pytest.mark.once
@statement("README", "Every file and directory that the README links to or names is there")
def test_links(anyone: Caller) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(targets) > 10
    assert [name for name in targets if not (ROOT / name).exists()] == []
    assert [name for name in re.findall(r"`([a-z_]+/)`", README) if not (ROOT / name).is_dir()] == []


@statement("README", "One process tree runs the identity provider, the Domain API, the admin and the worker")
def test_process_tree(anyone: Caller, service: Caller) -> None:
    assert anyone.read("/id/.well-known/openid-configuration")["issuer"]
    answered(service.get(""), 200)
    assert anyone.get("/admin/").status_code in {200, 302}
    assert anyone.get("/readyz").status_code == 200


@statement("README", "The admin opens for admin/admin")
def test_admin(anyone: Caller) -> None:
    browser = Browser(anyone)
    browser.log_in("admin")
    answered(browser.get("/admin/"), 200)


class TestLiveAtOnce:
    @statement("README", "A rule is validated when it is saved")
    def test_validated(self, make: Maker) -> None:
        body = {
            "Code": f"R-{make.mark}",
            "Name": {"EN": "x"},
            "RepositoryName": GROUP_RULES,
            "Events": [{"EventType": "COMMIT"}],
            "Conditions": [condition("NoSuchAttribute", "IsNull")],
            "Actions": [fail("x")],
        }
        assert "NoSuchAttribute" in error_of(make.caller.post("Systems_Bpm_UserBusinessRules", body), 500)["message"]

    @statement("README", "A script is validated when it is saved")
    def test_script_validated(self, make: Maker) -> None:
        body = {"Code": f"S-{make.mark}", "Name": {"EN": "x"}, "Language": "JavaScript", "ScriptText": "return (;"}
        error_of(make.caller.post("Systems_Core_Scripts", body), 500)

    @statement("README", "A rule is live as soon as it is saved: the very next request is refused by it")
    def test_rule(self, make: Maker) -> None:
        group = make.group(Notes=make.mark)
        make.rule(GROUP_RULES, "COMMIT", fail("live"), conditions=[condition("Notes", "Equals", make.mark)])
        assert error_of(make.caller.patch(group, {"Code": f"H-{make.mark}"}), 500)["message"] == "live"


class TestWherever:
    """A rule holds wherever a change comes from."""

    @pytest.fixture
    def group(self, make: Maker) -> str:
        """A group that a rule keeps from being changed."""
        group = make.group(Notes=make.mark)
        conditions = [condition("Notes", "Equals", make.mark), condition("Code", "Equals", f"H-{make.mark}", 20)]
        make.rule(GROUP_RULES, "COMMIT", fail(f"held {make.mark}"), conditions=conditions)
        return group

    @pytest.fixture(autouse=True)
    def unchanged(self, make: Maker, group: str) -> Any:
        yield
        assert make.caller.read(group)["Code"] == f"G-{make.mark}"

    @statement("README", "A rule holds for a change by the API")
    def test_api(self, make: Maker, group: str) -> None:
        refused = make.caller.patch(group, {"Code": f"H-{make.mark}"})
        assert error_of(refused, 500)["message"] == f"held {make.mark}"

    @statement("README", "A rule holds for a change in a batch")
    def test_batch(self, make: Maker, group: str) -> None:
        part = {"id": "1", "method": "PATCH", "url": group, "body": {"Code": f"H-{make.mark}"}}
        part["headers"] = {"Content-Type": "application/json"}
        (answer,) = answered(make.caller.post("$batch", {"requests": [part]}), 200).json()["responses"]
        assert answer["status"] == 500
        assert answer["body"]["error"]["message"] == f"held {make.mark}"

    @statement("README", "A rule holds for a change by an import")
    def test_import(self, make: Maker, group: str) -> None:
        given = {
            "@odata.type": "Erp.General_Products_ProductGroup",
            "@erpnet.action": "update",
            "@odata.id": group,
            "@erpnet.findBy": {"Id": group[-37:-1]},
            "Code": f"H-{make.mark}",
        }
        answer = answered(make.caller.post("Import", {"objects": [given]}), 200).json()
        assert answer["@erpnet.result"] == "fail"
        assert f"held {make.mark}" in str(answer["objects"][0])

    @statement("README", "A rule holds for a change by a script")
    def test_script(self, make: Maker, group: str) -> None:
        found = f"Domain.General.Products.ProductGroupsRepository.getById('{group[-37:-1]}')"
        refused = make.caller.script(f"{found}.Code = 'H-{make.mark}'; Transaction.commit();")
        assert f"held {make.mark}" in error_of(refused, 500)["message"]

    @statement("README", "A rule holds for a change in a Domain transaction")
    def test_transaction(self, make: Maker, group: str) -> None:
        inside = make.caller.begin()
        inside.change(group, {"Code": f"H-{make.mark}"})
        assert f"held {make.mark}" in error_of(inside.post("EndTransaction", {"commit": True}), 500)["message"]
        inside.end(commit=False)

    @statement("README", "A rule holds for a change in the admin")
    def test_admin(self, make: Maker, group: str) -> None:
        browser = Browser(Caller(make.caller.base_url))
        browser.log_in("admin")
        listed = answered(browser.get(f"/admin/domain/productgroup/{group[-37:-1]}/change/"), 200)
        answer = browser.submit(listed, code=f"H-{make.mark}")
        assert f"held {make.mark}" in answered(answer, 200).text


@statement("README", "A saved rule is live in every web process of the machine, for the next request")
def test_every_process(make: Maker, acceptance_instance: LivePlatform) -> None:
    group = make.group(Notes=make.mark)
    connections = connection_to_each(acceptance_instance.base_url, acceptance_instance.process.pid)
    make.rule(GROUP_RULES, "COMMIT", fail("live"), conditions=[condition("Notes", "Equals", make.mark)])
    headers = {**make.caller.headers, "Content-Type": "application/json"}
    for connection in connections.values():
        connection.request("PATCH", f"/api/domain/odata/{group}", body='{"Code": "x"}', headers=headers)
        answer = connection.getresponse()
        assert (answer.status, b"live" in answer.read()) == (500, True)
        connection.close()
