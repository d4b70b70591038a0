"""`manage.py` in which asyncio's own pool refuses all work, and says so in the log.

With HANG=threads in the environment each pool of ours gets a call that does not end; with HANG=loop
the event loop stands still from the first signal on; with HANG=names the system never finds a name
that ends in `.hangs.example.com`.
"""

import asyncio
import os
import sys
import threading
import traceback
from typing import Any

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
_real = asyncio.BaseEventLoop.run_in_executor


def _refusing(loop: asyncio.BaseEventLoop, executor: Any, work: Any, *given: Any) -> Any:
    if executor is None:
        stack = "".join(traceback.format_stack())
        print(f"SHARED THREADS: {work}\n{stack}", file=sys.stderr, flush=True)
        raise AssertionError("asyncio's own pool got work")
    return _real(loop, executor, work, *given)


asyncio.BaseEventLoop.run_in_executor = _refusing  # type: ignore[method-assign, assignment]

if os.environ.get("HANG") == "loop":
    import django

    django.setup()
    from dashboard.serving.pages_port import DrainingServer

    DrainingServer.handle_exit = lambda *_given: threading.Event().wait()  # type: ignore[method-assign, assignment, return-value]

if os.environ.get("HANG") == "names":
    import socket

    _look_up = socket.getaddrinfo

    def _never_found(host: Any, *given: Any, **named: Any) -> Any:
        if str(host).endswith(".hangs.example.com"):
            threading.Event().wait()
        return _look_up(host, *given, **named)

    socket.getaddrinfo = _never_found

if os.environ.get("HANG") == "threads":
    from leases.worker_threads import WorkerThreads

    _never = threading.Event()
    _run = WorkerThreads.run

    async def _hanging(self: WorkerThreads, work: Any, *given: Any, **named: Any) -> Any:
        if self.name != "start" and not hasattr(self, "hangs"):
            self.hangs = [asyncio.ensure_future(_run(self, _never.wait))]  # type: ignore[attr-defined]
            print(f"HANGS: {self.name}", file=sys.stderr, flush=True)
        return await _run(self, work, *given, **named)

    WorkerThreads.run = _hanging  # type: ignore[method-assign, assignment]

execute_from_command_line(sys.argv)
