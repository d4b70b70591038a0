"""Recorded incidents under other names, at other times, together, or with less to read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.support.incidents.recording import Connection, Line, Recording
from tests.support.variants.made import STREAMS, text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.\-]*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "haven", "iris", "kelp")
_KEPT = re.compile(
    r"(apiserver-[a-z0-9]{26}|kube-system|kube-node-lease|medik8s-leases|leader-election-controller"
    r"|default|manager|edge|node-.*)$"
)


class Altered(Recording):
    """A recording with other streams or another truth."""

    def __init__(
        self,
        name: str,
        connections: list[Connection],
        objects: dict[str, list[Line]],
        truth: dict[str, Any],
    ) -> None:
        self.name, self.truth = name, truth
        self._connections, self._objects = connections, objects

    def connections(self) -> list[Connection]:
        return self._connections

    def objects(self, kind: str) -> list[Line]:
        return self._objects.get(kind, [])


def _objects(recording: Recording) -> dict[str, list[Line]]:
    return {kind: recording.objects(kind) for kind in STREAMS if kind != "leases"}


def _mapped(
    recording: Recording,
    name: str,
    body: Callable[[bytes], bytes],
    shift: timedelta = timedelta(0),
) -> Altered:
    def lines(found: list[Line] | tuple[Line, ...]) -> list[Line]:
        return [Line(line.at + shift, body(line.body)) for line in found]

    connections = [
        Connection(one.opened + shift, one.ended + shift, tuple(lines(one.lines)))
        for one in recording.connections()
    ]
    objects = {kind: lines(found) for kind, found in _objects(recording).items()}
    truth = json.loads(body(json.dumps(recording.truth).encode()))
    return Altered(name, connections, objects, truth)


def renamed(recording: Recording, seed: int | str) -> Altered:
    """Give namespaces, Leases, workloads and nodes other names, everywhere the same."""
    names = _other_names(recording, Random(seed))  # noqa: S311

    def body(old: bytes) -> bytes:
        return _NAME.sub(lambda found: names.get(found[0], found[0]), old.decode()).encode()

    return _mapped(recording, f"{recording.name}-renamed-{seed}", body)


def _other_names(recording: Recording, random: Random) -> dict[str, str]:
    names: dict[str, str] = {}

    def word(old: str) -> str:
        if old not in names and not _KEPT.match(old):
            names[old] = f"{random.choice(_WORDS)}-{random.choice(_WORDS)}-{random.randrange(1000)}"
        return names.get(old, old)

    for number, line in enumerate(recording.objects("nodes")):
        name = json.loads(line.body)["object"]["metadata"].get("name")
        if name and name not in names:
            names[name] = f"ip-10-{random.randrange(99)}-{number}.eu-west-1.compute.internal"
    for line in recording.objects("pods"):
        meta = json.loads(line.body)["object"]["metadata"]
        if "ownerReferences" in meta:
            _name_pod(meta, names, word, random)
    for change in recording.truth["changes"]:
        namespace, _, lease = change["lease"].partition("/")
        word(namespace)
        word(lease)
    return names


def _name_pod(meta: dict[str, Any], names: dict[str, str], word: Any, random: Random) -> None:
    owner, pod = meta["ownerReferences"][0], meta["name"]
    workload, rest = owner["name"], pod.removeprefix(owner["name"])
    if owner["kind"] == "ReplicaSet":
        workload, _, ending = owner["name"].rpartition("-")
        if ending not in names:
            names[ending] = "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=len(ending)))
        names[owner["name"]] = f"{word(workload)}-{names[ending]}"
        names[pod] = names[owner["name"]] + rest
    elif owner["kind"] == "StatefulSet":
        names[pod] = word(workload) + rest
    else:  # a static Pod: its node's name is its end
        node = pod.removesuffix(f"-{owner['name']}")
        names[pod] = f"{word(node)}-{names.get(owner['name'], owner['name'])}"


def shifted(recording: Recording, seconds: float) -> Altered:
    """The same, at another time."""
    shift = timedelta(seconds=seconds)

    def later(found: re.Match[str]) -> str:
        at = text(datetime.fromisoformat(found[0]) + shift)
        return at if found[1] else at[:19] + "Z"

    def body(old: bytes) -> bytes:
        return _TIME.sub(later, old.decode()).encode()

    return _mapped(recording, recording.name, body, shift)


def together(first: Recording, second: Recording, seconds: float) -> Altered:
    """Two recordings in one cluster: the second begins so many seconds after the first.

    Both must have one connection, and neither an incident of the whole cluster.
    """
    began = datetime.fromisoformat(first.truth["opened"])
    delay = (began - datetime.fromisoformat(second.truth["opened"])).total_seconds() + seconds
    other = renamed(shifted(second, delay), f"{first.name}{seconds}")
    mine, theirs = first.connections()[0], other.connections()[0]
    once = [line for line in theirs.lines if _is_own(line)]
    ended = min(mine.ended, theirs.ended)
    lines = sorted((*mine.lines, *once), key=lambda line: line.at)
    connection = Connection(mine.opened, ended, tuple(one for one in lines if one.at <= ended))
    objects = {
        kind: sorted((*found, *other.objects(kind)), key=lambda line: line.at)
        for kind, found in _objects(first).items()
    }
    truth = dict(first.truth)
    truth["ended"] = text(ended)
    for one in other.truth["incidents"]:
        one["id"] = f"other-{one['id']}"
    for change in other.truth["changes"]:
        change["incident"] = change["incident"] and f"other-{change['incident']}"
    changes = (*first.truth["changes"], *other.truth["changes"])
    truth["changes"] = [one for one in changes if datetime.fromisoformat(one["at"]) <= ended]
    begun = {one["incident"] for one in truth["changes"]}
    incidents = (*first.truth["incidents"], *other.truth["incidents"])
    truth["incidents"] = [one for one in incidents if one["id"] in begun]
    return Altered(f"{first.name}+{second.name}", [connection], objects, truth)


def _is_own(line: Line) -> bool:
    """Not of the second API server, of which a cluster has one."""
    return b'"BOOKMARK"' not in line.body and b"apiserver-rplp" not in line.body


def without(recording: Recording, *kinds: str) -> Altered:
    """Nothing is there to read of `pods`, `nodes` or `events`."""
    objects = {kind: [] if kind in kinds else found for kind, found in _objects(recording).items()}
    name = f"{recording.name} without {' '.join(kinds)}"
    return Altered(name, recording.connections(), objects, recording.truth)


def events_late(recording: Recording, seconds: float) -> Altered:
    """Events are written so much later than what they tell of."""
    objects = _objects(recording)
    late = timedelta(seconds=seconds)
    objects["events"] = [Line(line.at + late, line.body) for line in objects["events"]]
    name = f"{recording.name} events late"
    return Altered(name, recording.connections(), objects, recording.truth)


def clocks_shifted(recording: Recording, seed: int) -> Altered:
    """Each holder's clock is wrong by up to a minute: renewTime and acquireTime move with it."""
    wrong: dict[str, float] = {}
    random = Random(seed)  # noqa: S311

    def body(old: bytes) -> bytes:
        event = json.loads(old)
        spec = event["object"].get("spec") or {}
        holder = spec.get("holderIdentity")
        if holder and "kube-node-lease" not in old.decode():
            shift = wrong.setdefault(holder, random.uniform(-60, 60))
            for field in ("renewTime", "acquireTime"):
                if spec.get(field):
                    moved = datetime.fromisoformat(spec[field]) + timedelta(seconds=shift)
                    spec[field] = text(moved)
        return json.dumps(event).encode()

    connections = [
        Connection(one.opened, one.ended, tuple(Line(x.at, body(x.body)) for x in one.lines))
        for one in recording.connections()
    ]
    name = f"{recording.name} clocks shifted"
    return Altered(name, connections, _objects(recording), recording.truth)
