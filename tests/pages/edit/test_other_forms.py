"""Release, hand over, YAML and the page after a write, against a real Lease API."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from msgspec.structs import replace

from dashboard.forms import form_page, yaml_form
from dashboard.pages.edit import outcome
from dashboard.parts.change_sentence import changes_of
from dashboard.watched_cluster import WatchedCluster
from leases.domain.change import Change, ChangeType
from leases.domain.kind import Kind
from leases.domain.lease import ObjectName
from leases.domain.watched_times import Connection, ConnectionState
from leases.kube.cluster_source import parse_source
from leases.kube.connect import connect
from leases.kube.http_session import Timeouts
from leases.models import Edit
from leases.wire.microtime import format_microtime, format_time
from leases.wire.watch_decoding import Applied
from tests.support.api_client import LeaseApi
from tests.support.board import a_lease, fill, member
from tests.support.scripted_api import Reply, ScriptedServer, answer, silence
from tests.support.values.change_rows import to_row
from tests.support.values.untouched_form import as_typed

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/c/a/leases/default/story/"
KEY = ObjectName("default", "story")


async def opened(admin: AsyncClient, form: str) -> dict[str, str]:
    """The hidden fields of a form and its text, as a browser sends them."""
    answer = await admin.get(f"{PATH}{form}/")
    assert answer.status_code == 200
    return fields(answer.content.decode())


def fields(page: str) -> dict[str, str]:
    found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    texts = dict(re.findall(r'(?s)<textarea name="(\w+)"[^>]*>\n?(.*?)</textarea>', page))
    return {name: unescape(value) for name, value in (found | texts).items()}


async def test_a_release_writes_what_client_go_does(cluster, admin):
    data = await opened(admin, "release") | {"reason": "drill", "confirm": "yes"}
    answer = await admin.post(f"{PATH}release/", data)
    assert answer.status_code == 302
    spec = (await cluster.client.raw_get(KEY))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    assert spec["acquireTime"] == spec["renewTime"]
    assert spec["leaseTransitions"] == 7
    row = await Edit.objects.aget()
    assert (row.action, row.outcome) == ("lease.release", "done")
    page = await admin.get(answer["Location"])
    assert "Released at" in page.content.decode()


@pytest.mark.parametrize(
    ("form", "typed"),
    [
        ("release", {}),
        ("hand-over", {"to": "", "other": "cp-2"}),
        ("edit", {"holder_identity": "cp-2"}),
        ("edit/yaml", {}),
    ],
)
async def test_a_missing_reason_is_told_and_the_next_press_writes(cluster, admin, form, typed):
    data = await opened(admin, form) | typed | {"confirm": "yes"}
    if form == "edit":
        data = dict(as_typed(await cluster.client.get(KEY)).lists()) | data
    if form == "edit/yaml":
        data["text"] = data["text"].replace("cp-1", "cp-2")
    answer = await admin.post(f"{PATH}{form}/", data | {"reason": ""})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Say why" in page
    assert re.search(r'name="confirm" value="yes" data-once', page)
    assert (await cluster.client.get(KEY)).holder == "cp-1"
    again = data | fields(page) | {"reason": "drill"}
    assert (await admin.post(f"{PATH}{form}/", again)).status_code == 302
    assert (await cluster.client.get(KEY)).holder != "cp-1"


async def test_a_release_in_a_cluster_that_is_not_live_says_that_its_state_is_not_known(
    cluster, admin
):
    heard = datetime.now(UTC)
    cluster.store.connection = Connection(state=ConnectionState.STALE, since=heard, heard_at=heard)
    page = (await admin.get(f"{PATH}release/")).content.decode()
    assert "Its present state is not known: what you see was known at" in page
    assert "take it back" not in page


async def test_only_who_waits_is_told_for_how_long(cluster, admin):
    waits = "instead of waiting for the 15 s to"
    assert waits in (await admin.get(f"{PATH}release/")).content.decode()
    vacant = await cluster.client.patch(KEY, {"spec": {"holderIdentity": ""}})
    fill(cluster.store, vacant)
    page = (await admin.get(f"{PATH}release/")).content.decode()
    assert "Whoever looks first may take it at" in page
    assert "instead of waiting" not in page


async def test_a_release_of_another_term_writes_nothing_and_keeps_the_reason(cluster, admin):
    data = await opened(admin, "release") | {"reason": "cp-1 hangs", "confirm": "yes"}
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 8}})
    answer = await admin.post(f"{PATH}release/", data)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "Not released: cp-9 holds it by now" in text
    assert "cp-1 hangs" in text
    assert 'name="confirm"' not in text
    assert (await cluster.client.get(KEY)).holder == "cp-9"
    again = await admin.post(f"{PATH}release/", fields(text))
    assert "Release Lease" in again.content.decode()


@pytest.mark.parametrize(("path", "word"), [("release/", "released"), ("delete/", "deleted")])
async def test_a_lease_that_was_made_again_is_left_alone(cluster, admin, path, word):
    data = await opened(admin, path.rstrip("/"))
    data |= {"reason": "cp-1 hangs", "confirm": "yes", "typed_name": str(KEY)}
    await cluster.client.patch(KEY, {"metadata": {"finalizers": None}})
    await cluster.client.delete(KEY)
    meta = {"namespace": KEY.namespace, "name": KEY.name}
    await cluster.client.create({"metadata": meta, "spec": {"holderIdentity": "cp-1"}})
    answer = await admin.post(f"{PATH}{path}", data)
    assert answer.status_code == 409
    again = "the Lease was deleted and made again, and cp-1 holds it by now"
    assert f"Not {word}: {again}" in answer.content.decode()


async def test_a_hand_over_to_a_typed_identity(cluster, admin):
    data = await opened(admin, "hand-over") | {"to": "", "other": "cp-2", "reason": "drill"}
    preview = await admin.post(f"{PATH}hand-over/", data)
    assert "transitions 7 to 8" in preview.content.decode()
    assert re.search(r"preview again, or\s+press &ldquo;Hand over&rdquo;", preview.content.decode())
    assert (await cluster.client.get(KEY)).holder == "cp-1"
    answer = await admin.post(f"{PATH}hand-over/", data | {"confirm": "yes"})
    assert answer.status_code == 302
    after = (await cluster.client.get(KEY)).spec
    assert (after.holder_identity, after.lease_transitions) == ("cp-2", 8)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("", "Name the next holder."),
        ("a\x1bb", "A holder is one line of printable characters."),
        ("cp-1", "cp-1 holds it already. Choose somebody else."),
    ],
)
async def test_whoever_cannot_be_the_next_holder_is_refused(cluster, admin, other, said):
    data = await opened(admin, "hand-over") | {"to": "", "other": other}
    answer = await admin.post(f"{PATH}hand-over/", data)
    assert answer.status_code == 422
    assert said in answer.content.decode()


async def test_who_is_chosen_and_who_is_typed_must_be_one(cluster, admin):
    data = await opened(admin, "hand-over") | {"to": "cp-2"}
    answer = await admin.post(f"{PATH}hand-over/", data | {"other": "cp-3"})
    assert answer.status_code == 422
    said = "You chose cp-2 and typed another identity."
    assert answer.content.decode().count(said) == 2  # above, and at its field
    same = await admin.post(f"{PATH}hand-over/", data | {"other": "cp-2"})
    assert same.status_code == 200


async def test_yaml_sends_only_what_differs(cluster, admin):
    """A renewal and another's label, written meanwhile, survive."""
    data = await opened(admin, "edit/yaml") | {"reason": "drill", "confirm": "yes"}
    assert "managedFields" not in data["text"]
    now = format_microtime(datetime.now(UTC))
    other = {"metadata": {"labels": {"team": "a"}}, "spec": {"renewTime": now}}
    await cluster.client.patch(KEY, other)
    data["text"] = (
        data["text"]
        .replace("Seconds: 15", "Seconds: 30  # longer")
        .replace("  - a.example/b", "  - a.example/b\n  - a.example/c")
    )
    answer = await admin.post(f"{PATH}edit/yaml/", data)
    assert answer.status_code == 302, answer.content.decode()[-3000:]
    after = await cluster.client.raw_get(KEY)
    assert after["spec"]["leaseDurationSeconds"] == 30
    assert after["spec"]["renewTime"] == now
    assert after["metadata"]["labels"] == {"team": "a"}
    assert after["metadata"]["finalizers"] == ["a.example/b", "a.example/c"]
    row = await Edit.objects.aget()
    assert set(row.after) == {"spec.leaseDurationSeconds", "metadata.finalizers"}


