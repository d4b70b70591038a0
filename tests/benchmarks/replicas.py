"""Two replicas in a storm, on one PostgreSQL: `python -m tests.benchmarks.replicas [--seconds 60]`.

Both watch the same cluster with all its faults and write one history; with `--kill-at S` one of
them is killed and started again. Prints how many changes were kept and whether they are exactly
what the storm did (storm_check.py): none missing, none doubled. Exits 1 if not.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.storm import storm
from tests.support.postgres import running
from tests.support.processes import ROOT, Server, free_port, manage


def arguments() -> Namespace:
    parser = ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--leases", type=int, default=5_000)
    parser.add_argument("--elections", type=int, default=500)
    parser.add_argument("--rate", type=float, default=750)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kill-at", type=float, help="kill -9 one replica, S seconds in")
    parser.add_argument("--calm", action="store_true", help="no cut connections, no 410")
    parser.set_defaults(
        quiet_renewals=False, drop_mode="mid", gone_style="event", compact=False, framing="event"
    )
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, port = Path(name), free_port()
        truth, history = folder / "truth", folder / "history"
        database = {"LEASEBOARD_DATABASE_URL": stack.enter_context(running()).database()}

        def serve(replica: str) -> Server:
            cluster = f"storm=url:http://127.0.0.1:{port}"
            server = Server(folder / replica, "--no-demo", "--cluster", cluster, **database)
            stack.callback(lambda: server.process.poll() is not None or server.interrupt())
            return server

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
        export = manage(folder / "one", "export_history", "--cluster", "storm", **database)
        history.write_text(export.stdout)
        print(f"{len(export.stdout.splitlines())} changes kept")
        return subprocess.call(
            [sys.executable, "-m", "tests.benchmarks.parts.storm_check", str(truth), str(history),
             "--until", str(until)],
            cwd=ROOT,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
