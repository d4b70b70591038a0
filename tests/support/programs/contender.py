"""One contender of the official Python client's own election, as a process that a test can kill.

python3 -m tests.support.programs.contender KUBECONFIG NAMESPACE NAME IDENTITY DURATION DEADLINE
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import StartedProcess, environment, start_python


@contextmanager
def contending(
    kubeconfig: Path, namespace: str, name: str, identity: str, *, duration: int, deadline: float
) -> Iterator[StartedProcess]:
    """It looks every second. `duration` and `deadline` are seconds."""
    arguments = (str(kubeconfig), namespace, name, identity, str(duration), str(deadline))
    with Path(os.devnull).open("wb") as log:
        process = start_python(
            "-m", "tests.support.programs.contender", *arguments,
            env=environment(kubeconfig.parent), stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()  # also one that is stopped
        process.wait()


def main() -> None:
    from kubernetes import config
    from kubernetes.leaderelection import electionconfig, leaderelection
    from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

    kubeconfig, namespace, name, identity, duration, deadline = sys.argv[1:]
    config.load_kube_config(config_file=kubeconfig)
    election = electionconfig.Config(
        LeaseLock(name, namespace, identity),
        lease_duration=int(duration),
        renew_deadline=float(deadline),
        retry_period=1,
        onstarted_leading=threading.Event().wait,
        onstopped_leading=None,
    )
    leaderelection.LeaderElection(election).run()


if __name__ == "__main__":
    main()
