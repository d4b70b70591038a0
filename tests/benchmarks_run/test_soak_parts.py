"""What judges the memory of a soak."""

from __future__ import annotations

import pytest

from tests.benchmarks.parts.soak_memory import MAX_SLOPE, Memory, slope

WARM = 600.0
HOUR = [10.0 * number for number in range(360)]


@pytest.mark.parametrize(("each_minute", "wrong"), [(0.0, False), (0.09, False), (0.11, True)])
def test_memory_that_grows_all_the_time_is_not_flat(each_minute, wrong, capsys):
    start = [50.0 + at for at in HOUR[:60]]  # which counts for nothing
    waves = [at % 60 / 10 for at in HOUR]  # what is freed is given back each minute
    samples = [
        (at, wave + (start[number] if number < 60 else 150.0 + each_minute * at / 60))
        for number, (at, wave) in enumerate(zip(HOUR, waves, strict=True))
    ]
    found = slope("one", samples, WARM)
    assert found == pytest.approx(each_minute, abs=0.005)
    memory = Memory(WARM)
    memory._samples["one", 1] = samples
    assert memory.grew() is wrong is (found >= MAX_SLOPE)
    assert f"{found:+.3f} MiB/min" in capsys.readouterr().out


def test_a_start_is_not_judged_and_proves_nothing(capsys):
    memory = Memory(WARM)
    memory._samples["one", 1] = [(at, 50.0 + at) for at in HOUR[:80]]
    assert memory.grew()
    assert "give more --minutes" in capsys.readouterr().out
