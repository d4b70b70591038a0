"""What a list needed is given back once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dashboard.serving.memory import Leftovers, give_back

MEBIBYTE = 1024 * 1024


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_what_malloc_keeps_free_is_returned() -> None:
    pieces = [bytes(1000) for _ in range(64 * 1024)]
    last = pieces.pop()  # at the end of the heap, which thus cannot shrink by itself
    pieces.clear()
    before = resident()
    give_back()
    assert before - resident() > 32 * MEBIBYTE
    assert len(last) == 1000


IN_A_THREAD = """
import threading
from pathlib import Path
from dashboard.serving.memory import share_one_heap

share_one_heap()
found = []
thread = threading.Thread(target=lambda: found.append(bytes(2000)))
thread.start()
thread.join()
(line,) = [line for line in Path("/proc/self/maps").read_text().splitlines() if "[heap]" in line]
first, last = (int(number, 16) for number in line.split()[0].split("-"))
print(first <= id(found[0]) < last)
"""


def test_threads_allocate_from_one_heap() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IN_A_THREAD], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "True\n"


def test_leftovers_are_given_back_once_after_each_list_when_all_is_written() -> None:
    leftovers = Leftovers()
    assert not leftovers.are_free(0, waiting=0)
    assert not leftovers.are_free(1, waiting=7)
    assert leftovers.are_free(1, waiting=0)
    assert not leftovers.are_free(1, waiting=0)
    assert leftovers.are_free(2, waiting=0)
