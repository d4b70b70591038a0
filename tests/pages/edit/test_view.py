"""The edit form against a real Lease API: preview, confirm, conflict, refusals."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from leases.models import Edit
from tests.pages.edit.edit_form import KEY, PATH, sent, typed
from tests.support.board import fill

pytestmark = pytest.mark.django_db(transaction=True)


async def test_the_form_begins_with_what_the_lease_says(cluster, admin):
    text = (await admin.get(PATH)).content.decode()
    assert 'value="cp-1"' in text
    assert 'value="15"' in text


async def test_a_preview_writes_nothing_and_confirming_writes(cluster, admin):
    data = await typed(cluster, holder_identity="cp-2", acquire_time="now", renew_time="now")
    answer = await admin.post(PATH, data)
    assert answer.status_code == 200
    assert "cp-2" in answer.content.decode()
    assert (await cluster.client.get(KEY)).holder == "cp-1"
    assert not await Edit.objects.aexists()

    answer = await admin.post(PATH, data | {"confirm": "yes"})
    assert answer.status_code == 302
    assert (await cluster.client.get(KEY)).holder == "cp-2"
    assert (await Edit.objects.aget()).outcome == "done"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"duration_seconds": "-5"}, "A duration is 1 second or more."),
        ({"duration_seconds": "soon"}, "Write the duration as whole seconds"),
        ({"duration_seconds": "99999999999"}, "A duration is at most 2147483647 seconds."),
        ({"transitions": "-1"}, "The counter is 0 or more."),
        ({"acquire_time": "soon"}, "Write a time such as"),
        ({"renew_time": "2026-02-30T00:00:00Z"}, "There is no such moment."),
        ({"labels-key": ["a", "a"], "labels-value": ["1", "2"]}, "The label a is there twice."),
        ({"annotations-key": [""], "annotations-value": ["1"]}, "has no key."),
        ({"holder_identity": "a\x1bb"}, "A holder is one line of printable characters."),
    ],
)
async def test_an_invalid_field_is_422_with_a_sentence_beside_it(cluster, admin, given, sentence):
    answer = await admin.post(PATH, await typed(cluster, **given))
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert (await cluster.client.get(KEY)).holder == "cp-1"


async def test_a_preview_needs_no_reason_and_saving_does(cluster, admin):
    data = await typed(cluster, duration_seconds="30", reason="")
    preview = await admin.post(PATH, data)
    assert preview.status_code == 200
    assert '<span class="need">required</span>' in preview.content.decode()
    saved = await admin.post(PATH, data | {"confirm": "yes"})
    assert saved.status_code == 422
    assert "Say why; the reason is kept in the audit trail." in saved.content.decode()
    assert (await cluster.client.get(KEY)).spec.lease_duration_seconds == 15


async def test_all_fields_are_written_and_no_other(cluster, admin):
    await cluster.client.patch(KEY, {"metadata": {"labels": {"old": "1", "kept": "1"}}})
    data = await typed(
        cluster,
        holder_identity="cp-2",
        acquire_time="2026-11-20T12:04:22.204117Z",
        renew_time="now",
        duration_seconds="30",
        transitions="9",
    )
    data |= {"labels-key": ["kept", "new"], "labels-value": ["1", "2"]}
    data |= {"annotations-key": ["a.example/note"], "annotations-value": ["two\r\nlines"]}
    began = datetime.now(UTC)
    answer = await admin.post(PATH, data | {"confirm": "yes"})
    assert answer.status_code == 302, answer.content.decode()[-3000:]
    after = await cluster.client.get(KEY)
    spec = after.spec
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == (
        "cp-2", 30, 9,
    )  # fmt: skip
    assert spec.acquire_time == datetime(2026, 11, 20, 12, 4, 22, 204117, UTC)
    assert spec.renew_time is not None
    assert spec.renew_time >= began
    assert after.metadata.labels == {"kept": "1", "new": "2"}
    assert after.metadata.annotations == {"a.example/note": "two\nlines"}
    row = await Edit.objects.aget()
    assert set(row.after) == {
        "spec.holderIdentity", "spec.acquireTime", "spec.renewTime", "spec.leaseDurationSeconds",
        "spec.leaseTransitions", "metadata.labels.new", "metadata.labels.old",
        "metadata.annotations.a.example/note",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pressed", "drawn"),
    [
        ({"now": "renew_time"}, 'name="renew_time" value="now"'),
        ({"add": "labels"}, 'aria-label="Key of label 2"'),
        ({"remove": "labels-0"}, "Add label"),
    ],
)
async def test_buttons_of_the_form_work_without_scripts(cluster, admin, pressed, drawn):
    await cluster.client.patch(KEY, {"metadata": {"labels": {"team": "a"}}})
    data = await typed(cluster, duration_seconds="nonsense")
    answer = await admin.post(PATH, data | pressed)
    text = answer.content.decode()
    assert answer.status_code == 200
    assert drawn in text
    assert ('value="team"' in text) is ("remove" not in pressed)
    assert 'value="nonsense"' in text
    assert "Write the duration as whole seconds" not in text
    assert not await Edit.objects.aexists()


async def test_errors_of_the_server_land_on_their_fields(cluster, admin):
    """Coordinated election is off in this server; labels are validated by any."""
    data = await typed(cluster)
    data |= {"labels-key": ["not a key"], "labels-value": ["1"]}
    answer = await admin.post(PATH, data)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="id_labels_error"' in text
    assert '<a class="link" href="#id_labels">Labels</a>' in text


async def test_what_the_server_would_drop_is_said_before_saving(cluster, admin):
    data = await typed(cluster, strategy="OldestEmulationVersion")
    text = (await admin.post(PATH, data)).content.decode()
    assert "spec.strategy: the server would silently drop OldestEmulationVersion." in text
    assert "Its feature gate CoordinatedLeaderElection is off." in text


async def test_a_form_that_is_sent_twice_writes_once(cluster, admin):
    text = (await admin.get(PATH)).content.decode()
    data = sent(text) | {"duration_seconds": "30", "reason": "drill", "confirm": "yes"}
    first = await admin.post(PATH, data)
    version = (await cluster.client.get(KEY)).resource_version
    second = await admin.post(PATH, data)
    assert first.status_code == second.status_code == 302
    assert first["Location"] == second["Location"]
    assert (await cluster.client.get(KEY)).resource_version == version
    assert await Edit.objects.acount() == 1


async def test_a_form_without_its_hidden_fields_is_422_and_says_so(cluster, admin):
    answer = await admin.post(PATH, {"holder_identity": "cp-2", "reason": "drill"})
    assert answer.status_code == 422
    assert "Open it again." in answer.content.decode()
    assert (await cluster.client.get(KEY)).holder == "cp-1"


async def test_a_preview_shows_the_spec_and_what_it_means(cluster, admin):
    answer = await admin.post(PATH, await typed(cluster, duration_seconds="30"))
    text = answer.content.decode()
    assert '<span class="hunk">  spec:</span>' in text
    assert "uid:" not in text
    assert '<span class="add">+   leaseDurationSeconds: 30</span>' in text
    assert "If the holder dies, others wait 30 s instead of 15 s." in text
    assert "What an edit does" not in text


async def test_an_unreachable_cluster_is_502_and_keeps_what_was_typed(cluster, admin):
    data = await typed(cluster, holder_identity="cp-2")
    client, cluster.client = cluster.client, None
    answer = await admin.post(PATH, data)
    cluster.client = client
    assert answer.status_code == 502
    assert 'value="cp-2"' in answer.content.decode()
    assert "is not connected" in answer.content.decode()


async def test_a_lease_that_is_not_there_is_404_in_one_sentence(cluster, admin):
    answer = await admin.get("/c/a/leases/default/nothing/edit/")
    assert answer.status_code == 404
    assert "There is no Lease default/nothing in a" in answer.content.decode()


@pytest.mark.parametrize(
    "moment", ["0000-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999-02:00"]
)
async def test_a_lease_with_a_time_beyond_the_calendar_can_be_edited(cluster, admin, moment):
    spec = {"acquireTime": moment, "renewTime": moment, "leaseTransitions": 2**31 - 1}
    fill(cluster.store, await cluster.client.patch(KEY, {"spec": spec}))
    assert (await admin.get(PATH)).status_code == 200
    data = await typed(cluster, holder_identity="cp-2", acquire_time="now", renew_time="now")
    answer = await admin.post(PATH, data)
    assert answer.status_code == 200
    assert "cp-2" in answer.content.decode()
    assert (await admin.post(PATH, data | {"confirm": "yes"})).status_code == 302
    written = await cluster.client.get(KEY)
    assert (written.holder, written.spec.lease_transitions) == ("cp-2", 2**31 - 1)
