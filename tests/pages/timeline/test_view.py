"""The timeline as a page and as JSON."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from html import unescape

import pytest

from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.models import Edit, WatchSpan
from tests.support.board import KEY, member
from tests.support.values.change_rows import to_row


@pytest.fixture
def handed_over(store, remember):
    """cp-1 held for 5 h until it expired an hour ago; cp-2 took over after 2 minutes."""
    remember(360, ChangeType.CREATED, "cp-1")
    remember(62, ChangeType.EXPIRED, "cp-1", previous="cp-1")
    remember(60, ChangeType.TAKEN_OVER, "cp-2", previous="cp-1", gap_seconds=120.0)


def url(now: datetime, **query: object) -> str:
    at = query.pop("minutes_ago", None)
    if at is not None:
        query["at"] = (now - timedelta(minutes=float(at))).strftime("%Y-%m-%dT%H:%M:%SZ")
    return "/c/a/timeline/?" + "&".join(f"{name}={value}" for name, value in query.items())


def item(operator, path: str, key: ObjectName = KEY) -> dict:
    answer = operator.get(f"{path}&format=json").json()
    (found,) = [
        i for i in answer["items"] if (i["namespace"], i["name"]) == (key.namespace, key.name)
    ]
    return found


def lane_of(html: str, key: ObjectName = KEY) -> str:
    return re.search(rf'data-lane="{key}".*?</div>\n</div>', html, re.DOTALL)[0]


def test_terms_and_gaps_are_drawn_with_their_words(operator, handed_over, now):
    lane = lane_of(operator.get(url(now)).content.decode())
    assert re.findall(r'data-who="([^"]*)"', lane) == ["cp-1", "cp-2"]
    assert lane.count("data-gap") == 1
    assert "No holder for 2 m 0 s, from" in lane
    assert "it expired" in lane
    assert 'aria-label="kube-system/scheduler: held by cp-1 and cp-2' in lane


@pytest.mark.parametrize(
    ("minutes_ago", "phase", "holder"),
    [(200, "held", "cp-1"), (61, "expired", "cp-1"), (60, "held", "cp-2"), (1, "held", "cp-2")],
)
def test_the_instant_in_the_url_selects_the_holder_shown(
    operator, handed_over, now, minutes_ago, phase, holder
):
    found = item(operator, url(now, minutes_ago=minutes_ago))
    assert (found["phase"], found["holder"], found["watched"]) == (phase, holder, True)


def test_the_column_beside_the_lanes_agrees_with_them(operator, handed_over, now):
    html = operator.get(url(now, minutes_ago=61)).content.decode()
    assert '<span class="host">no holder</span>' in lane_of(html).split("data-as-of")[1]
    held = operator.get(url(now, minutes_ago=200)).content.decode()
    assert 'title="cp-1"' in lane_of(held).split("data-as-of")[1]
    assert "<b data-nobody>1</b> of 3 without a holder, 2 unknown" in html


def test_the_json_holds_terms_gaps_and_the_stretch_as_documented(operator, handed_over, now):
    answer = operator.get(url(now, format="json", sort="name")).json()
    assert set(answer) == {"items", "total", "next", "now"}
    assert (answer["total"], answer["next"]) == (3, None)
    assert [i["name"] for i in answer["items"]] == ["free", "other", "scheduler"]
    first, second = item(operator, url(now, sort="name"))["terms"]
    assert (first["holder"], first["began"], first["ended"]) == ("cp-1", "created", "expired")
    assert (second["holder"], second["until"]) == ("cp-2", None)
    (gap,) = item(operator, url(now))["gaps"]
    assert (gap["after"], gap["ended_by"]) == ("expired", "taken_over")


def test_json_pages_lead_to_the_next(operator, store):
    answer = operator.get("/c/a/timeline/?format=json&sort=name&limit=2").json()
    assert len(answer["items"]) == 2
    rest = operator.get(answer["next"]).json()
    assert [i["name"] for i in rest["items"]] == ["scheduler"]
    assert rest["next"] is None


def test_a_lease_deleted_inside_the_stretch_keeps_its_lane(operator, store, remember, now):
    gone = ObjectName("apps", "gone")
    remember(300, ChangeType.CREATED, "cp-9", key=gone)
    remember(30, ChangeType.DELETED, None, key=gone, previous="cp-9")
    assert item(operator, url(now, minutes_ago=31), gone)["holder"] == "cp-9"
    assert item(operator, url(now, minutes_ago=29), gone)["phase"] == "deleted"
    html = operator.get(url(now)).content.decode()
    assert "no such Lease" in lane_of(html, gone)
    assert operator.get(url(now, format="json")).json()["total"] == 4


def test_a_lease_deleted_and_made_again_in_the_stretch_changed_its_holder(
    operator, store, remember, now
):
    remember(30, ChangeType.DELETED, None, previous="cp-9")
    remember(29, ChangeType.CREATED, "cp-1")
    html = operator.get(url(now)).content.decode()
    changed = html[html.index("Lost or changed their holder in this stretch") :]
    assert lane_of(html, KEY) in changed.partition("No change of holder")[0]
    ends = {"from": now - timedelta(hours=1), "to": now - timedelta(minutes=35)}
    before = url(now, **{end: f"{at:%Y-%m-%dT%H:%M:%SZ}" for end, at in ends.items()})
    assert "changed their holder in" not in operator.get(before).content.decode()


def test_time_that_nobody_watched_is_fogged_and_claims_nothing(operator, handed_over, now):
    WatchSpan.objects.all().delete()
    ago = [now - timedelta(minutes=m) for m in (600, 90, 30)]
    WatchSpan.objects.create(cluster="a", process="p", since=ago[0], until=ago[1], ended="lost")
    WatchSpan.objects.create(cluster="a", process="q", since=ago[2], until=now)
    html = operator.get(url(now, minutes_ago=60)).content.decode()
    assert html.count("data-fog") == 1
    assert "nobody watched, for 1 h 0 m" in html
    assert "Nobody watched then" in html
    assert "last known" in lane_of(html)
    assert item(operator, url(now, minutes_ago=60))["watched"] is False
    assert "data-fog" not in operator.get(url(now, range="1h", minutes_ago=10, **{
        "from": ago[2].strftime("%Y-%m-%dT%H:%M:%SZ"), "to": now.strftime("%Y-%m-%dT%H:%M:%SZ")
    })).content.decode()  # fmt: skip


def test_the_end_of_a_stretch_is_unwatched_like_the_time_before_it(operator, handed_over, now):
    WatchSpan.objects.all().delete()
    start, end = (now - timedelta(minutes=m) for m in (50, 20))
    span = {"from": start.strftime("%Y-%m-%dT%H:%M:%SZ"), "to": end.strftime("%Y-%m-%dT%H:%M:%SZ")}
    assert item(operator, url(now, **span))["watched"] is False


def test_edits_and_reconfigurations_are_marked(operator, handed_over, remember, now):
    remember(90, ChangeType.RECONFIGURED, "cp-1", fields=("leaseDurationSeconds",))
    Edit.objects.create(
        at=now - timedelta(minutes=30),
        user=member("eve", "admin"),
        username="eve",
        cluster="a",
        namespace=KEY.namespace,
        name=KEY.name,
        action="lease.edit",
        outcome="done",
    )
    lane = lane_of(operator.get(url(now)).content.decode())
    assert lane.count('class="ev ') == 2
    assert "reconfigured: leaseDurationSeconds, " in lane
    assert "by hand here, " in lane


def test_thousands_of_changes_become_bands_that_say_how_many(operator, store, now):
    changes = []
    for number in range(3000):
        at = now - timedelta(seconds=20000 - 6 * number)
        changes.append(
            to_row(
                Change(
                    cluster="a", namespace=KEY.namespace, name=KEY.name, uid="u",
                    kind=Kind.ELECTION, change=ChangeType.REPLACED, at=at, observed_at=at,
                    holder=f"cp-{number % 2}", previous_holder=f"cp-{(number + 1) % 2}",
                    resource_version=str(number),
                )
            )
        )  # fmt: skip
    type(changes[0]).objects.bulk_create(changes)
    lane = lane_of(operator.get(url(now)).content.decode())
    assert lane.count("<svg") < 60
    assert 'role="group"' in lane
    closer, clicks = lane, 0
    while zoom := re.search(r'<a class="zoom" href="([^"]+)"', closer):
        closer, clicks = lane_of(operator.get(unescape(zoom[1])).content.decode()), clicks + 1
    assert 2 <= clicks <= 4
    assert set(re.findall(r'data-who="([^"]*)"', closer)) == {"cp-0", "cp-1"}
    assert "data-many" not in closer
    assert sum(map(int, re.findall(r'data-many="(\d+)"', lane))) > 2800
    assert " changes</text>" in lane
    found = item(operator, url(now, minutes_ago=200))
    assert found["changes"] == 3000
    number = int((20000 - 200 * 60) / 6)
    assert found["holder"] == f"cp-{number % 2}"


def test_the_table_says_the_same_in_words(operator, handed_over, now):
    html = operator.get(url(now, view="table")).content.decode()
    rows = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert "cp-1" in rows
    assert "no holder" in rows
    assert "it expired" in html
    assert '<svg class="lane"' not in html


def test_a_band_in_the_table_leads_to_its_changes(operator, store, remember, now):
    for number in range(20):
        remember(90 + number / 60, ChangeType.REPLACED, f"cp-{number % 2}")
    html = operator.get(url(now, view="table")).content.decode()
    zoom = re.search(r'href="([^"]+)"[^>]* aria-label="(\d+) changes: zoom in">\2 changes<', html)
    closer = operator.get(unescape(zoom[1])).content.decode()
    assert "changes: zoom in" not in closer
    assert len(re.findall(r"<td[^>]*>\s*cp-[01]\s*</td>", closer)) >= 19


def test_links_keep_the_instant_and_the_forms_keep_the_rest(operator, handed_over, now):
    html = operator.get(url(now, kind="election", sort="name", minutes_ago=30)).content.decode()
    assert '<input type="hidden" name="sort" value="name">' in html
    assert re.search(r'href="[^"]*range=24h&amp;at=[^"]*kind=election[^"]*sort=name"', html)


def test_htmx_gets_the_board_alone_with_its_url(operator, store):
    answer = operator.get("/c/a/timeline/?range=24h&q=", headers={"HX-Request": "true"})
    assert answer.content.decode().lstrip().startswith('<div id="board"')
    assert answer["HX-Push-Url"] == "/c/a/timeline/?range=24h"


def test_a_bad_stretch_is_400_with_one_sentence(operator, store):
    answer = operator.get("/c/a/timeline/?range=2h")
    assert answer.status_code == 400
    assert "range cannot be &#x27;2h&#x27;" in answer.content.decode()
    assert operator.get("/c/a/timeline/?range=2h&format=json").status_code == 400


@pytest.mark.parametrize("at", ["yesterday", "2599-01-01"])
def test_a_wrong_instant_is_told_once_and_keeps_the_rest(operator, store, at):
    answer = operator.get(f"/c/a/timeline/?range=15m&kind=heartbeat&q=held&at={at}")
    html = answer.content.decode()
    assert answer.status_code == 400
    assert html.count("As of cannot be") + html.count("As of lies ahead") == 1
    assert re.search(r'id="range-15m"[^>]* aria-current="true"', html)
    for name, value in (("range", "15m"), ("kind", "heartbeat"), ("q", "held")):
        assert f'<input type="hidden" name="{name}" value="{value}">' in html
    assert f'name="at" value="{at}"' in html
    assert "?range=15m&amp;q=held&amp;kind=heartbeat" in html.partition("Correct the time")[2]


def test_an_empty_timeline_says_what_was_asked(operator, store):
    html = operator.get("/c/a/timeline/?q=nothing-like-it").content.decode()
    assert "No Lease to draw" in html
    assert "Kind is election, name contains “nothing-like-it”, last 6 h." in html


def test_strangers_and_guests_see_no_timeline(client, guest, store):
    assert client.get("/c/a/timeline/").status_code == 302
    assert guest.get("/c/a/timeline/").status_code == 403


def test_a_newcomer_sees_what_was_watched_and_every_link_says_its_range(store, operator, now):
    first = now - timedelta(minutes=4)
    WatchSpan.objects.update(since=first)
    html = operator.get("/c/a/timeline/").content.decode()
    assert re.search(r'range=5m"[^>]* aria-current="true">5 min<', html)
    assert '"/c/a/timeline/?range=6h"' in html
    assert '<input type="hidden" name="range" value="5m">' in html
    assert f'data-start="{first.timestamp()}"' in html
    assert "when watching began" in html
    assert "data-fog" not in html
    assert 'class="fog"' not in html.split("<footer")[0]
    assert (
        f'data-start="{first.timestamp()}"' in operator.get(url(now, range="1h")).content.decode()
    )
    asked = operator.get("/c/a/timeline/?format=json").json()["items"][0]
    length = datetime.fromisoformat(asked["to"]) - datetime.fromisoformat(asked["from"])
    assert length == timedelta(hours=6)