async def test_yaml_that_both_changed_shows_both_sides(cluster, admin):
    data = await opened(admin, "edit/yaml") | {"reason": "drill", "confirm": "yes"}
    await cluster.client.patch(KEY, {"spec": {"leaseDurationSeconds": 20}})
    data["text"] = data["text"].replace("Seconds: 15", "Seconds: 30")
    answer = await admin.post(f"{PATH}edit/yaml/", data)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "spec.leaseDurationSeconds" in text
    assert re.search(r"leaseboard wrote spec.leaseDurationSeconds at \d\d:\d\d:\d\d\.", text)
    sent = fields(text)
    assert "leaseDurationSeconds: 30" in sent["text"]
    assert "leaseDurationSeconds: 20" in sent["shown"]
    again = await admin.post(f"{PATH}edit/yaml/", sent | {"confirm": "yes", "reason": "drill"})
    assert again.status_code == 302
    assert (await cluster.client.get(KEY)).spec.lease_duration_seconds == 30


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("spec:\n", "spec:\n\tx: 1\n", "a tab. YAML indents with spaces only"),
        ("name: story", "name: other", "metadata.name cannot be changed here."),
        ("Seconds: 15", "Seconds: 0", "must be greater than 0"),
        ("Seconds: 15", "Seconds: [", ""),
        ("spec:\n", 'spec:\n  x: "\\ud800"\n', "this escape is no character"),
        ("spec:\n", 'spec:\n  x: "a\\0"\n', "Leave out the NUL character."),
        ("spec:\n", 'spec:\n  "x\\0": [1]\n', "Leave out the NUL character."),
        ("spec:\n", 'spec:\n  x: [{y: "\\0"}]\n', "Leave out the NUL character."),
        ("Seconds: 15", "Seconds: 0x" + "f" * 100_000, "A number has 100 characters at most"),
        ("Seconds: 15", "Seconds: 1" + ":1" * 100_000, "A number has 100 characters at most"),
        ("spec:\n", "x:\n" + "- 1\n" * 250_000 + "spec:\n", "20,000 keys and values at most"),
    ],
)
async def test_wrong_yaml_is_refused_at_its_line(cluster, admin, old, new, said):
    data = await opened(admin, "edit/yaml")
    data["text"] = data["text"].replace(old, new, 1)
    answer = await admin.post(f"{PATH}edit/yaml/", data)
    text = unescape(answer.content.decode())
    assert answer.status_code == 422
    assert said in text
    assert 'class="ln bad"' in text
    assert (await cluster.client.get(KEY)).spec.lease_duration_seconds == 15


