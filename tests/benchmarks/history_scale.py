"""What pages of history cost the server at 5 million changes over 130,000 Leases, on SQLite.

    python3 -m tests.benchmarks.history_scale [--folder FOLDER] [--changes N] [--leases N]
        [--elections N] [--days N] [--rounds N] [--export N]

Makes the database in FOLDER (a temporary one unless told; a database that is there already is
used as it is), then prints the median and the worst server time of each page, from the request to
the last byte of the answer, all middleware and templates included, and its CPU time; and how fast
an export runs and what memory it takes on the way.
"""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

NODES = "kube-node-lease"
COLUMNS = (
    "cluster", "namespace", "name", "uid", "kind", "change", "at", "observed_at", "holder",
    "previous_holder", "resource_version", "transitions", "missed", "inferred", "inferred_since",
    "gap_seconds", "renewed_at", "fields", "identity",
)  # fmt: skip
INSERT = (
    f"INSERT INTO leases_change ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
)
BATCH = 50_000


class Life:
    """One Lease that goes through changes as they happen in a cluster."""

    __slots__ = ("holder", "kind", "name", "namespace", "state", "transitions", "uid")

    def __init__(self, number: int, kind: str) -> None:
        self.kind = kind
        if kind == "election":
            self.namespace = f"team-{number % 40:02}"
            self.name = f"controller-{number:05}"
            self.holder = f"controller-{number:05}-{number % 97:03}-abcde_{number:08x}"
        else:
            self.namespace = NODES
            self.name = self.holder = (
                f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}"
            )
        self.uid = f"{number:08x}-0000-4000-8000-{number:012x}"
        self.transitions = 0
        self.state = "new"

    def next(self, dice: random.Random) -> tuple[str, str | None, str | None, float | None]:
        """change, holder, previous holder, gap_seconds."""
        before = self.holder
        if self.state == "new":
            self.state = "held"
            return "created", before, None, None
        if self.state == "vacant":
            self._other(dice)
            self.state = "held"
            return "acquired", self.holder, None, 2.1
        if self.state == "expired":
            self.state = "held"
            if self.kind == "election" and dice.random() < 0.7:
                self._other(dice)
                return "taken_over", self.holder, before, 3.2
            return "recovered", before, before, 12.5
        throw = dice.random()
        if throw < 0.02:
            return "reconfigured", before, before, None
        if self.kind == "election" and throw < 0.5:
            self.state = "vacant"
            return "released", None, before, None
        self.state = "expired"
        return "expired", before, before, None

    def _other(self, dice: random.Random) -> None:
        self.transitions += 1
        self.holder = f"{self.name}-{dice.randrange(5):03}-fghij_{self.transitions:08x}"


def changes(asked: Namespace, end: datetime) -> Iterator[tuple[Any, ...]]:
    """All of them in the order of time, ending now."""
    dice = random.Random(7)  # noqa: S311
    lives = [Life(n, "election") for n in range(asked.elections)]
    lives += [Life(n, "heartbeat") for n in range(asked.leases - asked.elections)]
    order = list(lives)
    dice.shuffle(order)
    step = timedelta(days=asked.days) / asked.changes
    at = end - timedelta(days=asked.days)
    for number in range(asked.changes):
        at += step
        busy = dice.random() < 0.2  # elections make a fifth of all changes
        life = lives[dice.randrange(asked.elections)] if busy else dice.choice(lives)
        if order:
            life = order.pop()
        change, holder, previous, gap = life.next(dice)
        text = at.strftime("%Y-%m-%d %H:%M:%S.%f")
        renewed = text if change == "expired" else None
        inferred = dice.random() < 0.001
        version = "" if change == "expired" else str(10_000_000 + number)
        yield (
            "big", life.namespace, life.name, life.uid, life.kind, change, text, text, holder,
            previous, version, life.transitions, 0, inferred, text if inferred else None, gap,
            renewed, "labels" if change == "reconfigured" else "",
            f"{life.uid} {change} {version or f'{number:032x}'}",
        )  # fmt: skip


def generate(path: Path, asked: Namespace) -> None:
    started = time.perf_counter()
    database = sqlite3.connect(path)
    database.executescript(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000; PRAGMA temp_store = MEMORY"
    )
    indexes = database.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'leases_change' "
        "AND sql IS NOT NULL"
    ).fetchall()
    for name, _ in indexes:
        database.execute(f"DROP INDEX {name}")
    batch = []
    for row in changes(asked, datetime.now(UTC)):
        batch.append(row)
        if len(batch) == BATCH:
            database.executemany(INSERT, batch)
            batch.clear()
    database.executemany(INSERT, batch)
    for _, sql in indexes:
        database.execute(sql)
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    size = path.stat().st_size / 2**30
    print(f"{asked.changes:,} changes in {time.perf_counter() - started:.0f} s, {size:.2f} GiB")


