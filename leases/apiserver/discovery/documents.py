"""Discovery documents: /api, /apis, groups, versions, aggregated discovery, /version, health."""

import hashlib
import platform
from typing import Any

from leases.apiserver.codec.go_json import dumps
from leases.apiserver.http.negotiation import PRODUCED, fits, parse_accept
from leases.apiserver.http.request import verbs_of_subresource
from leases.apiserver.resources import Resource

Value = dict[str, Any]
_CHECKS = ("ping", "log", "etcd")  # as upstream names them; our storage stands for etcd
# The groups of kube-apiserver 1.36 with its default flags, in its order. Programs look for them to
# learn what a cluster can do. What we do not serve is named without verbs: kubectl caches no group
# whose list is empty, and would ask for it again at each command. `~`: in no namespace.
# Source: kubernetes/pkg/controlplane/apiserver/apis.go and instance.go.
KUBE_GROUPS = {
    "apiregistration.k8s.io": {"v1": "~apiservices.APIService"},
    "apps": {
        "v1": "controllerrevisions.ControllerRevision daemonsets.DaemonSet deployments.Deployment "
        "replicasets.ReplicaSet statefulsets.StatefulSet"
    },
    "events.k8s.io": {"v1": ""},
    "authentication.k8s.io": {"v1": ""},
    "authorization.k8s.io": {"v1": ""},
    "autoscaling": {
        "v2": "horizontalpodautoscalers.HorizontalPodAutoscaler",
        "v1": "horizontalpodautoscalers.HorizontalPodAutoscaler",
    },
    "batch": {"v1": "cronjobs.CronJob jobs.Job"},
    "certificates.k8s.io": {"v1": "~certificatesigningrequests.CertificateSigningRequest"},
    "networking.k8s.io": {
        "v1": "~ingressclasses.IngressClass ingresses.Ingress ~ipaddresses.IPAddress "
        "networkpolicies.NetworkPolicy ~servicecidrs.ServiceCIDR"
    },
    "policy": {"v1": "poddisruptionbudgets.PodDisruptionBudget"},
    "rbac.authorization.k8s.io": {
        "v1": "~clusterrolebindings.ClusterRoleBinding ~clusterroles.ClusterRole "
        "rolebindings.RoleBinding roles.Role"
    },
    "storage.k8s.io": {
        "v1": "~csidrivers.CSIDriver ~csinodes.CSINode csistoragecapacities.CSIStorageCapacity "
        "~storageclasses.StorageClass ~volumeattachments.VolumeAttachment"
    },
    "admissionregistration.k8s.io": {
        "v1": "~mutatingwebhookconfigurations.MutatingWebhookConfiguration "
        "~validatingadmissionpolicies.ValidatingAdmissionPolicy "
        "~validatingadmissionpolicybindings.ValidatingAdmissionPolicyBinding "
        "~validatingwebhookconfigurations.ValidatingWebhookConfiguration"
    },
    "apiextensions.k8s.io": {"v1": "~customresourcedefinitions.CustomResourceDefinition"},
    "scheduling.k8s.io": {"v1": "~priorityclasses.PriorityClass"},
    "coordination.k8s.io": {"v1": ""},
    "node.k8s.io": {"v1": "~runtimeclasses.RuntimeClass"},
    "discovery.k8s.io": {"v1": "endpointslices.EndpointSlice"},
    "resource.k8s.io": {
        "v1": "~deviceclasses.DeviceClass resourceclaims.ResourceClaim "
        "resourceclaimtemplates.ResourceClaimTemplate ~resourceslices.ResourceSlice"
    },
    "flowcontrol.apiserver.k8s.io": {
        "v1": "~flowschemas.FlowSchema ~prioritylevelconfigurations.PriorityLevelConfiguration"
    },
}


def _unserved(group: str, version: str) -> list[Value]:
    return [
        {
            "name": name.lstrip("~"),
            "singularName": kind.lower(),
            "namespaced": not name.startswith("~"),
            "kind": kind,
            "verbs": [],
        }
        for each in KUBE_GROUPS.get(group, {}).get(version, "").split()
        for name, kind in [each.split(".")]
    ]


