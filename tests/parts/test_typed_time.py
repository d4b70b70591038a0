"""Times are typed alike everywhere: of a day, a length, or a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.http import QueryDict

from dashboard.forms.fields import MomentField
from dashboard.lists.url_parameters import BadFilter
from dashboard.pages.audit import AuditList
from dashboard.pages.incidents.list import IncidentFilter
from dashboard.pages.lease.past_terms import LeaseStretch
from dashboard.pages.security_log import SecurityList
from dashboard.parts.page_links import HistoryState
from dashboard.parts.time_range import StretchFilter, read_typed_time
from leases.models import ApiToken, QuietTime, WallLink
from tests.support.board import KEY, a_lease, fill
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "passed", "to_come"),
    [
        ("04:30", "2026-11-20T04:30", "2026-11-21T04:30"),
        ("3:12", "2026-11-20T03:12", "2026-11-21T03:12"),
        ("22:00", "2026-11-19T22:00", "2026-11-20T22:00"),
        ("1 h", "2026-11-20T11:00", "2026-11-20T13:00"),
        ("for 90 min", "2026-11-20T10:30", "2026-11-20T13:30"),
        ("1.5h", "2026-11-20T10:30", "2026-11-20T13:30"),
        ("2026-11-20T03:12:00Z", "2026-11-20T03:12", "2026-11-20T03:12"),
    ],
)
def test_what_people_type_is_a_moment(typed, passed, to_come):
    assert f"{read_typed_time(typed, 'at', NOW):%Y-%m-%dT%H:%M}" == passed
    assert f"{read_typed_time(typed, 'until', NOW, ahead=True):%Y-%m-%dT%H:%M}" == to_come


@pytest.mark.parametrize("typed", ["25:00", "soon", "for ever", "1 y", "99999 d", "4"])
def test_what_is_no_time_is_refused_with_an_example(typed):
    with pytest.raises(BadFilter, match="until cannot be"):
        read_typed_time(typed, "until", NOW, ahead=True)


def test_the_edit_form_reads_the_same():
    assert "T04:30:00.000000Z" in MomentField(label="Renewed").clean("04:30")


def near(moment: datetime, **ahead: float) -> bool:
    return abs(moment - datetime.now(UTC) - timedelta(**ahead)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("path", "lists"),
    [
        ("history/?since=90+min", True),
        ("history/?since=2+h&until=30+min", True),
        ("history/stretch/?from=2+h&to=for+30+min", True),
        ("incidents/?from=last+1+h", True),
        ("timeline/?from=2+h&to=1+h&at=90+min", True),
        ("leases/?at=5+min", True),
        (f"leases/{KEY}/?at=5+min", False),
        (f"leases/{KEY}/?from=2+h&to=1+h", False),
    ],
)
def test_every_filter_reads_the_same(path, lists, board, admin):
    old = datetime.now(UTC) - timedelta(hours=3)
    fill(board.clusters["a"].store, a_lease())
    to_row(a_change(1, at=old)).save()
    answer = admin.get(f"/c/a/{path}")
    assert answer.status_code == 200, answer.content
    assert b"cannot be" not in answer.content
    if lists:
        assert admin.get(f"/c/a/{path}&format=json").status_code == 200


@pytest.mark.parametrize(
    ("now", "typed", "since", "until"),
    [
        ("2026-11-20T15:30", "13:50 for+90+min", "2026-11-20T13:50", "2026-11-20T15:20"),
        ("2026-11-20T15:00", "13:50 for+90+min", "2026-11-20T13:50", "2026-11-20T15:00"),
        ("2026-11-20T00:30", "23:00 90+min", "2026-11-19T23:00", "2026-11-20T00:30"),
        ("2026-11-20T12:00", "3+h 30+min", "2026-11-20T09:00", "2026-11-20T09:30"),
        ("2026-11-20T12:00", "2026-11-18T13:50Z 1+h", "2026-11-18T13:50", "2026-11-18T14:50"),
    ],
)
def test_a_length_as_the_end_counts_from_the_beginning(now, typed, since, until):
    first, last = typed.split()
    at = datetime.fromisoformat(f"{now}+00:00")
    filters = ((StretchFilter, "from", "to"), (IncidentFilter, "from", "to"),
               (HistoryState, "since", "until"), (AuditList, "since", "until"),
               (SecurityList, "since", "until"), (LeaseStretch, "from", "to"))  # fmt: skip
    for one, begins, ends in filters:
        read = one.read(QueryDict(f"{begins}={first}&{ends}={last}"), at)
        assert f"{read.since:%Y-%m-%dT%H:%M} {read.until:%Y-%m-%dT%H:%M}" == f"{since} {until}", one


def test_a_length_as_the_end_alone_is_so_long_ago():
    read = HistoryState.read(QueryDict("until=30+min"), NOW)
    assert read.until == NOW - timedelta(minutes=30)


def test_an_end_without_length_or_too_far_is_refused():
    for typed, said in (("0+s", "to must be later"), ("99999+d", "to cannot be '99999 d'")):
        with pytest.raises(BadFilter, match=said):
            StretchFilter.read(QueryDict(f"from=13:50&to={typed}"), NOW)


def test_filters_and_mutes_read_the_same_stretch(board, admin):
    now = datetime.now(UTC)
    begins = now - timedelta(minutes=30)
    to_row(a_change(1, at=now - timedelta(minutes=10))).save()
    typed = {"since": f"{begins:%H:%M}", "until": "for 90 min"}
    admin.post("/notifications/quiet/", {"cluster": "", "lease": "", "reason": "x"} | typed)
    mute = QuietTime.objects.latest("pk")
    page = admin.get("/c/a/history/", typed)
    read = HistoryState.read(page.wsgi_request.GET, now)
    assert (read.since, read.until) == (mute.since, now)
    assert mute.until == mute.since + timedelta(minutes=90)
    assert "for 90 min is not over yet: this ends now." in page.content.decode()
    assert admin.get("/c/a/history/", typed | {"format": "json"}).json()["total"] == 1
    later = typed | {"until": "for 25 min", "format": "csv"}
    rows = b"".join(admin.get("/c/a/history/", later)).decode().splitlines()
    assert len(rows) == 2, "the change of 20 min after the beginning"


@pytest.mark.parametrize(
    ("now", "typed", "since", "until"),
    [
        ("2026-11-20T00:14", "22:00 06:00", "2026-11-19T22:00", "2026-11-20T00:14"),
        ("2026-11-20T04:00", "22:00 04:30", "2026-11-19T22:00", "2026-11-20T04:00"),
        ("2026-11-20T12:00", "22:00 04:30", "2026-11-19T22:00", "2026-11-20T04:30"),
        ("2026-11-20T00:14", "90+min 00:10", "2026-11-19T22:44", "2026-11-20T00:10"),
        ("2026-11-20T12:00", "22:00 2026-11-18T06:00", "2026-11-17T22:00", "2026-11-18T06:00"),
    ],
)
def test_times_of_day_mean_the_nearest_past_ones(now, typed, since, until):
    """A night that goes on ends now."""
    first, last = typed.split()
    at = datetime.fromisoformat(f"{now}+00:00")
    read = StretchFilter.read(QueryDict(f"from={first}&to={last}"), at)
    assert f"{read.since:%Y-%m-%dT%H:%M} {read.until:%Y-%m-%dT%H:%M}" == f"{since} {until}"


def test_history_says_that_an_end_is_still_to_come(board, admin):
    now = datetime.now(UTC)
    to_row(a_change(1, at=now - timedelta(minutes=9))).save()
    since, until = (f"{now + timedelta(hours=hours):%H:%M}" for hours in (-1, 1))
    text = admin.get(f"/c/a/history/?since={since}&until={until}").content.decode()
    assert f"{until} is still to come: this ends now." in text
    assert "No change matches" not in text
    assert "ends now" not in admin.get(f"/c/a/history/?since={since}").content.decode()


def test_the_trails_read_the_same(board, admin):
    for path in ("/audit/?since=1+h", "/security-log/?since=3:12&until=10+s"):
        assert admin.get(path).status_code == 200


def test_a_mute_an_expiry_and_an_export_read_the_same(board, admin):
    mute = {"cluster": "", "lease": "", "reason": "upgrade"}
    for given, since, until in (
        ({"since": "", "until": "for 90 min"}, 0, 90),
        ({"since": "1 h", "until": "30 min"}, 60, 90),
    ):
        admin.post("/notifications/quiet/", mute | given)
        row = QuietTime.objects.latest("pk")
        assert near(row.since, minutes=since), given
        assert near(row.until, minutes=until), given
    last = datetime.now(UTC) - timedelta(minutes=2)
    admin.post("/notifications/quiet/", mute | {"since": f"{last:%H:%M}", "until": ""})
    assert QuietTime.objects.latest("pk").since <= datetime.now(UTC), "it has just begun"
    for typed, ends in (("12 h", {"hours": 12}), ("400 d", {"days": 400}), ("7", {"days": 7})):
        admin.post("/wall-links/", {"name": typed, "days": typed, "clusters": ["a"]})
        assert near(WallLink.objects.get(name=typed).expires_at, **ends)
        admin.post("/tokens/", {"name": typed, "days": typed, "role": "operator"})
        assert near(ApiToken.objects.get(name=typed).expires_at, **ends)
    for typed in ("0", "3651", "soon", "2020-01-01T00:00Z"):
        for path in ("/wall-links/", "/tokens/"):
            more = {"name": "x", "days": typed, "role": "operator", "clusters": ["a"]}
            assert b"Write days from 1 to 3,650, a length" in admin.post(path, more).content
    to_row(a_change(1, at=datetime.now(UTC) - timedelta(hours=3))).save()
    for typed, lines in (("1 h", 0), ("4 h", 1)):
        printed = StringIO()
        call_command("export_history", since=typed, stdout=printed)
        assert printed.getvalue().count("\n") == lines
