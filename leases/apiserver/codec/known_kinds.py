"""The kinds in kube-apiserver's scheme, which decide the error for a body of another kind."""

from __future__ import annotations

SCHEME = "pkg/api/legacyscheme/scheme.go:30"
_META = {
    "CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions",
    "UpdateOptions", "WatchEvent",
}  # fmt: skip
_UNVERSIONED = {"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"}
_KINDS = {
    "v1": (
        "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node "
        "PersistentVolume "
        "PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service "
        "ServiceAccount"
    ),
    "admissionregistration.k8s.io/v1": (
        "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
        "ValidatingWebhookConfiguration"
    ),
    "apps/v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.k8s.io/v1": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.k8s.io/v1": (
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview "
        "SubjectAccessReview"
    ),
    "autoscaling/v1": "HorizontalPodAutoscaler",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "batch/v1": "CronJob Job",
    "certificates.k8s.io/v1": "CertificateSigningRequest",
    "coordination.k8s.io/v1": "Lease",
    "coordination.k8s.io/v1beta1": "Lease LeaseCandidate",
    "coordination.k8s.io/v1alpha2": "LeaseCandidate",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io/v1": "IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR",
    "node.k8s.io/v1": "RuntimeClass",
    "policy/v1": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
}
_REGISTERED = {
    version: _META
    | {
        kind
        for name in names.split()
        for kind in (name, f"{name}List")
        if not kind.endswith(("ReviewList", "TokenRequestList"))
    }
    for version, names in _KINDS.items()
}


def is_registered(kind: str, version: str) -> bool:
    return kind in _REGISTERED.get(version, ()) or (version == "v1" and kind in _UNVERSIONED)
