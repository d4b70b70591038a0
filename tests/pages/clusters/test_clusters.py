"""Admins add, change, pause and remove clusters; each wrong kubeconfig is one sentence."""

from __future__ import annotations

import base64
import html
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile

from dashboard import clock, log_lines
from dashboard.access.kept_secrets import KUBECONFIGS, CannotUnseal, unseal_text
from dashboard.forms import cluster_form
from dashboard.log_lines import redact
from dashboard.pages import clusters
from leases.apiserver.http.port import certificate_for, tls_context
from leases.models import AddedCluster, SecurityRecord
from tests.pages.conftest import text_of
from tests.serving.doctor.api_of_faults import Faults, serving_faults
from tests.support.processes import free_port
from tests.support.secret_api import kubeconfig

pytestmark = pytest.mark.django_db

CANARY = "c4nary-of-a-kubeconfig"
NEW = "/clusters/new/"


@pytest.fixture
def browser(board, admin, monkeypatch):
    monkeypatch.setattr(log_lines, "_secrets", set())
    return admin


def given(text: str, **more: object) -> dict[str, object]:
    return {"name": "prod", "labels": "env=prod", "kubeconfig": text, **more}


def said(answer) -> str:
    """The sentences beside the fields."""
    found = re.findall(r'<p class="err">.*?<span>(.*?)</span>', text_of(answer), re.DOTALL)
    return html.unescape(" ".join(found))


def two_contexts(server: str) -> str:
    config = yaml.safe_load(kubeconfig(server, token=CANARY))
    config["contexts"].append({"name": "other", "context": {"cluster": "k", "user": "u"}})
    return yaml.safe_dump(config)


def a_row(**more: object) -> AddedCluster:
    usual = {"name": "prod", "sealed": "x", "added_by": "ada", "added_at": clock.now()}
    return AddedCluster.objects.create(**(usual | more))


def test_a_cluster_is_checked_and_kept_encrypted(browser, board):
    woken: list[bool] = []
    board.added.wake = lambda: woken.append(True)
    with serving_faults(Faults()) as api:
        answer = browser.post(NEW, given(kubeconfig(api.url, token=CANARY)))
        assert answer.status_code == 302, said(answer)
        server = api.url
    row = AddedCluster.objects.get()
    assert (row.name, row.server, row.labels) == ("prod", server, {"env": "prod"})
    assert woken
    assert CANARY not in row.sealed
    config = msgspec.json.decode(unseal_text(row.sealed, KUBECONFIGS))
    assert config["users"][0]["user"] == {"token": CANARY}
    assert CANARY not in redact(f"it is {CANARY}")
    line = SecurityRecord.objects.get(event="cluster_added")
    assert (line.who, line.about) == ("ada", f"cluster prod at {server}")
    for path in (
        "/clusters/",
        f"/clusters/{row.pk}/",
        f"/clusters/{row.pk}/remove/",
        "/clusters/?format=json",
    ):
        page = text_of(browser.get(path))
        assert "prod" in page
        assert CANARY not in page
        assert row.sealed not in page


def test_what_is_sealed_with_a_former_secret_key_is_read(settings, browser):
    with serving_faults(Faults()) as api:
        browser.post(NEW, given(kubeconfig(api.url, token=CANARY)))
    sealed = AddedCluster.objects.get().sealed
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another key of more than 32 characters"
    with pytest.raises(CannotUnseal):
        unseal_text(sealed, KUBECONFIGS)
    settings.SECRET_KEY_FALLBACKS = [former]
    assert CANARY in unseal_text(sealed, KUBECONFIGS)


def bad_yaml(_folder: Path) -> str:
    return f"users: [{{token: {CANARY}\n  x"


def no_kubeconfig(_folder: Path) -> str:
    return CANARY


def unreachable(_folder: Path) -> str:
    return kubeconfig(f"http://127.0.0.1:{free_port()}", token=CANARY)


def user(**user: object):
    return lambda _folder: kubeconfig("https://127.0.0.1:1", token=CANARY, **user)


def authority_file(_folder: Path) -> str:
    config = yaml.safe_load(kubeconfig("https://127.0.0.1:1", token=CANARY))
    config["clusters"][0]["cluster"]["certificate-authority"] = "/etc/passwd"
    return yaml.safe_dump(config)


def password_in_address(_folder: Path) -> str:
    return kubeconfig(f"https://u:{CANARY}@127.0.0.1:1")


