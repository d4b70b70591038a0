"""Pods and Nodes. Nobody schedules, runs or evicts Pods here.

Source: pkg/registry/core/pod/strategy.go, pkg/printers/internalversion/printers.go (printPod).
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from leases.apiserver.codec.go_values import age
from leases.apiserver.codec.schema import NODE, POD, SERVICE
from leases.apiserver.resources import AGE, NAME, Column, Resource
from leases.wire.name_rules import subdomain_errors

Object = dict[str, Any]


def member(value: Any, *names: str) -> Any:
    """The value below these names, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text(value: Any, *names: str) -> str:
    """The text below these names, or ""."""
    found = member(value, *names)
    return found if isinstance(found, str) else ""


def objects(value: Any, *names: str) -> list[Object]:
    """The objects in the list below these names."""
    found = member(value, *names)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def selects_text(*names: str) -> Callable[[Object], str]:
    return lambda obj: text(obj, *names)


def selects_flag(*names: str) -> Callable[[Object], str]:
    return lambda obj: "true" if member(obj, *names) is True else "false"


def condition(obj: Object, kind: str) -> str:
    """The status of a condition, or "" without it."""
    found = (each for each in objects(obj, "status", "conditions") if each.get("type") == kind)
    return next((text(each, "status") for each in found), "")


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


def _prepare(new: Object, old: Object | None, subresource: str) -> None:
    """A new Pod is pending; only the status endpoint writes its status, and nothing else."""
    if old is None:
        new["status"] = {"phase": "Pending"}
        return
    prepare(new, old, subresource)
    if subresource == "status":
        new["metadata"].pop("ownerReferences", None)
        if owners := old["metadata"].get("ownerReferences"):
            new["metadata"]["ownerReferences"] = owners


def _containers(obj: Object) -> list[Object]:
    return objects(obj, "status", "containerStatuses")


def _is_ready(container: Object) -> bool:
    return container.get("ready") is True and member(container, "state", "running") is not None


def _ready(obj: Object) -> str:
    total = len(objects(obj, "spec", "containers"))
    return f"{sum(map(_is_ready, _containers(obj)))}/{total}"


def _pod_status(obj: Object) -> str:
    phase, given = text(obj, "status", "phase"), text(obj, "status", "reason")
    reason = _initializing(obj) or _running(obj, given or phase)
    if "deletionTimestamp" not in obj["metadata"]:
        return reason
    if given == "NodeLost":
        return "Unknown"
    return reason if phase in ("Failed", "Succeeded") else "Terminating"


def _initializing(obj: Object) -> str:
    """How far the first init container is that did not end well; "" when all did."""
    if condition(obj, "Initialized") == "True":
        return ""
    total = len(objects(obj, "spec", "initContainers"))
    for index, container in enumerate(objects(obj, "status", "initContainerStatuses")):
        ended = member(container, "state", "terminated")
        if ended is not None:
            if member(ended, "exitCode") == 0:
                continue
            return f"Init:{_end(ended)}"
        waits = text(container, "state", "waiting", "reason")
        return f"Init:{waits}" if waits not in ("", "PodInitializing") else f"Init:{index}/{total}"
    return ""


def _running(obj: Object, reason: str) -> str:
    runs = False
    for container in reversed(_containers(obj)):
        ended = member(container, "state", "terminated")
        if waits := text(container, "state", "waiting", "reason"):
            reason = waits
        elif ended is not None:
            reason = _end(ended)
        else:
            runs = runs or _is_ready(container)
    if reason == "Completed" and runs:
        return "Running" if condition(obj, "Ready") == "True" else "NotReady"
    return reason


def _end(ended: Any) -> str:
    signal = member(ended, "signal")
    number = f"Signal:{signal}" if signal else f"ExitCode:{member(ended, 'exitCode') or 0}"
    return text(ended, "reason") or number


def _restarts(obj: Object) -> str:
    found = _containers(obj)
    counts = [count for each in found if isinstance(count := each.get("restartCount"), int)]
    ends = [text(each, "lastState", "terminated", "finishedAt") for each in found]
    last, total = max(ends, default=""), sum(counts)
    return f"{total} ({age(last, datetime.now(UTC))} ago)" if total and last else str(total)


def _gates(obj: Object) -> str:
    gates = objects(obj, "spec", "readinessGates")
    passed = sum(condition(obj, text(gate, "conditionType")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}" if gates else "<none>"


def _or_none(*names: str) -> Callable[[Object], str]:
    return lambda obj: text(obj, *names) or "<none>"


PODS = Resource(
    plural="pods",
    singular="pod",
    kind="Pod",
    group="",
    version="v1",
    schema=POD,
    columns=(
        NAME,
        Column(
            "Ready", "The aggregate readiness state of this pod for accepting traffic.", _ready
        ),
        Column("Status", "The aggregate status of the containers in this pod.", _pod_status),
        Column(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the last "
            "container in this pod has restarted.",
            _restarts,
        ),
        AGE,
        Column("IP", "", _or_none("status", "podIP"), priority=1),
        Column("Node", "", _or_none("spec", "nodeName"), priority=1),
        Column("Nominated Node", "", _or_none("status", "nominatedNodeName"), priority=1),
        Column("Readiness Gates", "", _gates, priority=1),
    ),
    name_errors=subdomain_errors,
    short_names=("po",),
    categories=("all",),
    subresources=("status",),
    creates_on_update=False,
    unconditional_update=True,
    selectable={
        "metadata.name": None,
        "metadata.namespace": None,
        **{
            ".".join(names): selects_text(*names)
            for names in (
                ("spec", "nodeName"), ("spec", "restartPolicy"), ("spec", "schedulerName"),
                ("spec", "serviceAccountName"), ("status", "phase"), ("status", "podIP"),
                ("status", "podIPs"), ("status", "nominatedNodeName"),
            )
        },
        "spec.host": selects_text("spec", "nodeName"),
        "spec.hostNetwork": selects_flag("spec", "hostNetwork"),
    },
    prepare=_prepare,
)  # fmt: skip
# There are none, and nobody can create one: `kubectl cluster-info` lists them.
SERVICES = Resource(
    plural="services",
    singular="service",
    kind="Service",
    group="",
    version="v1",
    schema=SERVICE,
    columns=(NAME, AGE),
    name_errors=subdomain_errors,
    verbs=("get", "list", "watch"),
    short_names=("svc",),
    categories=("all",),
)
