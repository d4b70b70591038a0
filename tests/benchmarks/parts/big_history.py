"""A history of millions of changes, written straight into an SQLite file."""

from __future__ import annotations

import random
import sqlite3
import time
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

NODES = "kube-node-lease"
COLUMNS = (
    "cluster", "namespace", "name", "uid", "kind", "change", "at", "observed_at", "holder",
    "previous_holder", "resource_version", "transitions", "missed", "inferred", "inferred_since",
    "gap_seconds", "renewed_at", "fields", "identity", "writer", "cause", "incident",
)  # fmt: skip
INSERT = (
    f"INSERT INTO leases_change ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
)
BATCH = 50_000
CAUSES = ("node_down", "rollout", "crash", "api_slow", "by_hand", "unknown")
TOGETHER = 100  # changes
INCIDENTS = """
    INSERT INTO leases_incident (cluster, incident, cause, confidence, sentence, began, ended,
        updated_at, settled, worst_gap_seconds, changes, part_of, leases, hosts, holders, evidence,
        without, members, story)
    SELECT cluster, incident, MIN(cause), 'likely', 'A node stopped, and its elections ran out',
        MIN(at), MAX(at), MAX(at), 1, MAX(gap_seconds), COUNT(*), '',
        json_group_array(namespace || '/' || name), '["ip-10-0-7-9"]', '[]', '[]', '[]', '[]', '[]'
    FROM leases_change WHERE incident IS NOT NULL GROUP BY cluster, incident
"""


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
        # Every change of an election has a cause; so many in a row are one incident.
        caused = asked.causes and life.kind == "election"
        cause = CAUSES[number // TOGETHER % len(CAUSES)] if caused else None
        incident = cause and f"{number // TOGETHER:016x}"
        version = "" if change == "expired" else str(10_000_000 + number)
        yield (
            "big", life.namespace, life.name, life.uid, life.kind, change, text, text, holder,
            previous, version, life.transitions, 0, inferred, text if inferred else None, gap,
            renewed, "labels" if change == "reconfigured" else "",
            f"{life.uid} {change} {version or f'{number:032x}'}", "manager", cause, incident,
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
    database.execute(INCIDENTS)
    database.commit()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    size = path.stat().st_size / 2**30
    print(f"{asked.changes:,} changes in {time.perf_counter() - started:.0f} s, {size:.2f} GiB")


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