class Discovery:
    """The discovery documents of a server with these resources."""

    def __init__(self, resources: tuple[Resource, ...]) -> None:
        self._resources = resources
        groups = {group: dict.fromkeys(versions) for group, versions in KUBE_GROUPS.items()}
        for each in resources:
            if each.group:
                groups.setdefault(each.group, {})[each.version] = None
        self._groups = {group: tuple(versions) for group, versions in groups.items()}

    def document(self, path: str, address: str) -> Value | None:
        """The document at a path (without a slash at its end), or None.

        `address`: where this server listens, as host:port.
        """
        if path in ("", "/"):
            return {"paths": self._paths()}
        if path == "/version":
            return version_info()
        if path == "/api":
            client = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
            return {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [client],
            }
        if path == "/apis":
            groups = [self._group(name) for name in self._groups]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        if path == "/api/v1":
            return self._resource_list("", "v1")
        parts = path.split("/")[2:]
        if path.startswith("/apis/") and len(parts) == 1 and parts[0] in self._groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[0])}
        if (
            path.startswith("/apis/")
            and len(parts) == 2
            and parts[1] in self._groups.get(parts[0], ())
        ):
            return self._resource_list(*parts)
        return None

    def knows_group(self, path: str) -> bool:
        """Whether a missing path is answered with a Status: in a served group, for one."""
        if path.startswith(("/api/", "/version/")):
            return True
        parts = path.split("/")
        return len(parts) > 2 and parts[1] == "apis" and parts[2] in self._groups

    def _paths(self) -> list[str]:
        versions = [
            f"/apis/{group}/{version}" for group, found in self._groups.items() for version in found
        ]
        served = [f"/apis/{each.group}/{each.version}" for each in self._resources if each.group]
        groups = [f"/apis/{group}" for group in self._groups]
        health = ["/healthz", "/livez", "/readyz"]
        checks = [f"{path}/{check}" for path in health for check in _CHECKS]
        plain = ["/api", "/api/v1", "/apis", "/openapi/v2", "/openapi/v3", "/version"]
        documents = [f"/openapi/v3{path}" for path in ("/api/v1", *dict.fromkeys(served))]
        return sorted([*plain, *groups, *versions, *health, *checks, *documents])

    def _group(self, name: str) -> Value:
        versions = [
            {"groupVersion": f"{name}/{each}", "version": each} for each in self._groups[name]
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> Value:
        served = [
            each for each in self._resources if (each.group, each.version) == (group, version)
        ]
        resources = [entry for each in served for entry in _listed(each)]
        resources += _unserved(group, version)
        head: Value = {"kind": "APIResourceList"}
        if group:
            head["apiVersion"] = "v1"
        group_version = f"{group}/{version}" if group else version
        return head | {"groupVersion": group_version, "resources": resources}

    def aggregated(self, path: str) -> Value:
        """APIGroupDiscoveryList of the core group (/api) or of all others (/apis)."""
        groups = {"": ("v1",)} if path == "/api" else self._groups
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [self._aggregated_group(name, versions) for name, versions in groups.items()],
        }

    def _aggregated_group(self, name: str, versions: tuple[str, ...]) -> Value:
        found = []
        for version in versions:
            resources: dict[str, Value] = {}
            for each in self._resource_list(name, version)["resources"]:
                owner, _, part = each["name"].partition("/")
                if part:
                    kind = {"subresource": part} | _aggregated(each)
                    resources[owner].setdefault("subresources", []).append(
                        {key: kind[key] for key in ("subresource", "responseKind", "verbs")}
                    )
                else:
                    resources[owner] = _aggregated(each)
            found.append(
                {"version": version, "resources": [*resources.values()], "freshness": "Current"}
            )
        return {"metadata": {"name": name} if name else {}, "versions": found}


def _listed(resource: Resource) -> list[Value]:
    """The entries of a resource and its subresources."""
    found: Value = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if not resource.is_review:
        found["storageVersionHash"] = resource.storage_hash
    parts = [
        {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(verbs_of_subresource(name)),
        }
        for name in resource.subresources
    ]
    return [found, *parts]


def _aggregated(listed: Value) -> Value:
    found: Value = {
        "resource": listed["name"],
        "responseKind": {"group": "", "version": "", "kind": listed["kind"]},
        "scope": "Namespaced" if listed["namespaced"] else "Cluster",
        "singularResource": listed["singularName"],
        "verbs": listed["verbs"],
    }
    optional = ("shortNames", "categories")
    return found | {name: listed[name] for name in optional if name in listed}


def aggregated_type(accept: str) -> str | None:
    """The media type for aggregated discovery; "" for plain discovery.

    None: the client accepts nothing but versions that are not served.
    """
    refused = False
    for clause in parse_accept(accept):
        media_type = next((each for each in PRODUCED if fits(clause, each)), None)
        if media_type is None:
            continue
        asked = (clause.params.get("g"), clause.params.get("v"), clause.params.get("as"))
        if asked == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
            return media_type
        if asked == (None, None, None):
            return ""
        refused = True
    return None if refused else ""


def etag(value: Value) -> str:
    return f'"{hashlib.sha512(dumps(value)).hexdigest().upper()}"'


def version_info() -> Value:
    """The answer of /version: our platform, and the release whose behaviour we copy."""
    return {
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.0+leaseboard",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def health(path: str, *, verbose: bool) -> str | None:
    """The text of a health path, or None for a path that is none."""
    parts = path.split("/")[1:]
    if parts[0] not in ("healthz", "livez", "readyz") or len(parts) > 2:
        return None
    if len(parts) == 2:
        return "ok" if parts[1] in _CHECKS else None
    if not verbose:
        return "ok"
    lines = "".join(f"[+]{check} ok\n" for check in _CHECKS)
    return f"{lines}{parts[0]} check passed\n"
