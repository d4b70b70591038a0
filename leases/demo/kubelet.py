"""Nodes and API servers: each renews a Lease of its own while it lives.

Source: k8s.io/component-helpers/apimachinery/lease/controller.go; pkg/kubelet (40 s, every 10 s)
and pkg/controlplane (3600 s, every 10 s).
"""

import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any

from leases.demo.cluster_objects import DemoNode
from leases.demo.demo_client import ApiDownError, DemoApi, LeaseObject
from leases.demo.electors import Orders, Pace
from leases.demo.names import IDENTITY_NAMESPACE, NODE_NAMESPACE, NODES, new_uuid
from leases.domain.lease import ObjectName
from leases.wire.microtime import format_microtime

INTERVAL = 10.0
JITTER = 0.04
NODE_GRACE = 50.0  # seconds: kube-controller-manager's --node-monitor-grace-period
ARRIVAL = 3.0  # at the start all register within this time


class Heartbeat:
    """One Lease that only its owner renews."""

    def __init__(
        self,
        key: ObjectName,
        *,
        holder: str,
        duration: int,
        metadata: dict[str, Any],
        api: DemoApi,
        pace: Pace,
        random: Random,
        node: DemoNode | None = None,
    ) -> None:
        self.key = key
        self._node = node
        self._holder = holder
        self._duration = pace.lasting(duration)
        self._metadata = {"namespace": key.namespace, "name": key.name, **metadata}
        self._api = api
        self._pace = pace
        self._random = random
        self._lease: LeaseObject | None = None
        self._deaths = Orders[float](pace)

    def die(self, seconds: float) -> None:
        """Stop renewing for this many seconds."""
        self._deaths.give(seconds)

    async def restart(self) -> None:
        """Restart as an API server does: delete the old Lease and create a new one."""
        self._holder = f"{self.key.name}_{new_uuid(self._random)}"
        await self._api.delete(self.key)
        self._lease = await self._api.create(self._written({"metadata": self._metadata}))

    async def run(self) -> None:
        """Renew until cancelled."""
        await asyncio.sleep(self._random.uniform(0, ARRIVAL) / self._pace.tempo)
        await self._register()
        pause = self._random.uniform(1, INTERVAL)
        while True:
            try:
                await self._beat()
            except ApiDownError:
                pause = INTERVAL / 2
            seconds = await self._deaths.within(pause / self._pace.tempo)
            if seconds is None:
                pause = INTERVAL * self._random.uniform(1, 1 + JITTER)
            else:
                await self._be_down(seconds)

    async def _register(self) -> None:
        """Register the Node; its Lease names it as its owner."""
        uid = "" if self._node is None else await self._node.register()
        for owner in self._metadata.get("ownerReferences", ()) if uid else ():
            owner["uid"] = uid

    async def _be_down(self, seconds: float) -> None:
        silent = min(seconds, NODE_GRACE / self._pace.tempo)
        await asyncio.sleep(silent)
        if self._node is not None and seconds > silent:
            await self._node.fall_silent()
        await asyncio.sleep(seconds - silent)
        if self._node is not None and seconds > silent:
            await self._node.come_back()

    async def _beat(self) -> None:
        if self._lease is not None:
            self._lease = await self._api.update(self._written(self._lease))
        if self._lease is None:
            found = await self._api.get(self.key)
            if found is None:
                found = {"metadata": self._metadata}
                self._lease = await self._api.create(self._written(found))
            else:
                self._lease = await self._api.update(self._written(found))

    def _written(self, lease: LeaseObject) -> LeaseObject:
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": self._duration,
            "renewTime": format_microtime(datetime.now(UTC)),
        }
        return {**lease, "spec": spec}


def node(name: str, *, api: DemoApi, pace: Pace, random: Random) -> Heartbeat:
    """Return a kubelet's heartbeat, owned by its Node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": new_uuid(random)}
    return Heartbeat(
        ObjectName(NODE_NAMESPACE, name),
        holder=name,
        duration=40,
        metadata={"ownerReferences": [owner]},
        api=api.acting_as("kubelet"),
        pace=pace,
        random=random,
        # Somebody removed the last machine from the cluster, but its kubelet still runs.
        node=None if name == NODES[-1] else DemoNode(name, api=api),
    )


def api_server(name: str, host: str, *, api: DemoApi, pace: Pace, random: Random) -> Heartbeat:
    """Return an API server's identity Lease."""
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": host}
    return Heartbeat(
        ObjectName(IDENTITY_NAMESPACE, name),
        holder=f"{name}_{new_uuid(random)}",
        duration=3600,
        metadata={"labels": labels},
        api=api.acting_as("kube-apiserver"),
        pace=pace,
        random=random,
    )
