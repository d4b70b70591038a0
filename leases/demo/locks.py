"""Locks of Terraform's kubernetes backend: held without a duration until released.

Source: github.com/hashicorp/terraform/internal/backend/remote-state/kubernetes/client.go.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from random import Random

from leases.demo.demo_client import ApiDownError, DemoApi, LeaseObject
from leases.demo.elector import Pace
from leases.demo.names import LOCK_NAMESPACE, new_uuid
from leases.domain.lease import ObjectName
from leases.wire.microtime import format_microtime

INFO = "app.terraform.io/lock-info"
FIRST_RUN = (
    60.0,
    90.0,
)  # seconds for which the first run holds the lock: the opening shows its end
RUN = (120.0, 240.0)
FREE = (480.0, 900.0)  # seconds between two runs


class StateLock:
    """The lock of one state: taken by a run, then free for a while. A forgotten one stays taken."""

    def __init__(
        self, name: str, *, forgotten: bool, api: DemoApi, pace: Pace, random: Random
    ) -> None:
        self.key = ObjectName(LOCK_NAMESPACE, name)
        self._forgotten = forgotten
        self._api = api.acting_as("HashiCorp")  # Terraform's User-Agent begins so
        self._pace = pace
        self._random = random

    async def run(self) -> None:
        """Take and release the lock until cancelled."""
        await self._spend(1, 3)
        held = FIRST_RUN
        while True:
            try:
                await self._take()
                if self._forgotten:
                    return
                await self._spend(*held)
                await self._give_back()
            except ApiDownError:
                pass  # the next run tries again
            held = RUN
            await self._spend(*FREE)

    async def _spend(self, least: float, most: float) -> None:
        await asyncio.sleep(self._random.uniform(least, most) / self._pace.tempo)

    async def _take(self) -> None:
        found = await self._api.get(self.key)
        if found and found["spec"].get("holderIdentity"):
            return  # locked by an earlier run
        run, now = new_uuid(self._random), format_microtime(datetime.now(UTC))
        info = {"ID": run, "Operation": "OperationTypeApply", "Who": "ci@runner-7", "Created": now}
        spec = {"holderIdentity": run, "acquireTime": now}
        if found is None:
            lease = {**_new(self.key), "spec": spec}
            lease["metadata"]["annotations"] = {INFO: json.dumps(info)}
            await self._api.create(lease)
        else:
            meta = {**found["metadata"], "annotations": {INFO: json.dumps(info)}}
            await self._api.update({**found, "metadata": meta, "spec": spec})

    async def _give_back(self) -> None:
        found = await self._api.get(self.key)
        if found is None:
            return
        meta = {name: value for name, value in found["metadata"].items() if name != "annotations"}
        await self._api.update({**found, "metadata": meta, "spec": {}})


def _new(key: ObjectName) -> LeaseObject:
    labels = {"tfstate": "true", "app.kubernetes.io/managed-by": "terraform"}
    return {"metadata": {"namespace": key.namespace, "name": key.name, "labels": labels}}