async def test_a_mistyped_field_is_marked_at_its_line_and_asked_about_before_it_is_left_out(
    cluster, admin
):
    """The server leaves it out without an error: kubectl refuses it for that reason."""
    data = await opened(admin, "edit/yaml") | {"reason": "drill"}
    right = data["text"]
    data["text"] = right.replace("Seconds: 15", "Second: 15\n  leaseTransition:\n    a: 1")
    line = data["text"].split("\n").index("  leaseDurationSecond: 15") + 1

    async def sent(**more: str) -> tuple[int, str]:
        answer = await admin.post(f"{PATH}edit/yaml/", data | more)
        return answer.status_code, re.sub(r"\s+", " ", unescape(answer.content.decode()))

    status, page = await sent()
    assert (status, page.count('class="bad"'), page.count('class="ln bad"')) == (200, 2, 2)
    said = "The cluster would leave out spec.leaseDurationSecond: it knows no such field. "
    said += "Did you mean spec.leaseDurationSeconds?"
    assert f'<a class="link" href="#line-{line}">Line {line}</a>: {said}' in page
    assert page.count("spec.leaseTransition:") == 2, "once in the list, once at its line"
    assert "Accepted in part" in page
    assert "unknown field" not in page
    status, page = await sent(confirm="yes")
    assert (status, "Nothing was written" in page, "left-out" in page) == (422, True, True)
    agreed = re.search(r'name="without" id="id_without" value="(\w+)">', page)
    assert agreed is not None
    other = data["text"].replace("leaseTransition:", "another:")
    assert (await sent(text=other, confirm="yes", without=agreed[1]))[0] == 422
    assert (await cluster.client.get(KEY)).spec.lease_duration_seconds == 15
    assert (await sent(confirm="yes", without=agreed[1]))[0] == 302
    assert (await cluster.client.get(KEY)).spec.lease_duration_seconds is None


