"""Every parameter of every page takes any value: it works, or one sentence names the parameter.

What a page reads is found by listening to its requests and compared with READS, so that a new
parameter must be named there, and is then tried with every value.
"""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import Client

from dashboard.access import links
from dashboard.access.kept_secrets import digest_of
from dashboard.lists.url_parameters import LABELS
from dashboard.pages.api import openapi
from leases import models
from leases.actions.delete_many import pack
from leases.domain.lease import ObjectName
from tests.support.board import a_lease, browser_of, fill, member, remember
from tests.support.every_url import Page, every_page
from tests.support.values.change_rows import to_row
from tests.support.values.changes import a_change
from tests.support.values.edge_values import VALUES
from tests.support.values.incident_rows import incident_with, store

FILTER = {
    "q", "namespace", "holder", "labels", "kind", "phase", "flapping", "abandoned", "sort", "range",
    "page", "limit",
}  # fmt: skip
OF_ITS_PAST = {"before", "from", "range", "to"}  # of the page of a Lease, not of its JSON
READS = {
    "home": {"format", "q", "by", "env", "page", "limit"},
    "overview": set(),
    "switch_cluster": {"from"},
    "leases": FILTER | {"format", "at", "absent"},
    "lease": {"format", "at"} | OF_ITS_PAST,
    "lease_asked": set(),
    "lease_edit": {"holder"},
    "lease_delete": set(),
    "delete_many": FILTER | {"ready", "held", "again", "lease"},
    "write_rights": {"namespace", "verbs"},
    "deletions": set(),
    "deletion": {"format"},
    "new_lease": {"namespace", "name", "holder_identity", "duration_seconds"},
    "lease_release": set(),
    "lease_hand_over": {"holder"},
    "lease_yaml": set(),
    "lease_outcome": set(),
    "timeline": {
        "format", "from", "to", "at", "range", "kind", "q", "holder", "sort", "view", "page",
        "limit",
    },
    "holders": {"format", "at", "q", "kind", "group", "holds", "range", "sort", "page", "limit"},
    "holder_pods": set(),
    "holder": {"format", "range"},
    "holder_place": set(),
    "nodes": {"group"},
    "node_cells": {"group", "first", "generation"},
    "history": {
        "format", "before", "limit", "change", "cause", "kind", "namespace", "lease", "holder",
        "inferred", "since", "until", "range", "view", "q",
    },
    "timeline_all": {
        "format", "cluster", "env", "range", "from", "to", "at", "kind", "limit", "page",
    },
    "history_all": {
        "format", "cluster", "env", "before", "limit", "change", "cause", "kind", "namespace",
        "lease", "holder", "inferred", "since", "until", "range", "view", "q",
    },
    "stretch": {"format", "from", "to", "range", "kind", "sort", "page", "limit"},
    "incidents": {
        "format", "cause", "namespace", "lease", "holder", "range", "from", "to", "going_on",
        "show", "limit", "before",
    },
    "incidents_all": {
        "format", "cluster", "env", "cause", "namespace", "lease", "holder", "range", "from", "to",
        "going_on", "show", "limit", "before",
    },
    "incident": {"format", "page", "changes"},
    "near_misses": {"format", "page", "limit"},
    "reliability": {
        "format", "period", "date", "by", "namespace", "lease", "objective", "page", "limit",
    },
    "wall": FILTER | {"key", "screen"},
    "fleet_wall": {"key", "screen"},
    "wall_screens": set(),
    "screen": set(),
    "search": {"format", "q", "lease", "go", "page", "limit"},
    "search_all": {"format", "q", "lease", "go", "page", "limit"},
    "audit": {
        "format", "page", "limit", "q", "cluster", "lease", "user", "action", "outcome", "batch",
        "since", "until",
    },
    "api": set(),
    "openapi": set(),
    "api_tokens": set(),
    "revoke_api_token": set(),
    "security_log": {
        "format", "page", "limit", "event", "who", "address", "q", "since", "until",
    },
    "audit_row": set(),
    "saved_views": {"format", "q", "page", "limit"},
    "save_view": {"from"},
    "saved_view": set(),
    "edit_view": set(),
    "wall_links": set(),
    "people": {"page"},
    "person": set(),
    "own_password": set(),
    "time_zone": {"next"},
    "revoke_wall_link": set(),
    "badges": set(),
    "clusters": {"format", "q", "page", "limit"},
    "new_cluster": set(),
    "cluster": set(),
    "remove_cluster": set(),
    "badge_svg": set(),
    "badge_json": set(),
    "notifications": set(),
    "new_receiver": {"sort"},
    "receiver": set(),
    "delete_receiver": set(),
    "notification_log": {"page", "receiver", "state"},
    "quiet_times": {"cluster", "lease"},
    "components": set(),
    "sign_in": {"next"},
    "sign_in_by_link": set(),
    "healthz": set(),
    "readyz": set(),
    "metrics": set(),
}  # fmt: skip
# The document does not name these here: other pages have the one, the page alone the others.
NOT_NAMED = {"holders": {"at"}, "lease": OF_ITS_PAST}
EVERYWHERE = {"q", "key", "screen"}  # read by the frame of each page
# They answer no GET.
POSTED = {
    "lease_kind", "lease_vacancy", "redeem_sign_in_link", "sign_out", "stop_deletion",
    "test_receiver", "end_quiet_time", "acknowledge_incident", "revoke_badge",
    "reliability_objective", "screen_code", "start_view", "remove_view", "pause_cluster",
    "resume_cluster", "revoke_screen",
}  # fmt: skip
FORMATS = {
    "home": ("json",),
    "clusters": ("json",),
    "leases": ("json",),
    "lease": ("json",),
    "timeline": ("json",),
    "holders": ("json",),
    "holder": ("json",),
    "history": ("json", "csv", "ndjson"),
    "timeline_all": ("json",),
    "history_all": ("json", "csv", "ndjson"),
    "stretch": ("json", "csv"),
    "incidents": ("json", "csv"),
    "incidents_all": ("json", "csv"),
    "incident": ("json", "markdown"),
    "near_misses": ("json",),
    "reliability": ("json", "csv"),
    "search": ("json",),
    "search_all": ("json",),
    "audit": ("json", "csv", "ndjson"),
    "security_log": ("json", "csv", "ndjson"),
    "saved_views": ("json",),
}
SENTENCES = "cannot be", "cannot have", "belong together", "lies", "must be later"
REFUSED_KEYS = (links.UNKNOWN, links.OUTDATED)


