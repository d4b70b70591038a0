"""A small Kubernetes API with a clock of its own: objects, managedFields, and their watches."""

from __future__ import annotations

import copy
import heapq
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tests.support.incidents.recording import Connection, Line
from tests.support.variants.made import Incident, Made

Object = dict[str, Any]
Key = tuple[str, str, str]  # stream, namespace, name
STARTED = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


class Unavailable(Exception):
    """The API server does not answer."""


class Api:
    """Objects are written at `now`, and arrive in the watches some milliseconds later."""

    def __init__(self, seed: int | str) -> None:
        self.slow_until = STARTED
        self.random = Random(seed)  # noqa: S311 the same each time
        self.now = STARTED
        self.objects: dict[Key, Object] = {}
        self.incidents: list[Incident] = []
        self.down_until = STARTED
        self._breaks: list[tuple[datetime, datetime]] = []
        self._stall_until = STARTED
        self._version = 100
        self._lines: dict[str, list[Line]] = {
            "leases": [],
            "pods": [],
            "nodes": [],
            "events": [],
        }
        self._todo: list[tuple[datetime, int, Callable[[], object]]] = []
        self._order = 0

    # -- time

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        self._order += 1
        heapq.heappush(self._todo, (self.now + timedelta(seconds=seconds), self._order, do))

    def run(self, seconds: float) -> None:
        until = self.now + timedelta(seconds=seconds)
        while self._todo and self._todo[0][0] <= until:
            self.now, _, do = heapq.heappop(self._todo)
            do()
        self.now = until

    def between(self, low: float, high: float) -> float:
        return self.random.uniform(low, high)

    # -- writes

    @property
    def up(self) -> bool:
        return self.now >= self.down_until

    def stall(self, seconds: float) -> None:
        """Answer nothing for so long, then everything that was asked."""
        self._stall_until = self.now + timedelta(seconds=seconds)

    @property
    def stalled_for(self) -> float:
        return max(0.0, (self._stall_until - self.now).total_seconds())

    def slowness(self) -> float:
        """How long one request takes while the API server is slow for everybody."""
        return self.between(2.6, 7.5) if self.now < self.slow_until else 0.0

    def outage(self, seconds: float, *, watch_breaks: bool) -> None:
        self.down_until = self.now + timedelta(seconds=seconds)
        if watch_breaks:
            self._breaks.append((self.now, self.down_until + timedelta(seconds=0.4)))

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        if not self.up:
            raise Unavailable
        return self.objects.get((kind, namespace, name))

    def create(self, kind: str, obj: Object, manager: str = "") -> Object:
        if not self.up:
            raise Unavailable
        meta = obj["metadata"]
        meta.setdefault("uid", self.uuid())
        meta["creationTimestamp"] = self.second()
        if kind == "leases":
            fields = {f"f:{name}" for name in obj["spec"]}
            meta["managedFields"] = [self._entry(manager, "Update", fields)]
        self.objects[kind, meta.get("namespace", ""), meta["name"]] = obj
        self._tell(kind, "ADDED", obj)
        return obj

    def change(self, kind: str, obj: Object, kind_of: str = "MODIFIED") -> None:
        if not self.up:
            raise Unavailable
        self._tell(kind, kind_of, obj)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        if not self.up:
            raise Unavailable
        obj = self.objects.pop((kind, namespace, name), None)
        if obj is not None:
            self._tell(kind, "DELETED", obj)

    def write_lease(
        self, obj: Object, spec: Object, manager: str, operation: str = "Update", **meta: Object
    ) -> None:
        """Set fields of a Lease's spec, labels or annotations; the writer gets what moved."""
        if not self.up:
            raise Unavailable
        moved = {f"f:{name}" for name, value in spec.items() if obj["spec"].get(name) != value}
        obj["spec"].update(spec)
        for part, values in meta.items():
            obj["metadata"].setdefault(part, {}).update(values)
            moved |= {f"f:{part}/f:{name}" for name in values}
        mine: set[str] = set(moved)
        entries = []
        for entry in obj["metadata"]["managedFields"]:
            fields = _flat(entry["fieldsV1"])
            if (entry["manager"], entry["operation"]) == (manager, operation):
                mine |= fields
            elif fields - moved:
                entries.append(entry | {"fieldsV1": _nested(fields - moved)})
        entries.append(self._entry(manager, operation, mine))
        obj["metadata"]["managedFields"] = entries
        self._tell("leases", "MODIFIED", obj)

    def event(self, about: Key, reason: str, message: str, component: str, host: str = "") -> None:
        """Write an Event about an object; `about` has its kind instead of a stream."""
        kind, namespace, name = about
        space = namespace or "default"
        at = self.second()
        source = {"component": component} | ({"host": host} if host else {})
        involved = {"kind": kind, "name": name, "apiVersion": "v1"}
        obj = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{name}.{self.random.getrandbits(60):x}", "namespace": space},
            "involvedObject": involved | ({"namespace": namespace} if namespace else {}),
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
            "type": "Normal",
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": host,
        }
        if self.up:
            self.create("events", obj)

    # -- small things

    def uuid(self) -> str:
        digits = f"{self.random.getrandbits(128):032x}"
        return "-".join(
            (digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:])
        )

    def second(self) -> str:
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def words(self, length: int) -> str:
        return "".join(self.random.choices("bcdfghjklmnpqrstvwxz2456789", k=length))

    def _entry(self, manager: str, operation: str, fields: set[str]) -> Object:
        return {
            "manager": manager,
            "operation": operation,
            "apiVersion": "coordination.k8s.io/v1",
            "time": self.second(),
            "fieldsType": "FieldsV1",
            "fieldsV1": _nested(fields),
        }

    def _tell(self, kind: str, event: str, obj: Object) -> None:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        body = json.dumps({"type": event, "object": obj}, separators=(",", ":")).encode()
        at = max(self.now, self._stall_until) + timedelta(seconds=self.between(0.002, 0.006))
        lines = self._lines[kind]
        lines.append(Line(max(at, lines[-1].at) if lines else at, body))

    # -- the recording

    def incident(self, cause: str, leases: Any, *, lasts: float, name: str = "") -> Incident:
        """Open an incident now: changes of these Leases in the next seconds belong to it."""
        one = {
            "id": name or f"{cause}-{len(self.incidents) + 1}",
            "cause": cause,
            "began": self.now,
            "until": self.now + timedelta(seconds=lasts),
            "leases": leases,
            "hosts": [],
        }
        self.incidents.append(one)
        return one

    def recording(self, name: str) -> Made:
        lines = {kind: list(found) for kind, found in self._lines.items()}
        connections = []
        opened, state = STARTED, {}
        rest = lines["leases"]
        for ended, reopened in [*self._breaks, (self.now, self.now)]:
            initial = [
                Line(opened, json.dumps({"type": "ADDED", "object": obj}).encode())
                for obj in state.values()
            ]
            if opened > STARTED:  # a relist shows what was written while the watch was cut
                missed = [line for line in rest if line.at <= opened]
                for line in missed:
                    _apply(state, line)
                initial = [
                    Line(opened, json.dumps({"type": "ADDED", "object": obj}).encode())
                    for obj in state.values()
                ]
                rest = rest[len(missed) :]
            mine = [line for line in rest if line.at <= ended]
            rest = rest[len(mine) :]
            for line in mine:
                _apply(state, line)
            end = Line(opened, _bookmark())
            connections.append(Connection(opened, ended, (*initial, end, *mine)))
            opened = reopened
        return Made(name, connections, lines, copy.deepcopy(self.incidents))


def _apply(state: dict[tuple[str, str], Object], line: Line) -> None:
    event = json.loads(line.body)
    meta = event["object"]["metadata"]
    key = meta["namespace"], meta["name"]
    if event["type"] == "DELETED":
        state.pop(key, None)
    else:
        state[key] = event["object"]


def _bookmark() -> bytes:
    meta = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
    lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": {}}
    return json.dumps({"type": "BOOKMARK", "object": lease}).encode()


def _flat(fields: Object) -> set[str]:
    found = set(fields.get("f:spec", {}))
    for part, names in fields.get("f:metadata", {}).items():
        found |= {f"{part}/{name}" for name in names if name != "."}
    return found


def _nested(fields: set[str]) -> Object:
    nested: Object = {}
    for name in sorted(fields):
        if "/" in name:
            part, _, inner = name.partition("/")
            nested.setdefault("f:metadata", {}).setdefault(part, {".": {}})[inner] = {}
        else:
            nested.setdefault("f:spec", {})[name] = {}
    return nested
