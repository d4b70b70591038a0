"""One question has one answer: each figure is the same on every page, in JSON and in the metrics.

A board tells its story once, the clock stops, and everything that shows a figure is read. A page
names its figures in attributes: which figure, of what, and over which time.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from dashboard.board import running_board
from dashboard.parts.formatting import age
from leases.domain.change import HOLDER_CHANGES
from leases.domain.kind import Kind
from leases.domain.watched_times import BRIEF
from leases.history.activity import Activity
from leases.wire.microtime import format_microtime
from tests.support.board import browser_of, member
from tests.support.busy_evening import CLUSTER, ENDED, MIDNIGHT, tell
from tests.support.quick_flush import empty

pytestmark = pytest.mark.django_db

SPAN = f"{format_microtime(MIDNIGHT)}/{format_microtime(ENDED)}"
STRETCH = urlencode({"from": "2026-11-23T00:00:00", "to": "2026-11-23T23:30:00"})
ACTORS = ("dies", "recovers", "retaken", "handed-over", "robbed", "made-anew", "in-outage",
          "lost-in-outage", "released", "flaps", "over-restart", "over-jump",
          "made-often")  # fmt: skip
NOTHING = ("none", "never", "none seen", "0 s", "0.0 s")
Key = tuple[str, str, str]  # figure, of what, span
Found = dict[Key, dict[str, str]]  # by where it was read


class Measures(HTMLParser):
    """The figures of a page, each with its text; a picture has its value in an attribute."""

    VOID = ("area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Key, str]] = []
        self._open: list[tuple[Key, int, list[str]]] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.VOID:
            return
        self._depth += 1
        given = dict(attrs)
        if (figure := given.get("data-measure")) is not None:
            key = (figure, given["data-of"] or "", given["data-span"] or "")
            told = given.get("data-value")
            if told is not None:
                self.found.append((key, told))
            else:
                self._open.append((key, self._depth, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        while self._open and self._open[-1][1] >= self._depth:
            key, _, text = self._open.pop()
            self.found.append((key, " ".join(" ".join(text).split())))
        self._depth -= 1

    def handle_data(self, data: str) -> None:
        for _, _, text in self._open:
            text.append(data)


@pytest.fixture(scope="module")
def reader(
    tmp_path_factory: pytest.TempPathFactory,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Client]:
    """The story is told once: no test writes."""
    with django_db_blocker.unblock():
        evening = tell(tmp_path_factory.mktemp("evening"))
        yield browser_of(member("olga", "operator"))
        evening.close()
        empty()


def pages() -> Iterator[str]:
    """Every page that shows a figure of the day."""
    yield from (
        "",
        "wall/",
        "incidents/?show=all&limit=200",
        "leases/?limit=200",
        "holders/",
        "nodes/",
    )
    yield f"timeline/?{STRETCH}&limit=200"
    yield f"timeline/?{STRETCH}"
    yield f"timeline/?{STRETCH}&view=table"
    for sort in ("changes", "gap"):
        yield f"history/stretch/?{STRETCH}&sort={sort}"
        yield f"history/stretch/?{STRETCH}&sort={sort}&kind=election&limit=200"
    yield f"history/?{urlencode({'since': MIDNIGHT.isoformat(), 'until': ENDED.isoformat()})}"
    for by in ("lease", "namespace"):
        yield f"reliability/?period=day&by={by}&limit=200"
    for name in ACTORS:
        yield f"leases/work/{name}/?{STRETCH}"
        yield f"leases/work/{name}/"


def incidents(reader: Client) -> Iterator[str]:
    """The pages of the incidents, each with its figures."""
    for one in items(reader, "incidents/?format=json&limit=200"):
        yield f"incidents/{one['id']}/"


@pytest.fixture(scope="module")
def found(reader: Client) -> Found:
    return collect(reader)


def collect(reader: Client) -> Found:
    found: Found = defaultdict(dict)
    for path in (*pages(), *incidents(reader)):
        answer = reader.get(f"/c/{CLUSTER}/{path}")
        assert answer.status_code == 200, path
        parser = Measures()
        parser.feed(answer.content.decode())
        for number, (key, text) in enumerate(parser.found):
            value = text.removesuffix(" changes")
            found[key][f"{path} #{number}"] = "0" if value in NOTHING else value
    of_json = (of_reliability, of_ranking, of_history, of_holders, of_incidents)
    for where, key, value in (one for read in of_json for one in read(reader)):
        found[key][where] = "0" if value in NOTHING else value
    return found


Read = Iterator[tuple[str, Key, str]]


def items(reader: Client, path: str) -> list[dict]:
    answer = reader.get(f"/c/{CLUSTER}/{path}")
    assert answer.status_code == 200, path
    return answer.json()["items"]


def of_reliability(reader: Client) -> Read:
    for by in ("lease", "namespace"):
        path = f"reliability/?period=day&by={by}&limit=200&format=json"
        for one in items(reader, path):
            name = one["name"]
            of = f"lease:{one['namespace']}/{name}" if name else f"namespace:{one['namespace']}"
            # Counted once a minute at most: it says up to when.
            span = f"{one['from']}/{one['until']}"
            yield path, ("unheld", of, span), age(one["gap_seconds"])
            yield path, ("handovers", of, span), str(one["handovers"])
            yield path, ("failovers", of, span), str(one["failovers"])


def of_ranking(reader: Client) -> Read:
    path = f"history/stretch/?{STRETCH}&limit=200&format=json"
    for one in items(reader, path):
        of = f"lease:{one['namespace']}/{one['name']}"
        yield path, ("unheld", of, SPAN), age(one["gap_seconds"])
        yield path, ("handovers", of, SPAN), str(one["handovers"])
        yield path, ("changes", of, SPAN), str(one["changes"])


def of_holders(reader: Client) -> Read:
    path = "holders/?limit=200&format=json"
    for holder in items(reader, path):
        for one in holder["holds"]:
            of = f"lease:{one['namespace']}/{one['name']}"
            yield path, ("held-for", of, "now"), age(one["held_seconds"])


def of_incidents(reader: Client) -> Read:
    """What the list, the page and the files say of each incident."""

    def told(path: str, one: dict) -> Read:
        of, worst = f"incident:{one['id']}", float(one["worst_gap_seconds"] or 0)
        yield path, ("incident-leases", of, "now"), f"{int(one['lease_count']):,}"
        nothing = "0" if one["ended"] else "not over"
        yield path, ("incident-worst", of, "now"), age(worst) if worst else nothing
        if one["ended"]:
            ends = [datetime.fromisoformat(one[name]) for name in ("began", "ended")]
            yield path, ("incident-length", of, "now"), age((ends[1] - ends[0]).total_seconds())
        yield path, ("incident-changes", of, "now"), str(one["changes"])

    path = "incidents/?format=json&limit=200"
    listed = items(reader, path)
    assert listed
    for one in listed:
        yield from told(path, one)
        page = f"/c/{CLUSTER}/incidents/{one['id']}/"
        yield from told(page, reader.get(f"{page}?format=json").json())
        text = reader.get(f"{page}?format=markdown").content.decode()
        said = re.search(r"Longest time without a holder \| ([^|]+) \|", text)
        assert said is not None
        yield f"{page} markdown", ("incident-worst", f"incident:{one['id']}", "now"), said[1]
    file = reader.get(f"/c/{CLUSTER}/incidents/?format=csv&limit=200")
    rows = csv.DictReader(io.StringIO(b"".join(file.streaming_content).decode()))
    for row in rows:
        yield from told("incidents csv", row)


def test_no_incident_counts_what_nobody_watched(reader: Client, found: Found) -> None:
    worst = {
        key[1]: value
        for key, where in found.items()
        if key[0] == "incident-worst"
        for value in where.values()
    }
    listed = items(reader, "incidents/?format=json&limit=200")
    lost = {one["leases"][0]["name"]: worst[f"incident:{one['id']}"] for one in listed}
    assert (lost["over-restart"], lost["in-outage"]) == ("46 s", "35 s")


def of_history(reader: Client) -> Read:
    """What the list of changes has of those that were seen as they happened."""
    span = {"since": MIDNIGHT.isoformat(), "until": ENDED.isoformat(), "format": "json"}

    def seen(**more: object) -> tuple[str, int]:
        query = urlencode(span | more | {"limit": 1000}, doseq=True)
        listed = items(reader, f"history/?{query}")
        unseen = [
            one
            for one in listed
            if one["inferred"] or _moment(one["observed_at"]) - _moment(one["at"]) > BRIEF
        ]
        return str(len(listed) - len(unseen)), len(unseen)

    found, unseen = seen(change=[change.value for change in HOLDER_CHANGES], kind="election")
    assert unseen == 3, "two in the outage, one over the restart"
    yield "history json", ("holder-changes", "election", SPAN), found
    yield "history json", ("changes", "", SPAN), seen()[0]
    for name in ACTORS:
        of = f"lease:work/{name}"
        yield "history json", ("changes", of, SPAN), seen(lease=name, namespace="work")[0]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_one_figure_has_one_value_everywhere(found: Found) -> None:
    differ = {key: where for key, where in found.items() if len(set(where.values())) > 1}
    assert differ == {}
    asked = {key for key, where in found.items() if len(where) > 1}
    assert ("unheld", "election", SPAN) in asked
    assert ("holder-changes", "election", SPAN) in asked
    assert ("changes", "", SPAN) in asked
    incidents = [key for key in found if key[0] == "incident-worst"]
    assert len(incidents) >= 8
    assert min(len(found[key]) for key in incidents) >= 6
    for name in ACTORS:
        assert len(found["unheld", f"lease:work/{name}", SPAN]) >= 5, name
        assert len(found["handovers", f"lease:work/{name}", SPAN]) >= 4, name
        held = found["held-for", f"lease:work/{name}", "now"]
        assert len(held) >= (0 if name == "released" else 4), name


def test_a_start_counts_the_holder_changes_that_the_process_before_counted(reader: Client) -> None:
    started, running = Activity(), running_board().feeds[CLUSTER].activity
    started.read(CLUSTER, ENDED)
    counted = [one.of_kind(Kind.ELECTION, HOLDER_CHANGES, ENDED) for one in (started, running)]
    assert counted[0] == counted[1]
    assert sum(counted[0]) == 13


def test_a_term_that_goes_on_counts_the_time_that_was_watched_and_says_what_was_not(
    reader: Client,
    found: Found,
) -> None:
    quiet = "lease:work/quiet-000"
    # 50 minutes less an outage and a restart of five minutes each, and the start; the clock was set
    # 7 s forward.
    assert set(found["held-for", quiet, "now"].values()) == {"39 m 47 s"}
    row = reader.get(f"/c/{CLUSTER}/leases/?q=quiet-000").content.decode()
    assert 'title="Since 22:40:07, 10 m 5 s of it not watched"' in row
    page = " ".join(reader.get(f"/c/{CLUSTER}/leases/work/quiet-000/").content.decode().split())
    assert "39 m 47 s</b>, since 22:40:07, 10 m 5 s of it not watched" in page
    longest = re.search(r"<dt>Longest</dt><dd><b[^>]*>([^<]+)</b>", page)
    assert longest is not None
    assert longest[1] == "39 m 47 s"


def test_a_term_does_not_count_the_time_in_which_it_was_expired(
    reader: Client, found: Found
) -> None:
    # What did not expire was held so much longer as nobody held this one.
    assert set(found["held-for", "lease:work/quiet-000", "now"].values()) == {"39 m 47 s"}
    assert set(found["held-for", "lease:work/recovers", "now"].values()) == {"39 m 8 s"}
    page = " ".join(reader.get(f"/c/{CLUSTER}/leases/work/recovers/").content.decode().split())
    assert "10 m 5 s of it not watched, 38 s of it expired" in page
    longest = re.search(r"<dt>Longest</dt><dd><b[^>]*>([^<]+)</b>", page)
    assert longest is not None
    assert longest[1] == "39 m 8 s"
    lane = re.search("<title>recovers-1, 22:40:00 to now ([^<]+)</title>", page)
    assert lane is not None
    assert "39 m 8 s watched" in lane[1]
    assert "expired and recovered 1 time" in lane[1]


def test_the_figures_are_those_of_the_story(found: Found) -> None:
    def value(figure: str, name: str) -> str:
        (one,) = set(found[figure, f"lease:work/{name}", SPAN].values())
        return one

    told = {name: (value("unheld", name), value("handovers", name)) for name in ACTORS}
    assert told == {
        "dies": ("38 s", "1"),
        "recovers": ("38 s", "0"),
        "retaken": ("5.7 s", "0"),
        "handed-over": ("5.7 s", "1"),
        "robbed": ("0", "1"),
        "made-anew": ("0.4 s", "1"),
        "in-outage": ("35 s", "0"),  # up to the last word before the outage, in which it was taken
        "lost-in-outage": ("0", "0"),
        "released": ("8 m 12 s", "0"),
        "flaps": ("27 s", "8"),
        "over-restart": ("46 s", "0"),  # up to the restart
        "over-jump": ("32 s", "1"),
        "made-often": ("8.8 s", "3"),
    }


def test_the_timeline_counts_all_leases_and_not_those_of_its_page(reader: Client) -> None:
    def total(**more: object) -> int:
        query = urlencode({"kind": "election", "format": "json"} | more, doseq=True)
        return int(reader.get(f"/c/{CLUSTER}/leases/?{query}").json()["total"])

    nobody, there = total(phase=["vacant", "expired"]), total()
    assert (nobody, there) == (1, 128)
    ago = {"from": "2026-11-23T22:41:00", "to": "2026-11-23T23:30:00", "at": "2026-11-23T23:25:00"}
    for query in ("", "?limit=50", "?limit=200", "?page=2", f"?{urlencode(ago)}"):
        html = reader.get(f"/c/{CLUSTER}/timeline/{query}").content.decode()
        said = re.search(r"<b data-nobody>(\d+)</b> of ([\d,]+)( drawn)? without", html)
        assert said is not None, query
        assert said.groups() == ("1", "128", None), query


LINE = re.compile(
    r'^leaseboard_election_(\w+)\{cluster="a",namespace="work",name="([^"]+)"\} (.+)$'
)


def of_metrics(reader: Client) -> dict[tuple[str, str], str]:
    """By figure and election."""
    lines = reader.get("/metrics").content.decode().splitlines()
    return {match.group(1, 2): match[3] for line in lines if (match := LINE.match(line))}


def test_the_metrics_count_what_the_pages_do_since_the_start(reader: Client) -> None:
    values = of_metrics(reader)
    started = "2026-11-23T22:57:40.650001Z"  # what the list showed then was not watched
    query = urlencode(
        {"from": started, "to": "2026-11-23T23:30:00", "format": "json", "limit": 200}
    )
    ranked = {one["name"]: one for one in items(reader, f"history/stretch/?{query}")}
    for name in (*ACTORS, "quiet-001"):
        counted, one = values["unheld_seconds_total", name], ranked.get(name, {})
        assert age(float(counted)) == age(one.get("gap_seconds", 0.0)), name
        assert int(values["handovers_total", name]) == one.get("handovers", 0), name


def test_the_metrics_of_a_name_go_on_over_deletion_and_re_creation(
    reader: Client, found: Found
) -> None:
    values = of_metrics(reader)
    # All of it happened since the start.
    for figure, counted in (
        ("unheld", age(float(values["unheld_seconds_total", "made-often"]))),
        ("handovers", values["handovers_total", "made-often"]),
    ):
        shown = found[figure, "lease:work/made-often", SPAN]
        for page in ("leases/work/made-often/", "reliability/"):
            assert [value for where, value in shown.items() if page in where], page
        assert set(shown.values()) == {counted}
    assert values["holder_changes_total", "made-often"] == "0", "nobody came while it existed"
