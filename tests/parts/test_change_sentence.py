"""A change in the words of a person, with the names as parts of their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from dashboard.live.shared_drawings import CHANGES, render_change
from dashboard.parts.change_sentence import WORDS, Part, WrittenBy, change_line, sentence
from dashboard.parts.incident_line import ChangeCause
from dashboard.parts.names import HolderView, holder_view
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.watched_times import Connection, ConnectionState

NOW = datetime(2026, 11, 20, 12, 4, 23, tzinfo=UTC)


def a_change(change: ChangeType, **fields) -> Change:
    known = {
        "cluster": "prod",
        "namespace": "kube-system",
        "name": "kube-scheduler",
        "uid": "u",
        "kind": Kind.ELECTION,
        "at": NOW - timedelta(seconds=4),
        "observed_at": NOW,
    }
    return Change(change=change, **(known | fields))


def said(change: ChangeType, **fields) -> str:
    return "".join(part.text for part in sentence(a_change(change, **fields)))


def test_a_take_over_names_both_holders_and_the_gap():
    assert (
        said(ChangeType.TAKEN_OVER, previous_holder="cp-3", holder="cp-1", gap_seconds=12.4)
        == "kube-scheduler was taken over by cp-1 from cp-3 after 12 s without a holder."
    )


def test_a_gap_too_short_to_measure_is_at_once():
    gone = {"holder": "cp-1", "previous_holder": "cp-3", "gap_seconds": 0.04}
    change = a_change(ChangeType.TAKEN_OVER, **gone)
    assert "".join(part.text for part in sentence(change)) == (
        "kube-scheduler was taken over by cp-1 from cp-3 at once."
    )
    assert change_line(change, NOW).gap == "under 0.1 s"


def test_a_live_row_of_a_form_s_write_names_no_program():
    for form in CHANGES:
        released = {"previous_holder": "cp-3", "writer": "leaseboard"}
        drawn = render_change(a_change(ChangeType.RELEASED, **released), form, NOW)
        assert "through a form" in drawn
        assert "by leaseboard" not in drawn
        assert form != "line" or drawn.count("through a form") == 1


def test_time_that_nobody_watched_is_at_most_so_long_and_no_trouble():
    gone = {"holder": "cp-1", "previous_holder": "cp-3", "gap_seconds": 600.0, "inferred": True}
    since = NOW - timedelta(seconds=594)
    change = a_change(ChangeType.TAKEN_OVER, inferred_since=since, **gone)
    assert (
        "".join(part.text for part in sentence(change))
        == "kube-scheduler was taken over by cp-1 from cp-3 after at most 10 m 0 s "
        "without a holder, 9 m 50 s of it not watched."
    )
    line = change_line(change, NOW)
    assert (line.gap, line.gap_is_long) == ("at most 10 m 0 s", False)


def test_a_gap_that_spans_a_restart_is_at_most_so_long_though_its_end_was_seen(board):
    began = Connection(state=ConnectionState.LIVE, since=NOW - timedelta(hours=1))
    board.feeds["a"].activity.watched.record(began)
    gone = {"cluster": "a", "holder": "cp-1", "at": NOW, "gap_seconds": 64.0}
    change = a_change(ChangeType.RECOVERED, **gone)
    line = change_line(change, NOW)
    assert (line.gap, line.gap_is_long) == ("1 m 4 s", True)
    spans = NOW - timedelta(seconds=62), NOW - timedelta(seconds=1)
    board.feeds["a"].activity.watched.stood_still(*spans)
    line = change_line(change, NOW)
    assert "after at most 1 m 4 s without a holder, 1 m 1 s of it not watched." in line.sentence
    silent = a_change(ChangeType.RECOVERED, kind=Kind.HEARTBEAT, previous_holder="cp-1", **gone)
    said = "recovered, at most 1 m 4 s after it expired, 1 m 1 s of it not watched."
    assert said in change_line(silent, NOW).sentence
    assert (line.gap, line.gap_is_long) == ("at most 1 m 4 s", False)
    assert not any(part.mark == "bad" for part in line.parts)


@pytest.mark.parametrize(("kind", "long"), [(Kind.ELECTION, True), (Kind.LOCK, False)])
def test_a_lock_that_was_free_for_long_is_no_trouble(kind, long):
    change = a_change(ChangeType.ACQUIRED, kind=kind, holder="cp-1", gap_seconds=600.0)
    assert change_line(change, NOW).gap_is_long is long
    assert any(part.mark == "bad" for part in sentence(change)) is long


@pytest.mark.parametrize(
    ("change", "fields", "text"),
    [
        (ChangeType.CREATED, {}, "kube-scheduler was created; nobody holds it."),
        (ChangeType.CREATED, {"holder": "cp-1"}, "kube-scheduler was created, held by cp-1."),
        (
            ChangeType.CREATED,
            {"holder": "cp-1", "writer": "leaseboard"},
            "kube-scheduler was created through a form, held by cp-1.",
        ),
        (ChangeType.ACQUIRED, {"holder": "cp-1"}, "kube-scheduler was acquired by cp-1."),
        (ChangeType.RELEASED, {"previous_holder": "cp-1"}, "kube-scheduler was released by cp-1."),
        (
            ChangeType.REPLACED,
            {"previous_holder": "cp-1", "holder": "cp-2"},
            "kube-scheduler passed to cp-2: cp-1 was replaced while it still held.",
        ),
        (
            ChangeType.REPLACED,
            {"previous_holder": f"cp-1_{'0' * 32}", "holder": f"cp-1_{'1' * 32}"},
            (
                "kube-scheduler passed to another identity of cp-1: "
                "the one before was replaced while it still held."
            ),
        ),
        (
            ChangeType.TAKEN_OVER,
            {"previous_holder": f"cp-1_{'0' * 32}", "holder": f"cp-1_{'1' * 32}"},
            "kube-scheduler was taken over by another identity of cp-1.",
        ),
        (
            ChangeType.RELEASED,
            {"previous_holder": "2df3a207-4936-47dc-9641-290795e50ac3"},
            "kube-scheduler was released by 2df3a207-4936-47dc-9641…e50ac3.",
        ),
        (ChangeType.EXPIRED, {"holder": "cp-1"}, "kube-scheduler expired; last held by cp-1."),
        (
            ChangeType.EXPIRED,
            {"holder": "kube-scheduler", "kind": Kind.HEARTBEAT},
            "Heartbeat of kube-scheduler expired.",
        ),
        (
            ChangeType.RECOVERED,
            {"holder": "cp-1", "gap_seconds": 3.0},
            "kube-scheduler recovered: renewed again by cp-1 after 3.0 s without a holder.",
        ),
        (
            ChangeType.RECOVERED,
            {"holder": "cp-1", "gap_seconds": 3.0, "writer": "kubectl-patch"},
            (
                "kube-scheduler recovered: somebody renewed it for cp-1 "
                "after 3.0 s without a holder."
            ),
        ),
        (
            ChangeType.RECOVERED,
            {"holder": "cp-1", "gap_seconds": 3.0, "writer": "leaseboard"},
            (
                "kube-scheduler recovered: renewed through a form for cp-1 after 3.0 s "
                "without a holder."
            ),
        ),
        (
            ChangeType.RECOVERED,
            {"holder": "cp-1", "gap_seconds": 3.0, "fields": ("leaseDurationSeconds",)},
            (
                "An edit of leaseDurationSeconds made kube-scheduler count as held by cp-1 again "
                "after 3.0 s without a holder."
            ),
        ),
        (
            ChangeType.RECOVERED,
            {"holder": "kube-scheduler", "kind": Kind.HEARTBEAT, "gap_seconds": 25.0},
            "Heartbeat of kube-scheduler recovered, 25 s after it expired.",
        ),
        (
            ChangeType.RESTARTED,
            {"holder": "cp-1"},
            "kube-scheduler restarted: acquired anew by its holder cp-1.",
        ),
        (
            ChangeType.RECONFIGURED,
            {"fields": ("leaseDurationSeconds", "labels")},
            "kube-scheduler was reconfigured: leaseDurationSeconds and labels.",
        ),
        (
            ChangeType.DELETED,
            {"previous_holder": "cp-1"},
            "kube-scheduler was deleted; last held by cp-1.",
        ),
    ],
)
def test_every_change_is_a_sentence(change, fields, text):
    assert said(change, **fields) == text


def test_every_type_of_change_has_its_word_icon_and_sentence():
    for change in ChangeType:
        line = change_line(a_change(change, holder="cp-1", previous_holder="cp-2"), NOW)
        assert line.word == WORDS[change]
        assert WORDS[change].lower() in line.sentence
        assert line.icon
        assert line.sentence.endswith(".")


def test_changes_that_were_missed_are_said():
    text = said(ChangeType.TAKEN_OVER, previous_holder="a", holder="b", missed=2)
    assert text.endswith("2 changes of holder before it not seen.")


def test_an_inferred_change_shows_its_window():
    line = change_line(
        a_change(ChangeType.DELETED, inferred=True, inferred_since=NOW - timedelta(minutes=5)), NOW
    )
    assert line.window == "inferred: between 11:59:23 and 12:04:23"


def test_a_change_that_came_after_a_break_says_when_it_was_seen():
    earlier, brief = timedelta(seconds=30), timedelta(seconds=1)
    line = change_line(a_change(ChangeType.TAKEN_OVER, at=NOW - earlier, observed_at=NOW), NOW)
    assert line.window == "seen later, at 12:04:23"
    line = change_line(a_change(ChangeType.TAKEN_OVER, at=NOW - brief, observed_at=NOW), NOW)
    assert line.window == ""


def test_the_two_holders_of_a_change_differ_in_hue():
    """As on the Timeline: of two neighbours, the newer one has the hue of the other pages."""
    new = holder_view("cp-1")
    old = next(f"cp-{n}" for n in range(2, 99) if holder_view(f"cp-{n}").hue == new.hue)
    line = change_line(a_change(ChangeType.TAKEN_OVER, holder="cp-1", previous_holder=old), NOW)
    assert line.next.hue == new.hue != line.before.hue
    gone = change_line(a_change(ChangeType.EXPIRED, holder=old, previous_holder=old), NOW)
    assert gone.before.hue == new.hue


def test_an_expiry_goes_from_the_last_holder_to_nobody():
    line = change_line(a_change(ChangeType.EXPIRED, holder="cp-1"), NOW)
    assert line.from_to
    assert (line.previous.identity, line.next) == ("cp-1", None)


@pytest.mark.parametrize("form", CHANGES)
def test_names_from_the_cluster_are_text_and_never_markup(form):
    change = a_change(ChangeType.ACQUIRED, name="<b>x", holder="<img src=x onerror=alert(1)>")
    html = render_change(change, form, NOW)
    assert "<img" not in html
    assert "&lt;img src=x onerror" in html
    assert "<b>x" not in html


def test_a_holder_that_is_marked_is_a_part_of_its_own():
    parts = sentence(a_change(ChangeType.ACQUIRED, holder="cp-1_0123abcd"))
    assert [(part.text, part.mark) for part in parts if part.mark] == [
        ("kube-scheduler", "name"),
        ("cp-1", "holder"),
    ]


HOSTILE = '"><script>1</script>&'


@pytest.mark.parametrize("author", [None, WrittenBy(HOSTILE, HOSTILE, HOSTILE)])
@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("draw", CHANGES.values())
def test_texts_of_a_change_are_escaped(
    draw: Callable[..., str], across: bool, author: WrittenBy | None
) -> None:
    of = dict.fromkeys(("namespace", "name", "writer", "holder"), HOSTILE)
    line = replace(
        change_line(a_change(ChangeType.ACQUIRED, holder="cp-1"), NOW),
        change=a_change(ChangeType.ACQUIRED, **of),
        shown=((HOSTILE, True), (HOSTILE, False)), url=HOSTILE, word=HOSTILE,
        parts=tuple(Part(HOSTILE, mark, HOSTILE) for mark in ("", "name", "holder", "bad")),
        previous=HolderView(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 3), gap=HOSTILE, window=HOSTILE,
        by_hand=True, cause=ChangeCause(HOSTILE, "i-key", HOSTILE, HOSTILE), written_by=author,
    )  # fmt: skip
    drawn = draw(line, across=across)
    assert "<script>" not in drawn
    assert "&quot;&gt;&lt;script&gt;1&lt;/script&gt;&amp;" in drawn