async def test_what_people_send_is_read_compared_and_drawn_off_the_event_loop(
    cluster, admin, monkeypatch
):
    """The loop serves everybody: a large text must not stop it."""
    on_loop = []

    def watched(module, name):
        plain = getattr(module, name)

        def call(*arguments):
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                on_loop.append((name, False))
            else:
                on_loop.append((name, True))
            return plain(*arguments)

        monkeypatch.setattr(module, name, call)

    data = await opened(admin, "edit/yaml") | {"reason": "drill"}
    watched(yaml_form, "read_yaml")
    watched(form_page, "diff_lines")
    data["text"] = data["text"].replace("Seconds: 15", "Seconds: 30")
    assert (await admin.post(f"{PATH}edit/yaml/", data)).status_code == 200
    await cluster.client.patch(KEY, {"spec": {"leaseDurationSeconds": 20}})
    assert (await admin.post(f"{PATH}edit/yaml/", data | {"confirm": "yes"})).status_code == 409
    assert {name for name, _ in on_loop} == {"read_yaml", "diff_lines"}
    assert not any(where for _, where in on_loop)


async def test_a_removed_holder_is_never_null(cluster, admin):
    data = await opened(admin, "edit/yaml") | {"reason": "drill", "confirm": "yes"}
    data["text"] = data["text"].replace("holderIdentity: cp-1", "holderIdentity: null")
    assert (await admin.post(f"{PATH}edit/yaml/", data)).status_code == 302
    assert (await cluster.client.raw_get(KEY))["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize("form", ["edit", "release", "hand-over", "edit/yaml"])
async def test_who_may_not_edit_and_a_forged_form_are_refused(cluster, admin, form):
    operator = AsyncClient()
    await operator.aforce_login(await sync_to_async(member)("olga", "operator"))
    for method in (operator.get, operator.post):
        assert (await method(f"{PATH}{form}/")).status_code == 403
    strict = AsyncClient(enforce_csrf_checks=True)
    await strict.aforce_login(await sync_to_async(member)("eve", "admin"))
    data = await opened(admin, form) | {"reason": "drill", "confirm": "yes"}
    forged = await strict.post(f"{PATH}{form}/", data | {"csrfmiddlewaretoken": "x" * 64})
    assert forged.status_code == 403
    assert (await cluster.client.get(KEY)).holder == "cp-1"
    assert not await Edit.objects.aexists()


async def test_the_page_after_a_write_is_of_its_lease_alone(cluster, admin):
    data = await opened(admin, "release") | {"reason": "drill", "confirm": "yes"}
    where = (await admin.post(f"{PATH}release/", data))["Location"]
    assert (await admin.get(where)).status_code == 200
    assert (await admin.get(where.replace("story", "other"))).status_code == 404
    assert (await admin.get(f"{PATH}written/99999999999999999999/")).status_code == 404


@pytest.mark.parametrize("form", ["release", "hand-over", "edit/yaml", "delete"])
async def test_a_finished_form_sent_again_leads_to_what_became_of_the_first(cluster, admin, form):
    data = await opened(admin, form) | {"reason": "drill", "confirm": "yes"}
    data |= {"to": "", "other": "cp-2", "typed_name": str(KEY)}
    if "text" in data:
        data["text"] = data["text"].replace("Seconds: 15", "Seconds: 30")
    first = await admin.post(f"{PATH}{form}/", data)
    assert first.status_code == 302
    again = await admin.post(f"{PATH}{form}/", data)
    assert (again.status_code, again["Location"]) == (302, first["Location"])
    assert await Edit.objects.acount() == 1


@pytest.mark.parametrize("seen", [True, False], ids=["watched", "not yet"])
@pytest.mark.parametrize(
    ("form", "typed", "offered"),
    [
        ("edit", {"holder_identity": "cp-2", "duration_seconds": "30"}, "cp-2"),
        ("release", {}, ""),
        ("hand-over", {"to": "", "other": "cp-3"}, "cp-3"),
        ("edit/yaml", {}, "cp-1"),
        ("delete", {"typed_name": "default/story"}, None),
    ],
)
async def test_a_form_of_a_lease_that_is_gone_keeps_what_was_typed_and_offers_to_create_it(
    cluster, admin, form, typed, offered, seen
):
    data = await opened(admin, form)
    if form == "edit":
        data |= dict(as_typed(await cluster.client.get(KEY)).lists())
    await cluster.client.patch(KEY, {"metadata": {"finalizers": None}})
    await cluster.client.delete(KEY)
    if seen:
        fill(cluster.store)
    answer = await admin.post(
        f"{PATH}{form}/", data | typed | {"reason": "drill", "confirm": "yes"}
    )
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "Nothing was written: the Lease is gone already" in page
    assert all(one in page for one in ("drill", *filter(None, typed.values())))
    assert 'href="/c/a/leases/default/story/"' in page
    if offered is None:
        assert "Create it" not in page
        return
    new = fields(page.partition('id="gone"')[2])
    assert (new["namespace"], new["name"], new["holder_identity"]) == ("default", "story", offered)
    preview = await admin.post("/c/a/leases/new/", new)
    assert preview.status_code == 200, preview.content.decode()[-3000:]
    assert "The server would take this." in preview.content.decode()


@pytest.mark.parametrize(
    ("form", "typed", "counter"),
    [("edit", "41", "41"), ("edit", None, None), ("edit/yaml", "41", "41"),
     ("edit/yaml", None, None), ("edit", "0", "0"), ("edit/yaml", "0", "0")],
)  # fmt: skip
async def test_a_counter_that_was_typed_is_offered_for_the_new_lease(
    cluster, admin, form, typed, counter
):
    """One that was not typed belonged to the Lease that is gone."""
    data = await opened(admin, form)
    if form == "edit":
        data |= dict(as_typed(await cluster.client.get(KEY)).lists())
    if typed is not None and form == "edit":
        data["transitions"] = typed
    elif typed is not None:
        was = data["text"]
        data["text"] = re.sub(r"leaseTransitions: \d+", f"leaseTransitions: {typed}", was)
        assert data["text"] != was
    await cluster.client.patch(KEY, {"metadata": {"finalizers": None}})
    await cluster.client.delete(KEY)
    answer = await admin.post(f"{PATH}{form}/", data | {"reason": "drill", "confirm": "yes"})
    new = fields(answer.content.decode().partition('id="gone"')[2])
    assert new.get("transitions") == counter
    preview = await admin.post("/c/a/leases/new/", new)
    assert f"with transitions at {counter or 0}." in preview.content.decode()
    made = await admin.post("/c/a/leases/new/", new | {"once": "x", "confirm": "yes"})
    assert made.status_code == 302, made.content.decode()[-3000:]
    spec = (await cluster.client.raw_get(KEY))["spec"]
    assert spec["leaseTransitions"] == int(counter or 0)


async def test_a_form_of_a_lease_that_was_deleted_before_says_when_and_offers_to_create_it(
    cluster, admin
):
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=90)
    gone = Change(
        cluster="a", namespace="default", name="story", uid="u-1", kind=Kind.ELECTION,
        change=ChangeType.DELETED, at=at, observed_at=at, previous_holder="cp-1",
    )  # fmt: skip
    await sync_to_async(to_row(gone).save)()
    fill(cluster.store)
    for form in ("edit", "release", "hand-over", "edit/yaml", "delete"):
        answer = await admin.get(f"{PATH}{form}/")
        page = answer.content.decode()
        assert answer.status_code == 404, form
        assert f"It was deleted at {at:%H:%M:%S}" in page.replace(f"{at:%-d %b %Y} ", "")
        assert 'href="/c/a/leases/default/story/"' in page
        assert 'href="/c/a/leases/new/?namespace=default&amp;name=story"' in page
    unknown = await admin.get("/c/a/leases/default/never/edit/")
    assert unknown.status_code == 404
    assert "history knows none of this name" in unknown.content.decode()


