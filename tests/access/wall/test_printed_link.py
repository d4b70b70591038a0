"""The wall link that `serve` prints."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.access.links import printed_wall_link
from leases.models import WallLink
from tests.support.processes import get, serving

pytestmark = pytest.mark.django_db


def test_the_printed_link_works_and_is_the_same_after_a_restart(tmp_path):
    data = tmp_path / "data"
    with serving(data, "--no-demo") as server:
        first = server.printed("Wall")
        assert get(first)[0] == 200
        token = first.partition("key=")[2]
        assert (data / "wall_link").stat().st_mode & 0o077 == 0
        assert token.encode() not in (data / "leaseboard.sqlite3").read_bytes()
    with serving(data, "--no-demo") as server:
        assert server.printed("Wall").partition("key=")[2] == token
        assert get(server.printed("Wall"))[0] == 200


def test_the_printed_link_is_kept_and_made_anew_once_it_opens_nothing(board, tmp_path):
    now = timezone.now()
    printed = printed_wall_link(tmp_path, ["a", "b"], now=now)
    assert printed is not None
    cluster, token = printed
    assert cluster == "a"
    assert printed_wall_link(tmp_path, ["b"], now=now) == ("b", token)
    assert (tmp_path / "wall_link").read_text() == f"{token}\n"
    assert (tmp_path / "wall_link").stat().st_mode & 0o777 == 0o600
    other = printed_wall_link(tmp_path, ["c"], now=now)
    assert other is not None
    assert other[0] == "c"
    names = WallLink.objects.order_by("pk").values_list("name", "clusters", "created_by")
    assert list(names) == [("wall", ["a", "b"], "serve"), ("wall 2", ["c"], "serve")]
    WallLink.objects.all().delete()  # as in a database that was thrown away
    anew = printed_wall_link(tmp_path, ["a", "b"], now=now)
    assert anew is not None
    assert anew[1] not in (token, other[1])
    assert Client().get("/c/a/wall/", {"key": anew[1]}).status_code == 200
    assert Client().get("/c/a/wall/", {"key": token}).status_code == 403


def test_a_database_that_outlives_the_data_directory_gets_one_link(board, tmp_path):
    """As with PostgreSQL, where each start of a container has an empty directory."""
    now = timezone.now()
    for number in range(1, 6):
        (tmp_path / str(number)).mkdir()
    assert printed_wall_link(tmp_path / "1", ["a", "b"], now=now) is not None
    assert printed_wall_link(tmp_path / "2", ["a", "b"], now=now) is None
    assert printed_wall_link(tmp_path / "3", ["b"], now=now) is None
    WallLink.objects.update(revoked_at=now)
    assert printed_wall_link(tmp_path / "4", ["a", "b"], now=now) is None, "it was revoked"
    assert WallLink.objects.count() == 1
    assert printed_wall_link(tmp_path / "5", ["c"], now=now) is not None, "nothing opens this one"
