"""Change sets are in the chain: what is changed, removed or inserted in the history is found and named (spec 12.4)."""

from __future__ import annotations

import datetime
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from django.conf import settings as configured
from django.db import connection, transaction
from django.test import Client

from audit.chain import entries_chain, head_write
from audit.models import AuditEntry
from audit.pruning import entries_prune
from audit.verify import chain_verify
from domain.dataset.commit import history_chain
from domain.dataset.commit.history_chain import MOST_NAMED, STEP, ChangeSetMade, ChangeSets, HistoryPruned
from domain.dataset.commit.retention import history_prune
from domain.dataset.tables.history import ObjectChange, ObjectChangeset
from foundation import cache_versions
from foundation.fields import clock_set_back, utc_now
from foundation.guids import new_guid
from tests.audit.chains import execute
from tests.support.api import Api, prepared_token

SETS, CHANGES = history_chain.SETS, history_chain.CHANGES
RULES = "Systems.Bpm.UserBusinessRules"
SCRIPTS = "Systems.Core.Scripts"


def found() -> list[str]:
    return [text for _place, text in chain_verify().findings]


@contextmanager
def undone() -> Iterator[None]:
    """A tampering that is rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def made_set(count: int = 2, *, days: float = 0, repositories: tuple[str, ...] = (SCRIPTS,)) -> ObjectChangeset:
    """A change set as a commit writes it, with changes in each of the repositories."""
    at = utc_now() - datetime.timedelta(days=days)
    made = ObjectChangeset.objects.create(change_time_utc=at, aggregate_last_update_time_utc=at, user_login="alice")
    ObjectChange.objects.bulk_create(
        ObjectChange(
            changeset=made, change_time_utc=at, item_version=1, operation="Create", repository_name=name,
            entity_item_id=new_guid(), root_item_id=new_guid(), changes='{"Code":[null,"Ж"]}',
        )
        for name in repositories
        for _ in range(count)
    )  # fmt: skip
    return made


def copied(table: str, id: str, **values: Any) -> str:
    """Insert a row like another one, behind the platform's back; its id."""
    new = {"id": new_guid(), **values}
    columns = (*history_chain.SET_COLUMNS, "audit_entry") if table == SETS else history_chain.CHANGE_COLUMNS
    chosen = ", ".join("%s" if name in new else name for name in columns)
    execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table} WHERE id = %s",
        *[new[name] for name in columns if name in new],
        id,
    )
    return str(new["id"])


def test_the_checksums_cover_every_column() -> None:
    sets = {each.column for each in ObjectChangeset._meta.local_concrete_fields}
    assert sets == {*history_chain.SET_COLUMNS, "audit_entry"}
    assert {each.column for each in ObjectChange._meta.local_concrete_fields} == {*history_chain.CHANGE_COLUMNS}


