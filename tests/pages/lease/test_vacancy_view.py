"""An admin says on the page of a Lease that it may be vacant."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client

from dashboard.serving.runtime import Runtime
from leases.models import Edit, VacancyMark
from leases.tracking.tracked_lease import Tracked
from tests.support.board import KEY

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = f"/c/a/leases/{KEY.namespace}/{KEY.name}/"
POST = f"{PAGE}vacancy/"


def marked_by(board: Runtime) -> str:
    tracked = board.clusters["a"].store.get(KEY)
    assert isinstance(tracked, Tracked)
    return tracked.lasting.may_be_vacant


def test_an_admin_marks_a_lease_and_takes_it_back(followed: Runtime, admin: Client):
    assert ">must have a holder</span>" in admin.get(PAGE).content.decode()
    page = admin.post(POST, {"may_be_vacant": "true"}, follow=True).content.decode()
    assert marked_by(followed) == "ada"
    assert f"{KEY} may be vacant from now on." in page
    assert "may be vacant: said by ada" in page
    assert '<option value="true" selected>' in page
    item = admin.get("/c/a/leases/?format=json").json()["items"][0]
    assert (item["may_be_vacant"], item["abandoned"]) == (True, False)
    page = admin.post(POST, {"may_be_vacant": "false"}, follow=True).content.decode()
    assert marked_by(followed) == ""
    assert '<option value="false" selected>' in page
    assert [edit.action for edit in Edit.objects.all()] == ["lease.may_be_vacant"] * 2
    assert "must have a holder again" in admin.get("/audit/").content.decode()


def test_users_without_the_right_see_the_mark_but_not_the_form(
    followed: Runtime, admin: Client, operator: Client, guest: Client
):
    for client in (operator, guest):
        assert client.post(POST, {"may_be_vacant": "true"}).status_code == 403
    assert "/sign-in/" in Client().post(POST, {"may_be_vacant": "true"})["Location"]
    assert not VacancyMark.objects.exists()
    admin.post(POST, {"may_be_vacant": "true"})
    page = operator.get(PAGE).content.decode()
    assert 'id="vacancy"' not in page
    assert "said by ada" in page


@pytest.mark.parametrize("word", ["", "perhaps"])
def test_an_unknown_word_is_refused(followed: Runtime, admin: Client, word: str):
    page = admin.post(POST, {"may_be_vacant": word}, follow=True).content.decode()
    assert "Nothing was changed. Vacancy is one of: must have a holder, may be vacant." in page
    assert not VacancyMark.objects.exists()


def test_a_lease_that_is_gone_cannot_be_marked(followed: Runtime, admin: Client):
    answer = admin.post("/c/a/leases/n/gone/vacancy/", {"may_be_vacant": "true"})
    assert answer.status_code == 404


async def test_a_mark_of_another_replica_is_taken_over(followed: Runtime):
    for cluster, ended in (("a", None), ("b", None), ("a", datetime.now(UTC))):
        await VacancyMark.objects.acreate(
            cluster=cluster, namespace=KEY.namespace, name=KEY.name, at=datetime.now(UTC),
            username="bo" if cluster == "a" and not ended else "eve", ended_at=ended,
        )  # fmt: skip
    await followed.overrides.refresh()
    assert marked_by(followed) == "bo"
