"""Somebody else writes while the edit form is open: nothing is lost, stolen or overwritten."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from leases.models import Edit
from leases.wire.microtime import format_microtime
from tests.pages.edit.edit_form import KEY, PATH, sent, typed

pytestmark = pytest.mark.django_db(transaction=True)


def sides(text: str) -> list[tuple[str, str, str]]:
    """Field, yours, theirs of a conflict."""
    rows = re.findall(r'<th role="rowheader" class="mono">(.*?)</th>(.*?)</tr>', text, re.DOTALL)
    return [
        (
            field,
            *(re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall("(?s)<td.*?</td>", row)),
        )
        for field, row in rows
    ]


async def test_another_term_than_shown_is_409_and_says_who_holds_it_now(cluster, admin):
    data = await typed(cluster, holder_identity="cp-2")
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 1}})
    answer = await admin.post(PATH, data | {"confirm": "yes"})
    assert answer.status_code == 409
    text = answer.content.decode()
    assert '<b class="strong">cp-9</b> holds it now.' in text
    assert sides(text) == [("holderIdentity", "cp-2", "cp-9")]
    assert 'value="cp-2"' in text
    assert (await cluster.client.get(KEY)).holder == "cp-9"


async def test_a_conflict_shows_what_a_released_lease_says(cluster, admin):
    data = await typed(cluster, holder_identity="cp-2", duration_seconds="30")
    released = {"holderIdentity": "", "leaseDurationSeconds": 1}
    await cluster.client.patch(KEY, {"spec": released})
    text = (await admin.post(PATH, data)).content.decode()
    assert "Nobody holds it now." in text
    assert sides(text) == [
        ("holderIdentity", "cp-2", "nobody"), ("leaseDurationSeconds", "30", "1"),
    ]  # fmt: skip


async def test_a_field_that_is_not_set_is_not_called_nobody(cluster, admin):
    data = await typed(cluster, holder_identity="cp-2", duration_seconds="")
    changed = {"holderIdentity": "", "leaseDurationSeconds": 20}
    await cluster.client.patch(KEY, {"spec": changed})
    text = (await admin.post(PATH, data)).content.decode()
    assert sides(text) == [
        ("holderIdentity", "cp-2", "nobody"), ("leaseDurationSeconds", "not set", "20"),
    ]  # fmt: skip


async def test_a_field_that_somebody_else_changed_in_the_same_term_is_a_conflict(cluster, admin):
    """kubectl sets 20 while the form, drawn at 15, says 30; a renewal beside it is merged."""
    data = await typed(cluster, duration_seconds="30", preferred_holder="")
    now = format_microtime(datetime.now(UTC))
    await cluster.client.patch(KEY, {"spec": {"leaseDurationSeconds": 20, "renewTime": now}})
    answer = await admin.post(PATH, data | {"confirm": "yes"})
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "Changed while you were editing" in text
    assert sides(text) == [("leaseDurationSeconds", "30", "20")]
    assert re.search(r"leaseboard wrote leaseDurationSeconds at \d\d:\d\d:\d\d\.", text)
    mine = await admin.post(PATH, sent(text) | {"reason": "drill", "confirm": "yes"})
    assert mine.status_code == 302
    assert (await cluster.client.get(KEY)).spec.lease_duration_seconds == 30


async def test_the_side_of_the_cluster_can_be_chosen(cluster, admin):
    data = await typed(cluster, duration_seconds="30", transitions="5")
    await cluster.client.patch(KEY, {"spec": {"leaseDurationSeconds": 20}})
    text = (await admin.post(PATH, data)).content.decode()
    chosen = sent(text) | {"reason": "drill", "confirm": "yes", "keep-duration_seconds": "theirs"}
    assert (await admin.post(PATH, chosen)).status_code == 302
    spec = (await cluster.client.get(KEY)).spec
    assert (spec.lease_duration_seconds, spec.lease_transitions) == (20, 5)


async def test_a_change_of_duration_does_not_take_the_lease_back(cluster, admin):
    """cp-9 takes over while the form is open: nothing is written, and the second try, which the
    person confirms, changes the duration alone."""
    data = await typed(cluster, duration_seconds="30")
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 1}})
    answer = await admin.post(PATH, data)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert '<b class="strong">cp-9</b> holds it now.' in text
    assert sides(text) == []  # nobody else changed the duration
    assert "what you typed is still in the form." in text
    assert sent(text)["duration_seconds"] == "30"

    again = await admin.post(PATH, sent(text) | {"reason": "drill", "confirm": "yes"})
    assert again.status_code == 302
    after = await cluster.client.get(KEY)
    assert (after.holder, after.spec.lease_duration_seconds) == ("cp-9", 30)
    assert (await Edit.objects.aget()).after == {"spec.leaseDurationSeconds": 30}


async def test_a_change_of_duration_keeps_what_somebody_else_wrote(cluster, admin):
    """No take-over: another field moved, and stays as the cluster has it."""
    data = await typed(cluster, duration_seconds="30")
    await cluster.client.patch(KEY, {"metadata": {"labels": {"team": "a"}}, "spec": {"x": 1}})
    assert (await admin.post(PATH, data | {"confirm": "yes"})).status_code == 302
    after = await cluster.client.get(KEY)
    assert (after.metadata.labels, after.holder) == ({"team": "a"}, "cp-1")


async def test_a_holder_that_moved_back_and_forth_is_another_term(cluster, admin):
    data = await typed(cluster, duration_seconds="30")
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 1}})
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "cp-1", "leaseTransitions": 2}})
    answer = await admin.post(PATH, data | {"confirm": "yes"})
    assert answer.status_code == 409
    assert (await cluster.client.get(KEY)).spec.lease_duration_seconds == 15


async def test_a_lease_that_was_made_again_is_not_called_another_holders(cluster, admin):
    data = await typed(cluster, duration_seconds="30")
    await cluster.client.patch(KEY, {"metadata": {"finalizers": None}})
    await cluster.client.delete(KEY)
    meta = {"namespace": KEY.namespace, "name": KEY.name}
    await cluster.client.create({"metadata": meta, "spec": {"holderIdentity": "cp-1"}})
    answer = await admin.post(PATH, data | {"confirm": "yes"})
    assert answer.status_code == 409
    text = answer.content.decode()
    assert "The Lease was deleted and made again while you were editing" in text
    assert '<b class="strong">cp-1</b>' in text


async def test_typed_text_survives_a_conflict(cluster, admin):
    data = await typed(cluster, holder_identity="cp-2", reason="the disk of cp-1 is full")
    await cluster.client.patch(KEY, {"spec": {"holderIdentity": "cp-9", "leaseTransitions": 1}})
    text = (await admin.post(PATH, data)).content.decode()
    assert sent(text)["holder_identity"] == "cp-2"
    assert "the disk of cp-1 is full" in text
