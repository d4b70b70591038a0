"""Histories of Leases that anybody may have written, for properties."""

from __future__ import annotations

from hypothesis import strategies as st

from leases.domain.change import Change
from leases.tracking.store import Store
from leases.tracking.tracked_lease import Update
from leases.wire.watch_decoding import Applied, Deleted
from tests.support.values.leases import after, lease

Event = tuple[Applied | Deleted, float]


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """A few Leases written by anybody, in any way that an API server would let through."""
    events: list[Event] = []
    alive: dict[str, str] = {}
    last: dict[str, float | None] = {}
    now = 0.0
    for version in range(1, draw(st.integers(2, 25))):
        now += draw(st.sampled_from([0.01, 1.0, 2.0, 9.0, 30.0]))
        name = draw(st.sampled_from(["a", "b"]))
        renewed = draw(st.sampled_from([None, last.get(name), now, now - 300, now + 300]))
        last[name] = renewed
        written = lease(
            draw(st.sampled_from([None, "", "x", "y", name])),
            renewed=renewed,
            acquired=draw(st.sampled_from([None, 0.0, renewed])),
            duration=draw(st.sampled_from([None, 1, 15, 40])),
            transitions=draw(st.sampled_from([None, 0, 1, 5])),
            preferred=draw(st.sampled_from([None, "y"])),
            name=name,
            uid=alive.setdefault(name, f"{name}-{version}"),
            version=version,
        )
        if draw(st.integers(0, 9)) == 0:
            del alive[name]
            events.append((Deleted(written), now))
        else:
            events.append((Applied(written), now))
    return events


def apply_all(store: Store, events: list[Event], *, at: float | None = None) -> list[Change]:
    """Apply with the clock turned to every deadline in between."""
    reported: list[Update | None] = []
    for event, seconds in events:
        now = after(seconds if at is None else at)
        while (deadline := store.next_deadline()) is not None and deadline < now:
            reported.append(store.turn(deadline))
        reported.append(store.follow((event,), now))
    return [change for update in reported if update for change in update.changes]
