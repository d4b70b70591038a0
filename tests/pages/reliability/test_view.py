"""The reliability page: rows, sums and files of a period against an objective."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard import clock
from dashboard.charts.bars import day_bars
from dashboard.pages.reliability import budget_text
from leases.domain.figures import Period, Totals, first_day, start_of
from leases.domain.lease import ObjectName
from leases.history.reliability import save_day, save_sums, sums_by_namespace
from leases.models import Edit, ReliabilityObjective
from tests.pages.conftest import text_of

PAGE = "/c/a/reliability/"
TODAY = datetime.now(UTC).date()
# Some period that is over: the whole week before the one of last quarter's first day.
FRIDAY = first_day(Period.WEEK, TODAY - timedelta(days=100)) + timedelta(days=4)
WHOLE = 86_400.0
BAD, GOOD, UNSEEN = "bad", "good", "unseen"


def keep(day, **totals: Totals) -> None:
    counted = [(ObjectName("apps", name), one) for name, one in totals.items()]
    save_day("a", day, start_of(day) + timedelta(days=1), counted)
    for period in Period:
        save_sums(sums_by_namespace("a", period, first_day(period, day)))


@pytest.fixture
def kept(board, db):
    """Two days of one week: a Lease lost 100 s, one 1 s, and one was not watched."""
    good = Totals(gap_seconds=0.5, watched_seconds=WHOLE, handovers=1)
    unseen = Totals(unwatched_seconds=WHOLE)
    for _ in range(2):  # the second time changes nothing
        for day, lost in ((FRIDAY, 40.0), (FRIDAY + timedelta(days=1), 60.0)):
            bad = Totals(gap_seconds=lost, watched_seconds=WHOLE, failovers=2, near_misses=3)
            keep(day, bad=bad, good=good, unseen=unseen)


def items(browser, query: str) -> list[dict]:
    answer = browser.get(f"{PAGE}?format=json&date={FRIDAY}&{query}")
    assert answer.status_code == 200
    return answer.json()["items"]


def test_rows_that_miss_the_objective_come_first(kept, operator):
    bad, good, unseen = items(operator, "objective=99.95")
    assert [one["name"] for one in (bad, good, unseen)] == [BAD, GOOD, UNSEEN]
    assert [one["state"] for one in (bad, good, unseen)] == ["missed", "met", "no_data"]
    assert (bad["gap_seconds"], bad["failovers"], bad["near_misses"]) == (100.0, 4, 6)
    assert bad["budget_left_seconds"] == pytest.approx(2 * WHOLE * 0.0005 - 100)
    assert bad["held_percent"] == pytest.approx(100 * (1 - 50 / WHOLE), abs=1e-6)
    assert (bad["from"], bad["until"]) == (
        str(FRIDAY - timedelta(days=4)),
        f"{FRIDAY + timedelta(days=2)}T00:00:00.000000Z",
    )
    assert (unseen["held_percent"], unseen["budget_left_seconds"]) == (None, None)
    assert unseen["unwatched_seconds"] == 2 * WHOLE
    assert items(operator, "objective=99")[0]["state"] == "met"


def test_periods_namespaces_and_filters_choose_the_rows(kept, operator):
    assert [one["gap_seconds"] for one in items(operator, "period=day")] == [40.0, 0.5, 0.0]
    (quarter,) = items(operator, "period=quarter&by=namespace&namespace=apps")
    assert (quarter["name"], quarter["gap_seconds"]) == (None, 101.0)
    assert (quarter["watched_seconds"], quarter["unwatched_seconds"]) == (4 * WHOLE, 2 * WHOLE)
    assert [one["name"] for one in items(operator, "namespace=apps&lease=good")] == [GOOD]
    assert items(operator, "namespace=other") == []


def sums(browser, query: str) -> list[str]:
    """The key figures of the page: with and without a holder."""
    page = text_of(browser.get(f"{PAGE}?date={FRIDAY}&{query}"))
    return re.findall(r'<span class="v">([^<]*)</span>', page)[:2]


def test_the_sums_are_of_the_rows_that_are_shown(kept, operator):
    assert sums(operator, "lease=good") == sums(operator, "namespace=apps&lease=good")
    assert sums(operator, "lease=good") != sums(operator, "")
    both = "by=namespace&namespace=apps"
    assert sums(operator, f"{both}&lease=good") == sums(operator, both) != []


def test_pages_and_files_have_every_row(kept, operator):
    first = operator.get(f"{PAGE}?format=json&limit=2&date={FRIDAY}").json()
    assert (first["total"], len(first["items"])) == (3, 2)
    (last,) = operator.get(first["next"]).json()["items"]
    assert last["name"] == UNSEEN
    answer = operator.get(f"{PAGE}?format=csv&date={FRIDAY}")
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert lines[0].startswith("cluster,period,from,until,namespace,name,objective,state,")
    assert [line.split(",")[5] for line in lines[1:]] == [BAD, GOOD, UNSEEN]
    assert lines[3].split(",")[7:10] == ["no_data", "", "0.0"]


def test_the_page_shows_the_same_numbers(kept, operator):
    text = text_of(operator.get(f"{PAGE}?date={FRIDAY}&objective=99.95"))
    year, week, _ = FRIDAY.isocalendar()
    for shown in (
        f"Week {week} of {year}",
        "1 Lease of 3 missed the objective",
        "99.942 %",
        "1 m 40 s",
        "13 s over",
        "of all Leases together, neither good nor bad; 1 Lease without data",
        "4 d 0 h watched",
        "Last 14 days: 0 days missed the objective, 14 days without data",
    ):
        assert shown in text, shown
    assert "Default objective" not in text


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (0.0, ("10 s", "")),
        (10.0, ("0.0 s", "")),
        (10.05, ("used up", "")),
        (10.15, ("0.1 s", "over")),
        (99.0, ("1 m 29 s", "over")),
    ],
)
def test_a_budget_is_left_used_up_or_exceeded(gap, said):
    assert budget_text(Totals(gap_seconds=gap, watched_seconds=1000.0), 99.0) == said
    assert budget_text(Totals(), 99.0) == ("", "")


def test_the_sum_says_by_how_much_its_budget_is_exceeded(kept, operator):
    page = text_of(operator.get(f"{PAGE}?date={FRIDAY}&objective=99.99&lease=bad"))
    assert re.search(r'<span class="v">[^<]+ s <small>over</small></span>', page)


def test_what_was_not_counted_never_looks_good(kept, operator):
    text = text_of(operator.get(f"{PAGE}?namespace=other"))
    assert "No data" in text
    assert "100 %" not in text
    (unseen,) = items(operator, "lease=unseen")
    assert unseen["state"] == "no_data"


@pytest.fixture
def noon(monkeypatch):
    """It is noon of TODAY: the tests may be collected before midnight and run after it."""
    monkeypatch.setattr(clock, "now", lambda: start_of(TODAY) + timedelta(hours=12))


def test_what_is_at_risk_is_explained(noon, board, operator):
    lost = Totals(watched_seconds=100.0, gap_seconds=1.0)
    moment = start_of(TODAY) + timedelta(seconds=100)
    save_day("a", TODAY, moment, [(ObjectName("apps", "one"), lost)])
    save_sums(sums_by_namespace("a", Period.DAY, TODAY))
    text = text_of(operator.get(f"{PAGE}?period=day&objective=99.5"))
    means = "At risk: if the period ended now, too much of the watched time had no holder."
    said = f'1 missed the objective, <span title="{means}">1 at risk</span>'
    assert said in text
    assert f'class="state is-late" title="{means}"' in text
    assert means not in text_of(operator.get(f"{PAGE}?period=day&objective=90"))


def test_a_running_period_names_the_moment_up_to_which_it_is_counted(noon, board, operator):
    counted = start_of(TODAY) + timedelta(seconds=1)
    save_day("a", TODAY, counted, [(ObjectName("apps", "one"), Totals(watched_seconds=1.0))])
    save_sums(sums_by_namespace("a", Period.DAY, TODAY))
    text = text_of(operator.get(f"{PAGE}?period=day"))
    assert "This period is still running: counted up to 00:00:01 UTC" in text
    assert "14 days: 0 days missed the objective, 13 days without data" in text


def test_what_will_be_counted_further_follows_by_itself(noon, kept, operator):
    regions = re.compile(r'id="(\w+)" data-region="time"')
    assert regions.findall(text_of(operator.get(f"{PAGE}?date={FRIDAY}"))) == []
    one = ObjectName("apps", "one")
    counted = start_of(TODAY) + timedelta(seconds=1)
    save_day("a", TODAY, counted, [(one, Totals(watched_seconds=1.0))])
    save_sums(sums_by_namespace("a", Period.DAY, TODAY))
    path = f"{PAGE}?period=day"
    assert regions.findall(text_of(operator.get(path))) == ["period", "totals"]
    counted = start_of(TODAY) + timedelta(seconds=90)
    save_day("a", TODAY, counted, [(one, Totals(watched_seconds=60.0, unwatched_seconds=30.0))])
    save_sums(sums_by_namespace("a", Period.DAY, TODAY))
    fetched = operator.get(path, headers={"HX-Request": "true", "X-Regions": "period totals"})
    assert "HX-Push-Url" not in fetched
    text = text_of(fetched)
    assert "counted up to 00:01:30 UTC" in text
    assert '<span class="v">30 s</span>' in text, "what was not watched"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("objective=100.1", "Objective cannot be &#x27;100.1&#x27;: write percent above 0"),
        ("date=2026-13-01", "The day cannot be &#x27;2026-13-01&#x27;: write a day"),
        ("date=0001-01-01", "The day cannot be"),
        ("period=month", "period cannot be &#x27;month&#x27;: use one of week, day, quarter."),
    ],
)
def test_a_bad_parameter_is_one_sentence(board, operator, query, says):
    answer = operator.get(f"{PAGE}?{query}")
    assert answer.status_code == 400
    assert says in text_of(answer)
    assert operator.get(f"{PAGE}?{query}&format=json").status_code == 400


def test_an_admin_sets_the_objective_of_everybody(kept, admin, operator):
    back = f"{PAGE}?period=day"
    url = f"{PAGE}objective/"
    answer = admin.post(url, {"objective": "99.99", "next": back})
    assert (answer.status_code, answer["Location"]) == (302, back)
    assert items(operator, "")[0]["objective"] == 99.99
    assert admin.post(url, {"objective": "99.99", "next": "//evil"})["Location"] == PAGE
    (row,) = Edit.objects.all()
    assert (row.action, row.after) == ("reliability.objective", {"objective": 99.99})
    assert "Set objective" in text_of(admin.get("/audit/"))
    refused = admin.post(url, {"objective": "many"})
    assert refused.status_code == 400
    assert 'value="many"' in text_of(refused)
    assert "Objective cannot be &#x27;many&#x27;" in text_of(refused)
    assert operator.post(url, {"objective": "50"}).status_code == 403
    assert ReliabilityObjective.objects.get().percent == 99.99


def test_the_pages_of_leases_and_incidents_lead_here(store, operator):
    assert 'href="/c/a/reliability/"' in text_of(operator.get("/c/a/incidents/"))
    text = text_of(operator.get("/c/a/leases/kube-system/scheduler/"))
    assert "/c/a/reliability/?namespace=kube-system&amp;lease=scheduler" in text


def test_bars_tell_days_apart():
    bars = day_bars([None, 0.0, 0.0005, 0.5], 0.001)
    assert [path.count("z") for path in (bars.blind, bars.zero, bars.some, bars.hot)] == [1] * 4
    assert "v-16h" in bars.hot


class Told:
    """When reliability is counted, as a test says it."""

    def __init__(self, says: str | None) -> None:
        self.says = says
        self.stalled = None


def test_the_page_of_a_period_that_goes_on_says_why_its_totals_are_old(board, operator, db):
    keep(TODAY, good=Totals(watched_seconds=WHOLE))
    head = re.compile(r'<span class="note">(.*?)</span>\s*<span class="row end">', re.DOTALL)
    says = "The last count took 3.0 s: the next one begins at 10:59:18 UTC"
    for told in (says, None):
        board.counts = Told(told)
        for query, goes_on in ((f"date={TODAY}", True), (f"date={FRIDAY}", False)):
            note = head.search(text_of(operator.get(f"{PAGE}?{query}")))
            assert note is not None
            assert (says in note[1]) is (goes_on and told is not None)
