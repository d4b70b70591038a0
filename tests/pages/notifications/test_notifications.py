"""Admins set receivers, see what became of messages, and hold messages back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard import clock
from dashboard.access.kept_secrets import CannotUnseal, unseal
from dashboard.pages.notifications import messages
from dashboard.parts.formatting import ahead
from leases.domain.incident import Cause
from leases.domain.notify import Choice, Gravity, Security
from leases.history.deliveries import claim, finish
from leases.history.outbox import decode_choice
from leases.models import Notification, QuietTime, Receiver, SecurityRecord
from tests.pages.conftest import text_of
from tests.support.board import fill

pytestmark = pytest.mark.django_db

CANARY = "C4NARY-of-a-secret"
WEBHOOK = {
    "name": "ops",
    "url": f"https://hooks.example.com/{CANARY}",
    "secret": f"{CANARY}-key",
    "causes": ["node_down"],
    "leases": "kube-system/*, keda/x",
    "group_seconds": "10",
    "enabled": "on",
}
MAIL = {
    "name": "mail",
    "host": "mail.example.com",
    "port": "587",
    "security": "tls",
    "username": "leases",
    "password": CANARY,
    "sender": "leases@example.com",
    "to": "a@example.com, b@example.com",
    "group_seconds": "0",
}
URL = "/notifications/receivers/"


@pytest.fixture
def browser(board, admin):
    return admin


def make(browser, sort="webhook", **given) -> Receiver:
    values = MAIL if sort == "email" else WEBHOOK
    answer = browser.post(f"{URL}new/?sort={sort}", values | given)
    assert answer.status_code == 302, text_of(answer)
    return Receiver.objects.get()


def test_a_new_receiver_hears_of_the_unplanned_unless_its_form_says_otherwise(browser):
    page = text_of(browser.get(f"{URL}new/?sort=webhook"))
    assert re.search(r'name="unplanned"[^>]* checked', page)
    assert not decode_choice(make(browser).choice).unplanned
    Receiver.objects.all().delete()
    assert decode_choice(make(browser, unplanned="on").choice).unplanned


def test_a_receiver_is_made_and_its_secrets_are_never_shown(browser):
    one = make(browser)
    assert decode_choice(one.choice) == Choice(
        causes=(Cause.NODE_DOWN,), leases=("kube-system/*", "keda/x")
    )
    assert unseal(one.sealed).secret == f"{CANARY}-key"
    for path in ("/notifications/", f"{URL}{one.pk}/", "/notifications/log/"):
        assert CANARY not in text_of(browser.get(path))
    assert CANARY not in str(Receiver.objects.values())
    assert "https://hooks.example.com" in text_of(browser.get("/notifications/"))


def test_security_md_says_that_secrets_of_receivers_are_encrypted_as_they_are(browser, settings):
    one = make(browser)
    for secret in (f"{CANARY}-key", WEBHOOK["url"]):
        assert secret not in str(Receiver.objects.values())
    settings.SECRET_KEY = "another"
    with pytest.raises(CannotUnseal):
        unseal(one.sealed)
    said = " ".join((settings.BASE_DIR / "SECURITY.md").read_text().split())
    assert "are encrypted in the database with a key that follows from the secret key" in said
    assert "lie readable" not in said


def test_what_is_left_empty_stays_but_no_secret_goes_to_a_new_place(browser):
    one = make(browser)
    browser.post(f"{URL}{one.pk}/", WEBHOOK | {"name": "all", "url": "", "secret": ""})
    one.refresh_from_db()
    assert (one.name, unseal(one.sealed).secret, one.enabled) == ("all", f"{CANARY}-key", True)
    Receiver.objects.update(last_sent_at=clock.now())
    assert "works" in text_of(browser.get("/notifications/"))
    moved = {"url": "https://elsewhere.example.com/", "secret": ""}
    browser.post(f"{URL}{one.pk}/", WEBHOOK | moved)
    one.refresh_from_db()
    assert "not tried yet" in text_of(browser.get("/notifications/"))
    assert (unseal(one.sealed).url, unseal(one.sealed).secret) == (moved["url"], "")


def test_the_password_of_mail_stays_with_its_server(browser):
    one = make(browser, "email")
    page = text_of(browser.get(f"{URL}{one.pk}/"))
    assert 'value="mail.example.com"' in page
    assert 'value="a@example.com, b@example.com"' in page
    for host, kept in (("mail.example.com", CANARY), ("elsewhere.example.com", "")):
        browser.post(f"{URL}{one.pk}/", MAIL | {"password": "", "host": host})
        one.refresh_from_db()
        target = unseal(one.sealed)
        assert (target.host, target.password, target.security) == (host, kept, Security.TLS)


@pytest.mark.parametrize(
    ("sort", "wrong", "sentence"),
    [
        ("webhook", {"url": "ftp://example.com/"}, "begins with https:// or http://"),
        ("webhook", {"url": "https://user:pw@example.com/"}, "out of the address"),
        ("slack", {"url": ""}, "Fill in “Address”."),
        ("pagerduty", {"secret": ""}, "Fill in “Routing key”."),
        ("opsgenie", {"secret": ""}, "Fill in “API key”."),
        ("alertmanager", {"group_seconds": "9999"}, "Write whole seconds from 0 to 3600."),
        ("alertmanager", {"group_seconds": "-3"}, "Write whole seconds from 0 to 3600."),
        ("alertmanager", {"group_seconds": "x"}, "Write whole seconds from 0 to 3600."),
        ("email", {"port": "70000"}, "Write a number from 1 to 65535."),
        ("email", {"to": "nobody"}, "nobody is no e-mail address"),
        ("webhook", {"causes": ["nonsense"]}, "nonsense is none of these"),
    ],
)
def test_a_wrong_field_is_told_in_a_sentence_and_keeps_the_rest(browser, sort, wrong, sentence):
    values = MAIL if sort == "email" else WEBHOOK
    answer = browser.post(f"{URL}new/?sort={sort}", values | wrong)
    assert answer.status_code == 422
    assert sentence in text_of(answer)
    assert f'value="{values["name"]}"' in text_of(answer)
    assert f"{CANARY}-key" not in text_of(answer)
    assert not Receiver.objects.exists()


def test_a_test_goes_through_the_queue_into_the_log(browser):
    one = make(browser)
    answer = browser.post(f"{URL}{one.pk}/test/")
    assert answer["Location"] == f"/notifications/log/?receiver={one.pk}"
    now = clock.now()
    [delivery] = claim("one", now)
    assert "sent by ada" in delivery.messages[0].sentence
    finish(delivery, "one", now, error="It answered 404 Not Found.")
    log = text_of(browser.get(f"/notifications/log/?receiver={one.pk}&state=waiting"))
    assert "It answered 404 Not Found." in log
    assert "fails" in text_of(browser.get("/notifications/"))
    browser.post(f"{URL}{one.pk}/delete/")
    assert not Notification.objects.exists()


def test_the_security_log_has_what_is_done_to_a_receiver_without_its_secrets(browser):
    one = make(browser)
    browser.post(f"{URL}{one.pk}/", WEBHOOK | {"url": "https://elsewhere.example.com/x"})
    browser.post(f"{URL}{one.pk}/test/")
    browser.post(f"{URL}{one.pk}/delete/")
    lines = SecurityRecord.objects.filter(event__startswith="receiver").order_by("id")
    assert list(lines.values_list("event", "who", "about")) == [
        ("receiver_created", "ada", "receiver ops: Webhook to https://hooks.example.com"),
        ("receiver_changed", "ada", "receiver ops: Webhook to https://elsewhere.example.com"),
        ("receiver_tested", "ada", "receiver ops: Webhook to https://elsewhere.example.com"),
        ("receiver_deleted", "ada", "receiver ops: Webhook to https://elsewhere.example.com"),
    ]


def test_the_page_says_what_the_links_of_messages_need(browser, settings):
    one = make(browser, severities=["critical"])
    assert decode_choice(one.choice).severities == (Gravity.CRITICAL,)
    page = " ".join(text_of(browser.get("/notifications/")).split())
    assert one.address == "http://testserver"
    assert "Messages link to http://testserver, the address by which an admin came" in page
    Receiver.objects.update(address="")
    page = " ".join(text_of(browser.get("/notifications/")).split())
    assert "Messages have no link: set LEASEBOARD_URL" in page
    settings.LEASEBOARD = settings.LEASEBOARD.__class__(url="https://leases.example.com")
    page = " ".join(text_of(browser.get("/notifications/")).split())
    assert "Messages link to https://leases.example.com, which LEASEBOARD_URL sets." in page


def test_messages_to_all_receivers_link_to_where_the_last_admin_came(browser, settings):
    settings.ALLOWED_HOSTS = ["testserver", "board.example.com"]
    first = make(browser)
    browser.post(f"{URL}new/?sort=webhook", WEBHOOK | {"name": "b"}, HTTP_HOST="board.example.com")
    for one in Receiver.objects.all():
        browser.post(f"{URL}{one.pk}/test/")
    page = " ".join(text_of(browser.get("/notifications/")).split())
    assert "Messages link to http://board.example.com, the address" in page
    assert "http://testserver" not in page
    assert [one.address for one in claim("one", clock.now())] == ["http://board.example.com"] * 2
    browser.post(f"{URL}{first.pk}/", WEBHOOK)
    assert "Messages link to http://testserver, the" in text_of(browser.get("/notifications/"))


def test_the_log_looks_again_while_a_test_waits(browser):
    one = make(browser)
    address = browser.post(f"{URL}{one.pk}/test/")["Location"]
    assert f'hx-get="{address}" hx-trigger="every 1s"' in text_of(browser.get(address))
    [delivery] = claim("one", clock.now())
    finish(delivery, "one", clock.now())
    log = text_of(browser.get(address))
    assert "hx-trigger" not in re.search(r'<section class="panel" id="messages".*?>', log)[0]


def test_the_log_does_not_say_that_a_test_waits_which_was_sent(browser):
    one = make(browser)
    address = browser.post(f"{URL}{one.pk}/test/")["Location"]
    [delivery] = claim("one", clock.now())
    finish(delivery, "one", clock.now())
    log = text_of(browser.get(address))
    assert "queued" not in log
    assert "The newest test below says how it reached" in log


def test_a_mute_of_what_no_cluster_has_is_asked_back(board, browser, store):
    given = {"lease": "keda/x", "reason": "an upgrade"}
    page = browser.post("/notifications/quiet/", given | {"cluster": "a"})
    assert "a does not have this Lease or namespace now." in text_of(page)
    fill(board.clusters["b"].store)
    page = browser.post("/notifications/quiet/", given)
    assert page.status_code == 422
    assert "No cluster has this Lease or namespace now" in text_of(page)
    for known in ("kube-system", "kube-system/scheduler"):
        sure = given | {"cluster": "a", "lease": known}
        assert browser.post("/notifications/quiet/", sure).status_code == 302
    assert browser.post("/notifications/quiet/", given | {"sure": "on"}).status_code == 302


def test_a_lease_is_muted_twice_only_if_somebody_says_so(browser, store):
    given = {"cluster": "a", "lease": "kube-system/scheduler", "reason": "an upgrade"}
    until = clock.now().replace(second=0, microsecond=0) + timedelta(hours=2)
    ends = given | {"until": f"{until:%Y-%m-%dT%H:%M}"}
    assert browser.post("/notifications/quiet/", ends).status_code == 302
    again = browser.post("/notifications/quiet/", given | {"until": "1 h"})
    assert again.status_code == 422
    said = f"This Lease is muted already until {ahead(until, clock.now())}, by ada."
    assert said in text_of(again)
    assert "Mute it all the same" in text_of(again)
    later = {"since": f"{until:%Y-%m-%dT%H:%M}", "until": ""}
    for other in ({"cluster": ""}, {"lease": "kube-system"}, later, {"sure": "on"}):
        assert browser.post("/notifications/quiet/", given | other).status_code == 302
    assert QuietTime.objects.count() == 5
    window = {"cluster": "a", "lease": "kube-system", "reason": "two windows may overlap"}
    assert browser.post("/notifications/quiet/", window).status_code == 302


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"until": "23:00"}, "until 23:00"),
        ({"until": "04:30"}, "until 04:30 tomorrow, 27 Nov 2026"),
        ({"until": "2026-11-29T04:30"}, "until 04:30 on 29 Nov 2026"),
        ({"since": "22:00", "until": "02:00"}, "from 22:00 until 02:00 tomorrow, 27 Nov 2026"),
        ({"since": "04:00"}, "from 04:00 tomorrow, 27 Nov 2026 until somebody ends it"),
    ],
)
def test_a_mute_tells_everywhere_when_it_begins_and_on_which_day_it_ends(
    browser, store, monkeypatch, given, said
):
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 26, 18, 30, tzinfo=UTC))
    lease = {"cluster": "a", "lease": "kube-system/scheduler", "reason": "an upgrade"}
    told = browser.post("/notifications/quiet/", lease | given, follow=True)
    page = " ".join(text_of(told).split())
    assert f"Messages are held back {said} (UTC)." in page
    assert f">{said}<" in page or f">now, {said}<" in page
    if not said.startswith("from"):
        on_page = text_of(browser.get("/c/a/leases/kube-system/scheduler/"))
        assert f"Muted {said}, by ada" in " ".join(on_page.split())
    again = text_of(browser.post("/notifications/quiet/", lease | given))
    assert f"This Lease is muted already {said}, by ada." in again


def test_a_muted_lease_says_so_and_offers_to_unmute(browser, store, operator):
    page = "/c/a/leases/kube-system/scheduler/"
    given = {"cluster": "a", "lease": "kube-system/scheduler", "reason": "an upgrade"}
    assert "Mute its notifications" in text_of(browser.get(page))
    browser.post("/notifications/quiet/", given)
    assert "Mute its notifications" not in text_of(browser.get(page))
    said = " ".join(text_of(operator.get(page)).split())
    assert "Muted until somebody ends it, by ada: <span data-verbatim>an upgrade" in said
    assert "Unmute" not in text_of(operator.get(page))
    assert "Unmute" in text_of(browser.get(page))
    end = f"/notifications/quiet/{QuietTime.objects.get().pk}/end/"
    assert browser.post(end, {"back": page})["Location"] == page
    assert browser.post(end, {"back": "//elsewhere.example.com/"})["Location"] == (
        "/notifications/quiet/"
    )
    assert "Muted" not in text_of(browser.get(page))


def test_older_messages_are_on_the_next_page_of_the_log(browser, monkeypatch):
    monkeypatch.setattr(messages, "PER_PAGE", 1)
    one = make(browser)
    for _ in range(2):
        browser.post(f"{URL}{one.pk}/test/")
    assert "?page=2" in text_of(browser.get("/notifications/log/"))
    assert "?page=1" in text_of(browser.get("/notifications/log/?page=2"))


def test_a_receiver_that_is_switched_off_gets_nothing_that_waited(browser):
    one = make(browser)
    browser.post(f"{URL}{one.pk}/test/")
    browser.post(f"{URL}{one.pk}/", WEBHOOK | {"enabled": ""})
    browser.post(f"{URL}{one.pk}/test/")
    [row] = Notification.objects.all()
    assert (row.state, row.outcome) == ("withdrawn", "Not sent: the receiver was switched off.")
    saved = browser.post(f"{URL}{one.pk}/", WEBHOOK)
    assert saved.status_code == 302, re.findall("class=.err.>.*", text_of(saved))
    assert claim("one", clock.now()) == []


def test_a_mute_is_added_from_the_address_and_ended(browser):
    page = text_of(browser.get("/notifications/quiet/?cluster=a&lease=keda/x"))
    assert 'value="keda/x"' in page
    later = f"{clock.now() + timedelta(hours=2):%Y-%m-%dT%H:%M}"
    given = {"cluster": "a", "lease": "keda/x", "until": later, "reason": "an upgrade"}
    assert browser.post("/notifications/quiet/", given).status_code == 302
    row = QuietTime.objects.get()
    assert (row.namespace, row.name, row.who) == ("keda", "x", "ada")
    assert "an upgrade" in text_of(browser.get("/notifications/quiet/"))
    browser.post(f"/notifications/quiet/{row.pk}/end/")
    assert "Nothing is held back" in text_of(browser.get("/notifications/quiet/"))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"until": "yesterday"}, "To cannot be"),
        ({"until": "2020-01-01T00:00"}, "This time has passed"),
        ({"since": "2999-01-02T00:00", "until": "2999-01-01T00:00"}, "must end after it begins"),
        ({"reason": ""}, "Fill in “Reason”."),
        ({"lease": "keda/*"}, "without patterns"),
        ({"lease": "keda/x/y"}, "Write the name of one namespace, or namespace/name"),
        ({"lease": "/x"}, "Write the name of one namespace, or namespace/name"),
        ({"lease": f"{'n' * 64}/x"}, "Write the name of one namespace, or namespace/name"),
    ],
)
def test_a_wrong_time_is_told_in_a_sentence(browser, wrong, sentence):
    answer = browser.post("/notifications/quiet/", {"reason": "an upgrade"} | wrong)
    assert answer.status_code == 422
    assert sentence in text_of(answer)
    assert not QuietTime.objects.exists()