@pytest.mark.django_db
class TestTampering:
    @pytest.fixture(autouse=True)
    def history(self, client: Client) -> None:
        """Two commits over HTTP, chained: a rule with parts, and a change of it."""
        self.api = Api(client, prepared_token())
        body = {
            "Code": "CHAINED", "Name": {"EN": "A rule"}, "RepositoryName": "General.Currencies.Currencies",
            "IsActive": False, "Events": [{"EventType": "COMMIT"}],
            "Actions": [{"ActionNo": 10, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "No."}],
        }  # fmt: skip
        rule = self.api.create("Systems_Bpm_UserBusinessRules", body)
        entries_chain()
        assert found() == []
        self.set = ObjectChangeset.objects.get(
            pk__in=ObjectChange.objects.filter(repository_name=RULES).values("changeset")
        )
        self.change = ObjectChange.objects.get(changeset=self.set, repository_name=RULES)
        self.other = made_set()
        self.rule = rule
        entries_chain()

    def test_each_set_has_one_entry_that_tells_who_and_what(self) -> None:
        sets = list(ObjectChangeset.objects.all())
        entry = AuditEntry.objects.get(kind=ChangeSetMade.name, subject=self.set.pk)
        assert AuditEntry.objects.filter(kind=ChangeSetMade.name).count() == len(sets)
        assert (entry.pk, entry.actor) == (self.set.audit_entry, self.set.user_login)
        parts = json.loads(entry.content)["parts"]
        assert sum(part["count"] for part in parts.values()) == ObjectChange.objects.filter(changeset=self.set).count()
        assert list(parts[RULES]["changes"]) == [self.change.pk]
        assert found() == []

    def test_the_api_does_not_tell_the_mark(self) -> None:
        told = self.api.read(f"Systems_Core_ObjectChangesets({self.set.pk})")
        assert "UserLogin" in told
        assert not [name for name in told if "audit" in name.lower()]

    def test_each_changed_column_of_a_set_and_of_a_change(self) -> None:
        odd = {"change_time_utc": utc_now(), "object_version": 7, "item_version": 7}
        set_ = re.compile(rf"the change set {self.set.pk} of 20[^ ]+ was changed")
        change = re.compile(f"the change {self.change.pk} of {RULES} in the change set {self.set.pk} was changed")
        for model, id, expected, columns in (
            (ObjectChangeset, self.set.pk, set_, ("user_login", "change_time_utc", "reason", "external_id")),
            (ObjectChange, self.change.pk, change, ("changes", "old_values", "rules", "operation", "item_version")),
        ):
            for column in columns:
                with undone():
                    rows: Any = model
                    rows.objects.filter(pk=id).update(**{column: odd.get(column, '"x"')})
                    (text,) = found()
                    assert expected.fullmatch(text), (column, text)

    def test_a_removed_change(self) -> None:
        execute(f"DELETE FROM {CHANGES} WHERE id = %s", self.change.pk)
        assert found() == [f"the change {self.change.pk} of {RULES} is missing in the change set {self.set.pk}"]

    def test_an_inserted_change(self) -> None:
        id = copied(CHANGES, self.change.pk)
        assert found() == [f"the change {id} of {RULES} was inserted into the change set {self.set.pk}"]

    def test_a_change_moved_to_another_set(self) -> None:
        execute(f"UPDATE {CHANGES} SET changeset_id = %s WHERE id = %s", self.other.pk, self.change.pk)
        assert found() == [
            f"the change {self.change.pk} of {RULES} is missing in the change set {self.set.pk}",
            f"the change {self.change.pk} of {RULES} was inserted into the change set {self.other.pk}",
        ]

    def test_a_removed_set(self) -> None:
        execute(f"DELETE FROM {CHANGES} WHERE changeset_id = %s", self.set.pk)
        execute(f"DELETE FROM {SETS} WHERE id = %s", self.set.pk)
        (text,) = found()
        assert text.startswith(f"the change set {self.set.pk} of 20")
        assert text.endswith("is missing")

    def test_an_inserted_set_that_is_marked(self) -> None:
        for values in ({}, {"audit_entry": 987_654_321}):
            with undone():
                id = copied(SETS, self.set.pk, **values)
                (text,) = found()
                assert text.startswith(f"the change set {id} of 20")
                assert "has no entry: it was inserted" in text

    def test_a_changed_set_whose_mark_is_removed_fits_its_first_entry_no_more(self) -> None:
        ObjectChangeset.objects.filter(pk=self.set.pk).update(user_login="bob", audit_entry=None)
        assert any(text.endswith("was changed") for text in found())
        entries_chain()
        assert any(text.endswith("was changed") for text in found())

    @pytest.mark.skipif(
        configured.DATABASES["default"]["ENGINE"] != "foundation.sqlite",
        reason="PostgreSQL stores no such values",
    )
    def test_values_that_no_row_can_have(self) -> None:
        places = ((SETS, self.set.pk), (CHANGES, self.change.pk))
        columns = ("change_time_utc", "object_version", "custom_property_values")
        for (table, id), column in product(places, columns):
            for value in ("CAST(X'FFFE' AS TEXT)", "X'00FF'", "'nonsense'"):
                with undone():
                    execute(f"UPDATE {table} SET {column} = {value} WHERE id = %s", id)
                    assert any(id in text and "was changed" in text for text in found()), (column, value)

    def test_the_entry_itself(self) -> None:
        entry = AuditEntry.objects.get(pk=self.set.audit_entry or 0)
        for content in ("", "[]", "{}", '{"changeTimeUtc":1,"parts":[],"sha256":""}'):
            with undone():
                AuditEntry.objects.filter(pk=entry.pk).update(content=content)
                assert {place for place, _text in chain_verify().findings} == {entry.position}
                assert any("its seal is wrong" in text for text in found())


