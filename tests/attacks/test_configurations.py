"""Configuration that is exported, and applied again, gives its author no more authority than they had.

Who: a user who may write rules, scripts and webhooks, and is no administrator. What: to have the operator's commands
save what they wrote, by an edit that the operator takes back, so that the platform stands behind it. What prevents it:
a document names the authors that are no administrators (platform_site.configuration), and applying it keeps them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command

from foundation import cache_versions
from identity.models import Role, User
from rules.models import RuleState
from scripts.models import ScriptAuthor
from tests.attacks.access import CURRENCIES, RULES, refused_as, save_rule, script
from tests.attacks.test_access import MAKE_A_ROLE, alice, currency, mallory, user_id
from tests.scripts.cast import make_script
from tests.support.api import Api
from webhooks.models import TemplateAuthor

__all__ = ["alice", "mallory"]

HOOKS = "Systems_Config_WebHooks"
HOOK = {
    "Code": "M",
    "RepositoryName": "General.Currencies.Currencies",
    "URL": "https://m.example/",
    "Name": {"EN": "m"},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def exported(file: Path) -> dict[str, Any]:
    call_command("export_config", output=str(file))
    document: dict[str, Any] = yaml.safe_load(file.read_text())
    return document


def applied(file: Path) -> str:
    out = io.StringIO()
    call_command("import_config", str(file), "--apply", stdout=out)
    cache_versions.expire()
    return out.getvalue()


def test_an_edit_that_the_operator_takes_back_gives_a_rule_no_authority(mallory: Api, alice: Api, file: Path) -> None:
    rule = save_rule(mallory, "M1", "General.Currencies.Currencies", "COMMIT", **script(MAKE_A_ROLE))
    exported(file)
    assert mallory.patch(f"{RULES}({rule})", {"Notes": "drift"}).status_code == 204
    assert "1 objects changed" in applied(file)
    assert refused_as(alice.post(CURRENCIES, currency())) == "RuleLacksAuthority"
    assert not Role.objects.filter(name="Owners").exists()
    assert "Nothing differs" in applied(file)


def make_rule(api: Api) -> None:
    save_rule(api, "M1", "General.Currencies.Currencies", "COMMIT", ("WARNING", "x"))


def make_managed_script(api: Api) -> None:
    make_script(api, "1;", Code="M1")


def make_webhook(api: Api) -> None:
    assert api.post(HOOKS, HOOK).status_code == 201


MADE: dict[str, tuple[Callable[[Api], None], Any, str]] = {
    "rules": (make_rule, RuleState, "M1"),
    "scripts": (make_managed_script, ScriptAuthor, "M1"),
    "webhooks": (make_webhook, TemplateAuthor, "M"),
}


@pytest.mark.parametrize("section", MADE)
def test_authors_are_moved_with_what_they_wrote(mallory: Api, alice: Api, file: Path, section: str) -> None:
    make, authors, code = MADE[section]
    make(mallory)
    document = exported(file)
    assert document[section][code]["Author"] == "mallory"
    for login, author in (("mallory", user_id("mallory")), ("gone", "")):
        document[section][code] |= {"Author": login, "Notes" if section != "scripts" else "Name": f"of {login}"}
        if section == "scripts":
            document[section][code]["Name"] = {"EN": login}
        file.write_text(yaml.safe_dump(document))
        told = applied(file)
        assert authors._default_manager.get().author == author
        assert ("gone, is unknown here" in told) == (login == "gone")
    # Without a name the operator's authority stands behind it, and the comparison says so.
    del document[section][code]["Author"]
    file.write_text(yaml.safe_dump(document))
    assert "Author" in applied(file)
    assert authors._default_manager.get().author == "platform"


def test_an_administrators_rule_is_the_platforms_elsewhere(alice: Api, file: Path) -> None:
    save_rule(alice, "A1", "General.Currencies.Currencies", "COMMIT", **script(MAKE_A_ROLE))
    document = exported(file)
    assert "Author" not in document["rules"]["A1"]
    # Of somebody who is none any more, it says whose it is.
    User.objects.filter(login="alice").update(is_admin=False)
    assert exported(file)["rules"]["A1"]["Author"] == "alice"
