"""Evidence as people check it: each sentence leads to what it names, and to its moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.charts.time_axis import Scale
from dashboard.pages.incidents.evidence import (
    MAX_LINKED,
    evidence_lines,
    evidence_marks,
    linked,
    without_notes,
)
from leases.domain.incident import Evidence, Source
from leases.domain.lease import ObjectName
from tests.support.values.changes import T0
from tests.support.values.incidents import a_story, an_incident


def lines_of(*sentences: str, **given):
    evidence = tuple(Evidence(text, Source.LEASES) for text in sentences)
    return evidence_lines(an_incident(evidence=evidence, **given), a_story())


def test_names_lead_to_their_pages_and_times_to_the_changes_around_them(board):
    first, second = evidence_lines(an_incident(), a_story())
    assert first.parts[0].text == "worker-7"
    assert first.parts[0].url == "/c/a/leases/kube-node-lease/worker-7/"
    assert first.at == T0.replace(second=5, microsecond=500_000)
    assert first.at_url == (
        "/c/a/history/?since=2026-11-20T11%3A59%3A05.500000Z&until=2026-11-20T12%3A01%3A05.500000Z"
    )
    named = {part.text: part.url for part in second.parts if part.is_name}
    assert named == {
        "keda/operator.keda.sh": "/c/a/leases/keda/operator.keda.sh/",
        "keda-1": "/c/a/holders/keda-1/",
    }
    assert (second.at, second.at_url, second.source) == (None, "", "Pods")


def test_evidence_is_told_by_time_and_what_has_none_stays_behind_what_it_follows(board):
    lines = lines_of("a fact", "BackOff at 12:22:17", "so far", "ended at 12:21:34", "at 12:22:17")
    told = ["a fact", "ended at 12:21:34", "BackOff at 12:22:17", "so far", "at 12:22:17"]
    assert [(line.number, line.sentence) for line in lines] == list(enumerate(told, 1))


def test_only_whole_names_are_linked(board):
    (line,) = lines_of("keda-11, my-keda-1 and keda-1. keda-1 again")
    assert [part.text for part in line.parts if part.is_name] == ["keda-1", "keda-1"]


def test_a_hostile_sentence_stays_text_of_one_direction_and_bounded_length(board):
    long = "n" * 253
    (line,) = lines_of(f"\u202e<b>{long}</b> {'x' * 5000}", leases=(ObjectName("default", long),))
    text = "".join(part.text for part in line.parts)
    assert "\u202e" not in text
    assert "\\u202e<b>" in text
    assert len(text) < 3000
    name = next(part for part in line.parts if part.is_name)
    assert len(name.text) == MAX_LINKED
    assert name.whole == long


@pytest.mark.parametrize(
    ("began", "said", "expected"),
    [
        (datetime(2026, 11, 20, 0, 0, 10, tzinfo=UTC), "23:59:58", (19, 23)),
        (datetime(2026, 11, 20, 23, 59, 50, tzinfo=UTC), "00:00:03", (21, 0)),
        (datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC), "12:00:03.25: gone", (20, 12)),
    ],
)
def test_a_time_of_day_is_the_one_nearest_to_the_incident(board, began, said, expected):
    (line,) = lines_of(f"silent since {said}.", began=began, ended=None)
    assert (line.at.day, line.at.hour) == expected


@pytest.mark.parametrize("text", ["at 25:00:00", "ratio 1:12:00:00", "12:00:001", "12:00", ""])
def test_what_is_no_time_of_day_gives_no_moment(board, text):
    assert lines_of(f"it was {text} then")[0].at is None


def test_marks_that_would_overlap_share_one(board):
    lines = lines_of("at 12:00:05", "at 12:00:05.2", "at 12:00:50", "no time", "at 13:00:00")
    marks = evidence_marks(lines, Scale(T0, T0 + timedelta(seconds=60)))
    assert [mark.label for mark in marks] == ["1…", "3"]
    assert "2: at 12:00:05.2" in marks[0].title
    assert marks[0].width >= marks[1].width + 6  # the label would be cut in a circle
    assert marks[0].left == -marks[0].width / 2


def test_what_could_not_be_read_says_what_is_only_concluded():
    ((title, text),) = without_notes(an_incident())
    assert title == "Events could not be read"
    assert text.startswith("What the cluster reported about Pods, Nodes and Leases is only conc")
    assert "get and list on events" in text


def test_a_sentence_without_names_is_one_piece():
    assert [part.text for part in linked("Nothing.", "a", {"x": "x"})] == ["Nothing."]
