"""Badges show the state with its moment, to whoever has their address, until they are revoked."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from django.test import Client

from dashboard.log_lines import redact
from dashboard.pages.badges import COLOURS
from dashboard.parts.formatting import day
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.models import Badge, SecurityRecord
from tests.pages.conftest import text_of
from tests.support.board import KEY, a_lease, fill

pytestmark = pytest.mark.django_db

SVG = re.compile(r'value="http://testserver(/badge/[^"]+)\.svg"')
FREE = ObjectName("kube-system", "free")


@pytest.fixture
def live(board):
    """One held election, one vacant, in one of two namespaces; the watch is live."""
    store = board.clusters["a"].store
    other = ObjectName("team-a", "worker")
    fill(store, a_lease(), a_lease(FREE, holder=None), a_lease(other, holder="w-1"))
    now = datetime.now(UTC)
    store.connect(Connection(state=ConnectionState.LIVE, since=now, heard_at=now), now)
    return store


def make(admin, lease: str = "", cluster: str = "a") -> str:
    """Make a badge. Returns its path without the format."""
    answer = admin.post("/badges/", {"name": "readme", "cluster": cluster, "lease": lease})
    found = SVG.search(text_of(answer))
    assert found, text_of(answer)
    return found[1]


@pytest.mark.parametrize(
    ("lease", "label", "state", "words", "counts"),
    [
        (str(KEY), str(KEY), "held", "held", {}),
        (str(FREE), str(FREE), "vacant", "vacant", {}),
        ("no/such", "no/such", "absent", "does not exist", {}),
        (
            "team-a", "team-a", "held", "1 held, 0 vacant, 0 expired",
            {"held": 1, "vacant": 0, "expired": 0},
        ),
        (
            "", "a", "vacant", "2 held, 1 vacant, 0 expired",
            {"held": 2, "vacant": 1, "expired": 0},
        ),
    ],
)  # fmt: skip
def test_a_badge_shows_a_lease_a_namespace_or_a_cluster(
    live, admin, lease, label, state, words, counts
):
    path = make(admin, lease)
    answer = Client().get(f"{path}.json")
    assert answer["Cache-Control"] == "max-age=15"
    shown = answer.json()
    assert (shown["label"], shown["state"], shown["counts"]) == (label, state, counts)
    assert re.fullmatch(rf"{words}, \d\d:\d\d:\d\d UTC", shown["message"])
    assert shown["stale"] is False
    assert shown["as_of"]
    picture = Client().get(f"{path}.svg")
    assert picture["Content-Type"] == "image/svg+xml"
    texts = [one.text for one in ET.fromstring(picture.content).iter() if one.text]  # noqa: S314
    assert label in texts


def test_a_badge_without_a_holder_is_not_green(live, admin):
    path = make(admin, "no-such-namespace")
    shown = Client().get(f"{path}.json").json()
    assert (shown["state"], shown["message"][:29]) == ("none", "0 held, 0 vacant, 0 expired, ")
    assert shown["color"] != COLOURS["held"]
    assert COLOURS["held"] not in Client().get(f"{path}.svg").content.decode()


def test_a_badge_that_is_stale_since_another_day_names_the_day(live, admin):
    path, now = make(admin), datetime.now(UTC)
    heard_at = now - timedelta(days=3)
    live.connect(Connection(state=ConnectionState.STALE, since=heard_at, heard_at=heard_at), now)
    assert f"stale since {day(heard_at)} " in Client().get(f"{path}.json").json()["message"]


def test_a_badge_says_that_it_is_stale(live, admin):
    path, now = make(admin), datetime.now(UTC)
    gone = Connection(state=ConnectionState.STALE, since=now, heard_at=now - timedelta(seconds=90))
    live.connect(gone, now)
    shown = Client().get(f"{path}.json").json()
    assert shown["stale"] is True
    assert "stale since" in shown["message"]
    assert "stale since" in Client().get(f"{path}.svg").content.decode()


def test_a_cluster_that_was_never_read_is_unknown(board, admin):
    shown = Client().get(f"{make(admin, cluster='b')}.json").json()
    assert (shown["state"], shown["as_of"], shown["stale"]) == ("unknown", None, True)


def test_a_revoked_badge_shows_nothing_and_the_log_knows(live, admin):
    path = make(admin)
    admin.post(f"/badges/{Badge.objects.get().pk}/revoke/")
    for end in ("svg", "json"):
        assert Client().get(f"{path}.{end}").status_code == 404
    events = list(SecurityRecord.objects.order_by("pk").values_list("event", "about"))
    assert events[-2:] == [("link_created", "badge readme"), ("link_revoked", "badge readme")]
    token = path.rpartition("/")[2]
    assert token not in str(Badge.objects.values()) + text_of(admin.get("/badges/"))
    assert token not in redact(f'"GET {path}.svg HTTP/1.1" 404')


@pytest.mark.parametrize("lease", ["a/b/c", "/x", "a/*", "A/x", f"{'n' * 64}/x", "a\0b"])
def test_a_wrong_name_is_told_in_a_sentence(board, admin, lease):
    answer = admin.post("/badges/", {"name": "readme", "cluster": "a", "lease": lease})
    assert answer.status_code == 422
    assert not Badge.objects.exists()
