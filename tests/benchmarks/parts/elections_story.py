"""Elections in an embedded Lease API, with a log of what was done, as leasestorm writes it."""

from __future__ import annotations

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

from tests.support.api_client import LeaseApi, leases, timestamp

ELECTIONS = 12
EVERY = 0.7  # seconds between two changes
CANDIDATES = ("a", "b", "c")
UNSURE = 5  # changes before a cut that a watch may not have shown any more


class ElectionsStory:
    """Changes of holder, one after the other. Hold `pause` to make none."""

    def __init__(self, api: LeaseApi, truth: Path) -> None:
        self.api = api
        self.pause = asyncio.Lock()
        self.versions: list[str] = []
        self._random = random.Random(1)  # noqa: S311 - which one changes is no secret
        self._transitions = [0] * ELECTIONS
        self._holders = [""] * ELECTIONS
        self._truth = truth
        self._log("storm.watch", "0")

    async def run(self) -> None:
        """Change until cancelled, but never between a request and its answer."""
        while True:
            async with self.pause:
                await asyncio.shield(self.change())
            await asyncio.sleep(EVERY)

    def unseen_since(self) -> str:
        """A version that every watch has surely shown."""
        return self.versions[-UNSURE]

    def log_unseen(self, since: str) -> None:
        """Note that what was written since is shown by a list alone."""
        self._log("storm.410", since)
        self._log("storm.watch", self.versions[-1])

    async def change(self) -> None:
        """Write one change, in a thread. The caller holds `pause`."""
        number = len(self.versions)  # first, each is created
        if number >= ELECTIONS:
            number = self._random.randrange(ELECTIONS)
        await asyncio.to_thread(self._write, number)

    def _write(self, number: int) -> None:
        before, name = self._holders[number], f"soak-{number}"
        first = not self._transitions[number]
        others = [one for one in CANDIDATES if one != before]
        holder = "" if before and self._random.random() < 0.25 else self._random.choice(others)
        now, spec = timestamp(), {"holderIdentity": holder}
        if holder:
            self._transitions[number] += 1
            spec |= {
                "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now,
                "leaseTransitions": self._transitions[number],
            }  # fmt: skip
        if first:
            body = {"metadata": {"name": name}, "spec": spec}
            meta = self.api.send("POST", leases(), body)["metadata"]
        else:
            meta = self.api.patch(name, **spec)["metadata"]
        kind = "created" if first else _kind(before, holder)
        self._holders[number] = holder
        self.versions.append(meta["resourceVersion"])
        names = {"key": f"default/{name}", "from": before or None, "to": holder, "uid": meta["uid"]}
        self._log(kind, meta["resourceVersion"], **names)

    def _log(self, kind: str, version: str, **more: Any) -> None:
        with self._truth.open("a") as file:
            event = {"t": round(time.time(), 6), "kind": kind, "rv": version, **more}
            file.write(json.dumps(event) + "\n")


def _kind(before: str, after: str) -> str:
    if not after:
        return "released"
    return "transition" if before else "acquired"
