"""The changes of several clusters in one list."""

from __future__ import annotations

import csv
import json
from datetime import timedelta

import msgspec
import pytest

from dashboard.board import install_board
from leases import models
from tests.pages.conftest import HTMX, text_of
from tests.support.board import board_of
from tests.support.every_url import consume
from tests.support.values.change_rows import to_row
from tests.support.values.changes import T0, a_change

pytestmark = pytest.mark.django_db
PATH = "/history/"


@pytest.fixture
def three(tmp_path):
    """Nine changes in turn, two at each moment; version 108 is the newest."""
    board = board_of(tmp_path, "de", "eu", "us")
    board.feeds["de"].labels = {"env": "prod"}
    changes = [
        msgspec.structs.replace(
            a_change(number, at=T0 + timedelta(seconds=number // 2)),
            cluster=("de", "eu", "us")[number % 3],
        )
        for number in range(9)
    ]
    models.ChangeRecord.objects.bulk_create(map(to_row, changes))
    yield board
    install_board(None)


def versions(answer) -> list[int]:
    return [int(one["resource_version"]) - 100 for one in answer["items"]]


def test_all_clusters_or_those_of_the_url_by_time(three, operator):
    answer = operator.get(f"{PATH}?format=json").json()
    assert versions(answer) == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert (answer["total"], answer["next"], answer["not_live"]) == (9, None, [])
    assert versions(operator.get(f"{PATH}?format=json&env=prod").json()) == [6, 3, 0]
    two = operator.get(f"{PATH}?format=json&cluster=eu&cluster=us").json()
    assert versions(two) == [8, 7, 5, 4, 2, 1]
    assert operator.get(f"{PATH}?format=json&env=test").json()["total"] == 0
    assert "Nothing" not in text_of(operator.get(f"{PATH}?env=test"))
    assert "env=test" in text_of(operator.get(f"{PATH}?env=test")).split("<main")[1]


def test_next_leads_through_all_of_them_and_files_have_them_oldest_first(three, operator):
    found, url = [], f"{PATH}?format=json&limit=2&cluster=de&cluster=eu"
    while url:
        answer = operator.get(url).json()
        found += versions(answer)
        url = answer["next"]
    assert found == [7, 6, 4, 3, 1, 0]
    lines = consume(operator.get(f"{PATH}?format=ndjson")).splitlines()
    assert sorted(lines, key=lambda one: json.loads(one)["at"]) == lines
    rows = list(csv.DictReader(consume(operator.get(f"{PATH}?format=csv")).splitlines()))
    assert {row["cluster"] for row in rows} == {"de", "eu", "us"}
    assert len(lines) == len(rows) == 9


@pytest.mark.parametrize("view", ["table", "sentences"])
def test_each_row_names_its_cluster(three, operator, view):
    for headers in ({}, HTMX):
        text = text_of(operator.get(f"{PATH}?view={view}", headers=headers))
        rows = text.split('data-id="')[1:]
        assert len(rows) == 9
        for place, row in zip(range(8, -1, -1), rows, strict=True):
            assert f'href="/c/{("de", "eu", "us")[place % 3]}/"' in row
        assert "data-feed-limit" not in text  # new changes are offered, no line comes by itself
        assert "data-chosen" in text
