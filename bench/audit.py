"""Time to verify a long audit chain: python -m bench.audit [--entries 1000000] [--postgresql URL].

Makes a database of its own (SQLite in a temporary directory, or the empty one of the URL), fills it with a
chain of entries, and measures its verification, and the recording and chaining of some more.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Rows of one statement.
_STEP = 5_000


def main() -> None:
    """Print one line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--postgresql", default="", help="URL of an empty database")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ |= {"DATA_DIR": directory, "DATABASE_URL": options.postgresql, "LOG_LEVEL": "WARNING"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
        import django

        django.setup()
        _measure(options.entries)


def _measure(count: int) -> None:
    from django.core.management import call_command
    from django.db import connection

    from audit.actors import Actor
    from audit.chain import entries_chain, head_write
    from audit.hashing import GENESIS, Row, entry_hash, entry_seal
    from audit.record import record
    from audit.rows import TABLE
    from audit.verify import chain_verify
    from foundation.fields import utc_now
    from identity.audit_kinds import SignedIn

    call_command("migrate", verbosity=0)
    content, previous = (
        '{"address":"192.0.2.7","methods":["pwd"],"requestId":"4bf92f3577b34da6a3ce929d0e0e4736"}',
        GENESIS,
    )
    columns = ", ".join(Row._fields)
    for first in range(1, count + 1, _STEP):
        rows = []
        for position in range(first, min(first + _STEP, count + 1)):
            at, subject = utc_now(), f"user {position}"
            seal = entry_seal(SignedIn.name, at, "alice", subject, content)
            row = Row(position, SignedIn.name, at, "alice", subject, content, seal, position, "")
            previous = entry_hash(previous, row, position)
            # Not str(), which omits a fraction of 0: then the offset of the zone would be cut off instead.
            stored = at.strftime("%Y-%m-%d %H:%M:%S.%f") if connection.vendor == "sqlite" else at
            rows.append((*row[:2], stored, *row[3:8], previous))
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {TABLE} ({columns}) VALUES ({', '.join(['%s'] * len(columns.split()))})", rows
            )
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{TABLE}', 'id'), {count})")
    head_write()
    with _measured(f"{count} entries verified"):
        report = chain_verify()
    print(f"{report.entries} entries, {report.heads} head, {len(report.findings)} findings", flush=True)
    by = Actor("alice", "192.0.2.7", request_id="4bf92f3577b34da6a3ce929d0e0e4736")
    with _measured("1000 entries recorded"):
        for number in range(1000):
            record(SignedIn, by=by, subject=f"user {number}", methods=["pwd"])
    with _measured("1000 entries chained"):
        entries_chain()


@contextmanager
def _measured(what: str) -> Iterator[None]:
    begun, used = time.perf_counter(), time.process_time()
    yield
    print(
        f"{what} in {time.perf_counter() - begun:.1f} s, {time.process_time() - used:.1f} s of them processor",
        flush=True,
    )


if __name__ == "__main__":
    main()
