"""What a form of ours did is told with the person and the reason, to who may read the trail."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User

from leases.domain.cause.clue import FORM_WRITER
from leases.domain.change import ChangeType
from leases.domain.incident import Cause
from leases.history.write_batch import write_changes
from leases.models import Edit
from tests.pages.conftest import text_of
from tests.support.values.changes import T0, a_change
from tests.support.values.incident_rows import incident_with
from tests.support.values.incident_rows import store as store_incident

RELEASED = a_change(
    0, change=ChangeType.RELEASED, holder=None, previous_holder="cp-1", writer=FORM_WRITER,
    resource_version="77",
)  # fmt: skip
SAID = f"{RELEASED.namespace}/{RELEASED.name} was released through a form of Leaseboard at 12:00:00"


def words(answer) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text_of(answer))))


@pytest.fixture
def released(store, db) -> None:
    write_changes([RELEASED])
    values = {"cause": Cause.BY_HAND, "writer": FORM_WRITER, "sentence": SAID}
    store_incident(incident_with(RELEASED, id="by-form", **values))
    Edit.objects.create(
        user=User.objects.create(username="olivia"), at=T0 - timedelta(seconds=1),
        username="olivia", cluster="a",
        namespace=RELEASED.namespace, name=RELEASED.name, action="lease.release",
        reason="drain of cp-1", outcome="done", resource_version="77", before={}, after={},
        request={"verb": "update"},
    )  # fmt: skip


def test_the_incident_names_the_person_and_the_reason(released, operator):
    for path in ("/c/a/incidents/?show=all", "/c/a/incidents/by-form/"):
        said = words(operator.get(path))
        assert SAID in said
        assert "By hand" in said
        assert "dited here" not in said, "the one cause has one name"
        assert "by olivia: drain of cp-1" in said
        assert "emptied holderIdentity" not in said


def test_an_incident_is_signed_with_the_write_that_began_it_and_not_with_the_one_that_ended_it(
    store, released, operator
):
    ran_out = a_change(2, change=ChangeType.EXPIRED, previous_holder="cp-1")
    given = a_change(
        30, change=ChangeType.ACQUIRED, holder="cp-2", writer=FORM_WRITER, resource_version="80"
    )
    write_changes([ran_out, given])
    values = {"cause": Cause.BY_HAND, "writer": FORM_WRITER, "began": ran_out.at}
    store_incident(incident_with(ran_out, given, id="ended-by-form", **values))
    Edit.objects.create(
        user=User.objects.create(username="henry"), at=given.at, username="henry", cluster="a",
        namespace=given.namespace, name=given.name, action="lease.handover", reason="give it back",
        outcome="done", resource_version="80", before={}, after={}, request={"verb": "update"},
    )  # fmt: skip
    author = words(operator.get("/c/a/incidents/ended-by-form/")).split("by olivia", 1)
    assert len(author) == 2, "the page names who began it"
    assert "by henry" not in author[0]


def test_the_history_names_the_person_and_not_the_holder(released, operator):
    said = words(operator.get("/c/a/history/"))
    assert "by olivia: drain of cp-1" in said
    assert "was released through a form" in said
    assert "was released by cp-1" not in said


def test_an_incident_that_a_form_did_not_begin_names_nobody(store, released, operator):
    crash = {"cause": Cause.CRASH, "sentence": "cp-1 stopped renewing"}
    store_incident(incident_with(RELEASED, id="crash", **crash))
    said, _, changes = words(operator.get("/c/a/incidents/crash/")).partition("Changes 1, in order")
    assert "by olivia: drain of cp-1" in changes
    assert "cp-1 stopped renewing" in said
    assert "olivia" not in said


def test_a_deletion_through_a_form_was_made_here_by_a_person(store, db, operator):
    gone = a_change(
        0, change=ChangeType.DELETED, holder=None, previous_holder="cp-1", uid="gone", writer=None,
    )  # fmt: skip
    write_changes([gone])
    said = words(operator.get("/c/a/history/"))
    assert f"{gone.name} was deleted; last held by cp-1" in said
    Edit.objects.create(
        user=User.objects.create(username="olivia"), at=T0, username="olivia", cluster="a",
        namespace=gone.namespace, name=gone.name, action="lease.delete", reason="no use",
        outcome="done", before={}, after={}, request={"verb": "delete", "uid": "gone"},
    )  # fmt: skip
    said = words(operator.get("/c/a/history/"))
    assert f"{gone.name} was deleted through a form; last held by cp-1" in said
    assert "by olivia: no use" in said
    store_incident(incident_with(gone, id="deleted", cause=Cause.DELETED))
    said = words(operator.get("/c/a/incidents/deleted/")).partition("Changes 1, in order")[2]
    assert f"{gone.name} was deleted through a form; last held by cp-1 . by olivia: no use" in said


def test_another_write_at_another_time_is_not_taken_for_it(released, operator):
    Edit.objects.update(at=T0 - timedelta(minutes=10))
    assert "olivia" not in words(operator.get("/c/a/incidents/?show=all"))
