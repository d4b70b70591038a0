"""`lease_api`: the embedded Lease API alone, until Ctrl-C."""

import asyncio
import gc
import signal
from argparse import ArgumentParser
from functools import partial
from typing import Any

from django.core.management.base import CommandError

from dashboard.config import ConfigError, load
from dashboard.management.refusing import HELP, RefusingCommand, parse_gates, parse_port, shown_path
from leases.apiserver.http.port import CannotStart
from leases.apiserver.serving import LeaseApiServer
from leases.private_files import InUse
from leases.worker_threads import end_after_signals

# Objects made and not freed before the collector looks at them; Python's own is 700.
GARBAGE = 20_000


class Command(RefusingCommand):
    help = "Serve the embedded Lease API alone: kubectl and client-go can use it."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument(
            "--port", type=partial(parse_port, least=0), default=8001, help="port, 0 for a free one"
        )
        parser.add_argument(
            "--feature-gates",
            type=parse_gates,
            default=frozenset(),
            metavar="GATE=true|false,...",
            help=HELP,
        )

    def handle(
        self, *, host: str, port: int, feature_gates: frozenset[str], **options: Any
    ) -> None:
        try:
            data = load().data
        except ConfigError as error:
            raise CommandError(str(error)) from error
        server = LeaseApiServer(data=data, host=host, port=port, feature_gates=feature_gates)
        asyncio.run(self._serve(server, host, port))

    async def _serve(self, server: LeaseApiServer, host: str, port: int) -> None:
        try:
            await server.start()
        except (InUse, CannotStart) as error:
            raise CommandError(str(error)) from error
        except (OSError, TypeError, ValueError) as error:  # Python's own for an odd name
            reason = str(getattr(error, "strerror", None) or error).lower()
            raise CommandError(
                f"Cannot serve on {host[:100]}:{port} ({reason}): choose another --port or --host."
            ) from error
        # What was loaded stays, and requests leave hardly a cycle: the collector may look seldom.
        gc.freeze()
        gc.set_threshold(GARBAGE)
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopping.set))
        end_after_signals()
        self.stdout.write(f"lease api    {server.url}")
        kubeconfig = shown_path(server.kubeconfig)
        self.stdout.write(f"kubectl      kubectl --kubeconfig {kubeconfig} get leases -A --watch")
        self.stdout.flush()
        assert server.serving is not None  # noqa: S101 - for the type checker: it has started
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait({stop, server.serving}, return_when=asyncio.FIRST_COMPLETED)
        if not stop.done():
            stop.cancel()
            failure = server.serving.exception()
            raise CommandError("The Lease API stopped on an unexpected error.") from failure
        await server.stop()
