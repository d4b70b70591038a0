"""Links between pages carry the stretch and the instant that a page shows."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import reverse

from dashboard.parts.names import MAX_IDENTITY, holder_view, lease_url
from dashboard.parts.page_links import LAST_HOUR, ShownTime, history_url, holder_url, timeline_url
from dashboard.templatetags.board import holder_link
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from tests.support.board import KEY

SINCE, UNTIL = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (3, 4))
AT = datetime(2026, 11, 20, 3, 12, 40, 250_000, tzinfo=UTC)
LEASE = {"namespace": "kube-system", "lease": "scheduler"}


def parts_of(url: str) -> tuple[str, dict[str, str]]:
    split = urlsplit(url)
    return split.path, {name: values[0] for name, values in parse_qs(split.query).items()}


@pytest.mark.parametrize(
    ("time", "stretch"),
    [
        (ShownTime(), {}),
        (ShownTime(range="6h"), {"range": "6h"}),
        (ShownTime(range="6h", at=AT), {"range": "6h", "at": "2026-11-20T03:12:40.250000Z"}),
        (ShownTime(since=SINCE, until=UNTIL),
         {"from": "2026-11-20T03:00:00Z", "to": "2026-11-20T04:00:00Z"}),
    ],
)  # fmt: skip
def test_the_timeline_gets_the_stretch_and_the_instant(time, stretch):
    url = timeline_url("a", KEY, time=time)
    assert parts_of(url) == ("/c/a/timeline/", {"q": str(KEY), **stretch})


@pytest.mark.parametrize(
    ("time", "stretch"),
    [
        (ShownTime(), {}),
        (LAST_HOUR, {"range": "1h"}),
        (ShownTime(at=AT), {"until": "2026-11-20T03:12:41Z"}),
        (ShownTime(range="1h", at=AT),
         {"since": "2026-11-20T02:12:41Z", "until": "2026-11-20T03:12:41Z"}),
        (ShownTime(since=SINCE, until=UNTIL, at=AT),
         {"since": "2026-11-20T03:00:00Z", "until": "2026-11-20T04:00:00Z"}),
    ],
)  # fmt: skip
def test_history_gets_the_stretch_and_what_happened_at_the_instant(time, stretch):
    assert parts_of(history_url("a", KEY, time)) == ("/c/a/history/", LEASE | stretch)


def test_a_file_of_changes_is_history_too():
    _, query = parts_of(history_url("a", KEY, LAST_HOUR, "csv"))
    assert query == LEASE | {"range": "1h", "format": "csv"}


def test_the_timeline_is_told_a_kind_that_it_would_not_show():
    assert "kind" not in timeline_url("a", KEY, Kind.ELECTION)
    assert parts_of(timeline_url("a", KEY, Kind.LOCK))[1]["kind"] == "lock"


def test_a_holder_leads_to_what_its_host_holds_now_or_then():
    holder = "cp-1_8c2e41f0-5b1d-4f0e-9a57-2d9a3c1b7e44"
    assert holder_url("a", holder) == "/c/a/holders/cp-1/"
    assert holder_url("a", holder, in_leases=True) == "/c/a/leases/?holder=cp-1"
    assert parts_of(holder_url("a", holder, at=SINCE)) == (
        "/c/a/leases/", {"holder": "cp-1", "at": "2026-11-20T03:00:00Z"},
    )  # fmt: skip


@pytest.mark.parametrize("identity", ["x" * (MAX_IDENTITY + 1), "a\0b"])
def test_a_holder_that_is_not_shown_whole_is_no_link(identity):
    view = holder_view(identity)
    assert view is not None
    assert holder_link("a", view) == ""


def test_nobody_is_no_link():
    assert holder_link("a", None) == ""
    assert holder_link("a", holder_view("cp-1")) == "/c/a/holders/cp-1/"


@pytest.mark.parametrize("name", ["node-1", "a.b-c", "Ünder%41 score", "a:b~c@d+e", "?x#y"])
def test_a_link_to_a_lease_is_what_its_page_is_found_by(name: str) -> None:
    expected = reverse("lease", args=["c", "kube-node-lease", name])
    assert lease_url("c", ObjectName("kube-node-lease", name)) == expected
