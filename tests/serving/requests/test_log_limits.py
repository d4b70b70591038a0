"""A flood of refused requests is a few lines a minute, and nothing else is left out."""

from __future__ import annotations

import logging
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from dashboard.log_lines import (
    MAX_KEPT,
    MAX_LINES,
    REPEATS_SECONDS,
    WINDOW_SECONDS,
    FloodFilter,
    RepeatFilter,
    cluster_at_work,
)
from tests.support.processes import serving


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def let_through(flood: FloodFilter, times: int, name: str) -> list[str]:
    found = []
    for number in range(times):
        record = logging.LogRecord(name, logging.WARNING, "", 0, "refused %s", (number,), None)
        if flood.filter(record):
            found.append(record.getMessage())
    return found


def test_a_flood_is_a_few_lines_and_says_how_many_were_left_out(clock):
    flood = FloodFilter(clock)
    assert len(let_through(flood, 1000, "django.security.csrf")) == MAX_LINES
    clock.now = WINDOW_SECONDS
    said = let_through(flood, 1000, "django.security.csrf")
    assert len(said) == MAX_LINES
    assert said[:2] == ["refused 0 (980 more like it were not logged)", "refused 1"]


def test_each_reason_has_its_own_count_and_other_lines_are_all_logged(clock):
    flood = FloodFilter(clock)
    let_through(flood, 1000, "django.security.csrf")
    assert len(let_through(flood, 5, "django.security.DisallowedHost")) == 5
    assert len(let_through(flood, 1000, "dashboard.access.sign_in_limits")) == 1000
    assert len(let_through(flood, 1000, "django.request")) == 1000


def test_every_handler_has_the_filters():
    for handler in settings.LOGGING["handlers"].values():
        assert {"flood", "repeats"} <= {*handler["filters"]}


@pytest.fixture
def of_cluster() -> Iterator[Callable[[str], None]]:
    """Act as a task of a cluster."""
    before = cluster_at_work.set("")
    yield lambda name: cluster_at_work.set(name) and None
    cluster_at_work.reset(before)


def passed(repeats: RepeatFilter, *messages: str, level: int = logging.WARNING) -> list[str]:
    found = []
    for message in messages:
        record = logging.LogRecord("leases.kube", level, "", 0, message, (), None)
        if repeats.filter(record):
            found.append(record.getMessage())
    return found


def test_what_a_cluster_repeats_is_counted(clock, of_cluster):
    repeats = RepeatFilter(clock)
    of_cluster("prod")
    assert passed(repeats, "broke at 1: refused", "broke at 2: refused") == ["broke at 1: refused"]
    assert passed(repeats, "broke at 3: other") == ["broke at 3: other"]
    clock.now = REPEATS_SECONDS - 1
    assert passed(repeats, "broke at 4: refused") == []
    clock.now = REPEATS_SECONDS
    assert passed(repeats, "broke at 5: refused", "broke at 6: refused") == [
        "broke at 5: refused (2 more like it in 10 min)"
    ]
    assert passed(repeats, "broke at 7: other") == ["broke at 7: other"]


def test_other_clusters_errors_and_lines_of_no_cluster_are_all_logged(clock, of_cluster):
    repeats = RepeatFilter(clock)
    assert len(passed(repeats, *["Sign-in of ada succeeded"] * 9, level=logging.INFO)) == 9
    of_cluster("prod")
    assert len(passed(repeats, *["lost"] * 9, level=logging.ERROR)) == 9
    assert len(passed(repeats, "broke")) == 1
    of_cluster("lab")
    assert len(passed(repeats, "broke")) == 1


def test_not_every_line_is_remembered_for_ever(clock, of_cluster):
    repeats = RepeatFilter(clock)
    of_cluster("prod")
    different = [f"pod {'x' * number} is gone" for number in range(MAX_KEPT + 1)]
    assert passed(repeats, *different) == different
    assert passed(repeats, different[0], different[-1]) == different[:1]


def test_a_flood_of_foreign_hosts_is_a_few_lines(tmp_path):
    with serving(tmp_path / "data", "--no-demo") as one:
        for _ in range(3 * MAX_LINES):
            foreign = urllib.request.Request(f"{one.url}/sign-in/", headers={"Host": "evil.test"})
            with pytest.raises(urllib.error.HTTPError, match="400"):
                urllib.request.urlopen(foreign, timeout=60)
        said = [line for line in one.text.splitlines() if "evil.test" in line]
        assert 0 < len(said) <= MAX_LINES
