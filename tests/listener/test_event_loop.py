"""The event loop of the commands that serve: uvloop's. A signal reaches it, and what ends the
process if it hangs.
"""

import subprocess
import sys

import pytest

from tests.support.processes import ROOT

SERVE = """
import asyncio, os, signal, threading
from leases.listener.server import run
from leases.worker_threads import end_after_signals

async def serve():
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(stopping.set))
    end_after_signals()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    await stopping.wait()
    print(type(loop).__module__, flush=True)
    if HANGS:
        threading.Event().wait()

run(serve())
"""


@pytest.mark.parametrize("hangs", [False, True])
def test_a_signal_ends_what_runs_on_uvloop_also_if_it_hangs(hangs: bool) -> None:
    script = SERVE.replace("HANGS", str(hangs))
    done = subprocess.run(
        [sys.executable, "-c", script],
        check=False, cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "uvloop\n"), done.stderr
    assert ("did not end in time" in done.stderr) is hangs
