"""The page of one incident: its story, what people noted, and the same as files."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from dashboard import clock
from dashboard.pages.incidents.incident import MAX_NOTE, MAX_NOTES
from dashboard.watched_cluster import WatchedCluster
from leases import models
from leases.domain.change import ChangeType
from leases.domain.incident import Cause, Evidence, Source
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.history import outbox
from leases.history.insert_incidents import MAX_STORY
from tests.pages.conftest import HTMX, text_of
from tests.pages.incidents.incident_page import URL, keep, words
from tests.support.board import browser_of, member
from tests.support.values import incident_rows
from tests.support.values.changes import T0, a_change
from tests.support.values.incidents import KEDA, a_story, an_incident
from tests.support.values.receivers import a_receiver


@pytest.fixture
def told(store, db) -> None:
    keep(a_story())


def test_the_page_tells_the_story_with_its_evidence(told, operator):
    answer = operator.get(URL)
    text = words(answer)
    assert "worker-7's heartbeat stopped at 12:00:00; 2 elections ran out within 12 s" in text
    assert "Node down Likely" in text
    assert "Worst without a holder 16 s scheduler" in text
    assert "Leases 3 2 elections and 1 heartbeat" in text
    assert "2 pieces of evidence from 2 sources" in text
    assert "Events could not be read" in text
    assert "Changes 5, in order" in text
    assert "silent 1.0 s so far" in text
    html = text_of(answer)
    assert html.count('class="tl-row" data-lane=') == 3
    assert re.search(r'fill="url\(#fog\)"[^<]*/></svg>nobody watched<', html), "the legend"
    assert 'href="/c/a/leases/keda/operator.keda.sh/"><code>' in html
    assert "from=2026-11-20T11%3A59%3A55Z&amp;to=2026-11-20T12%3A00%3A46" in html


def test_a_lock_that_nobody_holds_says_when_it_counts(store, operator):
    lock = {"kind": Kind.LOCK, "namespace": KEDA.namespace, "name": KEDA.name}
    story = (a_change(10, change=ChangeType.EXPIRED, holder="ada", **lock),)
    given = {"leases": (KEDA,), "cause": Cause.BY_HAND}
    keep(story, ended=None, worst_gap_seconds=None, **given)
    said = "Worst without a holder not over nobody waits for a lock: counted once it is over"
    assert said in words(operator.get(URL))


def test_a_fight_in_which_it_is_always_held_has_no_time_without_a_holder(store, operator):
    keep((a_change(10),), ended=None, worst_gap_seconds=None, cause=Cause.FLAPPING)
    for page in (URL, "/c/a/incidents/", f"{URL}?format=markdown"):
        assert "none seen" in words(operator.get(page)), page


def test_a_long_fight_is_told_to_its_end(store, operator):
    fight = [
        a_change(number, change=ChangeType.REPLACED, at=T0 + number * timedelta(seconds=1),
                 holder=f"f{number % 2}", previous_holder=f"f{1 - number % 2}")
        for number in range(MAX_STORY + 10)
    ]  # fmt: skip
    end = T0 + timedelta(hours=1)
    fight.append(a_change(999, at=end, holder="last", previous_holder="f1"))
    keep(tuple(fight), cause=Cause.FLAPPING, ended=end)
    page = words(operator.get(f"{URL}?changes=9"))
    assert "kube-system scheduler f1 last " in page
    assert f"of {len(fight)}" in page
    assert "in History alone" not in page


def test_it_outlives_the_rows_that_it_was_made_from(told, operator, monkeypatch):
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    before = words(operator.get(URL))
    models.ChangeRecord.objects.all().delete()
    assert words(operator.get(URL)) == before


def test_an_unknown_incident_is_a_sentence(store, operator):
    answer = operator.get("/c/a/incidents/no-such/")
    assert answer.status_code == 404
    assert "a has no incident 'no-such'. Look in the list of incidents." in words(answer)


def test_one_that_became_part_of_another_leads_there(told, operator):
    incident_rows.store(an_incident(id="earlier", part_of="first"))
    answer = operator.get("/c/a/incidents/earlier/")
    assert (answer.status_code, answer["Location"]) == (302, URL)


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_who_may_read_may_note(told, role):
    browser = browser_of(member("nadia", role))
    answer = browser.post(URL, {"text": "Rack 14 lost <b>power</b>.\r\nAgain."}, follow=True)
    assert answer.redirect_chain == [(f"{URL}#notes", 302)]
    assert "Rack 14 lost &lt;b&gt;power&lt;/b&gt;.\nAgain." in text_of(answer)
    assert re.search(r"nadia .* Rack 14 lost", words(answer))
    browser.post(URL, {"text": "Rack 14 lost <b>power</b>.\r\nAgain."})  # the button was hit twice
    assert models.IncidentNote.objects.count() == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("  ", "Write what you found out."),
        ("x" * (MAX_NOTE + 1), f"Use {MAX_NOTE:,} characters at most. These are {MAX_NOTE + 1}."),
        ("a\0b", "Leave out the NUL character."),
    ],
)
def test_a_bad_note_is_refused_at_its_field_and_not_lost(told, operator, text, sentence):
    answer = operator.post(URL, {"text": text})
    assert answer.status_code == 422
    assert sentence in words(answer)
    assert 'aria-invalid="true"' in text_of(answer)
    assert text.strip()[:50].replace("\0", "") in text_of(answer).replace("\0", "")
    assert not models.IncidentNote.objects.exists()


def test_an_incident_takes_so_many_notes(told, operator):
    models.IncidentNote.objects.bulk_create(
        models.IncidentNote(cluster="a", incident="first", who="x", at=T0, text=str(n))
        for n in range(MAX_NOTES)
    )
    answer = operator.post(URL, {"text": "one more"})
    assert answer.status_code == 422
    assert f"An incident takes {MAX_NOTES} notes" in words(answer)


def test_a_note_needs_the_token_of_the_form(told):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(member("nadia", "operator"))
    assert browser.post(URL, {"text": "forged"}).status_code == 403
    assert not models.IncidentNote.objects.exists()


def test_its_json_says_since_when_it_may_be_outdated(told, board, operator):
    store, now = board.clusters["a"].store, clock.now()
    store.connect(Connection(state=ConnectionState.LIVE, since=T0, heard_at=now), now)
    assert "connection" not in operator.get(f"{URL}?format=json").json()
    store.connect(Connection(state=ConnectionState.STALE, since=now, heard_at=T0), now)
    item = operator.get(f"{URL}?format=json").json()
    assert (item["connection"], item["as_of"]) == ("stale", "2026-11-20T12:00:00.123456Z")


def test_it_answers_as_json_and_as_markdown_with_its_notes(told, operator):
    operator.post(URL, {"text": "Rack 14."})
    item = operator.get(f"{URL}?format=json").json()
    assert (item["id"], item["changes"], item["cause"]) == ("first", 5, "node_down")
    answer = operator.get(f"{URL}?format=markdown")
    assert answer["Content-Type"] == "text/markdown; charset=utf-8"
    name = 'attachment; filename="a-incident-20261120T120000Z-node_down.md"'
    assert answer["Content-Disposition"] == name
    text = answer.content.decode()
    assert "> Rack 14." in text
    assert "| Page | <http://testserver/c/a/incidents/first/> |" in text
    assert "`keda-2`" in text


def test_one_that_goes_on_is_drawn_again(store, operator):
    keep(a_story(), ended=None, settled=False)
    part = text_of(operator.get(URL, headers=HTMX))
    region = re.search(r'id="story" data-region="([^"]+)"', part)[1].split()
    assert {"incidents", "time"} <= set(region)
    assert "<textarea" not in part  # a note under way is left alone
    assert "not settled" in part


def test_an_incident_of_thousands_of_leases_is_a_small_page(store, operator):
    keys = tuple(ObjectName("default", f"lease-{number:04}") for number in range(3000))
    evil = "\u202e<script>" + "n" * 253
    story = [
        a_change(number / 100, namespace="default", name=key.name, holder=evil)
        for number, key in enumerate(keys[:300])
    ]
    keep(story, leases=keys, cause=Cause.API_OUTAGE, sentence=f"{evil} and 2,999 others",
         evidence=(Evidence(f"{evil} stopped", Source.LEASES),), hosts=(evil,))  # fmt: skip
    answer = operator.get(URL)
    assert len(answer.content) < 400_000
    assert b"<script>n" not in answer.content
    text = words(answer)
    assert "2,960 more Leases in the table below" in text
    assert "1-25 of 3,000" in text
    assert "1-50 of 300" in text
    later = operator.get(f"{URL}?page=120&changes=6")
    assert "2,976-3,000 of 3,000" in words(later)
    assert "251-300 of 300" in words(later)
    assert len(operator.get("/c/a/incidents/").content) < 100_000


def test_a_reader_acknowledges_an_incident_and_takes_it_back(told, operator):
    url = f"{URL}acknowledge/"
    assert operator.post(url)["Location"] == f"{URL}#notifications"
    operator.post(url)
    assert "olga takes care of it since" in words(operator.get(URL))
    operator.post(url, {"back": "yes"})
    page = words(operator.get(URL))
    assert "nobody has acknowledged it" in page
    assert page.count("I took back that olga takes care of it.") == 1
    assert "Receivers are then told" not in page  # it is over
    assert operator.post("/c/a/incidents/none/acknowledge/").status_code == 404


def test_who_takes_care_is_told_wherever_the_incident_is(board, store, operator, admin):
    mine = {"ended": None, "settled": False, "leases": (ObjectName("kube-system", "scheduler"),)}
    keep(a_story(), **mine)
    going_on = an_incident(**mine)
    board.publisher.hubs["a"].going_on = lambda: (going_on,)
    form = text_of(operator.get(URL)).partition('id="notifications"')[2].partition("</form>")[0]
    row = form.partition('<div class="row">')[2].partition("</div>")[0]
    assert re.findall(r"</svg>(\w+)</button>|>([\w ]+)</button>", row) == [
        ("Acknowledge", ""), ("", "Say that it is over"),
    ]  # fmt: skip
    operator.post(f"{URL}acknowledge/")
    admin.post(f"{URL}acknowledge/", {"take": "yes"})
    board.notifications.care = outbox.care()
    pages = ["", "incidents/", "incidents/first/", "leases/kube-system/scheduler/", "wall/"]
    for page in pages:
        assert "ada takes care of it, since" in words(operator.get(f"/c/a/{page}")), page
    admin.post(f"{URL}acknowledge/", {"over": "yes"})
    on = admin.post(f"{URL}acknowledge/", {"back": "yes"}, follow=True)
    assert "ada takes care of it as before." in words(on)
    assert "ada takes care of it since" in words(operator.get(URL))
    operator.post(f"{URL}acknowledge/", {"over": "yes"})
    page = words(operator.get(URL))
    assert "olga says that it is over, since" in page
    assert "I decided that it is over." in page
    assert "I took it over from olga." in page
    operator.post(f"{URL}acknowledge/", {"over": "yes"})
    assert "Say that it is over" not in page
    models.QuietTime.objects.create(since=T0, reason="x", who="ada")
    board.notifications.care = outbox.care()
    assert "; muted" in words(operator.get("/c/a/"))
    operator.post(f"{URL}acknowledge/", {"back": "yes"})
    assert "I decided that it goes on." in words(operator.get(URL))


def test_a_decision_is_not_taken_back_once_it_is_over_indeed(store, operator):
    keep(a_story(), ended=None, settled=False)
    operator.post(f"{URL}acknowledge/", {"over": "yes"})
    assert "It goes on</button>" in text_of(operator.get(URL))
    models.IncidentRecord.objects.update(ended=T0 + timedelta(seconds=41))
    assert "It goes on</button>" not in text_of(operator.get(URL))
    page = words(operator.post(f"{URL}acknowledge/", {"back": "yes"}, follow=True))
    assert "It is over by now, whatever anybody decided. Nothing changed." in page
    assert "I decided that it goes on." not in page


def test_the_page_shows_who_was_told(told, operator):
    receiver = a_receiver()
    values = {"cluster": "a", "incident": "first", "stage": "opened", "content": "{}"}
    models.Notification.objects.create(
        receiver=receiver, step=0, made_at=T0, due_at=T0, state="failed",
        outcome="It answered 500.", **values,
    )  # fmt: skip
    assert "ops opened: failed" in words(operator.get(URL))
    assert "It answered 500." in words(operator.get(URL))


def test_how_long_a_lease_has_been_without_a_holder_counts_on(store, operator, monkeypatch):
    key, at = ObjectName("keda", "operator.keda.sh"), T0 + timedelta(seconds=20)
    named = {"namespace": key.namespace, "name": key.name}
    released = a_change(change=ChangeType.RELEASED, holder=None, gap_seconds=None, **named)
    keep([released], ended=None, settled=False, leases=(key,), unheld_since=T0)
    monkeypatch.setattr(WatchedCluster, "as_of", lambda *_: at)
    page = text_of(operator.get(URL))
    assert re.search(rf'data-since="{T0.timestamp()}">20 s</span> so far', page)