@pytest.mark.django_db
class TestPruning:
    def retain(self, client: Client, repository: str, days: int) -> None:
        api = Api(client, prepared_token())
        api.create("Systems_Core_RepositoryTracking", {"RepositoryName": repository, "RetentionDays": days})
        cache_versions.expire()

    def test_what_retention_deleted_may_be_missing_and_nothing_else(self, client: Client) -> None:
        self.retain(client, SCRIPTS, 30)
        gone, part, kept = made_set(days=40), made_set(days=40, repositories=(SCRIPTS, RULES)), made_set(days=20)
        entries_chain()
        assert history_prune() == 4
        assert not ObjectChangeset.objects.filter(pk=gone.pk).exists()
        told = AuditEntry.objects.get(kind=HistoryPruned.name)
        assert json.loads(told.content)["changes"] == {SCRIPTS: 4}
        assert found() == []
        entries_chain()
        assert found() == []
        assert history_prune() == 0
        assert AuditEntry.objects.filter(kind=HistoryPruned.name).count() == 1
        changes = ObjectChange.objects
        ids = {
            changes.filter(changeset=part, repository_name=RULES)[0].pk,
            changes.filter(changeset=kept)[0].pk,
        }
        changes.filter(pk__in=ids).delete()
        assert len(found()) == 2
        assert all(any(id in text and "is missing" in text for text in found()) for id in ids)

    def test_of_what_a_killed_process_has_not_deleted_yet_changes_are_found(self, client: Client) -> None:
        self.retain(client, SCRIPTS, 30)
        old = made_set(days=40)
        entries_chain()
        _first, second = ObjectChange.objects.filter(changeset=old).order_by("pk")
        history_prune()
        ObjectChangeset.objects.bulk_create([old])
        old.audit_entry = AuditEntry.objects.get(subject=old.pk).pk
        old.save()
        ObjectChange.objects.bulk_create([second])
        assert found() == []
        ObjectChange.objects.filter(pk=second.pk).update(rules="x")
        assert found() == [f"the change {second.pk} of {SCRIPTS} in the change set {old.pk} was changed"]

    def test_nobody_makes_a_deletion_of_ones_own(self, client: Client) -> None:
        self.retain(client, SCRIPTS, 30)
        made_set(days=40)
        entries_chain()
        history_prune()
        target = made_set(days=1)
        entries_chain()
        execute(f"DELETE FROM {CHANGES} WHERE changeset_id = %s", target.pk)
        entry = AuditEntry.objects.get(kind=HistoryPruned.name)
        content = json.dumps({**json.loads(entry.content), "before": "2999-01-01T00:00:00.000000Z"})
        AuditEntry.objects.filter(pk=entry.pk).update(content=content)
        missing = [text for text in found() if text.endswith(f"is missing in the change set {target.pk}")]
        assert len(missing) == 2

    def test_sets_may_be_kept_longer_than_their_entries(self, settings: Any) -> None:
        with clock_set_back(datetime.timedelta(days=50)):
            old = made_set()
            entries_chain()
            head_write()
        made_set()
        entries_chain()
        recent = made_set()
        entries_chain()
        settings.AUDIT_RETENTION_DAYS = 30
        assert entries_prune() == 1
        assert found() == []
        id = copied(SETS, recent.pk, audit_entry=old.audit_entry or 1)
        assert [text for text in found() if id in text]


@pytest.mark.django_db
def test_of_large_sets_the_repository_is_named() -> None:
    large = made_set(STEP + 50, repositories=(SCRIPTS, RULES))
    made_set(3)
    entries_chain()
    content = json.loads(AuditEntry.objects.get(subject=large.pk).content)
    assert content["parts"][RULES].keys() == {"count", "sha256"}
    assert 2 * STEP > MOST_NAMED
    assert found() == []
    ObjectChange.objects.filter(pk=ObjectChange.objects.filter(changeset=large, repository_name=RULES)[700].pk).delete()
    assert found() == [f"the change set {large.pk} has other changes of {RULES} than its entry: 1049, once 1050"]


@pytest.mark.django_db(transaction=True)
def test_two_nodes_chain_while_others_commit_in_any_order() -> None:
    failures: list[Exception] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as exc:
            failures.append(exc)
        finally:
            connection.close()

    def write() -> None:
        for number in range(20):
            with transaction.atomic():
                # Times of before: as of transactions that are longer than others.
                made_set(2, days=number % 3)

    ended = threading.Event()

    def chain() -> None:
        while not ended.is_set():
            entries_chain()

    writing = [threading.Thread(target=run, args=[write]) for _ in range(3)]
    chaining = [threading.Thread(target=run, args=[chain]) for _ in range(2)]
    for thread in (*writing, *chaining):
        thread.start()
    for thread in writing:
        thread.join()
    ended.set()
    for thread in chaining:
        thread.join()
    entries_chain()
    assert failures == []
    entries = AuditEntry.objects.filter(kind=ChangeSetMade.name, position__isnull=False)
    assert sorted(entries.values_list("subject", flat=True)) == sorted(
        ObjectChangeset.objects.values_list("pk", flat=True)
    )
    assert ChangeSets().write() == 0
    assert found() == []
