"""What judges the memory of a soak."""

from __future__ import annotations

import pytest

from tests.benchmarks.parts.soak_memory import grew

TEN_MINUTES = [10.0 * number for number in range(60)]


@pytest.mark.parametrize(("each_second", "verdict"), [(0.0, False), (0.1, True)])
def test_memory_that_grows_all_the_time_is_not_flat(each_second, verdict, capsys):
    samples = [(at, 150.0 + each_second * at) for at in TEN_MINUTES]
    assert grew("one", samples) is verdict
    assert f"{3600 * each_second:+.1f} MiB/h" in capsys.readouterr().out


def test_a_start_is_not_judged():
    assert not grew("one", [(at, 50.0 + at) for at in TEN_MINUTES[:12]])