async def test_nobody_is_chosen_before_the_person_chooses(cluster, admin):
    page = (await admin.get(f"{PATH}hand-over/")).content.decode()
    assert not re.search(r'<input type="radio" name="to"[^>]* checked', page)


async def test_those_that_run_come_first_and_those_that_are_gone_last(cluster, admin, tmp_path):
    """Each of them held it for a minute, the one named first most lately."""
    uuid = "8b1e2c1e-6a0f-4b0a-9a55-1f6f5c3a2d10"
    gone, restarted = "web-5ln7kvmbd-x7k2q", f"pod-restarted_{uuid}"
    names = (gone, "unknown", restarted, "pod-runs", "renews", None)
    taken = ("cp-1", *names)  # by whom
    api, now = LeaseApi(tmp_path / "kubeconfig"), datetime.now(UTC)
    for number, name in enumerate(names, 1):
        at = now - timedelta(minutes=number)
        change = Change(
            cluster="a", namespace="default", name="story", uid="u", kind=Kind.ELECTION,
            change=ChangeType.REPLACED if name else ChangeType.ACQUIRED, at=at, observed_at=at,
            resource_version=str(10 - number), previous_holder=name, holder=taken[number - 1],
        )  # fmt: skip
        await sync_to_async(to_row(change).save)()
    for name in ("pod-restarted", "pod-runs"):
        since = format_time(now)
        running = {"name": "main", "state": {"running": {"startedAt": since}}}
        spec = {"containers": [{"name": "main", "image": "demo:1"}]}
        made = {"metadata": {"name": name}, "spec": spec}
        await sync_to_async(api.send)("POST", "/api/v1/namespaces/default/pods", made)
        told = {"status": {"phase": "Running", "containerStatuses": [running]}}
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        await sync_to_async(api.send)("PATCH", path, told, "application/merge-patch+json")
    known, other = [one.lease for one in cluster.store.snapshot()], ObjectName("default", "other")
    made = a_lease(other, holder="renews", now=now - timedelta(seconds=2))
    fill(cluster.store, *known, made)
    page = (await admin.get(f"{PATH}hand-over/")).content.decode()
    assert "renews default/other now" not in page, "nobody saw it renew"
    renewed = replace(made.spec, renew_time=datetime.now(UTC))
    meta = replace(made.metadata, resource_version="2")
    cluster.store.follow((Applied(replace(made, metadata=meta, spec=renewed)),), datetime.now(UTC))
    page = (await admin.get(f"{PATH}hand-over/")).content.decode()
    found = re.findall(r'<input type="radio" name="to" value="([^"]+)"', page)
    assert found == ["renews", "pod-runs", "unknown", gone, restarted]
    assert not re.search(r'<input type="radio" name="to"[^>]* checked', page)
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "renews default/other now; held it until" in shown
    assert re.search(r"its Pod runs since [\d:]+; held it until", shown)
    assert "there is no Pod of this name; held it until" in shown
    assert re.search(r"its process is gone: its Pod runs since [\d:]+; held it until", shown)


