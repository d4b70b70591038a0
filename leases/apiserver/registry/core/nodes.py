"""Nodes. Source: pkg/registry/core/node/strategy.go, pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leases.apiserver.codec.core_schema import NODE
from leases.apiserver.registry.core.fields import (
    condition,
    member,
    objects,
    selects_flag,
    text,
)
from leases.apiserver.resources import AGE, NAME, Column, Resource
from leases.wire.name_rules import subdomain_errors

Object = dict[str, Any]
_ROLE = "node-role.kubernetes.io/"


def prepare(new: Object, old: Object | None, subresource: str) -> None:
    """Keep the part of the object that belongs to the other of the two endpoints."""
    if old is not None:
        kept = "spec" if subresource == "status" else "status"
        new[kept] = old[kept]


def _status(obj: Object) -> str:
    ready = {"": "Unknown", "True": "Ready"}.get(condition(obj, "Ready"), "NotReady")
    cordoned = member(obj, "spec", "unschedulable") is True
    return f"{ready},SchedulingDisabled" if cordoned else ready


def _roles(obj: Object) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {name[len(_ROLE) :] for name in labels if name.startswith(_ROLE)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or "<none>"


def _address(kind: str) -> Callable[[Object], str]:
    def cell(obj: Object) -> str:
        found = objects(obj, "status", "addresses")
        return next((text(each, "address") for each in found if each.get("type") == kind), "<none>")

    return cell


def _info(name: str, unknown: str = "<unknown>") -> Callable[[Object], str]:
    return lambda obj: text(obj, "status", "nodeInfo", name) or unknown


NODES = Resource(
    plural="nodes",
    singular="node",
    kind="Node",
    group="",
    version="v1",
    schema=NODE,
    columns=(
        NAME,
        Column("Status", "The status of the node", _status),
        Column("Roles", "The roles of the node", _roles),
        AGE,
        Column("Version", "Kubelet Version reported by the node.", _info("kubeletVersion", "")),
        Column("Internal-IP", "", _address("InternalIP"), priority=1),
        Column("External-IP", "", _address("ExternalIP"), priority=1),
        Column("OS-Image", "", _info("osImage"), priority=1),
        Column("Kernel-Version", "", _info("kernelVersion"), priority=1),
        Column("Container-Runtime", "", _info("containerRuntimeVersion"), priority=1),
    ),
    name_errors=subdomain_errors,
    namespaced=False,
    short_names=("no",),
    subresources=("status",),
    creates_on_update=False,
    unconditional_update=True,
    selectable={
        "metadata.name": None,
        "spec.unschedulable": selects_flag("spec", "unschedulable"),
    },
    prepare=prepare,
)
