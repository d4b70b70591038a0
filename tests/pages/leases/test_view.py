"""The list of Leases, as a page and as JSON."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from dashboard.board import running_board
from dashboard.live.shared_drawings import render_row
from leases.history.activity import Activity
from tests.pages.conftest import HTMX, text_of
from tests.support.board import KEY


def test_the_list_draws_the_very_rows_that_the_socket_sends(store, operator):
    html = text_of(operator.get("/c/a/leases/"))
    drawn = re.search(rf'<tr role="row" id="row-{KEY}".*?</tr>', html, re.DOTALL)
    sent = render_row("a", store.get(KEY), datetime.now(UTC), Activity())

    def without_ages(row: str) -> str:
        row = re.sub(r'width="[\d.]+"', "", row)
        return re.sub(r">[\d.]+ s( ago)?<|>\d+ h \d+ m<", "><", row).strip()

    assert without_ages(drawn[0]) == without_ages(sent)


def test_the_list_draws_the_hours_that_nobody_watched(store, operator):
    running_board().feeds["a"].activity.watched.record(store.connection)  # live since just now
    assert "0 changes in 24 h, 23 h not watched" in text_of(operator.get("/c/a/leases/"))


def test_htmx_gets_the_part_that_a_filter_changes(store, operator):
    response = operator.get("/c/a/leases/?phase=vacant&q=", headers=HTMX)
    html = text_of(response)
    assert html.lstrip().startswith('<span class="row" id="of-view" hx-swap-oob="true"')
    assert '<div id="board"' in html
    assert 'href="/c/a/leases/delete/?phase=vacant"' in html
    assert 'href="/c/a/leases/?phase=vacant&amp;format=json"' in html
    assert "apps/free" in html
    assert str(KEY) not in html
    assert response["HX-Push-Url"] == "/c/a/leases/?phase=vacant"
    assert "HX-Request" in response["Vary"]


def test_going_back_in_history_gets_the_whole_page(store, operator):
    headers = HTMX | {"HX-History-Restore-Request": "true"}
    response = operator.get("/c/a/leases/", headers=headers)
    assert "<!doctype html>" in text_of(response)
    assert "hx-swap-oob" not in text_of(response)
    assert "HX-Request" in response["Vary"]


def test_an_empty_filter_says_what_was_asked_and_how_to_widen_it(store, operator):
    html = text_of(operator.get("/c/a/leases/?phase=expired&namespace=apps"))
    assert "State is expired, namespace is apps." in html
    assert 'href="/c/a/leases/?phase=expired"' in html


def test_a_bad_filter_is_400_with_one_sentence(store, operator):
    response = operator.get("/c/a/leases/?phase=heldd")
    assert response.status_code == 400
    assert "phase cannot be &#x27;heldd&#x27;: use one of held" in text_of(response)
    response = operator.get("/c/a/leases/?phase=heldd&format=json")
    assert response.status_code == 400
    assert response.json()["error"].startswith("phase cannot be 'heldd'")


def test_the_json_of_a_lease_is_the_contract(store, operator):
    answer = operator.get("/c/a/leases/?format=json&q=scheduler").json()
    assert list(answer) == ["items", "total", "next", "now"]
    assert (answer["total"], answer["next"]) == (1, None)
    (item,) = answer["items"]
    assert list(item) == [
        "cluster", "namespace", "name", "uid", "kind", "kind_reason", "phase", "holder",
        "acquire_time", "renew_time", "observed_at", "duration_seconds", "transitions",
        "cadence_seconds", "expires_at", "resource_version", "abandoned", "may_be_vacant",
        "flapping",
    ]  # fmt: skip
    assert item["flapping"] is None
    assert (item["cluster"], item["name"], item["phase"]) == ("a", "scheduler", "held")
    assert (item["holder"], item["duration_seconds"]) == ("cp-1", 15)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", item["expires_at"])


def test_a_vacant_lease_has_no_holder_and_no_end_in_json(store, operator):
    (item,) = operator.get("/c/a/leases/?format=json&phase=vacant").json()["items"]
    assert (item["holder"], item["expires_at"]) == (None, None)


def test_json_pages_lead_to_each_other_until_all_are_read(store, operator):
    url, names = "/c/a/leases/?format=json&sort=name&limit=2", []
    while url:
        answer = operator.get(url).json()
        names += [item["name"] for item in answer["items"]]
        url = answer["next"]
    assert names == ["free", "other", "scheduler"]
