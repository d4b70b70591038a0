"""Two whole processes watch one cluster and write one PostgreSQL: each change is kept once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.replicas import Replicas, two_replicas
from tests.support.signing_in import rows, signed_in

MANY = 30


@pytest.fixture
def replicas(tmp_path: Path, postgres) -> Iterator[Replicas]:
    with two_replicas(tmp_path, postgres.database()) as both:
        yield both


def test_every_change_is_kept_once_whoever_dies_meanwhile(replicas: Replicas) -> None:
    api = replicas.api
    browser = signed_in(replicas.one)
    assert list(rows(browser, replicas.other, "c")) == ["default/old"]
    for number in range(MANY):  # each judged by two clocks
        api.create(f"short-{number}", holder="x", duration=1)
    api.take("old", holder="b", transitions=1)
    api.patch("old", holderIdentity="")
    replicas.wait_stored("short-0", "created", "expired")
    api.take("short-0", holder="y", transitions=1)
    api.take("short-1", holder="x", transitions=0)
    replicas.one.kill()
    api.take("old", holder="c", transitions=2)
    replicas.wait_stored("short-0", "taken_over", "expired")
    api.delete("short-0")
    replicas.one = replicas.start("one")
    api.take("old", holder="d", transitions=3)
    replicas.other.kill()
    api.take("old", holder="e", transitions=4)
    replicas.wait_stored("old", "replaced", "replaced")
    replicas.other = replicas.start("other")
    api.label("old", team="blue")
    replicas.wait_stored("old", "reconfigured")
    stored = replicas.stored()
    assert replicas.exported() == sum(map(len, stored.values()))
    assert stored.pop("old") == [
        ("created", "a"), ("replaced", "b"), ("released", None), ("acquired", "c"),
        ("replaced", "d"), ("replaced", "e"), ("reconfigured", "e"),
    ]  # fmt: skip
    assert stored.pop("short-0") == [
        ("created", "x"), ("expired", "x"), ("taken_over", "y"), ("expired", "y"),
        ("deleted", None),
    ]  # fmt: skip
    assert stored.pop("short-1") == [
        ("created", "x"), ("expired", "x"), ("restarted", "x"), ("expired", "x"),
    ]  # fmt: skip
    assert stored == {
        f"short-{number}": [("created", "x"), ("expired", "x")] for number in range(2, MANY)
    }
