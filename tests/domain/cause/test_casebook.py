"""The casebook: which changes become incidents."""

from __future__ import annotations

from leases.domain.cause.casebook import Casebook
from leases.domain.cause.incident import Cause, Confidence
from leases.tracking.store import Store
from leases.wire.watch_events import Applied, Listed
from tests.support.values.leases import NOON, after, lease


def test_a_change_of_holder_is_an_incident_that_is_told_once() -> None:
    store, casebook = Store("c"), Casebook("c")
    store.replace(Listed((lease(),), "1"), NOON)
    update = store.follow([Applied(lease("b", renewed=3, acquired=3, version=2))], after(3))
    assert update is not None
    for clue in update.clues:
        casebook.note(clue)
    (incident,) = casebook.review(after(60))
    assert (incident.cause, incident.confidence) == (Cause.UNKNOWN, Confidence.POSSIBLE)
    assert [member.lease for member in incident.members] == [lease().key]
    assert casebook.review(after(61)) == []