def key_of_nothing(_folder: Path) -> str:
    key = base64.b64encode(CANARY.encode()).decode()
    pair = {"client-certificate-data": key, "client-key-data": key}
    return kubeconfig("https://127.0.0.1:1", **pair)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (bad_yaml, "This kubeconfig cannot be used: it is not YAML (line 2)."),
        (no_kubeconfig, "it holds no kubeconfig with clusters, users and contexts."),
        (user(exec={"command": "/bin/sh"}), "it names a program to run. Leaseboard runs no"),
        (user(**{"auth-provider": {"name": "oidc"}}), "it names a program to run."),
        (user(tokenFile="/etc/passwd"), "its tokenFile is a file. Put what is in the file into"),
        (user(**{"client-key": "/etc/passwd"}), "its client-key is a file."),
        (authority_file, "its certificate-authority is a file."),
        (password_in_address, "its server is no address that begins with https:// and has no"),
        (unreachable, "Check that the API server runs."),
        (key_of_nothing, "Check the client certificate and its key."),
    ],
)  # fmt: skip
def test_a_wrong_kubeconfig_is_one_sentence(browser, tmp_path, make, says):
    text = make(tmp_path)
    answer = browser.post(NEW, given(text))
    assert answer.status_code == 422
    assert says in said(answer)
    page = text_of(answer)
    assert 'value="prod"' in page, "the name that was typed is kept"
    assert "env=prod" in page
    assert cluster_form.PASTE_AGAIN in page
    assert CANARY not in page
    assert not AddedCluster.objects.exists()
    assert CANARY in redact(f"it is {CANARY}"), "what is not kept is not hidden for ever"


@pytest.mark.parametrize(
    ("faults", "says"),
    [
        (
            {"status": 401},
            "does not accept our credentials (denied). Paste a kubeconfig with a tok",
        ),
        ({"refused": ("list", "watch")}, "The cluster refuses to list and watch Leases of all"),
        ({"version": b"nonsense"}, "answers, but not as a Kubernetes API server"),
        ({"has_leases": False}, "The cluster does not serve coordination.k8s.io/v1."),
    ],
)
def test_a_cluster_that_cannot_be_watched_is_one_sentence(browser, faults, says):
    with serving_faults(Faults(**faults)) as api:
        answer = browser.post(NEW, given(kubeconfig(api.url, token=CANARY)))
    assert says in said(answer)
    assert CANARY not in text_of(answer)
    assert not AddedCluster.objects.exists()


def test_a_certificate_that_is_not_trusted_is_one_sentence(browser, tmp_path):
    certificate_for(tmp_path, "127.0.0.1", now=datetime.now(UTC))
    with serving_faults(Faults(tls=tls_context(tmp_path))) as api:
        answer = browser.post(NEW, given(kubeconfig(api.url, token=CANARY)))
    assert "and Leaseboard do not trust each other" in said(answer)
    assert "Check the certificate authority" in said(answer)


def test_a_silent_cluster_is_not_waited_for_long(browser, monkeypatch):
    monkeypatch.setattr(cluster_form, "CHECK_SECONDS", 0.2)
    with serving_faults(Faults(hangs=True)) as api:
        answer = browser.post(NEW, given(kubeconfig(api.url, token=CANARY)))
    assert "did not answer within 0.2 s" in said(answer)


def test_a_clock_that_differs_is_told_and_forbids_nothing(browser):
    with serving_faults(Faults(ahead=90)) as api:
        answer = browser.post(NEW, given(kubeconfig(api.url, token=CANARY)), follow=True)
    assert "The cluster's clock is" in html.unescape(text_of(answer))
    assert "Synchronise both with NTP" in text_of(answer)
    assert AddedCluster.objects.exists()


def test_a_context_is_asked_for_and_the_kubeconfig_waits_encrypted(browser, monkeypatch):
    with serving_faults(Faults()) as api:
        asked = text_of(browser.post(NEW, given(two_contexts(api.url))))
        assert re.findall(r'<option value="(\w*)"', asked) == ["", "c", "other"]
        assert CANARY not in asked
        pasted = re.search(r'name="pasted" value="([^"]+)"', asked)
        assert pasted
        again = given("", context="other", pasted=pasted[1])
        monkeypatch.setattr(cluster_form, "KEPT_SECONDS", -1)
        assert cluster_form.OVER in text_of(browser.post(NEW, again))
        monkeypatch.undo()
        assert browser.post(NEW, again).status_code == 302
    assert CANARY in unseal_text(AddedCluster.objects.get().sealed, KUBECONFIGS)


def test_a_file_is_read_as_what_is_pasted(browser):
    with serving_faults(Faults()) as api:
        file = SimpleUploadedFile("config", kubeconfig(api.url, token=CANARY).encode())
        assert browser.post(NEW, given("", upload=file)).status_code == 302
    large = SimpleUploadedFile("config", b"#" * (cluster_form.MAX_KUBECONFIG + 1))
    answer = browser.post(NEW, given("", name="b2", upload=large))
    assert cluster_form.TOO_LARGE in said(answer)
    huge = SimpleUploadedFile("config", b"#" * (3 << 20))
    assert cluster_form.TOO_LARGE in said(browser.post(NEW, given("", name="b2", upload=huge)))
    no_text = SimpleUploadedFile("config", b"\xff\xfe")
    assert "This file is no text." in said(browser.post(NEW, given("", name="b2", upload=no_text)))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"name": "a"}, "There is a cluster of this name. Choose another."),
        ({"name": "Prod"}, "Write 1 to 32 of a-z, 0-9 and -"),
        ({"name": "gone"}, "The history of an earlier cluster of this name is being deleted."),
        ({"labels": "prod"}, "Write LABEL=VALUE, such as env=prod, comma-separated."),
        ({"labels": "page=1"}, "Page has a meaning in URLs; give the label another name."),
        ({"kubeconfig": ""}, "Paste a kubeconfig, or choose its file."),
    ],
)
def test_a_field_that_cannot_be_used_is_one_sentence(browser, more, says):
    a_row(name="gone", removed_at=clock.now())
    with serving_faults(Faults()) as api:
        answer = browser.post(NEW, given(kubeconfig(api.url, token=CANARY)) | more)
    assert says in said(answer)