class Bench:
    """An operator's browser without a network, on a cluster whose Leases are in memory and whose
    history is in the file."""

    def __init__(self, folder: Path, asked: Namespace) -> None:
        from django.contrib.auth.models import User
        from django.test import Client

        from dashboard.board import install_board
        from dashboard.configuration.cluster_specs import ClusterSpec
        from dashboard.serving import runtime
        from leases.domain.connection import Connection, ConnectionState
        from leases.kube.cluster_source import Source, SourceKind
        from leases.wire.watch_events import Listed

        now = datetime.now(UTC)
        spec = ClusterSpec("big", Source(SourceKind.EMBEDDED))
        running = runtime.Runtime(runtime.Options(clusters=(spec,), data=folder))
        install_board(running)
        store = running.clusters["big"].store
        store.replace(Listed(tuple(leases(asked, now)), "1"), now)
        store.connection = Connection(state=ConnectionState.LIVE, since=now)
        user, _ = User.objects.get_or_create(
            username="bench", defaults={"is_staff": True, "is_superuser": True}
        )
        self.browser = Client()
        self.browser.force_login(user)
        self.rounds: int = asked.rounds

    def page(self, label: str, path: str) -> None:
        """Prints what the server takes for it."""
        took, cpu = [], []
        for _ in range(self.rounds + 1):
            began, busy = time.perf_counter(), time.process_time()
            answer = self.browser.get(f"/c/big/{path}")
            took.append((time.perf_counter() - began) * 1000)
            cpu.append((time.process_time() - busy) * 1000)
            assert answer.status_code == 200, (path, answer.status_code)
        first, again = took[0], took[1:]
        print(
            f"{label:<36} {median(again):7.1f} ms median {max(again):7.1f} worst {first:7.1f} first"
            f" {median(cpu[1:]):7.1f} of CPU {len(answer.content) / 1024:6.0f} KiB",
            flush=True,
        )


def leases(asked: Namespace, now: datetime) -> Iterator[Any]:
    """The living Leases, as a list of the cluster would have them."""
    from leases.domain.lease import Lease, LeaseSpec, ObjectMeta

    for number in range(asked.leases):
        kind = "election" if number < asked.elections else "heartbeat"
        life = Life(number if kind == "election" else number - asked.elections, kind)
        yield Lease(
            ObjectMeta(
                name=life.name, namespace=life.namespace, uid=life.uid, resource_version="1",
                creation_timestamp=now - timedelta(days=asked.days),
            ),
            LeaseSpec(
                holder_identity=life.holder,
                lease_duration_seconds=15 if kind == "election" else 40,
                acquire_time=now - timedelta(hours=1) if kind == "election" else None,
                renew_time=now,
                lease_transitions=3 if kind == "election" else None,
            ),
        )  # fmt: skip


def reached(rows: int) -> tuple[datetime, int]:
    """Time and id of the change that stands so many down from the newest."""
    from leases.history.read.raw_select import moment, select

    ((at, number),) = select(
        "SELECT at, id FROM leases_change INDEXED BY change_by_time WHERE cluster = 'big' "
        "ORDER BY at DESC, id DESC LIMIT 1 OFFSET %s",
        [rows],
    )
    return moment(at), number


def measure(bench: Bench, asked: Namespace) -> None:
    from leases.history.read.find_changes import write_cursor

    now = datetime.now(UTC)

    def ago(**time: float) -> str:
        return f"{now - timedelta(**time):%Y-%m-%dT%H:%M:%SZ}"

    day = f"history/?since={ago(days=9)}&until={ago(days=8)}&change=released&change=acquired"
    rows = min(10_000 * 50, asked.changes // 2)
    bench.page("history, first page", "history/")
    bench.page(f"history, page {rows // 50:,}", f"history/?before={write_cursor(reached(rows))}")
    bench.page("history, take-overs of elections", "history/?change=taken_over&kind=election")
    bench.page("history, one holder", "history/?holder=ip-10-0-7-9")
    bench.page("history, one namespace", "history/?namespace=team-07")
    bench.page("history, a day's hand-overs", day)
    bench.page(f"as of, {asked.elections:,} elections", f"leases/?kind=election&at={ago(days=3)}")
    bench.page("as of, every Lease by name", f"leases/?at={ago(days=3)}")
    bench.page("timeline, 24 h, 50 lanes", "timeline/?range=24h")
    bench.page("timeline, 24 h, as of 3 h ago", f"timeline/?range=24h&at={ago(hours=3)}")
    bench.page("timeline, 30 d, 50 lanes", "timeline/?range=30d")
    bench.page("a Lease's detail", "leases/team-07/controller-00007/")
    bench.page("holders", "holders/")


def export(bench: Bench, asked: Namespace) -> None:
    """The newest changes through the page, at the pace of the reader."""
    since = f"{reached(asked.export - 1)[0]:%Y-%m-%dT%H:%M:%S.%fZ}"
    for words in ("ndjson", "csv"):
        answer = bench.browser.get(f"/c/big/history/?format={words}&since={since}")
        began, count, size, least, most = time.perf_counter(), 0, 0, 2**62, 0
        for chunk in answer.streaming_content:
            size += len(chunk)
            count += chunk.count(b"\n")
            if count % 1000 == 0 and count > asked.export // 10:
                least, most = min(least, resident()), max(most, resident())
        seconds = time.perf_counter() - began
        print(
            f"export of {count:,} rows as {words}: {count / seconds:,.0f} rows/s, "
            f"{size / 2**20:,.0f} MiB, memory grows by {(most - least) / 2**20:.1f} MiB on the way"
        )


def resident() -> int:
    """Bytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def prepare(folder: Path, asked: Namespace) -> None:
    """Django on that folder; the database is made unless it is there."""
    os.environ["LEASEBOARD_DATA"] = str(folder)
    os.environ["LEASEBOARD_ALLOWED_HOSTS"] = "testserver"
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    path = folder / "leaseboard.sqlite3"
    made = path.exists()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    connection.close()
    if not made:
        generate(path, asked)


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    for name, default in (
        ("changes", 5_000_000), ("leases", 130_000), ("elections", 2000), ("days", 30),
        ("rounds", 11), ("export", 1_000_000),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch)
        prepare(folder, asked)
        bench = Bench(folder, asked)
        measure(bench, asked)
        export(bench, asked)


if __name__ == "__main__":
    main()
