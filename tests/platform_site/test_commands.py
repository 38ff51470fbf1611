"""Spec 09, 9.4: the commands that operators start, on a demo instance of their own."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.models import Session as BrowserSession
from django.core.management import BaseCommand, CommandError, call_command, get_commands, load_command_class

from domain.dataset.tables.history import ObjectChange, ObjectChangeset
from domain.dataset.tables.models import ChangeFeedEntry, DomainTransaction, IdempotentResponse
from domain.entities.systems_monitoring import InformationMessage
from foundation.fields import utc_now
from foundation.guids import new_guid
from foundation.pruning import pruners
from identity.demo import seed_identity
from identity.models import AccessToken, PushedRequest, Session, TrustedApplication, UsedValue, User
from jobs.models import JobRun
from platform_site.management.commands import doctor
from platform_site.management.commands.import_config import DIFFERS
from platform_site.models import RecordedRequest
from scripts.models import ScriptRun
from tests.support.instances import instance_environment, prepared_instance
from tests.webhooks.cast import new_currency, new_delivery, new_web_hook
from webhooks.models import CircuitBreaker, WebHookDelivery

ROOT = Path(__file__).resolve().parent.parent.parent
TOPICS = {name for name, _examination in doctor._examinations}

#: Those that the spec names, and those that came with the product's own features; command → whether it lists.
COMMANDS = {
    "seed_demo": False, "register_app": False, "issue_token": False, "revoke_tokens": False, "rotate_keys": True,
    "list_sessions": True, "close_session": False, "expire_sessions": False, "export_config": True,
    "import_config": True, "validate_rules": True, "run_script": False, "import_data": False, "export_data": False,
    "try_rule": True,
    "qcluster": False, "redeliver_webhooks": True, "prune": True, "error_codes": True, "doctor": True,
    "generate_docs": False, "prune_webhooks": False, "rotate_webhook_secret": False,
    "verify_audit": True, "export_audit": False,
    "generate_client": False, "remove_factors": False, "changepassword": False, "tenants": False,
}  # fmt: skip

# As manage.py does, one after the other in one process: starting Python and Django takes longer than most commands.
RUN = """
import contextlib, io, json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
from django.core.management import execute_from_command_line
told = []
for line, given in json.loads(sys.argv[1]):
    out, err, status = io.StringIO(), io.StringIO(), 0
    sys.stdin = io.StringIO(given)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            execute_from_command_line(["manage.py", *line])
        except SystemExit as exit:
            status = exit.code or 0
    told.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(told))
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left: exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, which must be JSON and nothing else."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Ran:
    """Every command that was run, by its line."""

    by_line: dict[str, Ended]

    def __getitem__(self, line: str) -> Ended:
        return self.by_line[line]


