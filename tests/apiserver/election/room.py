"""A store with its election controller, and a clock that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from leases.apiserver.election import ElectionController
from leases.apiserver.errors import log_failure
from leases.apiserver.registry.create_update import Writer
from leases.apiserver.registry.get_list import served
from leases.apiserver.registry.namespaces import Namespaces
from leases.apiserver.resources import CANDIDATES, CLE_GATE, LEASES, Resource
from leases.apiserver.storage.journal import Event
from leases.apiserver.storage.store import ObjectStore
from leases.wire.microtime import format_microtime

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
GATES = frozenset({CLE_GATE})
SPACE = "default"


class Room:
    """A store, its controller, and a clock that both of the controller's clocks follow."""

    def __init__(self, data: Path) -> None:
        self.seconds = 0.0
        self.store = ObjectStore(data, log_failure)
        self.namespaces = Namespaces(self.store, served(GATES))
        self.writer = Writer(self.store, self.namespaces, GATES)
        self.written: list[str] = []

    async def open(self) -> None:
        await self.store.open()
        await self.namespaces.ensure_system()
        self.controller = ElectionController(
            self.store, self.writer, self.namespaces, log_failure,
            now=lambda: NOON + timedelta(seconds=self.seconds), monotonic=lambda: self.seconds,
        )  # fmt: skip
        self.store.publish = self._publish

    def _publish(self, events: list[Event]) -> None:
        self.written += [e.resource for e in events]
        self.controller.notice(events)

    async def close(self) -> None:
        await self.namespaces.close()
        await self.store.close()

    async def after(self, seconds: float) -> None:
        """Move the clock and take the steps that are due, until none is."""
        self.seconds += seconds
        before = None
        while before != self.store.revision:
            before = self.store.revision
            await self.controller.advance()

    def moment(self, seconds: float) -> str:
        return format_microtime(NOON + timedelta(seconds=seconds))

    async def stand(
        self,
        name: str,
        emulation: str = "1.36.0",
        *,
        binary: str = "1.36.0",
        strategy: str = "OldestEmulationVersion",
        renewed: float | None = None,
        pinged: float | None = None,
        lease: str = "sched",
    ) -> None:
        """Create a candidate that was renewed at this time; by default now."""
        spec: dict[str, Any] = {"leaseName": lease}
        if pinged is not None:
            spec["pingTime"] = self.moment(pinged)
        spec["renewTime"] = self.moment(self.seconds if renewed is None else renewed)
        spec |= {"binaryVersion": binary, "emulationVersion": emulation, "strategy": strategy}
        await self._create(CANDIDATES, name, spec)

    async def hold(self, holder: str | None, **spec: Any) -> None:
        """Create the Lease, renewed now for 15 s unless `spec` says otherwise."""
        start = {} if holder is None else {"holderIdentity": holder}
        times = {"leaseDurationSeconds": 15, "renewTime": self.moment(self.seconds)}
        await self._create(LEASES, "sched", start | times | spec)

    async def _create(self, resource: Resource, name: str, spec: dict[str, Any]) -> None:
        obj = {"metadata": {"name": name}, "spec": spec}
        await self.writer.create(resource, SPACE, obj, "test", dry_run=False, size=0)

    async def renew(self, name: str) -> None:
        """Answer a ping, as the candidate's process does."""
        await self.change(CANDIDATES, name, renewTime=self.moment(self.seconds))

    async def change(self, resource: Resource, name: str, **spec: Any) -> None:
        version = self.store.get(resource.plural, SPACE, name)
        assert version is not None
        obj = version.read()
        await self.controller._update(resource, obj, obj["spec"] | spec)

    def spec(self, name: str = "sched", resource: Resource = LEASES) -> dict[str, Any]:
        version = self.store.get(resource.plural, SPACE, name)
        assert version is not None, f"no {resource.singular} {name}"
        found: dict[str, Any] = version.read()["spec"]
        return found

    def pinged(self, name: str) -> str | None:
        return self.spec(name, CANDIDATES).get("pingTime")

    def exists(self, name: str, resource: Resource = CANDIDATES) -> bool:
        return self.store.get(resource.plural, SPACE, name) is not None
