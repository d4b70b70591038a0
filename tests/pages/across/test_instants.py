"""Instants of the past: they show what was then, and claim nothing of what nobody watched."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

from dashboard.parts.formatting import when
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import WatchSpan
from tests.support.board import KEY, a_lease, fill
from tests.support.values.change_rows import to_row

YOUNG = ObjectName("kube-system", "young")
GONE = ObjectName("kube-system", "gone")
CLOCK = SimpleNamespace(now=datetime.now(UTC))  # each test begins it anew


def ago(minutes: float) -> datetime:
    moment: datetime = CLOCK.now - timedelta(minutes=minutes)
    return moment


def said(minutes: float) -> str:
    return when(ago(minutes), CLOCK.now)


def remember(key: ObjectName, minutes: float, change: ChangeType, holder: str | None, **more):
    known = {
        "cluster": "a", "namespace": key.namespace, "name": key.name, "uid": f"uid-{key}",
        "kind": Kind.ELECTION, "at": ago(minutes), "observed_at": ago(minutes), "holder": holder,
        "resource_version": f"{minutes}",
    }  # fmt: skip
    to_row(Change(change=change, **(known | more))).save()


@pytest.fixture
def page(board, operator):
    """Watched from 5 h to 1 h ago and for the last half hour. KEY was held by cp-1 until it expired
    4 h ago, by cp-2 since 3 h ago; YOUNG was created 20 min ago; GONE lived from 2 to 1.5 h ago."""
    CLOCK.now = datetime.now(UTC).replace(microsecond=0)
    store = board.clusters["a"].store
    young = a_lease(YOUNG)
    fill(store, a_lease(holder="cp-2"), aged(young, minutes=20))
    store.connection = Connection(state=ConnectionState.LIVE, since=CLOCK.now)
    for since, until, ended in ((300, 60, "stopped"), (30, -1, "")):
        WatchSpan.objects.create(
            cluster="a", process="p", since=ago(since), until=ago(until), ended=ended
        )
    remember(KEY, 300, ChangeType.CREATED, "cp-1")
    remember(KEY, 240, ChangeType.EXPIRED, "cp-1", previous_holder="cp-1")
    remember(KEY, 180, ChangeType.TAKEN_OVER, "cp-2", previous_holder="cp-1", gap_seconds=3600.0)
    remember(YOUNG, 20, ChangeType.CREATED, "cp-1")
    remember(GONE, 120, ChangeType.CREATED, "cp-1")
    remember(GONE, 90, ChangeType.DELETED, None, previous_holder="cp-1")
    return operator


def aged(lease, *, minutes: float):
    meta = lease.metadata
    return type(lease)(
        type(meta)(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=ago(minutes),
        ),
        lease.spec,
    )


def at(minutes: float) -> str:
    return urlencode({"at": f"{ago(minutes):%Y-%m-%dT%H:%M:%SZ}"})


def text_of(page, path: str) -> str:
    answer = page.get(f"/c/a/{path}")
    assert answer.status_code == 200
    return answer.content.decode()


def words(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def lane(text: str, key: ObjectName) -> str:
    found = re.search(rf'data-lane="{key}".*?data-as-of>(.*?)</div>\s*</div>', text, re.DOTALL)
    assert found is not None
    return found[0]


def dot(text: str, key: ObjectName) -> tuple[str, str]:
    found = re.search(
        r'<span class="is-(\w+)" title="([^"]*)" id="[^"]*" data-dot>', lane(text, key)
    )
    assert found is not None
    return found[1], found[2].rpartition(": ")[2]


def item(page, path: str, key: ObjectName) -> dict | None:
    items = page.get(f"/c/a/{path}").json()["items"]
    return next((one for one in items if one["name"] == key.name), None)


def board_of(text: str) -> str:
    return text[text.index('id="board"') :]


def test_an_instant_that_nobody_watched_claims_no_state(page):
    text = text_of(page, f"timeline/?range=1h&{at(45)}")
    assert dot(text, KEY) == ("deleted", "not watched")
    head = text.partition("<h1>Timeline")[2].partition("</form>")[0]
    assert "Nobody watched then" in head
    assert "without a holder" not in head
    assert 'class="state is-held"' not in board_of(text)
    assert "not watched" in lane(text, KEY).partition("data-as-of")[2]


def test_an_unwatched_stretch_shows_no_change(page):
    query = urlencode({"from": ago(55).isoformat(), "to": ago(35).isoformat()})
    text = text_of(page, f"timeline/?{query}")
    assert "No change" not in text
    assert "no change" not in text
    assert "Not watched" in text
    assert "Nobody watched, " in words(text)
    assert "changed their holder" not in text
    lanes = text[text.index('id="lanes"') :]
    assert not re.search(r'data-dot[^>]*>\s*<svg class="st"', lanes)


def test_a_stretch_watched_in_part_says_so(page):
    text = text_of(page, "timeline/?range=1h&kind=election")
    assert "No change of holder seen" in text
    assert "as far as was watched" in text


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(290, "held"), (200, "expired"), (100, "held")],
)
def test_dots_are_of_the_instant(page, minutes, expected):
    text = text_of(page, f"timeline/?range=6h&{at(minutes)}")
    assert dot(text, KEY) == (expected, expected)


def test_groups_are_of_the_instant(page):
    text = text_of(page, f"timeline/?range=6h&{at(200)}")
    groups = re.findall(r'<div class="tl-group"><span>(.*?)</span>', text)
    assert groups[0] == f"Without a holder at {said(200)}"
    assert text.index(f'data-lane="{KEY}"') < text.index(f'data-lane="{YOUNG}"')
    assert "now, late or flapping" not in text
    quiet = text_of(page, f"timeline/?range=6h&{at(100)}")
    assert "Without a holder at" not in quiet


@pytest.mark.parametrize("minutes", [200, 21])
def test_a_lease_did_not_exist_before_it_was_created(page, minutes):
    text = text_of(page, f"timeline/?range=6h&{at(minutes)}")
    assert dot(text, YOUNG) == ("deleted", "did not exist")
    assert "did not exist" in lane(text, YOUNG).partition("data-as-of")[2]
    shown = item(page, f"timeline/?format=json&range=6h&{at(minutes)}", YOUNG)
    assert (shown["phase"], shown["holder"]) == ("absent", None)
    assert item(page, f"leases/?format=json&{at(minutes)}", YOUNG) is None
    assert "1 Lease of today did not exist yet." in words(text_of(page, f"leases/?{at(minutes)}"))
    alone = words(text_of(page, f"leases/?q=young&{at(minutes)}"))
    assert "1 Lease of today that matches did not exist yet." in alone
    of_lease = words(text_of(page, f"leases/{YOUNG}/?{at(minutes)}"))
    assert "Did not exist It was created later." in of_lease


def test_a_lease_that_is_gone_did_not_exist_before_it_was_created(page):
    text = text_of(page, f"timeline/?range=6h&{at(150)}")
    assert dot(text, GONE) == ("deleted", "did not exist")
    assert "Did not exist" in words(text_of(page, f"leases/{GONE}/?{at(150)}"))
    assert "Held" in words(text_of(page, f"leases/{GONE}/?{at(100)}"))
    assert "Deleted" in words(text_of(page, f"leases/{GONE}/?{at(80)}"))


def test_lanes_of_leases_that_came_later_stand_last(page):
    query = urlencode({"from": ago(290).isoformat(), "to": ago(100).isoformat()})
    groups = re.findall(
        r'<div class="tl-group"><span>(.*?)</span>', text_of(page, f"timeline/?{query}")
    )
    assert groups[-1] == "Did not exist yet"


def test_the_list_of_an_instant_that_nobody_watched_shows_no_state(page):
    text = text_of(page, f"leases/?{at(45)}")
    table = text[text.index("<tbody") : text.index("</tbody>")]
    assert "Not watched" in table
    assert "is-held" not in table
    assert "Last known holder" in text
    assert '<div id="board" class="unwatched"' in text
    assert item(page, f"leases/?format=json&{at(45)}", KEY)["watched"] is False
    assert item(page, f"leases/?format=json&{at(100)}", KEY)["watched"] is True


def test_the_page_of_a_lease_shows_it_as_it_stood(page):
    text = words(text_of(page, f"leases/{KEY}/?{at(200)}"))
    assert "Expired still naming" in text
    assert f"As of {said(200)} UTC, from history" in text
    assert f"since {said(240)}, for 40 m 0 s by then" in text
    assert "taken over" not in text  # it came later
    assert "Back to now" in text
    held = words(text_of(page, f"leases/{KEY}/?{at(100)}"))
    assert "Held by cp-2" in held
    assert f"{said(100)} and on" in held


def test_the_page_of_a_lease_claims_nothing_where_nobody_watched(page):
    text = text_of(page, f"leases/{KEY}/?{at(45)}")
    assert "Not watched last known: held by" in words(text)
    assert "Nobody was watching at" in text
    assert 'class="panel unwatched"' in text


def test_a_lease_that_nobody_ever_knew_is_404_at_any_time(page):
    assert page.get(f"/c/a/leases/no/such/?{at(45)}").status_code == 404


@pytest.mark.parametrize("path", ["timeline/", "leases/", f"leases/{KEY}/"])
def test_an_instant_that_lies_ahead_is_refused(page, path):
    ahead = urlencode({"at": (datetime.now(UTC) + timedelta(minutes=2)).isoformat()})
    answer = page.get(f"/c/a/{path}?{ahead}")
    assert answer.status_code == 400
    assert "As of lies ahead: use a time that has passed" in answer.content.decode()


@pytest.mark.parametrize("path", ["timeline/", "leases/", f"leases/{KEY}/"])
def test_a_clock_that_is_a_little_fast_is_forgiven(page, path):
    ahead = urlencode({"at": (datetime.now(UTC) + timedelta(seconds=3)).isoformat()})
    assert page.get(f"/c/a/{path}?{ahead}").status_code == 200


def test_links_of_the_past_lead_to_the_past(page):
    text = text_of(page, f"leases/?{at(200)}")
    assert f'href="/c/a/leases/{KEY}/?{at(200)}"' in text
    text = text_of(page, f"timeline/?range=6h&{at(200)}")
    assert f'href="/c/a/leases/{KEY}/?range=6h&amp;{at(200)}"' in lane(text, KEY)


def test_a_term_at_the_end_of_a_past_stretch_is_not_shown_as_present(page):
    query = urlencode({"from": ago(290).isoformat(), "to": ago(250).isoformat()})
    text = text_of(page, f"timeline/?{query}")
    assert f"cp-1, {said(300)} to {said(250)} and on (50 m 0 s)" in lane(text, KEY)
    assert "to now" not in lane(text, KEY)


# The half hour without a watch; the timeline begins with the first watch, the history before it.
@pytest.mark.parametrize(("path", "fogs"), [("timeline/?range=6h", 1), ("history/", 2)])
def test_strips_of_changes_show_when_nobody_watched(page, path, fogs):
    text = text_of(page, path)
    strip = re.search(r'<svg class="fluid strip".*?aria-label="(.*?)">(.*?)</svg>', text, re.DOTALL)
    assert strip is not None
    assert "; nobody watched for " in strip[1]
    assert strip[2].count('class="fog"') == fogs