def the_command(name: str) -> BaseCommand:
    """As manage.py finds it."""
    app = get_commands()[name]
    assert isinstance(app, str)
    return load_command_class(app, name)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Each command of the spec on an instance without a worker; {files} are in one directory."""
    files = tmp_path_factory.mktemp("files")
    currency = {"@odata.type": "General_Currencies_Currency", "CurrencySign": "XTS", "Name": "For tests"}
    (files / "objects.json").write_text(json.dumps({"objects": [currency]}))
    lines = [
        ("seed_demo", ""),
        ("register_app Billing --service --system-user service --scope read --json", ""),
        ("register_app Billing --service --system-user service --scope read", ""),
        ("issue_token PublicDemoClient --user demo --scope read --json", ""),
        ("revoke_tokens --user demo --json", ""),
        ("rotate_keys --json", ""),
        ("list_sessions --json", ""),
        ("close_session --user demo --json", ""),
        ("expire_sessions --json", ""),
        ("remove_factors demo --json", ""),
        ("export_config --output {files}/config.yaml", ""),
        ("import_config {files}/config.yaml --json", ""),
        ("import_config -", "version: 1\nscripts: {MINE: {Name: {EN: Mine}, ScriptText: 'return 1;'}}"),
        ("import_config {files}/nothing.yaml", ""),
        ("validate_rules --json", ""),
        ("run_script - --user demo", "console.log(6 * 7, Action.user.login)"),
        ("run_script -", "throw new Error('no')"),
        ("import_data {files}/objects.json --answers {files}/answers.jsonl", ""),
        ("export_data General_Currencies_Currencies --output {files}/currencies.csv", ""),
        ("redeliver_webhooks --dry-run --json", ""),
        ("prune --json", ""),
        ("verify_audit --json", ""),
        ("export_audit --output {files}/audit.ndjson", ""),
        ("prune --only tokens", ""),
        ("error_codes --json", ""),
        ("doctor --json", ""),
        ("no_such_command", ""),
    ]
    given = [(shlex.split(line.format(files=files)), text) for line, text in lines]
    with prepared_instance(files / "data") as settings:
        done = subprocess.run(
            [sys.executable, "-c", RUN, json.dumps(given)],
            cwd=ROOT,
            env=instance_environment(files / "data", 0, DEMO="1", **settings),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        ended = [Ended(*told) for told in json.loads(done.stdout)]
        yield Ran({line: one for (line, _), one in zip(lines, ended, strict=True)})


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_the_command_understands(name: str) -> None:
    parser = the_command(name).create_parser("manage.py", name)
    _, _, examples = parser.format_help().partition("\nExample:\n")
    lines = [line.strip() for line in examples.strip().splitlines()]
    assert lines
    for line in lines:
        program, command, *arguments = shlex.split(line.partition(" | ")[0])
        assert (program, command) == ("manage.py", name)
        parser.parse_args(arguments)  # exits, and so fails, where it does not know one


@pytest.mark.parametrize("name", [name for name, lists in COMMANDS.items() if lists])
def test_what_lists_can_do_so_for_programs(name: str) -> None:
    assert "--json" in the_command(name).create_parser("manage.py", name).format_help()


def test_no_command_of_ours_is_forgotten_here() -> None:
    rooms = {"foundation", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site"}
    ours = {name for name, app in get_commands().items() if app in rooms}
    assert ours - {"serve"} == set(COMMANDS)


@pytest.mark.process
def test_each_command_of_the_spec_runs(ran: Ran) -> None:
    expected = {
        "register_app Billing --service --system-user service --scope read": 1,
        "import_config -": DIFFERS,
        "import_config {files}/nothing.yaml": 1,
        "run_script -": 1,
        "no_such_command": 1,
    }
    found = {line: one.status for line, one in ran.by_line.items()}
    assert found == dict.fromkeys(found, 0) | expected, ran
    elsewhere = {
        "changepassword",
        "generate_client",
        "generate_docs",
        "prune_webhooks",
        "qcluster",
        "try_rule",
        "rotate_webhook_secret",
        "tenants",
    }
    of_the_spec = set(COMMANDS) - elsewhere
    assert {line.partition(" ")[0] for line in found} == of_the_spec | {"no_such_command"}


@pytest.mark.process
def test_what_fails_says_so_in_a_sentence_and_without_a_traceback(ran: Ran) -> None:
    for line, sentence in (
        ("register_app Billing --service --system-user service --scope read", "already exists"),
        ("import_config {files}/nothing.yaml", "No such file"),
        ("run_script -", "The script failed: no"),
    ):
        assert sentence in ran[line].err
        assert "Traceback" not in ran[line].err


@pytest.mark.process
def test_what_they_do_is_there_for_the_next_one(ran: Ran) -> None:
    assert ran["register_app Billing --service --system-user service --scope read --json"].json["client_secret"]
    assert ran["revoke_tokens --user demo --json"].json["reference_tokens"] == 1
    assert len(ran["rotate_keys --json"].json) == 2
    assert ran["import_config {files}/config.yaml --json"].json["differences"] == []
    assert "+ script MINE" in ran["import_config -"].out
    assert ran["run_script - --user demo"].out == "42 demo\n"
    assert "1 succeeded, 0 failed" in ran["import_data {files}/objects.json --answers {files}/answers.jsonl"].out
    assert ran["validate_rules --json"].json == {"checked": 4, "broken": [], "doubtful": []}
    assert len(ran["error_codes --json"].json) > 50


@pytest.mark.process
def test_a_sound_instance_is_found_sound(ran: Ran) -> None:
    told = ran["doctor --json"].json
    problems = [finding for finding in told["findings"] if finding["level"] == "problem"]
    assert (problems, told["healthy"]) == ([], True)
    assert {finding["topic"] for finding in told["findings"]} == TOPICS
    assert any("a script ran" in finding["text"] for finding in told["findings"])
    # No worker runs beside it: said, with what to do, and no failure.
    warnings = [finding for finding in told["findings"] if finding["level"] == "warning"]
    warned = [finding["cure"] for finding in warnings if finding["topic"] == "worker"]
    assert any("serve --only worker" in cure for cure in warned)


@pytest.mark.django_db
def test_an_instance_where_nobody_can_log_in_is_told_what_to_do() -> None:
    assert "manage.py createsuperuser" in [finding.cure for finding in doctor._licence()]


@pytest.mark.process
def test_what_is_wrong_is_said_with_its_cure_and_the_rest_is_still_examined(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor"],
        cwd=ROOT,
        env=instance_environment(tmp_path / "new", 0),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "migrations are due" in done.stdout
    assert "→ manage.py migrate" in done.stdout
    assert "✓ disk" in done.stdout


@pytest.mark.django_db
@pytest.mark.parametrize(
    "line,told",
    [
        ("redeliver_webhooks --id abc", "'abc' is not the id of a delivery"),
        ("export_config --output {files}/missing/config.yaml", "cannot be written"),
        ("import_config {files}/latin.yaml", "is not UTF-8"),
        ("issue_token ServiceDemoClient --user demo --lifetime 99999999999d", "is more than 36500d"),
        ("run_script - --user nobody", "There is no user 'nobody'"),
        ("export_data General_Currencies_Currencies --user nobody", "There is no user 'nobody'"),
    ],
)
def test_wrong_input_is_a_sentence(line: str, told: str, tmp_path: Path) -> None:
    seed_identity()
    (tmp_path / "latin.yaml").write_bytes("version: 1 # ä".encode("latin-1"))
    with pytest.raises(CommandError, match=told):
        call_command(*shlex.split(line.format(files=tmp_path)))


@pytest.mark.django_db
def test_a_script_runs_as_a_user_whose_login_is_written_in_another_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed_identity()
    (tmp_path / "script.js").write_text("console.log(Action.user.login)")
    call_command("run_script", str(tmp_path / "script.js"), "--user", "DEMO")
    assert capsys.readouterr().out == "demo\n"


@pytest.mark.process
def test_prune_runs_twice(ran: Ran) -> None:
    told = ran["prune --json"].json
    assert (set(told["removed"]), told["failed"]) == (set(pruners.names()), {})
    assert ran["prune --only tokens"].out.split() == ["0", "tokens"]


def leave_something_old() -> None:
    """One row of each kind that `prune` removes, or closes, and the newest change, which stays."""
    seed_identity()
    old, script = utc_now() - timedelta(days=4000), new_guid()
    user, application = (
        User.objects.get(login="demo"),
        TrustedApplication.objects.get(application_uri="ServiceDemoClient"),
    )
    for key, closed in (("expired", None), ("closed", old)):
        Session.objects.create(key=key, user=user, application=application, expires=old, closed=closed)
    BrowserSession.objects.create(session_key="old", session_data="", expire_date=old)
    AccessToken.objects.create(token="old", user=user, application=application, expires=old, scope="read")
    UsedValue.objects.create(digest="old", expires=old)
    PushedRequest.objects.create(digest="old", application=application, parameters={}, expires=old)
    for changed_at in (old, utc_now()):
        ChangeFeedEntry.objects.create(
            repository="General.Currencies.Currencies", entity_id=new_guid(), operation="D", changed_at=changed_at
        )
    changeset = ObjectChangeset.objects.create(change_time_utc=old, aggregate_last_update_time_utc=old)
    ObjectChange.objects.create(
        changeset=changeset, change_time_utc=old, item_version=1, operation="Create",
        repository_name="Systems.Core.Scripts", entity_item_id=script, root_item_id=script,
    )  # fmt: skip
    DomainTransaction.objects.create(id="0" * 32, began_at=old, expires_at=old)
    IdempotentResponse.objects.create(digest="old", owner="old", fingerprint="old", response="{}", size=2, made_at=old)
    ScriptRun.objects.create(kind="Command", started=old, duration_ms=1, outcome="Succeeded")
    JobRun.objects.create(
        job_id=new_guid(), job_name="old", job_type="Prune", trigger="Manual", due=old, state="Failed"
    )
    RecordedRequest.objects.create(request_id="old", at=old, status=404, duration_ms=1, queries=0)
    InformationMessage._default_manager.create(
        machine_name="old", message="old", process_description="old", user_name="old", information_message_time=old
    )
    new_web_hook("http://93.184.216.34/")
    WebHookDelivery.objects.filter(pk=new_delivery("HOOK", new_currency()).pk).update(
        state="Delivered", finish_time_utc=old
    )
    CircuitBreaker.objects.create(web_hook_id=new_guid(), destination="127.0.0.1:9", failures=5, open_until=old)


@pytest.mark.django_db
def test_prune_removes_what_is_past_its_retention_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    leave_something_old()
    for removed in (1, 0):
        call_command("prune", "--json")
        told = json.loads(capsys.readouterr().out)
        # A session is closed as of when it ended: the one that is closed now is forgotten in the same run.
        assert told == {
            "removed": dict.fromkeys(pruners.names(), removed) | {"closed_sessions": 2 * removed, "audit_entries": 0},
            "failed": {},
        }
    gone = (
        Session,
        BrowserSession,
        AccessToken,
        UsedValue,
        PushedRequest,
        ScriptRun,
        DomainTransaction,
        WebHookDelivery,
    )
    assert not any(model.objects.exists() for model in gone)
    assert ChangeFeedEntry.objects.filter(repository="General.Currencies.Currencies", operation="D").count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "trusted, host, base, level, said",
    [
        (["127.0.0.1", "::1"], "127.0.0.1", "https://p.example", "ok", "trusted: 127.0.0.1, ::1"),
        (["127.0.0.1"], "0.0.0.0", "https://p.example", "warning", "only proxies on this machine are trusted"),
        (["172.31.250.2"], "0.0.0.0", "https://p.example", "ok", "trusted: 172.31.250.2"),
        (["0.0.0.0/0"], "127.0.0.1", "", "problem", "every caller is believed to be a proxy"),
        (["*"], "127.0.0.1", "", "problem", "every caller is believed to be a proxy"),
    ],
)
def test_doctor_warns_of_proxies_that_hide_their_callers(
    settings: Any, trusted: list[str], host: str, base: str, level: str, said: str
) -> None:
    settings.TRUSTED_PROXIES, settings.BASE_URL, settings.HOST = trusted, base, host
    first = next(iter(doctor._proxies()))
    assert (first.level, said in first.text) == (level, True), first