# Each page and each of its forms is asked these; the pages that read a parameter of the same name
# take turns with all other values, so that six of them try each value once.
FOR_ALL_FORMS = {"", "0001-01-01", "a%00b"}
MOST_TURNS = 6


SHARES = 4  # of the values of a page: the first is for each run, the others are long


def values_of(page: str, parameter: str) -> list[str]:
    """The values that a page is asked for one of its parameters."""
    sharers = [name for name, reads in READS.items() if parameter in reads]
    turns, turn = min(len(sharers), MOST_TURNS), sharers.index(page)
    return [
        value
        for number, value in enumerate(VALUES)
        if value in FOR_ALL_FORMS or number % turns == turn % turns
    ]


@pytest.fixture
def browser(board, admin) -> Client:
    """Two Leases and a little history."""
    now = datetime.now(UTC)
    other = ObjectName("team-a", "worker")
    fill(board.clusters["a"].store, a_lease(), a_lease(other, holder="w-1", now=now))
    fill(board.clusters["b"].store)
    board.feeds["a"].labels = {"env": "prod"}
    models.Deletion.objects.create(
        pk=1, batch="one", cluster="a", user=User.objects.get(username="ada"), chosen=pack([]),
        total=0, made_at=now, beat_at=now,
    )  # fmt: skip
    models.WallLink.objects.create(pk=1, name="lobby", created_at=now)
    models.ApiToken.objects.create(
        pk=1, name="ci", user=User.objects.get(username="ada"), role="operator", created_at=now,
        expires_at=now,
    )  # fmt: skip
    models.Badge.objects.create(
        name="wiki", digest=digest_of("nobody"), cluster="a", created_by="ada", created_at=now
    )
    models.AddedCluster.objects.create(pk=1, name="c", added_by="ada", added_at=now)
    models.Receiver.objects.create(pk=1, name="ops", sort="webhook", created_at=now)
    models.SavedView.objects.create(
        pk=1, name="held", owner=User.objects.get(username="ada"), page="leases", cluster="a",
        query="phase=held", created_at=now,
    )  # fmt: skip
    models.Edit.objects.create(
        pk=1, at=now, user=User.objects.get(username="ada"), username="ada", cluster="a",
        namespace="kube-system", name="scheduler", action="lease.release",
    )  # fmt: skip
    changes = [a_change(n, at=now - timedelta(hours=n)) for n in (1, 2)]
    models.ChangeRecord.objects.bulk_create(map(to_row, changes))
    store(incident_with(*changes, id="first"))
    return admin


