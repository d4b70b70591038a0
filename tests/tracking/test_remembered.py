"""What an earlier run wrote down is read again, as far as it can be."""

from __future__ import annotations

import msgspec
import pytest

from leases.tracking.cluster_state import read_remembered
from leases.tracking.store import Store
from leases.wire.watch_decoding import Listed
from tests.support.values.leases import after, lease


def test_a_record_that_cannot_be_read_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    store = Store("c")
    store.replace(Listed((lease(version=1),), "1"), after(0))
    (known,) = store.snapshot()
    records = [b'{"lease": 1}', msgspec.json.encode(known), b"\xff"]
    assert read_remembered(records) == [known]
    assert "2 stored Leases cannot be read" in caplog.text


def test_a_remembered_lease_is_not_said_to_have_expired_before_the_stop() -> None:
    """An earlier run does not store every renewal: it may have been renewed until then."""
    store = Store("c")
    store.replace(Listed((lease(version=1),), "1"), after(0))
    remembered = Store("c")
    remembered.restore(store.snapshot(), after(600))
    update = remembered.replace(Listed((lease(version=9, renewed=899),), "9"), after(900))
    assert update.changes == ()
    unseen = Store("c")
    unseen.restore(store.snapshot(), after(600))
    (expired,) = unseen.replace(Listed((lease(version=1),), "9"), after(900)).changes
    assert expired.inferred
