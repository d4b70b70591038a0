"""What needs attention: worst first, in sentences, many of a kind in one line."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from dashboard.parts.attention import attention
from dashboard.parts.lease_row import row_view
from leases.domain.change import Change, ChangeType
from leases.domain.flapping import Flapping
from leases.domain.incident import Cause, Standing
from leases.domain.kind import Kind
from leases.domain.phase import Phase
from leases.history.outbox import Care
from leases.models import Acknowledgement
from tests.support.values.incidents import open_incident
from tests.support.values.tracked_leases import NOW, tracked


def lines(*leases, changes=(), flapping=(), going_on=()):
    missed = [change for change in changes if change.missed]
    more = {"flapping": flapping, "missed": missed, "going_on": going_on}
    return attention("prod", leases, now=NOW, **more)


def flaps(name: str = "operator", changes: int = 58, kind: Kind = Kind.ELECTION, **more):
    since, gap = NOW - timedelta(minutes=29), 312.0 if kind is Kind.ELECTION else 0.0
    hosts = 3 if gap else 1
    how = Flapping(changes, since, hosts, hosts, gap, timedelta(minutes=30))
    return tracked(name, kind=kind, **more), how


def passed(seconds_ago: float, **more) -> Change:
    known = {
        "cluster": "prod",
        "namespace": "web",
        "name": "ingress",
        "uid": "u",
        "kind": Kind.ELECTION,
        "change": ChangeType.TAKEN_OVER,
        "at": NOW - timedelta(seconds=seconds_ago),
        "observed_at": NOW,
        "holder": f"pod-{int(seconds_ago) % 2}",
        "gap_seconds": 5.0,
    }
    return Change(**(known | more))


def test_healthy_leases_need_none():
    assert lines(tracked(), tracked("b", phase=Phase.UNTIMED, duration=None)) == []


def test_a_free_lock_is_in_order_and_an_election_without_a_holder_is_not():
    free = tracked("lock", holder=None, phase=Phase.VACANT, kind=Kind.LOCK)
    orphan = tracked("operator", holder=None, phase=Phase.VACANT, age=31)
    handed_over = tracked("other", holder=None, phase=Phase.VACANT, age=29)
    (line,) = lines(free, orphan, handed_over)
    assert (line.label, line.amount) == ("operator", "31 s")


def test_an_election_that_was_vacant_before_anybody_watched_has_been_so_for_longer():
    began = NOW - timedelta(seconds=60)
    seen_before = tracked("seen", holder=None, phase=Phase.VACANT, age=60, gap_since=began)
    for lease, moment in (
        (seen_before, "since 12:03:23"),
        (tracked("listed", holder=None, phase=Phase.VACANT, age=60), "since 12:03:23 or before"),
    ):
        (line,) = lines(lease)
        assert line.moment == moment
        assert row_view("prod", lease, NOW).vacant_since == moment.removeprefix("since ")


def test_the_worst_comes_first():
    found = lines(
        tracked("late", phase=Phase.LATE, age=9),
        tracked("vacant", holder=None, phase=Phase.VACANT, age=60),
        tracked("expired", phase=Phase.EXPIRED, age=100),
    )
    assert [line.label for line in found] == ["expired", "vacant", "late"]


def test_an_expired_election_says_who_held_it_and_since_when():
    (line,) = lines(tracked(phase=Phase.EXPIRED, age=100, holder="cp-1_0123abcd"))
    assert line.word == "Expired."
    assert "".join(part.text for part in line.why) == "Nobody validly holds it. Last held by cp-1."
    assert (line.amount, line.moment) == ("1 m 25 s", "since 12:02:58")
    assert line.url == "/c/prod/leases/kube-system/scheduler/"


def test_a_late_election_counts_down_to_its_end():
    (line,) = lines(tracked(phase=Phase.LATE, age=9))
    assert line.until == (NOW + timedelta(seconds=6)).timestamp()
    assert line.until_text == "6.0 s"


def test_many_dead_nodes_are_one_line_that_leads_to_their_list():
    dead = [
        tracked(f"node-{n}.eu", namespace="kube-node-lease", phase=Phase.EXPIRED, age=100 + n,
                kind=Kind.HEARTBEAT)
        for n in range(5)
    ]  # fmt: skip
    (line,) = lines(*dead)
    assert line.label == "node-4, node-3, node-2 and 2 more"
    assert line.why[0].text == "5 heartbeats stopped."
    assert line.url == "/c/prod/leases/?kind=heartbeat&phase=expired"
    assert line.since == (NOW - timedelta(seconds=104 - 15)).timestamp()


def test_a_lease_whose_holder_keeps_changing_is_flapping():
    (line,) = lines(flapping=[flaps()])
    assert (line.word, line.label, line.amount) == ("Flapping.", "operator", "58 changes")
    said = "58 changes of holder in 30 min, 3 holders; 5 m 12 s without a holder."
    assert line.why[0].text == said
    assert (line.url, line.moment) == ("/c/prod/leases/kube-system/operator/", "since 11:35:23")


def test_a_lease_that_flaps_says_who_takes_care_of_its_incident():
    lease, how = flaps()
    incident = open_incident(lease.key, cluster="prod", cause=Cause.FLAPPING)
    taken = {("prod", incident.id): Acknowledgement(who="ada", at=NOW)}
    (line,) = attention(
        "prod", [lease], now=NOW, flapping=[(lease, how)], going_on=[incident], care=Care(taken)
    )
    assert (line.word, line.why[-1].text) == ("Flapping.", " ada takes care of it, since 12:04:23.")


def test_a_heartbeat_flaps_by_expiring():
    (line,) = lines(flapping=[flaps("node-1", 7, Kind.HEARTBEAT)])
    assert (line.why[0].text, line.amount) == ("Expired 7 times in 30 min.", "7 expiries")


def test_an_abandoned_lease_is_told_once_and_its_incident_asks_for_nothing():
    left = tracked("left", phase=Phase.EXPIRED, age=9000, abandoned=True)
    back, lost = tracked("back"), tracked("lost", phase=Phase.EXPIRED, age=100)
    assert lines(left, going_on=[open_incident(left.key)]) == []
    assert lines(left, going_on=[open_incident(left.key, back.key)]) == []
    (line,) = lines(left, lost, going_on=[open_incident(left.key, lost.key)])
    assert line.why[0].text == "2 Leases, 1 of them still without a holder: lost."


def test_what_flaps_stands_above_what_is_late_and_below_what_expired():
    found = lines(
        tracked("node-1", phase=Phase.LATE, age=38, duration=40, kind=Kind.HEARTBEAT),
        tracked("late", phase=Phase.LATE, age=9),
        tracked("expired", phase=Phase.EXPIRED, age=100),
        tracked("gone", phase=Phase.EXPIRED, age=100, kind=Kind.HEARTBEAT),
        tracked("vacant", phase=Phase.VACANT, holder=None, age=60),
        flapping=[flaps()],
    )
    labels = [line.label for line in found]
    assert labels == ["expired", "gone", "operator", "vacant", "late", "node-1"]


def test_a_late_lease_that_flaps_has_one_line_and_an_expired_one_two():
    late, how = flaps(phase=Phase.LATE, age=9)
    assert [line.word for line in lines(late, flapping=[(late, how)])] == ["Flapping."]
    expired, how = flaps(phase=Phase.EXPIRED, age=99)
    found = lines(expired, flapping=[(expired, how)])
    assert [line.word for line in found] == ["Expired.", "Flapping."]


def test_many_that_flap_are_one_line_that_leads_to_their_list():
    (line,) = lines(flapping=[flaps(f"e-{n}", 10 - n) for n in range(4)])
    assert line.label == "e-0, e-1, e-2 and 1 more"
    said = "4 elections: each changes its holder 5 times or more in 30 min."
    assert (line.why[0].text, line.amount) == (said, "34 changes")
    assert line.url == "/c/prod/leases/?kind=election&flapping=true"
    (nodes,) = lines(flapping=[flaps(f"n-{n}", 5, Kind.HEARTBEAT) for n in range(2)])
    assert nodes.why[0].text == "2 heartbeats: each expires 5 times or more in 30 min."


def test_those_that_were_not_watched_for_as_long_say_since_when_they_are_counted():
    begun = NOW - timedelta(minutes=5)
    one, how = flaps(changes=3)
    (line,) = lines(flapping=[(one, replace(how, counted_since=begun))])
    said = "3 changes of holder since 11:59:23, 3 holders; 5 m 12 s without a holder."
    assert (line.why[0].text, line.moment) == (said, "since 11:59:23")
    some = [flaps(f"n-{n}", 3 + n, Kind.HEARTBEAT) for n in range(2)]
    (nodes,) = lines(flapping=[(one, replace(how, counted_since=begun)) for one, how in some])
    said = "2 heartbeats: each expires 3 times or more since 11:59:23."
    assert nodes.why[0].text == said


def test_missed_changes_are_named_last():
    found = lines(tracked(phase=Phase.LATE, age=9), changes=[passed(60, missed=2)])
    assert [line.word for line in found] == ["Late.", "Missed changes."]
    assert found[1].amount == "2 unseen"


def test_the_leases_of_an_incident_fold_into_its_line_and_nothing_else_does():
    mine = [tracked(name, phase=Phase.EXPIRED, age=60) for name in ("one", "two", "three")]
    late, other = tracked("four", phase=Phase.LATE, age=9), tracked("else", phase=Phase.LATE, age=9)
    fine, (wild, how) = tracked("five"), flaps()
    keys = [lease.key for lease in (*mine, late, fine, wild)]
    incident = open_incident(*keys, cluster="prod", began=NOW - timedelta(seconds=90))
    found = lines(*mine, late, fine, other, flapping=[(wild, how)], going_on=[incident])
    assert [line.label for line in found] == [incident.sentence, "else"]
    line = found[0]
    assert (line.url, line.phase) == ("/c/prod/incidents/5e1f/", "expired")
    assert line.word == "Node down, likely."
    assert line.why[0].text == "6 Leases, 3 of them still without a holder, 1 late."
    assert (line.amount, line.moment) == ("1 m 30 s", "since 12:02:53")


def test_a_lease_that_was_held_since_an_incident_and_lost_again_is_none_of_its_leases():
    lost, other = tracked("lost", phase=Phase.EXPIRED), tracked("other", phase=Phase.EXPIRED)
    late = tracked("late", phase=Phase.LATE, age=9)
    keys = lost.key, other.key, late.key
    old = open_incident(*keys, held_since=[lost.key, late.key], began=NOW - timedelta(seconds=90))
    first, second = lines(lost, other, late, going_on=[old])
    assert first.why[0].text == "3 Leases, 1 of them still without a holder: other, 1 late."
    assert (second.label, second.word) == ("lost", "Expired.")


def test_a_lease_lost_in_one_incident_after_another_counts_in_the_newest():
    lost, other = tracked("lost", phase=Phase.EXPIRED), tracked("other", phase=Phase.EXPIRED)
    old = open_incident(lost.key, other.key, id="old", began=NOW - timedelta(seconds=90))
    new = open_incident(lost.key, id="new", began=NOW - timedelta(seconds=30))
    found = lines(lost, other, going_on=[old, new])
    assert [line.why[0].text for line in found] == [
        "2 Leases, 1 of them still without a holder: other.",
        "1 Lease still without a holder: lost.",
    ]


def test_a_lease_that_flaps_while_it_is_held_has_its_own_line():
    held, how = flaps()
    incident = open_incident(held.key, cluster="prod", cause=Cause.FLAPPING)
    (line,) = lines(held, flapping=[(held, how)], going_on=[incident])
    assert line.label == "operator"
    lost, how = flaps(phase=Phase.EXPIRED, age=99)
    (line,) = lines(lost, flapping=[(lost, how)], going_on=[incident])
    assert line.label == incident.sentence


def test_an_incident_stands_by_its_worst_lease_and_behind_trouble_without_any():
    bad, worse = tracked("bad", phase=Phase.LATE, age=9), tracked("worse", phase=Phase.EXPIRED)
    quiet, loud = open_incident(id="q", sentence="quiet"), open_incident(worse.key, sentence="loud")
    found = lines(bad, worse, going_on=[quiet, loud])
    assert [line.label for line in found] == ["loud", "bad", "quiet"]


def test_an_incident_says_how_sure_its_cause_is():
    young = {"cluster": "prod", "settled": False}
    (searched,) = lines(going_on=[open_incident(cause=Cause.UNKNOWN, **young)])
    (unsure,) = lines(going_on=[open_incident(**young)])
    (unknown,) = lines(going_on=[open_incident(cause=Cause.UNKNOWN)])
    words = ["Looking for the cause.", "Node down, likely so far.", "Cause not known."]
    assert [searched.word, unsure.word, unknown.word] == words


def test_an_incident_that_goes_as_planned_asks_for_nothing():
    assert lines(going_on=[open_incident(standing=Standing.PLANNED)]) == []
    assert len(lines(going_on=[open_incident(standing=Standing.OVERRAN)])) == 1
