"""Which changes a URL asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.http import QueryDict

from dashboard.lists.url_parameters import BadFilter
from dashboard.parts.page_links import HistoryState

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def asked(query: str, now: datetime = NOW) -> HistoryState:
    return HistoryState.read(QueryDict(query), now)


def test_an_empty_filter_matches_everything():
    assert asked("") == HistoryState()
    assert asked("change=&kind=&lease=+&inferred=&since=") == HistoryState()


def test_every_field_is_read():
    found = asked(
        "change=expired&change=released&kind=election&namespace=a&lease=b&holder=c&inferred=true"
        "&since=2026-11-20T03:12:40Z&until=2026-11-20"
    )
    assert (found.change, found.kind) == (("expired", "released"), ("election",))
    assert (found.namespace, found.lease, found.holder, found.inferred) == ("a", "b", "c", True)
    assert found.since == datetime(2026, 11, 20, 3, 12, 40, tzinfo=UTC)
    assert found.until == datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.parametrize("holder", ["x" * 1024, "a\0b", " a ", "a_b"])
def test_any_holder_may_be_asked_for(holder, operator, board):
    query = urlencode({"holder": holder})
    assert asked(query).holder == holder
    assert asked(asked(query).query()) == asked(query)
    page = operator.get(f"/c/a/history/?{query}")
    assert page.status_code == 200
    text = page.content.decode()
    shown = holder.replace("\0", "␀")
    assert f'value="{shown}"' in text
    assert f"older is {shown[:30]}" in text
    wrong = operator.get(f"/c/a/history/?since=never&{query}")
    assert wrong.status_code == 400
    assert f'value="{shown}"' in wrong.content.decode()


@pytest.mark.parametrize("text", ["2026-11-20T05:12:40+02:00", "2026-11-20T05:12:40%2B02:00"])
def test_a_time_with_an_offset_means_that_moment(text):
    assert asked(f"since={text}").since == datetime(2026, 11, 20, 3, 12, 40, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        ("since=03:12", (22, 3, 12), None),
        ("since=3:12&until=03:30", (22, 3, 12), (22, 3, 30)),
        ("since=13:00", (21, 13, 0), None),
        ("since=23:50&until=00:10", (21, 23, 50), (22, 0, 10)),
        ("since=03:12&until=2026-11-20T12:00", (20, 3, 12), (20, 12, 0)),
    ],
)
def test_a_time_of_day_is_the_last_one_before_the_end(query, since, until):
    found = asked(query)
    ends = [end and datetime(2026, 11, *end, tzinfo=UTC) for end in (since, until)]
    assert [found.since, found.until] == ends


@pytest.mark.parametrize("path", ["/c/a/history/", "/history/"])
@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        (
            "since=2026-11-20T21:20:00Z&until=2026-11-20T21:10:00Z",
            "until must be later than since.",
            "Until must be later than Since.",
        ),
        (
            "range=1h&until=2026-11-20",
            "until must be later than the beginning of the range.",
            "Until must be later than the beginning of the range.",
        ),
        (
            "since=2999-01-01",
            "since lies in the future: nothing has happened then yet.",
            "Since lies in the future: nothing has happened then yet.",
        ),
    ],
)
def test_a_stretch_without_any_time_is_refused(path, query, error, said, operator, board):
    page = operator.get(f"{path}?{query}")
    assert page.status_code == 400
    assert said in page.content.decode()
    for kind in ("json", "csv", "ndjson"):
        answer = operator.get(f"{path}?{query}&format={kind}")
        assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_a_program_with_a_fast_clock_may_ask_for_what_is_new(operator, board):
    since = (datetime.now(UTC) + timedelta(seconds=30)).isoformat().replace("+00:00", "Z")
    answer = operator.get(f"/c/a/history/?since={since}&format=json")
    assert (answer.status_code, answer.json()["items"]) == (200, [])


def test_a_filter_survives_its_own_query_string():
    found = asked(
        "change=expired&holder=a%26b&q=100%25+!_&since=2026-11-20T03:12:40.5Z&inferred=false"
    )
    assert asked(found.query()) == found


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("since=yesterday", "since cannot be 'yesterday': use a time such as"),
        ("since=25:00", "since cannot be '25:00': use a time such as 03:12:40."),
        ("inferred=maybe", "inferred cannot be 'maybe': use one of true, false."),
        ("change=renewed", "change cannot be 'renewed': use one of created"),
        ("lease=%00", "lease cannot be '\\x00': leave out the NUL"),
    ],
)
def test_a_bad_filter_is_answered_with_the_right_form(query, sentence):
    with pytest.raises(BadFilter) as refused:
        asked(query)
    assert str(refused.value).startswith(sentence)
