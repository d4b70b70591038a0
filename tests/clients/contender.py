"""One contender of the official client's own election, as a process that a test can kill.

contender.py KUBECONFIG NAMESPACE NAME IDENTITY
"""

from __future__ import annotations

import sys
import threading

from kubernetes import config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock


def main() -> None:
    kubeconfig, namespace, name, identity = sys.argv[1:]
    config.load_kube_config(config_file=kubeconfig)
    election = electionconfig.Config(
        LeaseLock(name, namespace, identity),
        lease_duration=2,
        renew_deadline=1.5,
        retry_period=1,
        onstarted_leading=threading.Event().wait,
        onstopped_leading=None,
    )
    leaderelection.LeaderElection(election).run()


if __name__ == "__main__":
    main()