async def test_the_page_after_a_delete_shows_the_lease_and_its_end_of_one_moment(
    cluster, admin, monkeypatch
):
    """The watch reports the end while the page is drawn."""
    data = await opened(admin, "delete") | {"typed_name": str(KEY), "reason": "drill"}
    await cluster.client.patch(KEY, {"metadata": {"finalizers": None}})
    way = (await admin.post(f"{PATH}delete/", data))["Location"]
    row = await Edit.objects.aget()

    def reported(*asked):
        now = datetime.now(UTC)
        version = str(int(row.request["resource_version"]) + 1)
        gone = Change(
            cluster="a", namespace="default", name="story", uid="u", kind=Kind.ELECTION,
            change=ChangeType.DELETED, at=now, observed_at=now, resource_version=version,
            previous_holder="cp-1",
        )  # fmt: skip
        if cluster.store.get(KEY) is not None:
            to_row(gone).save()
            fill(cluster.store)
        return changes_of(*asked)

    monkeypatch.setattr(outcome, "changes_of", reported)
    page = (await admin.get(way)).content.decode()
    assert "Nobody has made it anew since" in page
    assert "data-now" not in page


QUICK = Timeouts(answer=0.3)


@contextlib.asynccontextmanager
async def silent_after(
    cluster: WatchedCluster, *answers: Reply, limits: Timeouts = QUICK
) -> AsyncIterator[None]:
    """The cluster gives these answers, and then none."""
    server, real = ScriptedServer(), cluster.client
    async with server.running():
        server.script("verb", *answers, silence())
        cluster.client = await connect(
            parse_source(f"url:{server.url}"), kubeconfig=None, limits=limits
        )
        try:
            yield
        finally:
            await cluster.client.close()
            cluster.client = real