def read_by(browser: Client, page: Page, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The parameters that a page asks its query string for."""
    names: set[str] = set()
    for method in ("get", "getlist", "__getitem__", "__contains__"):
        plain = getattr(QueryDict, method)

        def listening(query, name, *rest, plain=plain):
            if not query._mutable:  # which it is while it is made
                names.add(name)
            return plain(query, name, *rest)

        monkeypatch.setattr(QueryDict, method, listening)
    stretch = "from=2026-11-20T03:00:00Z&to=2026-11-20T04:00:00Z"
    queries = ["", "at=2026-11-20T03:00:00Z", stretch]
    queries += [f"format={word}" for word in FORMATS.get(page.name, ())]
    for query in queries:
        consume(browser.get(f"{page.path}?{query}"))
    monkeypatch.undo()
    return names - {"_method"}


def consume(answer) -> str:
    """The whole text of an answer; what a stream finds wrong is raised here."""
    if answer.streaming:
        return b"".join(answer.streaming_content).decode()
    return answer.content.decode()


def test_the_parameters_that_each_page_reads_are_known(browser, monkeypatch):
    stranger = Client()  # who is signed in already sees no sign-in form
    for page in every_page():
        if page.name in POSTED:
            continue
        reader = stranger if page.name in ("sign_in", "sign_in_by_link") else browser
        found = read_by(reader, page, monkeypatch)
        known = READS[page.name]
        assert found - EVERYWHERE == known - EVERYWHERE, page.name
        assert known - found <= EVERYWHERE, page.name


def test_the_openapi_document_names_what_each_page_with_json_reads():
    for one in openapi("")["paths"].values():
        name, parameters = one["get"]["operationId"], one["get"]["parameters"]
        asked = {each["name"] for each in parameters if each["in"] == "query"}
        if "label" in asked:  # what labels are called is the board's own
            asked = asked - {"label"} | {"env"}
        assert asked == READS[name] - NOT_NAMED.get(name, set()), name


@pytest.mark.parametrize(
    "whole",
    [pytest.param(False, marks=pytest.mark.brief), pytest.param(True, marks=pytest.mark.long)],
)
@pytest.mark.parametrize("name", [name for name, reads in READS.items() if reads])
def test_any_value_of_a_parameter_is_used_or_refused_in_a_sentence(
    browser, name, whole, monkeypatch
):
    """Whole page, part and each format take turns; what is oldest is asked of all of them."""
    remember(User.objects.get(username="ada"), monkeypatch)
    page = next(page for page in every_page() if page.name == name)
    forms = [("", {}), ("", {"HX-Request": "true"})]
    forms += [(f"&format={word}", {}) for word in FORMATS.get(name, ())]
    for parameter in sorted(READS[name]):
        for number, value in enumerate(values_of(name, parameter)):
            if not whole and number % SHARES and value not in FOR_ALL_FORMS:
                continue
            turn = number % len(forms)
            of_all = whole and value in FOR_ALL_FORMS
            for more, headers in forms if of_all else forms[turn : turn + 1]:
                answer = browser.get(f"{page.path}?{parameter}={value}{more}", headers=headers)
                check(answer, parameter, value)


CHOSEN = {"range", "cause", "change", "cluster", "go"}  # by a click, or by the form itself


def test_no_page_repeats_a_long_text_often_or_loses_what_it_refuses(browser, monkeypatch):
    remember(User.objects.get(username="ada"), monkeypatch)
    long = "x" * 100_000
    wrong = []
    for page in every_page():
        for parameter in sorted(READS.get(page.name, ())):
            answer = browser.get(f"{page.path}?{parameter}={long}")
            text = consume(answer)
            fields = re.findall(rf'<input(?=[^>]* name="{parameter}")[^>]*>', text)
            if len(text) >= 500_000:
                wrong.append((page.name, parameter, f"{len(text):,}"))
            fields = [one for one in fields if 'role="combobox"' not in one]
            if parameter == "q":
                del fields[:1]  # the search of the frame
            is_text = fields and parameter not in CHOSEN
            if answer.status_code == 400 and is_text and not any(long in one for one in fields):
                wrong.append((page.name, parameter, "lost"))
    assert not wrong, wrong


def check(answer, parameter: str, value: str) -> None:
    text = html.unescape(consume(answer))
    shown = value[:40]
    not_then = answer.status_code == 404 and "Nothing is known of a Lease" in text
    assert not_then or answer.status_code in (200, 302, 400, 403, 409, 410), (
        shown, answer.status_code,
    )  # fmt: skip
    assert "Traceback" not in text
    assert len(text) < 500_000, shown
    if answer.status_code == 302:
        assert not urlsplit(answer["Location"]).netloc, (shown, answer["Location"])
    if answer.status_code == 403:
        assert any(sentence in text for sentence in REFUSED_KEYS)
    if answer.status_code == 400:
        names = parameter, LABELS.get(parameter, parameter)
        said = [f"{name} {word}" for name in names for word in SENTENCES]
        said += ["from and to belong together", "From and To belong together"]
        assert any(sentence in text for sentence in said), (shown, text[-2000:])


@pytest.mark.parametrize(
    "query",
    [
        "page=1&page=2&page=x",
        "&".join(["kind=election"] * 900) + "&&&===&;&%00=%00&%ff=%ff",
        pytest.param(
            "&".join(f"change={word}" for word in ["expired", "created"] * 400),
            marks=pytest.mark.long,
        ),
        pytest.param("page[]=1&page[a]=2&limit[]=%00", marks=pytest.mark.long),
        pytest.param("page=2&sort=-name&limit=1&q=%20", marks=pytest.mark.long),
    ],
)
def test_parameters_given_often_or_strangely_break_no_page(browser, query):
    for page in every_page():
        if page.name not in POSTED:
            answer = browser.get(f"{page.path}?{query}")
            consume(answer)
            assert answer.status_code in (200, 302, 400, 409, 410), (page, answer.status_code)


def test_more_parameters_than_are_read_is_a_sentence(browser):
    answer = browser.get("/c/a/leases/?" + "&".join(f"p{n}=1" for n in range(1001)))
    assert answer.status_code == 400
    assert "1,000 parameters" in answer.content.decode()


@pytest.mark.parametrize("path", ["/", "/no/such/page/", "/static/x", "/badge/x.svg", "/sign-in/"])
def test_more_parameters_than_are_read_are_a_sentence_for_strangers_too(board, db, path):
    answer = Client().get(f"{path}?" + "&".join(f"p{n}=1" for n in range(1001)))
    assert answer.status_code == 400
    assert "1,000 parameters" in answer.content.decode()


def test_text_in_another_encoding_than_utf_8_is_refused_in_a_sentence(browser):
    """UTF-7 can spell half a surrogate pair."""
    body = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n+2AA-\r\n--x--\r\n'
    for charset in ("utf-7", "utf-16", "unicode_escape"):
        kind = f"multipart/form-data; boundary=x; charset={charset}"
        answer = browser.post("/wall-links/", body, content_type=kind)
        assert answer.status_code == 400
        assert "Send it in UTF-8." in answer.content.decode()


@pytest.mark.parametrize("part", ["%00", "x" * 5000, "%ff", "%ed%a0%80", "%2f", "..", "%e2%80%ae"])
def test_any_part_of_a_path_is_found_or_is_404(browser, part):
    for path in (
        f"/c/{part}/",
        f"/c/a/leases/{part}/scheduler/",
        f"/c/a/leases/kube-system/{part}/",
        f"/c/a/leases/kube-system/{part}/edit/",
        f"/c/a/leases/kube-system/{part}/asked/",
        f"/sign-in/{part}/",
        f"/{part}",
    ):
        answer = browser.get(path)
        assert answer.status_code in (200, 301, 302, 404, 410), (path[:60], answer.status_code)
    for path in (
        f"/c/a/leases/kube-system/{part}/kind/",
        f"/c/a/leases/kube-system/{part}/vacancy/",
        f"/c/a/leases/kube-system/{part}/edit/",
        "/wall-links/99999999999999999999999999/revoke/",
    ):
        assert browser.post(path, {"kind": "lock"}).status_code in (302, 404, 405, 409), path[:60]


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("/?q=keep-me&limit=x", "keep-me"),
        ("/c/a/leases/?q=keep-me&limit=x", "keep-me"),
        ("/c/a/leases/?labels=keep%20me", "keep me"),
        ("/c/a/leases/?namespace=keep-me&sort=x", "keep-me"),
        ("/c/a/leases/?at=keep-me", "keep-me"),
        ("/c/a/leases/?at=2026-11-20T03:00:00Z&holder=keep-me&page=0", "keep-me"),
        ("/c/a/history/?since=keep-me", "keep-me"),
        ("/c/a/incidents/?from=keep-me", "keep-me"),
        ("/c/a/incidents/?namespace=keep-me&limit=0", "keep-me"),
        ("/c/a/history/?lease=keep-me&until=x", "keep-me"),
        ("/c/a/timeline/?at=keep-me", "keep-me"),
        ("/c/a/holders/?q=keep-me&range=x", "keep-me"),
        ("/c/a/history/stretch/?from=keep-me&to=03:30", "keep-me"),
    ],
)
def test_a_refused_form_keeps_what_was_typed(browser, path, typed):
    answer = browser.get(path)
    assert answer.status_code == 400
    text = answer.content.decode()
    assert f'value="{typed}"' in text
    part = browser.get(path, headers={"HX-Request": "true"})
    assert part.status_code == 400
    assert part["HX-Push-Url"] == path


def test_history_knows_every_range_that_the_timeline_has(browser):
    for name in ("1h", "6h", "24h", "7d", "30d"):
        answer = browser.get(f"/c/a/history/?range={name}&holder=nobody")
        assert answer.status_code == 200
        assert f'<option value="{name}" selected>' in answer.content.decode()


def test_pages_take_any_value_from_a_reader_too(board, db):
    """The way of an operator, who may not edit."""
    fill(board.clusters["a"].store, a_lease())
    operator = browser_of(member("olga", "operator"))
    for value in VALUES:
        answer = operator.get(f"/c/a/leases/kube-system/scheduler/?range={value}")
        check(answer, "range", value)
