"""Chaining: several nodes at once, a process that is killed, heads, pruning, and the key that signs."""

from __future__ import annotations

import datetime
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from audit.actors import OPERATOR
from audit.chain import BATCH, entries_chain, head_latest, head_write, tail_get
from audit.models import AuditEntry, AuditHead
from audit.pruning import _stub_move, entries_prune
from audit.record import record
from audit.verify import Finding, chain_verify, head_parse
from foundation.fields import clock_set_back, utc_now
from identity.models import SigningKey
from identity.oauth.keys import keys_rotate
from tests.audit.chains import ALICE, TABLE, Noted, entries, execute, minute_of


def found() -> list[Finding]:
    return chain_verify().findings


def is_whole(size: int) -> bool:
    report = chain_verify()
    assert report.findings == []
    positions = AuditEntry.objects.order_by("position").values_list("position", flat=True)
    assert list(positions) == list(range(1, size + 1))
    return report.entries == size


class TestSeveralProcesses:
    pytestmark = pytest.mark.django_db(transaction=True)

    def test_two_nodes_chain_while_others_write(self) -> None:
        size, failures = 4 * 60, []

        def run(work: Callable[[], None]) -> None:
            try:
                work()
            except Exception as exc:
                failures.append(exc)
            finally:
                connection.close()

        def write() -> None:
            for number in range(60):
                with transaction.atomic():
                    record(Noted, by=ALICE, subject=f"thing {number}")

        writing = [threading.Thread(target=run, args=[write]) for _ in range(4)]
        ended = threading.Event()

        def chain() -> None:
            while not ended.is_set():
                entries_chain()
                head_write()

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
        assert is_whole(size)

    def test_a_process_that_is_killed_in_the_middle_leaves_nothing_half_done(self) -> None:
        entries(BATCH + 20)
        entries_chain()
        entries(30)
        kept = connection.connection  # of the parent; the child opens its own
        child = os.fork()
        if child == 0:
            connection.connection = None

            def die(execute_: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
                result = execute_(sql, params, many, context)
                if sql.startswith("UPDATE"):
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            with connection.execute_wrapper(die):
                entries_chain()
            os._exit(0)
        _pid, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert kept is not None
        assert AuditEntry.objects.filter(position=None).count() == 30
        assert tail_get().position == BATCH + 20
        entries_chain()
        assert is_whole(BATCH + 50)

    def test_rolled_back_changes_leave_no_entry_and_no_gap(self) -> None:
        entries(2)
        with transaction.atomic():
            entries(3)
            transaction.set_rollback(True)
        entries(1)
        entries_chain()
        assert is_whole(3)


@pytest.mark.django_db
class TestHeads:
    def test_the_page_tells_the_last_one_and_may_be_kept(self) -> None:
        assert Client().get("/sys/audit/head").status_code == 404
        minute_of(3, 0)
        head = minute_of(2, 1)
        answer = Client().get("/sys/audit/head")
        assert answer.headers["Cache-Control"] == "public, max-age=5"
        told = answer.json()
        assert (told["position"], told["hash"], told["kid"]) == (5, head.hash, SigningKey.objects.get().kid)
        assert head_parse(answer.content.decode()) == head_parse(told["jws"])

    def test_one_each_minute_and_none_more(self) -> None:
        entries(1)
        entries_chain()
        begin = utc_now()
        assert head_write(now=begin) is not None
        assert head_write(now=begin + datetime.timedelta(seconds=59)) is None
        again = head_write(now=begin + datetime.timedelta(seconds=61))
        assert again is not None
        assert list(AuditHead.objects.all()) == [again], "an idle instance keeps one"

    def test_a_retired_key_still_verifies_its_heads(self) -> None:
        minute_of(1, 0)
        old = SigningKey.objects.get()
        keys_rotate(by=OPERATOR)
        SigningKey.objects.filter(pk=old.pk).update(retired=utc_now() - datetime.timedelta(days=200))
        minute_of(1, 1)
        keys_rotate(by=OPERATOR)
        report = chain_verify()
        assert (report.findings, report.heads) == ([], 2)


@pytest.mark.django_db
class TestPruning:
    def chain(self) -> None:
        """Ten entries and a head on each of four days."""
        for days in (50, 40, 20, 0):
            with clock_set_back(datetime.timedelta(days=days)):
                minute_of(10, 0)

    def test_a_signed_stub_stays_and_the_rest_verifies(self, settings: Any) -> None:
        self.chain()
        assert chain_verify().findings == []
        settings.AUDIT_RETENTION_DAYS = 30
        assert entries_prune() == 20
        assert entries_prune() == 0
        entries_chain()
        report = chain_verify()
        assert (report.findings, report.entries) == ([], 21)
        assert report.notes == ["the entries up to 20 were pruned"]
        execute(f"DELETE FROM {TABLE} WHERE position = 21")
        assert [place for place, _text in chain_verify().findings] == [21]

    def test_what_a_crash_left_is_deleted_later(self, settings: Any) -> None:
        self.chain()
        settings.AUDIT_RETENTION_DAYS = 30
        _stub_move(utc_now() - datetime.timedelta(days=30), utc_now())
        assert chain_verify().findings == []
        assert entries_prune() == 20

    def test_all_may_be_old(self, settings: Any) -> None:
        self.chain()
        settings.AUDIT_RETENTION_DAYS = 30
        now = utc_now() + datetime.timedelta(days=60)
        assert entries_prune(now=now) == 40
        entries(1)
        entries_chain()
        assert chain_verify().findings == []
        latest = head_latest()
        assert latest is not None
        assert tail_get().position == 42

    def test_nobody_makes_a_stub_of_ones_own(self, settings: Any) -> None:
        self.chain()
        head = AuditHead.objects.get(position=30)
        head.pk, head.is_stub = None, True
        head.save(force_insert=True)
        execute(f"DELETE FROM {TABLE} WHERE position <= 30")
        assert any("at 30 is not genuine: it was signed for another place" in text for _place, text in found())
