"""Messages are queued with their incident, sent by one replica, and repeated under one id."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from leases.domain import notify
from leases.domain.incident import Cause
from leases.domain.kind import Kind
from leases.domain.notify import Choice, Gravity, Stage
from leases.history import outbox
from leases.history.deliveries import (
    CLAIM,
    KEPT,
    REFRESH,
    claim,
    claim_refreshes,
    finish,
    forget_messages,
)
from leases.history.find_incidents import open_incidents
from leases.history.outbox import acknowledge, acknowledgement_of, decide_over, end, take_back
from leases.history.write_batch import write_changes
from leases.models import Acknowledgement, IncidentRecord, Notification, QuietTime, WatchSpan
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with
from tests.support.values.receivers import a_receiver, record

pytestmark = pytest.mark.django_db

CHANGE = a_change(1)
OPEN = incident_with(CHANGE, ended=None, settled=False)
OVER = replace(OPEN, ended=T0 + timedelta(seconds=41), settled=True)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def rows() -> list[tuple[str, str, int]]:
    found = Notification.objects.order_by("pk")
    return [(row.stage, row.state, row.attempts) for row in found]


def send(at=T0, process="one"):
    """Deliver all that is due. Returns the messages."""
    sent = []
    while due := claim(process, at):
        for delivery in due:
            finish(delivery, process, at)
            sent += delivery.messages
    return sent


def stages(messages):
    return [message.stage for message in messages]


def test_an_incident_is_one_message_when_it_opens_and_one_when_it_is_over():
    a_receiver()
    record(OPEN)
    record(replace(OPEN, sentence="More is known now"), at=T0 + SECOND)
    first = send(T0 + SECOND)
    assert stages(first) == [Stage.OPENED]
    assert first[0].sentence == "More is known now"
    for second in (2, 3):
        record(OVER, at=T0 + second * SECOND)
    last = send(T0 + 3 * SECOND)
    assert stages(last) == [Stage.OVER]
    assert last[0].id != first[0].id
    assert send(T0 + timedelta(days=1)) == []


def test_a_second_replica_queues_nothing_again_and_older_news_nothing():
    a_receiver()
    record(OVER, at=T0 + SECOND)
    record(OVER, at=T0 + SECOND)
    record(OPEN, at=T0)
    assert rows() == [("over", "waiting", 0)]


def test_only_what_was_chosen_is_queued():
    write_changes([CHANGE])
    a_receiver("kind", Choice(kinds=(Kind.HEARTBEAT,)))
    a_receiver("cause", Choice(causes=(Cause.DRAIN,)))
    a_receiver("off", enabled=False)
    a_receiver("late", created_at=T0 + timedelta(days=1))
    record(OVER)
    assert rows() == []
    a_receiver("opened", Choice(stages=(Stage.OPENED,), kinds=(CHANGE.kind,)))
    record(OPEN, at=T0 + SECOND)
    record(OVER, at=T0 + 2 * SECOND)
    late, opened = rows()
    assert (late[0], opened[0]) == ("over", "opened")


def test_one_replica_gets_a_message_and_a_dead_one_loses_none():
    a_receiver()
    record(OPEN)
    [first] = claim("one", T0)
    assert claim("two", T0 + SECOND) == []
    [again] = claim("two", T0 + CLAIM)
    assert (again.id, again.messages, again.attempt) == (first.id, first.messages, 2)
    finish(again, "two", T0 + CLAIM)
    assert claim("one", T0 + 2 * CLAIM) == []


def test_a_message_that_cannot_be_read_holds_up_no_other():
    a_receiver()
    record(OPEN, incident_with(a_change(2), id="two", ended=None, settled=False))
    first = Notification.objects.order_by("pk")[0]
    Notification.objects.filter(pk=first.pk).update(content='{"stage": ')
    [delivery] = claim("one", T0 + timedelta(hours=1))
    assert [message.incident for message in delivery.messages] == ["two"]
    first.refresh_from_db()
    assert (first.state, first.outcome) == ("failed", "Not sent: it cannot be read.")
    record(OVER, at=T0 + timedelta(hours=2))  # the next step of the one that cannot be read


def test_a_failed_delivery_is_repeated_under_its_id_with_growing_delays():
    receiver = a_receiver(group_seconds=10)
    other = incident_with(a_change(2), id="two", ended=None, settled=False)
    record(OPEN, other)
    at, ids, delays = T0 + timedelta(seconds=10), set(), []
    for _ in range(4):
        [delivery] = claim("one", at)
        assert [one.incident for one in delivery.messages] == ["one", "two"]
        ids.add(delivery.id)
        finish(delivery, "one", at, error="It answered 500.", jitter=lambda: 0.0)
        receiver.refresh_from_db()
        delays.append((receiver.retry_at - at).total_seconds())
        assert claim("one", receiver.retry_at - SECOND) == []
        at = receiver.retry_at
    assert delays == [5, 10, 20, 40]
    assert len(ids) == 1
    record(OVER, at=at)  # it waits for the message before it
    assert [len(one.messages) for one in claim("one", at)] == [2]


def test_a_message_is_given_up_after_a_day():
    a_receiver()
    record(OPEN)
    late = T0 + timedelta(hours=25)
    [delivery] = claim("one", late)
    finish(delivery, "one", late, error="It answered 500.")
    assert rows() == [("opened", "failed", 1)]
    assert claim("one", late + CLAIM) == []


def test_too_many_waiting_messages_are_logged_as_not_sent(monkeypatch):
    monkeypatch.setattr(outbox, "MAX_WAITING", 1)
    a_receiver()
    record(OPEN, incident_with(a_change(2), id="two", ended=None))
    assert [state for _, state, _ in rows()] == ["waiting", "failed"]


def test_a_failure_of_the_queue_does_not_stop_history(monkeypatch, caplog):
    a_receiver(choice=None)
    monkeypatch.setattr(notify, "chooses", lambda *_: 1 / 0)
    record(OPEN)
    assert IncidentRecord.objects.count() == 1
    assert "messages about incidents are not queued" in caplog.text


def test_a_withdrawn_incident_is_not_sent_or_is_over():
    a_receiver()
    record(OPEN)
    gone = replace(OPEN, members=(), part_of="two")
    record(gone, at=T0 + SECOND)
    assert rows() == [("opened", "withdrawn", 0)]
    other = incident_with(a_change(2), id="three", ended=None)
    record(other)
    send()
    record(replace(other, members=(), part_of="two"), at=T0 + SECOND)
    [told] = send(T0 + SECOND)
    assert (told.stage, told.part_of) == (Stage.OVER, "two")


def test_who_takes_care_of_an_incident_takes_care_of_what_it_becomes_a_part_of():
    a_receiver()
    record(OPEN)
    acknowledge("a", "one", who="olga", at=T0)
    record(replace(OPEN, id="two"), at=T0)
    record(replace(OPEN, members=(), part_of="two"), at=T0 + SECOND)
    assert [(row.incident, row.who) for row in Acknowledgement.objects.all()] == [("two", "olga")]


def muted(**given):
    return QuietTime.objects.create(since=T0, who="ada", **given)


def test_a_mute_holds_a_message_back_until_it_ends():
    a_receiver()
    mute = muted(cluster="a", namespace=CHANGE.namespace, name=CHANGE.name)
    record(OPEN)
    assert send() == []
    end(mute.pk, T0 + SECOND)
    assert stages(send(T0 + SECOND)) == [Stage.OPENED], "at once"


def test_what_a_window_holds_back_is_sent_when_it_ends():
    a_receiver()
    muted(until=T0 + 10 * SECOND)
    record(OPEN)
    assert send() == []
    assert send(T0 + 9 * SECOND) == []
    assert stages(send(T0 + 10 * SECOND)) == [Stage.OPENED]


def test_a_message_that_was_held_back_says_how_long_nobody_holds_it_by_now():
    a_receiver()
    mute = muted(cluster="a", namespace=CHANGE.namespace, name=CHANGE.name)
    record(replace(OPEN, worst_gap_seconds=30.0, unheld_since=T0))
    WatchSpan.objects.create(cluster="a", process="p", since=T0 - HOUR, until=T0 + HOUR)
    assert send() == []
    end(mute.pk, T0 + SECOND)
    (message,) = send(T0 + timedelta(minutes=2))
    assert message.worst_gap_seconds == 120.0


MUTED = replace(a_change(2), namespace="payments", name="controller", kind=Kind.HEARTBEAT)


@pytest.mark.parametrize(
    "choice",
    [
        Choice(leases=("payments/*",)),
        Choice(namespaces=("payments",)),
        Choice(kinds=(Kind.HEARTBEAT,)),
    ],
)
def test_a_receiver_hears_nothing_while_all_that_it_chose_of_an_incident_is_muted(choice):
    write_changes([CHANGE, MUTED])
    a_receiver("some", choice)
    a_receiver("all")
    mute = muted(cluster="a", namespace="payments", name="controller")
    going_on = incident_with(CHANGE, MUTED, ended=None, settled=False)
    record(going_on)
    [heard] = claim("one", T0)
    assert heard.name == "all"
    finish(heard, "one", T0)
    end(mute.pk, T0 + SECOND)
    assert [one.name for one in claim("one", T0 + timedelta(minutes=1))] == ["some"]


def test_what_a_receiver_chose_of_it_began_and_ended_muted_and_is_never_sent():
    a_receiver("some", Choice(leases=("payments/*",)))
    muted(cluster="a", namespace="payments", name="controller")
    record(incident_with(CHANGE, MUTED))
    assert rows() == [("over", "silenced", 0)]


def test_what_began_and_ended_in_a_window_is_never_sent():
    a_receiver()
    muted(until=T0 + timedelta(hours=1))
    record(OPEN)
    record(OVER, at=T0 + SECOND)
    assert rows() == [("over", "silenced", 0)]


def test_what_was_told_before_a_window_ends_in_it():
    a_receiver()
    record(OPEN)
    send()
    muted(until=T0 + timedelta(hours=1))
    record(OVER, at=T0 + SECOND)
    assert stages(send(T0 + SECOND)) == [Stage.OVER]


def test_who_chose_by_severity_hears_of_it_once_that_is_met_and_others_that_it_worsened():
    a_receiver("critical", Choice(severities=(Gravity.CRITICAL,)))
    a_receiver("all")
    going_on = replace(OPEN, cause=Cause.CRASH, worst_gap_seconds=29.0, unheld_since=T0)
    told = []
    for second, gap in ((29, 29.0), (30, 30.0), (45, 45.0)):
        at = T0 + second * SECOND
        record(replace(going_on, worst_gap_seconds=gap), at=at)
        told.append([(one.stage, one.severity) for one in send(at)])
    opened, worse = (Stage.OPENED, Gravity.CRITICAL), (Stage.WORSENED, Gravity.CRITICAL)
    assert told == [[(Stage.OPENED, Gravity.WARNING)], [opened, worse], []]
    [stored] = open_incidents("a")
    assert stored.unheld_since == T0


@pytest.mark.parametrize("acknowledged", [False, True])
def test_an_acknowledged_incident_is_not_sent_when_it_worsens(acknowledged):
    a_receiver()
    mild = replace(OPEN, cause=Cause.CRASH, worst_gap_seconds=1.0)
    record(mild)
    send()
    if acknowledged:
        Acknowledgement.objects.create(cluster="a", incident="one", who="olga", at=T0)
    record(replace(mild, cause=Cause.NODE_DOWN), at=T0 + SECOND)
    assert stages(send(T0 + SECOND)) == ([] if acknowledged else [Stage.WORSENED])
    record(OVER, at=T0 + 2 * SECOND)
    assert stages(send(T0 + 2 * SECOND)) == [Stage.OVER]


def later(seconds, **given):
    """What a person wrote over a valid holder, so many seconds later."""
    at = T0 + seconds * SECOND
    written = replace(OPEN, cause=Cause.BY_HAND, worst_gap_seconds=None)
    record(replace(written, **given), at=at)
    return at


@pytest.mark.parametrize("fails", [False, True])
def test_one_write_over_a_valid_holder_is_new_and_over_once_in_order(fails):
    a_receiver(group_seconds=10)
    at = later(0, ended=T0)
    assert send(at + timedelta(seconds=15)) == []  # nobody renewed it yet: it may run out
    at = later(20, ended=None)
    [slow] = claim("one", at + timedelta(seconds=10))
    at = later(32, ended=T0 + timedelta(seconds=31))
    assert claim("two", at) == []  # the receiver is still busy
    finish(slow, "one", at, error="It answered 500." if fails else "")
    sent = send(at + timedelta(minutes=1))
    later(160, ended=T0 + timedelta(seconds=31), settled=True)
    sent += send(at + timedelta(minutes=5))
    first = [] if fails else list(slow.messages)
    assert stages(first + sent) == [Stage.OPENED, Stage.OVER]


def test_a_write_that_stays_over_is_sent_once_it_is_settled():
    a_receiver(group_seconds=10)
    later(0, ended=T0)
    at = later(121, ended=T0, settled=True)
    assert stages(send(at + timedelta(seconds=10))) == [Stage.OVER]


def test_a_deleted_lease_is_told_when_it_is_known_whether_it_was_made_again():
    """Its end is its deletion at first: nobody held it until somebody made it again."""
    a_receiver()
    deleted = replace(OPEN, cause=Cause.DELETED, ended=T0, worst_gap_seconds=None)
    record(deleted)
    assert send(T0 + timedelta(seconds=36)) == []
    made = {"cause": Cause.BY_HAND, "ended": T0 + timedelta(seconds=51), "worst_gap_seconds": 51.0}
    record(replace(deleted, **made), at=T0 + timedelta(seconds=51))
    (told,) = send(T0 + timedelta(seconds=51))
    assert (told.stage, told.severity) == (Stage.OVER, Gravity.CRITICAL)
    assert (told.cause, told.worst_gap_seconds) == (Cause.BY_HAND, 51.0)


def test_a_lease_that_is_lost_again_and_again_is_not_over_first():
    a_receiver()
    lost = [a_change(second, change="replaced", at=T0 + second * SECOND) for second in (0, 1, 2)]
    fight = incident_with(*lost, cause=Cause.UNKNOWN, ended=T0 + 2 * SECOND, settled=False)
    record(fight, at=T0 + 3 * SECOND)
    assert send(T0 + 4 * SECOND) == []
    record(replace(fight, cause=Cause.FLAPPING, ended=None), at=T0 + 5 * SECOND)
    assert stages(send(T0 + 5 * SECOND)) == [Stage.OPENED]


@pytest.mark.parametrize("group", [3, 200])
def test_what_may_go_on_is_not_sent_early_beside_others(group):
    a_receiver(group_seconds=group)
    record(incident_with(a_change(2), id="two", ended=None, settled=False))
    deleted = T0 + 2 * SECOND
    record(replace(OPEN, cause=Cause.DELETED, ended=T0, worst_gap_seconds=None), at=deleted)
    assert [one.incident for one in send(T0 + group * SECOND)] == ["two"]
    assert stages(send(deleted + max(130, group + 1) * SECOND)) == [Stage.OVER]


def test_receivers_hear_that_what_was_called_over_goes_on():
    a_receiver()
    record(OPEN)
    send()
    for round_ in (1, 3):
        decide_over(OPEN, who="olga", at=T0 + round_ * SECOND)
        assert stages(send(T0 + round_ * SECOND)) == [Stage.OVER]
        take_back(OPEN, at=T0 + (round_ + 1) * SECOND)
        assert stages(send(T0 + (round_ + 1) * SECOND)) == [Stage.OPENED]
    acknowledge("a", "one", who="ada", at=T0 + 5 * SECOND)
    take_back(OPEN, at=T0 + 6 * SECOND)
    assert send(T0 + 6 * SECOND) == [], "nobody had called it over"


def test_a_person_decides_that_it_is_over_and_receivers_hear_so_once():
    a_receiver()
    a_receiver("alerts", sort="alertmanager")
    record(OPEN)
    send()
    decide_over(OPEN, who="olga", at=T0 + SECOND)
    sent = send(T0 + SECOND)
    assert stages(sent) == [Stage.OVER] * 2
    assert sent[0].sentence.endswith("; olga decided that it is over")
    assert sent[0].ended == T0 + SECOND
    record(replace(OPEN, cause=Cause.PARTITION), at=T0 + 2 * SECOND)
    assert claim_refreshes(T0 + timedelta(minutes=2), watched=["a"]) == []
    record(OVER, at=T0 + 3 * SECOND)
    assert send(T0 + 3 * SECOND) == []


def test_who_took_care_of_what_goes_on_again_does_so_as_before():
    acknowledge("a", "one", who="olga", at=T0)
    decide_over(OPEN, who="olga", at=T0 + SECOND)
    take_back(OPEN, at=T0 + 2 * SECOND)
    taken = acknowledgement_of("a", "one")
    assert (taken.who, taken.at, taken.over_at) == ("olga", T0, None)
    decide_over(OPEN, who="ada", at=T0 + 3 * SECOND)
    decide_over(OPEN, who="ada", at=T0 + 4 * SECOND)
    take_back(OPEN, at=T0 + 5 * SECOND)
    assert acknowledgement_of("a", "one") is None, "ada never took care of it"


def test_a_decision_tells_nobody_who_had_not_heard():
    a_receiver("drains", Choice(causes=(Cause.DRAIN,)))
    record(OPEN)
    decide_over(OPEN, who="olga", at=T0 + SECOND)
    assert rows() == []


def test_another_person_may_take_over():
    acknowledge("a", "one", who="olga", at=T0)
    assert acknowledge("a", "one", who="ada", at=T0 + SECOND).who == "olga"
    assert acknowledge("a", "one", who="ada", at=T0 + SECOND, take_over=True).who == "ada"


def test_an_acknowledgement_withdraws_that_it_worsened():
    a_receiver()
    mild = replace(OPEN, cause=Cause.CRASH, worst_gap_seconds=1.0)
    record(mild)
    send()
    record(replace(mild, cause=Cause.NODE_DOWN), at=T0 + SECOND)
    acknowledge("a", "one", who="olga", at=T0 + SECOND)
    assert stages(send(T0 + SECOND)) == []
    waited = Notification.objects.get(state=Notification.WITHDRAWN)
    assert waited.outcome == "Not sent: olga takes care of the incident."
    record(OVER, at=T0 + 2 * SECOND)
    assert stages(send(T0 + 2 * SECOND)) == [Stage.OVER]


def test_alertmanager_is_reminded_of_what_goes_on():
    a_receiver(sort="alertmanager")
    record(OPEN)
    assert claim_refreshes(T0, watched=["a"]) == []
    send()
    at = T0 + REFRESH
    [reminder] = claim_refreshes(at, watched=["a"])
    assert [one.incident for one in reminder.messages] == ["one"]
    assert claim_refreshes(at, watched=["a"]) == []  # of another replica
    record(OVER, at=at)
    assert claim_refreshes(at + REFRESH, watched=["a"]) == []


def test_the_log_forgets_what_is_over_and_keeps_what_goes_on():
    a_receiver()
    record(OPEN, replace(OVER, id="two"))
    send()
    late = T0 + KEPT + timedelta(days=1)
    assert forget_messages(late) == 1
    assert Notification.objects.get().incident == "one"
