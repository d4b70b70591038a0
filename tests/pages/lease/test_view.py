"""Everything about one Lease: its past, its neighbours, older changes, and what is left of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import unquote

import pytest
from msgspec.structs import replace

from dashboard.pages.lease import view as view
from leases.domain.change import Change, ChangeType
from leases.domain.incident import Standing
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.history import timeline_lanes
from leases.models import WatchSpan
from leases.wire.watch_decoding import Applied, Listed
from tests.support.board import KEY, a_lease, fill
from tests.support.values import incident_rows
from tests.support.values.change_rows import to_row
from tests.support.values.incidents import open_incident

PATH = f"/c/a/leases/{KEY}/"
HOUR = f"{PATH}?range=1h"


@pytest.fixture
def store(board):
    store = board.clusters["a"].store
    fill(store, a_lease(holder="cp-1"), a_lease(ObjectName("apps", "other"), holder="cp-1"))
    store.connection = Connection(state=ConnectionState.LIVE, since=datetime.now(UTC))
    return store


def ago(minutes: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes)


def remember(change: ChangeType, minutes_ago: float, **more) -> None:
    at = ago(minutes_ago)
    known = {
        "cluster": "a", "namespace": KEY.namespace, "name": KEY.name, "uid": "u",
        "kind": Kind.ELECTION, "at": at, "observed_at": at, "resource_version": str(minutes_ago),
    }  # fmt: skip
    to_row(Change(change=change, **(known | more))).save()


def a_story() -> None:
    """cp-3 for 20 min, released; 1 min nobody; cp-2 until it expired; after 2 min cp-1."""
    remember(ChangeType.CREATED, 50, holder="cp-3")
    remember(ChangeType.RELEASED, 30, previous_holder="cp-3")
    remember(ChangeType.ACQUIRED, 29, holder="cp-2", gap_seconds=60.0)
    remember(
        ChangeType.EXPIRED, 12, holder="cp-2", previous_holder="cp-2",
        renewed_at=ago(12.25), own_identity="u expired  x",
    )  # fmt: skip
    remember(ChangeType.TAKEN_OVER, 10, holder="cp-1", previous_holder="cp-2", gap_seconds=120.0)


def watched() -> None:
    WatchSpan.objects.create(cluster="a", process="p", since=ago(31 * 1440), until=ago(-1))


def html_of(response) -> str:
    return response.content.decode()


def text_of(response) -> str:
    text = re.sub(r"<(svg|script).*?</\1>", " ", html_of(response), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def figures(response) -> dict[str, str]:
    found = re.findall(r"<dt>([^<]+)</dt><dd><b[^>]*>([^<]+)</b>", html_of(response))
    return dict(found)


def test_an_edit_of_the_duration_is_not_shown_as_a_renewal(board, operator):
    store, now = board.clusters["a"].store, datetime.now(UTC)
    renewed = now - timedelta(seconds=12)
    store.replace(Listed((a_lease(now=renewed),), "1"), renewed)
    later = a_lease(version="2", now=renewed)
    edited = replace(later, spec=replace(later.spec, lease_duration_seconds=60))
    store.follow((Applied(edited),), now - timedelta(seconds=2))
    said = re.sub(
        r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", operator.get(PATH).content.decode()))
    )
    assert re.search(r"Renewed 1[2-9](\.\d)? s ago; leaseDurationSeconds edited \d\.\d s ago", said)
    assert re.search(r"Lasts from .{0,80} an edit of leaseDurationSeconds, and no renewal", said)
    row = operator.get("/c/a/leases/").content.decode()
    assert re.search(r'data-edited="10.0".*<span class="age">1[2-9](\.\d)? s ago', row, re.DOTALL)


def test_a_term_that_goes_on_says_so_beside_its_note(store, operator):
    WatchSpan.objects.create(cluster="a", process="p", since=ago(31 * 1440), until=ago(5))
    WatchSpan.objects.create(cluster="a", process="q", since=ago(4), until=ago(-1))
    a_story()
    text = text_of(operator.get(HOUR))
    assert re.search(r"goes on ?; (1 m 0 s|59 s|1 m 1 s) of it not watched", text)


def test_the_past_is_a_list_of_terms_newest_first(store, operator):
    watched()
    a_story()
    html = html_of(operator.get(HOUR))
    table = html[html.index('aria-label="Terms"') :]
    rows = re.findall(r"<tr role=\"row\">(.*?)</tr>", table[: table.index("</table>")], re.DOTALL)
    shown = [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)).strip() for row in rows[1:]]
    assert [row.split()[0] for row in shown] == ["cp-1", "cp-2", "cp-3"]
    assert re.search(r"10 m \d s 2 m 0 s", shown[0])  # it goes on while the page is made
    assert shown[0].endswith("goes on")
    assert "17 m 0 s 1 m 0 s" in shown[1]
    assert shown[1].endswith("it expired")
    assert "20 m 0 s none" in shown[2]
    assert shown[2].endswith("released")


@pytest.mark.parametrize(("kind", "quiet"), [(Kind.ELECTION, False), (Kind.LOCK, True)])
def test_the_time_in_which_nobody_holds_a_lock_is_not_drawn_as_trouble(
    store, operator, kind, quiet
):
    watched()
    remember(ChangeType.CREATED, 50, holder="cp-1", kind=kind)
    remember(ChangeType.RELEASED, 30, previous_holder="cp-1", kind=kind)
    remember(ChangeType.ACQUIRED, 20, holder="cp-1", gap_seconds=600.0, kind=kind)
    html = html_of(operator.get(HOUR))
    assert ('<div class="zoomer is-lock"' in html) is quiet
    assert ("no holder: a lock needs none</span>" in html) is quiet
    assert ('class="gap-long"' in html) is not quiet


def test_a_beginning_that_nobody_saw_stands_beside_the_time_and_not_as_the_end(store, operator):
    watched()
    remember(ChangeType.CREATED, 50, holder="cp-2")
    remember(
        ChangeType.REPLACED, 10, holder="cp-1", previous_holder="cp-2", inferred=True,
        inferred_since=ago(15),
    )  # fmt: skip
    html = html_of(operator.get(HOUR))
    table = html[html.index('aria-label="Terms"') :]
    row = re.findall(r"<tr role=\"row\">(.*?)</tr>", table, re.DOTALL)[1]
    begun, ended = re.findall(r"<td .*?</td>", row, re.DOTALL)[1::4]
    assert re.search(r">between (\S+ )*\S+ and (\S+ )*\S+</small>", begun)
    on_wide = re.sub(r'<span\s+class="nowide">.*?</span>', "", ended, flags=re.DOTALL)
    assert re.sub(r"<[^>]+>", "", on_wide).strip() == "goes on"


@pytest.mark.parametrize(("unseen", "said"), [(False, "10 m 0 s 5 m 0 s"), (True, "not known")])
def test_a_deletion_does_not_cut_the_time_without_a_holder(store, operator, unseen, said):
    watched()
    remember(ChangeType.CREATED, 40, holder="cp-2", uid="old")
    remember(ChangeType.EXPIRED, 15, holder="cp-2", previous_holder="cp-2", uid="old")
    remember(ChangeType.DELETED, 12, holder=None, previous_holder="cp-2", uid="old")
    remember(
        ChangeType.CREATED, 10, holder="cp-1", uid="new", inferred=unseen,
        gap_seconds=None if unseen else 300.0,
    )  # fmt: skip
    html = html_of(operator.get(HOUR))
    table = html[html.index('aria-label="Terms"') :]
    row = re.findall(r"<tr role=\"row\">(.*?)</tr>", table, re.DOTALL)[1]
    assert said in re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row))


def test_the_past_adds_up(store, operator):
    watched()
    a_story()
    response = operator.get(HOUR)
    assert "3 terms in 1 h, 3 m 0 s without a holder" in text_of(response)
    assert figures(response) == {
        "Terms": "3", "Longest": "20 m 0 s", "Median": "17 m 0 s", "Without a holder": "3 m 0 s",
        "Handed over in, p50": "1 m 0 s", "Handed over in, p95": "2 m 15 s",
    }  # fmt: skip


@pytest.mark.parametrize("goes_on", [True, False])
def test_the_longest_term_goes_on_or_has_ended(store, operator, goes_on):
    watched()
    remember(ChangeType.CREATED, 50, holder="cp-3")
    remember(ChangeType.TAKEN_OVER, 45, holder="cp-2", previous_holder="cp-3")
    if not goes_on:
        remember(ChangeType.RELEASED, 15, previous_holder="cp-2")
    shown = text_of(operator.get(HOUR))
    assert ("so far: it goes on" in shown, "it has ended" in shown) == (goes_on, not goes_on)


def counts_from(response) -> dict[str, float]:
    """Minutes ago from when each figure of the past counts on."""
    found = re.findall(r'<dt>([^<]+)</dt><dd><b[^>]*\sdata-since="([\d.]+)"', html_of(response))
    now = datetime.now(UTC).timestamp()
    return {label: round((now - float(since)) / 60, 1) for label, since in found}


def test_figures_of_a_term_that_goes_on_count_on_while_the_page_is_open(store, operator):
    watched()
    remember(ChangeType.CREATED, 50, holder="cp-3")
    remember(ChangeType.TAKEN_OVER, 45, holder="cp-1", previous_holder="cp-3")
    assert counts_from(operator.get(HOUR)) == {"Longest": 45.0}
    assert counts_from(operator.get(f"{PATH}?range=15m")) == {"Longest": 45.0, "Median": 45.0}
    since, until = (f"{ago(minutes):%Y-%m-%dT%H:%M:%SZ}" for minutes in (60, 1))
    assert counts_from(operator.get(f"{PATH}?from={since}&to={until}")) == {}
    store.connection = Connection(state=ConnectionState.STALE, since=ago(0), heard_at=ago(0))
    assert counts_from(operator.get(HOUR)) == {}


@pytest.mark.parametrize("kind", [Kind.ELECTION, Kind.LOCK])
def test_the_time_without_a_holder_counts_on_while_nobody_holds_it(store, operator, kind):
    watched()
    remember(ChangeType.CREATED, 50, holder="cp-3", kind=kind)
    remember(ChangeType.RELEASED, 30, previous_holder="cp-3", kind=kind)
    remember(ChangeType.ACQUIRED, 28, holder="cp-2", gap_seconds=120.0, kind=kind)
    remember(ChangeType.RELEASED, 8, previous_holder="cp-2", kind=kind)
    assert "Without a holder" not in counts_from(operator.get(HOUR))  # somebody holds it by now
    fill(store, a_lease(holder=None, version="2"))
    store.set_overrides({KEY: (kind, "said so")}, datetime.now(UTC))
    response = operator.get(HOUR)
    if kind is Kind.LOCK:
        assert counts_from(response) == {}
        return
    assert counts_from(response) == {"Without a holder": 10.0}
    assert re.search(r'data-since="[\d.]+">10 m \d s</span> without a holder', html_of(response))
    wholly = operator.get(f"{PATH}?range=5m")  # the range holds no more of it later
    assert figures(wholly)["Without a holder"] == "5 m 0 s"
    assert counts_from(wholly) == {}


def test_the_lane_has_terms_gaps_marks_and_what_nobody_watched(store, operator):
    a_story()
    remember(ChangeType.RECONFIGURED, 5, holder="cp-1", fields=("leaseDurationSeconds",))
    span = {"cluster": "a", "process": "p", "ended": "stopped"}
    WatchSpan.objects.create(since=ago(120), until=ago(40), **span)
    WatchSpan.objects.create(since=ago(35), until=datetime.now(UTC), **span)
    html = html_of(operator.get(HOUR))
    lane = re.search(
        r'<svg class="lane".*?aria-label="([^"]+)">(.*?)<svg class="fluid"', html, re.DOTALL
    )
    assert lane[1].startswith("Who held it: 3 terms in 1 h")
    assert len(re.findall(r'class="term h\d"', lane[2])) == 3
    assert len(re.findall(r'class="gap"', lane[2])) == 2
    assert 'class="ev reconfigured"' in lane[2]
    assert lane[2].count('class="fog"') == 1
    assert "nobody watched, for 5 m" in html


def test_a_range_cuts_what_came_before_it(store, operator):
    watched()
    remember(ChangeType.CREATED, 300, holder="cp-3")
    remember(ChangeType.TAKEN_OVER, 90, holder="cp-1", previous_holder="cp-3")
    assert "1 term in 1 h, never without a holder" in text_of(operator.get(HOUR))
    assert "2 terms in 24 h" in text_of(operator.get(PATH))
    links = re.findall(
        r'<a id="range-\w+" href="([^"]+)" hx-get="[^"]+"', html_of(operator.get(PATH))
    )
    assert links == [
        f"{PATH}?range=5m",
        f"{PATH}?range=15m",
        f"{PATH}?range=1h",
        f"{PATH}?range=6h",
        f"{PATH}?range=24h",
        f"{PATH}?range=7d",
        f"{PATH}?range=30d",
    ]


def test_a_refused_parameter_has_a_page_with_a_heading(store, operator):
    response = operator.get(f"{PATH}?range=bogus")
    assert response.status_code == 400
    assert "<h1>This page cannot be shown with these parameters</h1>" in html_of(response)


def test_no_length_of_a_term_counts_what_nobody_watched(store, operator):
    """Not before the range either."""
    span = {"cluster": "a", "process": "p", "ended": "stopped"}
    WatchSpan.objects.create(since=ago(300), until=ago(95), **span)
    WatchSpan.objects.create(since=ago(85), until=ago(50), **span)
    WatchSpan.objects.create(since=ago(30), until=ago(-1), **span)
    remember(ChangeType.CREATED, 100, holder="cp-3")
    remember(ChangeType.TAKEN_OVER, 25, holder="cp-1", previous_holder="cp-3")
    response = operator.get(HOUR)
    about = "(45 m 0 s|44 m 59 s)"
    assert re.fullmatch(about, figures(response)["Longest"])
    assert re.search(f"{about} .*(30 m 0 s|29 m 59 s) of it not watched", text_of(response))


def test_no_time_that_nobody_watched_counts_as_run_out(store, operator):
    span = {"cluster": "a", "process": "p", "ended": "stopped"}
    WatchSpan.objects.create(since=ago(300), until=ago(50), **span)
    WatchSpan.objects.create(since=ago(30), until=ago(-1), **span)
    remember(ChangeType.CREATED, 100, holder="cp-1")
    remember(ChangeType.EXPIRED, 52, holder="cp-1")
    remember(ChangeType.RECOVERED, 27, holder="cp-1")
    lasted = "(5 m 0 s|4 m 59 s)"
    more = "(20 m 0 s|19 m 59 s) more not watched"
    said = f"and recovered 1 time, {lasted} in all, {more}"
    assert re.search(said, text_of(operator.get(HOUR)))


def test_a_term_that_ran_out_unwatched_says_at_most_how_long(store, operator):
    span = {"cluster": "a", "process": "p", "ended": "stopped"}
    WatchSpan.objects.create(since=ago(300), until=ago(50), **span)
    WatchSpan.objects.create(since=ago(30), until=ago(-1), **span)
    remember(ChangeType.CREATED, 100, holder="cp-1")
    remember(ChangeType.EXPIRED, 45, holder="cp-1")
    remember(ChangeType.RECOVERED, 35, holder="cp-1")
    said = "expired and recovered 1 time, at most (10 m 0 s|9 m 59 s) in all, none of it watched"
    assert re.search(said, text_of(operator.get(HOUR)))


def test_a_stretch_of_ones_own_is_cut_out_of_the_past(store, operator):
    watched()
    a_story()
    at = [ago(minutes).replace(microsecond=0) for minutes in (40, 15)]
    stretch = "from={:%Y-%m-%dT%H:%M:%SZ}&to={:%Y-%m-%dT%H:%M:%SZ}".format(*at)
    response = operator.get(f"{PATH}?{stretch}")
    assert re.search(
        r"2 terms from .* to .* \(25 min\), 1 m 0 s without a holder", text_of(response)
    )
    assert 'data-region="changed moving time"' not in html_of(response)
    assert 'aria-current="true">' not in html_of(response).split('id="past"')[1]
    assert 'data-region="changed moving time"' in html_of(operator.get(HOUR))
    past = operator.get(f"{PATH}?{stretch}&at={at[1]:%Y-%m-%dT%H:%M:%SZ}")
    assert re.search(r"2 terms from .* to .* \(25 min\)", text_of(past))
    assert operator.get(f"{PATH}?{stretch}&at={at[0]:%Y-%m-%dT%H:%M:%SZ}").status_code == 400
    assert operator.get(f"{PATH}?from=12:00").status_code == 400


@pytest.mark.parametrize(("listed", "began"), [(True, "watching began"), (False, "it was made")])
def test_a_young_history_begins_at_the_first_watched_moment(store, operator, listed, began):
    WatchSpan.objects.create(cluster="a", process="p", since=ago(4), until=ago(-1))
    remember(ChangeType.CREATED, 3, holder="cp-1", inferred=listed)
    response = operator.get(PATH)
    since = r"1 term since (\d+ \w+ \d+ )?[\d:]+, when "  # the day before, at midnight
    assert re.search(since + began, text_of(response))
    assert (
        "5 min"
        in re.search(r'aria-current="true">([^<]+)<', html_of(response).split('id="past"')[1])[1]
    )
    assert 'class="fog"' not in html_of(response)


def test_so_many_changes_that_they_are_only_counted_say_so(store, operator, monkeypatch):
    monkeypatch.setattr(timeline_lanes, "CHANGES", 10)
    monkeypatch.setattr(timeline_lanes, "MIN_CHANGES", 10)
    for number in range(30):
        holder, before = f"cp-{number % 2}", f"cp-{(number + 1) % 2}"
        remember(ChangeType.REPLACED, 9 - number / 10, holder=holder, previous_holder=before)
    response = operator.get(HOUR)
    assert "30 changes in 1 h" in text_of(response)
    assert "30 changes are too many to measure terms here: choose a shorter range." in text_of(
        response
    )
    assert figures(response) == {}
    assert 'class="band' in html_of(response)
    lead = re.search(
        r'Zoom in on <a class="link" href="([^"]+)"[^>]*>\d+ changes', html_of(response)
    )
    closer = operator.get(unescape(lead[1]))
    assert closer.status_code == 200
    assert re.search(r"\d+ (changes|terms) from [^(]* to [^(]* \(", text_of(closer))


def test_a_range_that_is_none_is_400_with_a_way_back(store, operator):
    response = operator.get(f"{PATH}?range=2y")
    assert response.status_code == 400
    assert "range cannot be" in text_of(response)
    assert f'href="{PATH}"' in html_of(response)
    assert operator.get(f"{PATH}?before=nonsense").status_code == 400


def test_older_changes_are_a_page_away_and_keep_the_range(store, operator, monkeypatch):
    monkeypatch.setattr(view, "CHANGES", 2)
    for number in range(5):
        remember(ChangeType.REPLACED, 5 - number, holder=f"h{number}", previous_holder="cp-9")
    html = html_of(operator.get(HOUR))
    seen = []
    while True:
        panel = html[html.index('id="changes"') : html.index('id="asked"')]
        seen += re.findall(r"passed to <code>(h\d)</code>", panel)
        older = re.search(r'<a class="btn small" href="([^"]+)" hx-get="[^"]+">Older', panel)
        if older is None:
            break
        assert "range=1h" in older[1]
        html = html_of(operator.get(unquote(older[1].replace("&amp;", "&"))))
    assert seen == ["h4", "h3", "h2", "h1", "h0"]
    assert "data-feed" not in panel
    assert f'href="{HOUR}" hx-get="{HOUR}">' in panel


def test_the_other_leases_of_the_host_are_listed(store, operator):
    html = html_of(operator.get(PATH))
    panel = html[html.index('id="beside"') :]
    assert re.findall(r'<a class="name" href="([^"]+)"', panel) == ["/c/a/leases/apps/other/"]
    assert 'href="/c/a/holders/cp-1/"' in panel
    assert 'id="beside"' not in html_of(operator.get("/c/b/leases/"))


def test_a_lease_that_stands_alone_has_no_neighbours(board, operator):
    fill(board.clusters["a"].store, a_lease(holder="cp-1"))
    assert 'id="beside"' not in html_of(operator.get(PATH))


def test_a_script_that_wants_numbers_alone_asks_no_history(
    store, operator, django_assert_num_queries
):
    whole = html_of(operator.get(PATH))
    assert 'id="past"' in whole
    response = operator.get(PATH, headers={"X-Regions": "facts renewals yaml-panel"})
    for part in ("facts", "renewals", "yaml-panel"):
        assert f'id="{part}"' in html_of(response)
    assert 'id="past"' not in html_of(response)
    assert 'id="past"' in html_of(operator.get(PATH, headers={"X-Regions": "facts past"}))


def test_the_renewals_show_what_nobody_watched(board, store, operator):
    live = Connection(state=ConnectionState.LIVE, since=ago(0.5))
    board.feeds["a"].publish(store.connect(live, ago(0.5)))
    lease = store.get(KEY).lease
    for number in range(2):
        spec = replace(lease.spec, renew_time=ago(0))
        metadata = replace(lease.metadata, resource_version=str(200 + number))
        store.follow((Applied(replace(lease, spec=spec, metadata=metadata)),), ago(0))
    renewals = html_of(operator.get(PATH, headers={"X-Regions": "renewals"}))
    assert renewals.count('class="fog"') == 2, "in the picture, and in its legend"
    said = "no renewal is known from then: the Lease is younger, or Leaseboard was restarted"
    assert renewals.count('class="unknown"') == 2
    assert said in renewals


def test_a_lease_whose_deletion_nobody_saw_says_between_when(store, operator):
    watched()
    remember(ChangeType.CREATED, 20, holder="cp-1", name="past")
    remember(
        ChangeType.DELETED, 12, previous_holder="cp-1", name="past",
        inferred=True, inferred_since=ago(12), observed_at=ago(11),
    )  # fmt: skip
    shown = text_of(operator.get(f"/c/a/leases/{KEY.namespace}/past/"))
    said = r"Deleted since \d\d:\d\d:\d\d, inferred: between \d\d:\d\d:\d\d and \d\d:\d\d:\d\d"
    assert re.search(said, re.sub(r"\d+ \w{3} \d{4} ", "", shown))


def test_a_free_lock_says_that_no_time_without_a_holder_is_counted(store, operator):
    watched()
    remember(ChangeType.CREATED, 50, holder="ada", kind=Kind.LOCK)
    remember(ChangeType.EXPIRED, 40, holder="ada", kind=Kind.LOCK)
    remember(ChangeType.TAKEN_OVER, 10, holder="bea", previous_holder="ada", kind=Kind.LOCK)
    response = operator.get(HOUR)
    said = "2 terms in 1 h; a lock needs no holder, so no time without one is counted"
    assert said in text_of(response)
    assert figures(response)["Without a holder"] == "0 s"
    assert "none is counted: a lock needs no holder" in text_of(response)


def test_a_deleted_lease_says_since_when_and_keeps_its_past(store, operator):
    watched()
    remember(ChangeType.CREATED, 50, holder="cp-1", name="past")
    remember(ChangeType.DELETED, 10, previous_holder="cp-1", name="past")
    response = operator.get(f"/c/a/leases/{KEY.namespace}/past/?range=1h")
    assert response.status_code == 200
    shown = text_of(response)
    assert re.search(r"Deleted since \d\d:\d\d:\d\d", re.sub(r"\d+ \w{3} \d{4} ", "", shown))
    assert "1 term in 1 h, never without a holder" in shown
    assert "the Lease was deleted" in shown
    assert 'id="facts"' not in html_of(response)
    assert 'id="asked"' in html_of(response)


def test_a_lease_made_anew_has_both_lives_on_one_page(store, operator):
    watched()
    remember(ChangeType.CREATED, 50, holder="cp-2", uid="old")
    remember(ChangeType.DELETED, 20, previous_holder="cp-2", uid="old")
    remember(ChangeType.CREATED, 15, holder="cp-1", uid="new")
    assert "2 terms in 1 h, 5 m 0 s without a holder" in text_of(operator.get(HOUR))


def test_a_range_that_nobody_watched_claims_no_time_with_a_holder(store, operator):
    """The Lease is older than our sight of it: nothing is said of the time before."""
    remember(ChangeType.CREATED, 50, holder="cp-1")
    assert "1 term in 1 h, not watched" in text_of(operator.get(HOUR))
    span = {"cluster": "a", "process": "p", "ended": "stopped"}
    WatchSpan.objects.create(since=ago(120), until=ago(40), **span)
    WatchSpan.objects.create(since=ago(20), until=ago(-1), **span)
    shown = operator.get(HOUR)
    assert "1 term in 1 h, no time without a holder seen" in text_of(shown)
    assert figures(shown)["Without a holder"] == "none seen"


def test_a_gap_that_nobody_watched_is_at_most_so_long_and_no_trouble(store, operator):
    a_story()
    WatchSpan.objects.create(cluster="a", process="p", since=ago(60), until=ago(11.5))
    WatchSpan.objects.create(cluster="a", process="q", since=ago(9), until=ago(-1))
    html = html_of(operator.get(HOUR))
    assert re.search(r"at most 2 m 0 s, 1 m (29|30) s of it not watched", html)
    assert re.search(
        r"<span[^>]*>at most 2 m 0 s</span><small class=.faint.>1 m (29|30) s not w", html
    )
    assert html.count('class="gap-fill"') == 2  # of this one and of one that was watched
    assert figures(operator.get(HOUR))["Without a holder"] in ("1 m 29 s", "1 m 30 s")
    WatchSpan.objects.filter(process="p").update(until=ago(12.5))
    html = html_of(operator.get(HOUR))
    assert "at most 2 m 0 s, none of it watched" in html
    assert '<span>at most 2 m 0 s</span><small class="faint">none watched</small>' in html
    assert html.count('class="gap-fill"') == 1
    assert figures(operator.get(HOUR))["Without a holder"] in ("59 s", "1 m 0 s")


def test_a_gap_that_began_before_anybody_watched_is_at_least_so_long(store, operator):
    remember(ChangeType.CREATED, 50, inferred=True)
    remember(ChangeType.ACQUIRED, 40, holder="cp-1", gap_seconds=600.0)
    WatchSpan.objects.create(cluster="a", process="p", since=ago(50), until=ago(-1))
    assert re.search(r"<span[^>]*>at least 10 m 0 s</span>", html_of(operator.get(HOUR)))
    WatchSpan.objects.update(since=ago(30))
    WatchSpan.objects.create(cluster="a", process="q", since=ago(120), until=ago(52))
    assert re.search(r"<span[^>]*>not known</span>", html_of(operator.get(HOUR)))


def test_who_takes_care_of_it_is_told_though_it_was_planned(board, store, admin):
    one = open_incident(KEY, standing=Standing.PLANNED)
    incident_rows.store(one)
    board.publisher.hubs["a"].going_on = lambda: (one,)
    assert "takes care of it" not in admin.get(PATH).content.decode()
    admin.post(f"/c/a/incidents/{one.id}/acknowledge/")
    assert "ada takes care of it, since" in admin.get(PATH).content.decode()
