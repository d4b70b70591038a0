"""One contender of the official Python client's own election, as a process that a test can kill.

At SIGTERM it releases what it holds and ends, as client-go does with ReleaseOnCancel.

python3 -m tests.support.programs.contender KUBECONFIG NAMESPACE NAME IDENTITY DURATION DEADLINE
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
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
    from kubernetes import client, config
    from kubernetes.leaderelection import electionconfig, leaderelection
    from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

    kubeconfig, namespace, name, identity, duration, deadline = sys.argv[1:]
    config.load_kube_config(config_file=kubeconfig)

    def release(*_: object) -> None:
        api = client.CoordinationV1Api(client.ApiClient())
        if api.read_namespaced_lease(name, namespace).spec.holder_identity == identity:
            now = datetime.now(UTC)
            spec = client.V1LeaseSpec(
                holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now
            )
            api.patch_namespaced_lease(name, namespace, client.V1Lease(spec=spec))
        os._exit(0)

    signal.signal(signal.SIGTERM, release)
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
