"""Two replicas in a storm, on one PostgreSQL: `python -m tests.benchmarks.replicas [--seconds 60]`.

Both watch the same cluster with all its faults and write one history; with `--kill-at S` one of
them is killed and started again. Prints how many changes were kept and whether they are exactly
what the storm did (storm_check.py): none missing, none doubled. Exits 1 if not.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.storm_load import (
    calm_options,
    check_history,
    fault_options,
    interrupted_at_end,
    source,
    storm,
)
from tests.support.postgres import running
from tests.support.processes import Server, free_port


def options(parser: ArgumentParser) -> None:
    calm_options(parser, seconds=60, leases=5_000, elections=500, rate=750)
    fault_options(parser)


def measure(asked: Namespace, folder: Path) -> int:
    port, truth = free_port(), folder / "truth"
    with ExitStack() as stack:
        database = {"LEASEBOARD_DATABASE_URL": stack.enter_context(running()).database()}

        def serve(replica: str) -> Server:
            data, cluster = folder / replica, ("--cluster", source(port))
            server = Server(data, "--no-demo", *cluster, **database)
            return interrupted_at_end(stack, server)

        with storm(asked, port, truth):
            one, other = serve("one"), serve("other")
            one.wait_synced()
            other.wait_synced()
            rest = asked.seconds
            if asked.kill_at:
                time.sleep(asked.kill_at)
                rest -= asked.kill_at
                other.kill()
                time.sleep(2)
                other = serve("other")
                other.wait_synced()
                print("one replica was killed and started again")
            time.sleep(rest)
            until = time.time() - 1
            time.sleep(2)
        one.interrupt()
        other.interrupt()
        return check_history(folder / "one", truth, until, **database)


if __name__ == "__main__":
    main(__doc__, measure, options)
