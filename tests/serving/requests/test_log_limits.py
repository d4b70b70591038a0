"""A flood of refused requests is a few lines a minute, and nothing else is left out."""

from __future__ import annotations

import logging
import urllib.error
import urllib.request

import pytest
from django.conf import settings

from dashboard.log_lines import MAX_LINES, WINDOW_SECONDS, FloodFilter
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


def test_every_handler_has_the_filter():
    for handler in settings.LOGGING["handlers"].values():
        assert "flood" in handler["filters"]


def test_a_flood_of_foreign_hosts_is_a_few_lines(tmp_path):
    with serving(tmp_path / "data", "--no-demo") as one:
        for _ in range(3 * MAX_LINES):
            foreign = urllib.request.Request(f"{one.url}/sign-in/", headers={"Host": "evil.test"})
            with pytest.raises(urllib.error.HTTPError, match="400"):
                urllib.request.urlopen(foreign, timeout=60)
        said = [line for line in one.text.splitlines() if "evil.test" in line]
        assert 0 < len(said) <= MAX_LINES
