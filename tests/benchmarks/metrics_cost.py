"""What one scrape of /metrics costs: `python -m tests.benchmarks.metrics_cost`.

130,000 heartbeats and 2,000 elections in the store, the exposition made 20 times.
"""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from tests.benchmarks.parts.command import main
from tests.benchmarks.parts.figures import spread

HEARTBEATS, ELECTIONS, ROUNDS = 130_000, 2_000, 20


def measure(asked: Namespace, folder: Path) -> None:
    os.environ["LEASEBOARD_DATA"] = str(folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    from dashboard.config import ClusterSpec
    from dashboard.metrics import exposition
    from dashboard.serving.runtime import Options, Runtime
    from leases.domain.lease import Lease, LeaseSpec, ObjectMeta
    from leases.kube.cluster_source import ClusterSource, SourceKind
    from leases.wire.watch_decoding import Listed

    now = datetime.now(UTC)

    def lease(namespace: str, name: str, version: int) -> Lease:
        heartbeat = namespace == "kube-node-lease"
        return Lease(
            ObjectMeta(name=name, namespace=namespace, uid=name, resource_version=str(version)),
            LeaseSpec(
                holder_identity=name if heartbeat else f"{name}-7d9f8b5c4-x7k2m_{version:032x}",
                lease_duration_seconds=40,
                renew_time=now,
                acquire_time=None if heartbeat else now,
                lease_transitions=None if heartbeat else 3,
            ),
        )

    spec = ClusterSpec("storm", ClusterSource(SourceKind.EMBEDDED))
    runtime = Runtime(Options(clusters=(spec,), data=folder))
    leases = [lease("kube-node-lease", f"node-{n}", n + 1) for n in range(HEARTBEATS)]
    leases += [lease(f"team-{n % 50}", f"controller-{n}", n + 1) for n in range(ELECTIONS)]
    runtime.clusters["storm"].store.replace(Listed(tuple(leases), "200000"), now)
    took, text = [], ""
    for _ in range(ROUNDS):
        began = perf_counter()
        text = exposition(runtime, elections=ELECTIONS, now=datetime.now(UTC))
        took.append((perf_counter() - began) * 1000)
    lines = sum(not line.startswith("#") for line in text.splitlines())
    print(f"{lines} series, {len(text) / 1024:.0f} KiB: {spread(took, 1)}")


if __name__ == "__main__":
    main(__doc__, measure)
