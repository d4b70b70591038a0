"""Which incidents are messages, for whom, and what they say."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from leases.domain import notify
from leases.domain.cause.going_on import so_far
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.notify import (
    Choice,
    Gravity,
    Quiet,
    Stage,
    Subject,
    chooses,
    gravity,
    is_quiet,
    message_of,
    next_stage,
    phases_of,
)
from leases.domain.phase import Phase
from tests.support.values.changes import T0, a_change
from tests.support.values.incidents import KEDA, SCHEDULER, an_incident

CRASH = an_incident(cause=Cause.CRASH, ended=None, worst_gap_seconds=None, leases=(KEDA,))
SUBJECT = Subject(
    cluster="a",
    cause=Cause.CRASH,
    leases=(KEDA, SCHEDULER),
    kinds=frozenset({Kind.ELECTION}),
    phases=frozenset({Phase.EXPIRED, Phase.HELD}),
)


def told(stage=Stage.OPENED, incident=CRASH):
    return message_of(incident, stage, receiver=1, step=0, last=None)


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (Choice(), True),
        (Choice(causes=(Cause.CRASH, Cause.DRAIN)), True),
        (Choice(causes=(Cause.DRAIN,)), False),
        (Choice(clusters=("b",)), False),
        (Choice(kinds=(Kind.ELECTION,)), True),
        (Choice(kinds=(Kind.HEARTBEAT,)), False),
        (Choice(phases=(Phase.EXPIRED,)), True),
        (Choice(phases=(Phase.VACANT,)), False),
        (Choice(namespaces=("keda",)), True),
        (Choice(namespaces=("default",)), False),
        (Choice(leases=("kube-system/*",)), True),
        (Choice(leases=("operator*",)), True),
        (Choice(leases=("kube-*/operator*",)), False),
        (Choice(severities=(Gravity.WARNING,)), True),
        (Choice(severities=(Gravity.CRITICAL,)), False),
        (Choice(namespaces=("keda",), leases=("scheduler",)), False),  # of two Leases
    ],
)
def test_a_receiver_gets_what_it_chose(choice, wanted):
    assert chooses(choice, SUBJECT) is wanted


@pytest.mark.parametrize(
    ("standing", "by_all", "by_unplanned"),
    [
        (Standing.UNPLANNED, True, True),
        (Standing.OVERRAN, True, True),
        (Standing.PLANNED, True, False),
        (Standing.REMARK, False, False),
    ],
)
def test_a_receiver_of_the_unplanned_hears_of_a_plan_that_overran(standing, by_all, by_unplanned):
    subject = replace(SUBJECT, standing=standing)
    assert chooses(Choice(), subject) is by_all
    assert chooses(Choice(unplanned=True), subject) is by_unplanned


def test_the_phases_are_those_that_the_changes_led_to():
    kinds = (ChangeType.EXPIRED, ChangeType.RELEASED, ChangeType.TAKEN_OVER)
    changes = [a_change(number, change=kind, holder="x") for number, kind in enumerate(kinds)]
    assert phases_of(changes) == {Phase.EXPIRED, Phase.VACANT, Phase.HELD}


def many(number):
    return tuple(ObjectName("default", f"lease-{index}") for index in range(number))


@pytest.mark.parametrize(
    ("incident", "last", "stage"),
    [
        (CRASH, None, Stage.OPENED),
        (replace(CRASH, ended=T0), None, Stage.OVER),
        (CRASH, told(), None),
        (replace(CRASH, sentence="It crashed twice"), told(), None),
        (replace(CRASH, ended=T0), told(), Stage.OVER),
        (replace(CRASH, part_of="other"), told(), Stage.OVER),
        (replace(CRASH, worst_gap_seconds=30.0), told(), Stage.WORSENED),
        (replace(CRASH, cause=Cause.NODE_DOWN), told(), Stage.WORSENED),
        (replace(CRASH, leases=many(3)), told(), None),
        (replace(CRASH, leases=many(4)), told(), Stage.WORSENED),
        (replace(CRASH, leases=many(4)), told(incident=replace(CRASH, leases=many(4))), None),
        (replace(CRASH, ended=T0), told(Stage.OVER), None),
        (CRASH, told(Stage.OVER), Stage.OPENED),
    ],
)
def test_a_message_is_an_incident_that_opened_worsened_or_ended(incident, last, stage):
    assert next_stage(incident, last) is stage


def test_the_id_follows_from_the_place_and_the_labels_stay():
    first = told()
    worse = replace(CRASH, cause=Cause.NODE_DOWN, worst_gap_seconds=60.0)
    second = message_of(worse, Stage.WORSENED, receiver=1, step=1, last=first)
    assert first.id == told().id != second.id
    assert (first.severity, second.severity) == (Gravity.WARNING, Gravity.CRITICAL)
    assert second.labels == first.labels
    assert first.labels["namespace"] == "keda"


def test_the_text_names_what_a_person_needs():
    message = told(Stage.OVER, replace(an_incident(leases=many(25)), sentence="one\nline"))
    shown = notify.text(message)
    assert notify.title(message) == "Over: a: one line"
    assert "Cause: node down (likely)" in shown
    assert "after 41 s" in shown
    assert "default/lease-19 and 5 more" in shown
    assert notify.title_of_all([message, message]) == "2 incidents: a"
    assert len(notify.title(replace(message, sentence="x" * 500))) == notify.MAX_TITLE


@pytest.mark.parametrize("end", ["\n", "\r\n", "\u2028", "\x85", "\x0b", "\0\n", "\u202e\n"])
def test_a_holder_with_line_breaks_forges_no_line(end):
    forged = f"cp-1{end}Page: http://evil.example/{end}"
    message = told(Stage.OPENED, replace(an_incident(), sentence=forged, hosts=(forged, "b")))
    message = replace(message, leases=(f"a/b{end}Page: x",), url="https://board.example/1")
    lines = notify.text(message).splitlines()
    assert [line for line in lines if line.startswith("Page:")] == ["Page: https://board.example/1"]
    assert not {"\u202e", "\u2028", "\0"} & set("".join(lines))


def test_quiet_needs_every_lease_of_the_incident():
    mute = Quiet(cluster="a", namespace="keda", since=T0, until=T0 + timedelta(hours=1))
    assert is_quiet([mute], "a", [KEDA], T0)
    assert not is_quiet([mute], "a", [KEDA, SCHEDULER], T0)
    assert not is_quiet([mute], "b", [KEDA], T0)
    assert not is_quiet([mute], "a", [KEDA], T0 - timedelta(seconds=1))
    assert not is_quiet([mute], "a", [KEDA], T0 + timedelta(hours=1))
    assert is_quiet([Quiet(since=T0, until=None)], "b", [KEDA, SCHEDULER], T0)
    assert not is_quiet([Quiet(since=T0, until=None)], "b", [], T0)


def test_a_gap_that_goes_on_is_worse_once_it_is_long_and_meets_a_choice_by_severity():
    opened = replace(CRASH, unheld_since=T0)
    short, long = (so_far(opened, T0 + timedelta(seconds=one), ()) for one in (29, 30))
    assert next_stage(short, told(incident=opened)) is None
    assert next_stage(long, told(incident=opened)) is Stage.WORSENED
    critical = Choice(severities=(Gravity.CRITICAL,))
    chosen = [chooses(critical, replace(SUBJECT, severity=gravity(one))) for one in (short, long)]
    assert chosen == [False, True]
    assert told(incident=long).worst_gap_seconds == 30.0