@pytest.mark.parametrize("form", ["release", "delete"])
async def test_a_cluster_that_does_not_answer_did_not_refuse(cluster, admin, form):
    async with silent_after(cluster):
        page = (await admin.get(f"{PATH}{form}/")).content.decode()
    assert "did not answer within 0.3 s" in page
    assert "would refuse" not in page
    assert "said no" not in page


async def test_a_preview_waits_less_long_for_an_answer_than_a_write(cluster, admin, monkeypatch):
    monkeypatch.setattr(form_page, "PREVIEW_SECONDS", 0.2)
    async with silent_after(cluster, limits=Timeouts()):
        page = (await admin.get(f"{PATH}release/")).content.decode()
    assert "a did not answer within 0.2 s" in page
    assert "would refuse" not in page


async def test_what_is_asked_before_a_write_may_take_as_long_as_it(cluster, admin, monkeypatch):
    data = await opened(admin, "release") | {"reason": "drill", "confirm": "yes"}
    monkeypatch.setattr(form_page, "PREVIEW_SECONDS", 0.0)
    assert (await admin.post(f"{PATH}release/", data)).status_code == 302


async def test_a_write_without_an_answer_may_be_done_and_its_page_says_so(cluster, admin):
    data = await opened(admin, "release") | {"reason": "drill", "confirm": "yes"}
    lease = answer(200, await cluster.client.raw_get(KEY))
    async with silent_after(cluster, lease, lease, lease):  # it is read, tried dry, read again
        sent = await admin.post(f"{PATH}release/", data)
    assert sent.status_code == 302
    page = (await admin.get(sent["Location"])).content.decode()
    assert "Sent; there is no answer yet" in page
    assert "did not answer within 0.3 s" in page
    assert "Nothing was written" not in page


async def test_a_lease_without_renew_time_was_not_renewed(cluster, admin):
    patched = await cluster.client.patch(KEY, {"spec": {"renewTime": None}})
    fill(cluster.store, patched)
    form = (await admin.get(f"{PATH}release/")).content.decode()
    assert "Held for" in form
    assert "Last renewed" not in form
    listed = (await admin.get("/c/a/leases/")).content.decode()
    assert 'class="since muted">no renewTime</span>' in listed
    assert "data-fresh" not in listed