def test_no_file_is_ever_put_on_a_disk(settings):
    handlers = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
    assert handlers == settings.FILE_UPLOAD_HANDLERS


def test_labels_and_credentials_are_changed(browser):
    row = a_row(labels={"env": "test"})
    url = f"/clusters/{row.pk}/"
    assert 'value="env=test"' in text_of(browser.get(url))
    assert browser.post(url, {"labels": "env=prod, region=eu"}).status_code == 302
    row.refresh_from_db()
    assert (row.labels, row.sealed, row.revision) == ({"env": "prod", "region": "eu"}, "x", 1)
    with serving_faults(Faults()) as api:
        browser.post(url, {"labels": "", "kubeconfig": kubeconfig(api.url, token=CANARY)})
    row.refresh_from_db()
    assert (row.labels, row.revision) == ({}, 2)
    assert CANARY in unseal_text(row.sealed, KUBECONFIGS)
    lines = SecurityRecord.objects.filter(event="cluster_changed").order_by("pk")
    assert [one.about for one in lines] == [
        "cluster prod: labels", f"cluster prod: labels and kubeconfig, at {row.server}",
    ]  # fmt: skip


def test_a_pause_says_since_when_and_by_whom(browser, board):
    row = a_row()
    browser.post(f"/clusters/{row.pk}/pause/")
    row.refresh_from_db()
    assert row.paused_by == "ada"
    assert clock.now() - row.paused_at < timedelta(minutes=1)
    paused = row.paused_at
    browser.post(f"/clusters/{row.pk}/pause/")
    row.refresh_from_db()
    assert row.paused_at == paused
    browser.post(f"/clusters/{row.pk}/resume/")
    row.refresh_from_db()
    assert (row.paused_by, row.paused_at) == ("", None)
    events = SecurityRecord.objects.filter(event__startswith="cluster_").order_by("pk")
    assert [one.event for one in events] == ["cluster_paused", "cluster_resumed"]


@pytest.mark.parametrize("choice", ["keep", "delete"])
def test_removing_asks_what_happens_to_history(browser, choice):
    row = a_row()
    url = f"/clusters/{row.pk}/remove/"
    assert "Choose what happens to its history." in said(browser.post(url))
    browser.post(url, {"history": choice})
    left = AddedCluster.objects.first()
    assert (left is None) == (choice == "keep")
    if left is not None:
        assert (left.removed_by, left.sealed) == ("ada", "")
        assert browser.get(url).status_code == 404
        assert "its history is being deleted" in text_of(browser.get("/clusters/"))
    assert SecurityRecord.objects.get(event="cluster_removed").who == "ada"


def test_clusters_of_settings_are_read_only_and_say_where_they_come_from(browser, board):
    a_row()
    board.added.wrong = {"prod": "Its kubeconfig was stored with another secret key."}
    page = text_of(browser.get("/clusters/"))
    assert page.count("read-only here") == 2
    assert "embedded" in page
    assert "Its kubeconfig was stored with another secret key." in page
    items = browser.get("/clusters/?format=json&q=pro").json()["items"]
    assert [(one["cluster"], one["added"], one["connection"]) for one in items] == [
        ("prod", True, None)
    ]


def test_an_operator_may_do_nothing_of_it(board, operator):
    row = a_row()
    for path in ("", "new/", f"{row.pk}/", f"{row.pk}/remove/"):
        assert operator.get(f"/clusters/{path}").status_code == 403
    for path in ("new/", f"{row.pk}/", f"{row.pk}/pause/", f"{row.pk}/remove/"):
        answer = operator.post(f"/clusters/{path}", given("x", history="keep"))
        assert answer.status_code == 403
        assert "may not manage clusters. Ask an admin." in text_of(answer)
    row.refresh_from_db()
    assert row.paused_at is None


def test_there_cannot_be_too_many(browser, monkeypatch):
    monkeypatch.setattr(clusters, "MAX_ADDED", 1)
    a_row()
    answer = browser.post(NEW, given(CANARY, name="more"))
    assert answer.status_code == 422
    assert "There are 1 clusters, and there cannot be more." in text_of(answer)
