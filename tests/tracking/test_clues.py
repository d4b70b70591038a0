"""What the tracker tells of each change: who wrote it, what was late, and when nobody wrote."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from leases.domain.cause.clue import Clue, is_renewed_by_hand
from leases.domain.change import ChangeType
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.watch_decoding import (
    Applied,
    Arrived,
    Disconnected,
    Listed,
    managers_of_event,
    read_event,
)
from tests.support.values.leases import NOON, after, lease
from tests.tracking.tracker.conftest import Watched

INCIDENTS = Path(__file__).parents[1] / "conformance" / "incidents"


def updates(watched: Watched) -> list[Update]:
    watched.tracker.stop()
    return watched.updates


async def test_each_change_names_the_field_manager_that_moved_its_field() -> None:
    """Of the recording by-hand: exactly what its truth says."""
    truth = json.loads((INCIDENTS / "by-hand.causes.json").read_bytes())["changes"]
    lines = gzip.decompress((INCIDENTS / "by-hand.ndjson.gz").read_bytes()).splitlines()
    watched = Watched()
    watched.live()
    clues: list[Clue] = []
    for number, line in enumerate(lines):
        watched.updates.clear()
        watched.at(number / 1000, read_event(line))
        clues += [clue for update in watched.updates for clue in update.clues]
    watched.tracker.stop()
    written = [one for one in truth if one["change"] not in ("expired", "deleted")]
    assert {(str(clue.key), clue.change.change, clue.change.writer) for clue in clues} >= {
        (one["lease"], one["change"], one["manager"])
        for one in written
        if one["change"] not in ("taken_over", "replaced", "acquired")  # no time passes here
    }
    assert {clue.change.writer for clue in clues} >= {"kubectl-patch", "kubectl-edit", "keda"}
    assert all(
        clue.change.writer is None for clue in clues if clue.change.change is ChangeType.DELETED
    )


async def test_what_is_kept_of_a_change_shares_the_values_of_its_lease() -> None:
    """Each write of a Lease that flaps brings its name and labels anew."""
    lines = gzip.decompress((INCIDENTS / "by-hand.ndjson.gz").read_bytes()).splitlines()
    watched = Watched()
    watched.live()
    for number, line in enumerate(lines):
        watched.at(number / 1000, read_event(line))
    found = 0
    for one in (clue for update in updates(watched) for clue in update.clues):
        if one.before is None or one.after is None or one.before.uid != one.after.uid:
            continue
        old, new = one.before.metadata, one.after.metadata
        assert (new.uid, new.name) == (one.change.uid, one.change.name)
        assert new.uid is old.uid is one.change.uid
        assert new.name is old.name is one.change.name
        assert new.labels is old.labels or new.labels != old.labels
        found += 1
    assert found > 5


async def test_a_clue_has_the_late_renewals_before_and_the_silence_of_all() -> None:
    watched = Watched()
    watched.live(lease(), lease(name="other", uid="o"))
    for second in range(2, 22, 2):
        watched.at(
            second,
            Arrived(
                [
                    Applied(lease(renewed=second, version=second)),
                    Applied(lease(name="other", uid="o", renewed=second, version=second + 1)),
                ]
            ),
        )
    watched.renew(31, 31)
    watched.at(47)
    found = [one for one in updates(watched) if one.late]
    assert [(late.seconds, late.duration_seconds) for one in found for late in one.late] == [
        (11.0, 15)
    ]
    clues = [clue for one in watched.updates for clue in one.clues]
    expired = next(clue for clue in clues if clue.key.name == "controller" and clue.observed_at)
    assert expired.change.change is ChangeType.EXPIRED
    assert expired.observed_at == after(31)
    assert [(one.at, one.seconds) for one in expired.overdue] == [(after(31), 11.0)]
    assert expired.renew_intervals[-1] == 11.0
    last = expired.silences[-1]
    assert (last.since, last.until) == (after(31), after(46))
    assert last.expected > 5


async def test_no_silence_is_the_clusters_while_our_process_stood_still() -> None:
    watched = Watched()
    watched.live(lease())
    for second in range(2, 22, 2):
        watched.renew(second, second)
    watched.now = after(60)
    watched.tracker.stood_still(after(20))
    watched.at(75)
    expired = [clue for one in updates(watched) for clue in one.clues][-1]
    assert expired.change.change is ChangeType.EXPIRED
    assert [one for one in expired.silences if one.until > after(20)] == []


async def test_no_silence_is_the_clusters_while_the_watch_is_broken() -> None:
    watched = Watched()
    watched.live(lease())
    for second in range(2, 22, 2):
        watched.renew(second, second)
    watched.at(21, Disconnected("cut"))
    taken = lease("b", acquired=38, renewed=38, transitions=1, version=90)
    watched.at(40, Listed((taken,), "99"))
    last = [clue for one in updates(watched) for clue in one.clues][-1]
    assert last.change.change is ChangeType.TAKEN_OVER
    assert [one for one in last.silences if one.until > after(20)] == []


def test_a_plain_renewal_makes_no_clue() -> None:
    store = Store("c")
    store.replace(Listed((lease(),), "1"), NOON)
    store.follow([Applied(lease(renewed=2, version=2))], after(2))
    update = store.follow([Applied(lease(renewed=4, version=3))], after(4))
    assert update is not None
    assert (update.renewed, update.clues, update.late) == ((lease().key,), (), ())


def written_by(renewer: str, holder: str = "controller") -> bytes:
    """An event whose renewTime the first wrote, and whose holder the second."""
    entries = [
        {"manager": name, "operation": "Update", "fieldsV1": {"f:spec": {f"f:{field}": {}}}}
        for name, field in ((renewer, "renewTime"), (holder, "holderIdentity"))
    ]
    return json.dumps({"object": {"metadata": {"managedFields": entries}}}).encode()


@pytest.mark.parametrize("person", ["leaseboard", "kubectl-edit", "kubectl-patch"])
async def test_a_renew_time_that_a_person_writes_is_no_renewal_of_the_holder(person: str) -> None:
    watched = Watched()
    watched.live(lease())
    moments = [*range(2, 22, 2)]
    for second in moments:
        event = Applied(lease(renewed=second, version=second), 7, written_by("controller"))
        watched.at(second, event)
    before = watched.store.get(lease().key)
    for second in (32, 43, 55):
        event = Applied(lease(renewed=second, version=second), 8, written_by(person))
        watched.at(second, event)
    by_hand = watched.store.get(lease().key)
    watched.at(61, Applied(lease(renewed=61, version=61), 7, written_by("controller")))
    after_it = watched.store.get(lease().key)
    watched.at(80)
    told = updates(watched)
    assert not any(update.late for update in told)
    assert by_hand.observed_at == after(55)
    assert by_hand.intervals == before.intervals == after_it.intervals
    assert by_hand.renewals_seen == before.renewals_seen
    (expired,) = [
        clue for update in told for clue in update.clues if clue.change.change is ChangeType.EXPIRED
    ]
    assert expired.overdue == ()
    assert max(expired.renew_intervals) == 2.0


def test_a_script_that_holds_a_lease_with_kubectl_renews_it() -> None:
    def by_hand(renewer: str, holder: str) -> bool:
        return is_renewed_by_hand(managers_of_event(written_by(renewer, holder)))

    assert not by_hand("kubectl-patch", "kubectl-create")
    assert not by_hand("controller", "leaseboard")
    assert by_hand("kubectl-patch", "controller")
    assert by_hand("leaseboard", "leaseboard")
