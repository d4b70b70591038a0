"""The protobuf messages of the API: the fields of each, with number and type.

Source: the generated.proto files of apimachinery/pkg/apis/meta/v1 and of api/coordination/{v1,
v1beta1}, api/core/v1, api/authorization/v1, api/authentication/v1 and api/apidiscovery/v2.

`?` marks a pointer, which is written only when it is set; `*` a repeated field; `map:` a map from
texts. A message stands above those that use it.
"""

from __future__ import annotations

FIELDS = {
    "TypeMeta": "1 apiVersion string, 2 kind string",
    "ListMeta": "1 selfLink string, 2 resourceVersion string, 3 continue string, "
    "4 remainingItemCount int64?",
    "OwnerReference": "1 kind string, 3 name string, 4 uid string, 5 apiVersion string, "
    "6 controller bool?, 7 blockOwnerDeletion bool?",
    "ManagedFieldsEntry": "1 manager string, 2 operation string, 3 apiVersion string, "
    "4 time Time?, 6 fieldsType string, 7 fieldsV1 FieldsV1?, 8 subresource string",
    "ObjectMeta": "1 name string, 2 generateName string, 3 namespace string, 4 selfLink string, "
    "5 uid string, 6 resourceVersion string, 7 generation int64, 8 creationTimestamp Time, "
    "9 deletionTimestamp Time?, 10 deletionGracePeriodSeconds int64?, 11 labels map:string, "
    "12 annotations map:string, 13 ownerReferences OwnerReference*, 14 finalizers string*, "
    "17 managedFields ManagedFieldsEntry*",
    "PartialObjectMetadata": "1 metadata ObjectMeta",
    "PartialObjectMetadataList": "1 metadata ListMeta, 2 items PartialObjectMetadata*",
    # Status and events
    "RawExtension": "1 raw bytes",
    "StatusCause": "1 reason string, 2 message string, 3 field string",
    "StatusDetails": "1 name string, 2 group string, 3 kind string, 4 causes StatusCause*, "
    "5 retryAfterSeconds int32, 6 uid string",
    "Status": "1 metadata ListMeta, 2 status string, 3 message string, 4 reason string, "
    "5 details StatusDetails?, 6 code int32",
    # objects
    "LeaseSpec": "1 holderIdentity string?, 2 leaseDurationSeconds int32?, "
    "3 acquireTime MicroTime?, 4 renewTime MicroTime?, 5 leaseTransitions int32?, "
    "6 strategy string?, 7 preferredHolder string?",
    "Lease": "1 metadata ObjectMeta, 2 spec LeaseSpec",
    "LeaseList": "1 metadata ListMeta, 2 items Lease*",
    "LeaseCandidateSpec": "1 leaseName string, 2 pingTime MicroTime?, 3 renewTime MicroTime?, "
    "4 binaryVersion string, 5 emulationVersion string, 6 strategy string",
    "LeaseCandidate": "1 metadata ObjectMeta, 2 spec LeaseCandidateSpec",
    "LeaseCandidateList": "1 metadata ListMeta, 2 items LeaseCandidate*",
    "NamespaceSpec": "1 finalizers string*",
    "NamespaceCondition": "1 type string, 2 status string, 4 lastTransitionTime Time, "
    "5 reason string, 6 message string",
    "NamespaceStatus": "1 phase string, 2 conditions NamespaceCondition*",
    "Namespace": "1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus",
    "NamespaceList": "1 metadata ListMeta, 2 items Namespace*",
    "ObjectReference": "1 kind string, 2 namespace string, 3 name string, 4 uid string, "
    "5 apiVersion string, 6 resourceVersion string, 7 fieldPath string",
    "EventSource": "1 component string, 2 host string",
    "EventSeries": "1 count int32, 2 lastObservedTime MicroTime",
    "Event": "1 metadata ObjectMeta, 2 involvedObject ObjectReference, 3 reason string, "
    "4 message string, 5 source EventSource, 6 firstTimestamp Time, 7 lastTimestamp Time, "
    "8 count int32, 9 type string, 10 eventTime MicroTime, 11 series EventSeries?, "
    "12 action string, 13 related ObjectReference?, 14 reportingComponent string, "
    "15 reportingInstance string",
    "EventList": "1 metadata ListMeta, 2 items Event*",
    "events.Event": "1 metadata ObjectMeta, 2 eventTime MicroTime, 3 series EventSeries?, "
    "4 reportingController string, 5 reportingInstance string, 6 action string, 7 reason string, "
    "8 regarding ObjectReference, 9 related ObjectReference?, 10 note string, 11 type string, "
    "12 deprecatedSource EventSource, 13 deprecatedFirstTimestamp Time, "
    "14 deprecatedLastTimestamp Time, 15 deprecatedCount int32",
    "events.EventList": "1 metadata ListMeta, 2 items events.Event*",
    # Nodes, which are only read
    "NodeCondition": "1 type string, 2 status string, 3 lastHeartbeatTime Time, "
    "4 lastTransitionTime Time, 5 reason string, 6 message string",
    "NodeAddress": "1 type string, 2 address string",
    "Taint": "1 key string, 2 value string, 3 effect string, 4 timeAdded Time?",
    "ConfigMapNodeConfigSource": "1 namespace string, 2 name string, 3 uid string, "
    "4 resourceVersion string, 5 kubeletConfigKey string",
    "NodeConfigSource": "2 configMap ConfigMapNodeConfigSource?",
    "NodeConfigStatus": "1 assigned NodeConfigSource?, 2 active NodeConfigSource?, "
    "3 lastKnownGood NodeConfigSource?, 4 error string",
    "DaemonEndpoint": "1 Port int32",
    "NodeDaemonEndpoints": "1 kubeletEndpoint DaemonEndpoint",
    "NodeSwapStatus": "1 capacity int64?",
    "NodeSystemInfo": "1 machineID string, 2 systemUUID string, 3 bootID string, "
    "4 kernelVersion string, 5 osImage string, 6 containerRuntimeVersion string, "
    "7 kubeletVersion string, 8 kubeProxyVersion string, 9 operatingSystem string, "
    "10 architecture string, 11 swap NodeSwapStatus?",
    "ContainerImage": "1 names string*, 2 sizeBytes int64",
    "AttachedVolume": "1 name string, 2 devicePath string",
    "NodeRuntimeHandlerFeatures": "1 recursiveReadOnlyMounts bool?, 2 userNamespaces bool?",
    "NodeRuntimeHandler": "1 name string, 2 features NodeRuntimeHandlerFeatures?",
    "NodeFeatures": "1 supplementalGroupsPolicy bool?, 2 containerUlimits bool?",
    "NodeSpec": "1 podCIDR string, 2 externalID string, 3 providerID string, "
    "4 unschedulable bool, 5 taints Taint*, 6 configSource NodeConfigSource?, 7 podCIDRs string*",
    "NodeStatus": "1 capacity map:Quantity, 2 allocatable map:Quantity, 3 phase string, "
    "4 conditions NodeCondition*, 5 addresses NodeAddress*, "
    "6 daemonEndpoints NodeDaemonEndpoints, 7 nodeInfo NodeSystemInfo, 8 images ContainerImage*, "
    "9 volumesInUse string*, 10 volumesAttached AttachedVolume*, 11 config NodeConfigStatus?, "
    "12 runtimeHandlers NodeRuntimeHandler*, 13 features NodeFeatures?, "
    "14 declaredFeatures string*",
    "Node": "1 metadata ObjectMeta, 2 spec NodeSpec, 3 status NodeStatus",
    # options
    "Preconditions": "1 uid string?, 2 resourceVersion string?",
    "DeleteOptions": "1 gracePeriodSeconds int64?, 2 preconditions Preconditions?, "
    "3 orphanDependents bool?, 4 propagationPolicy string?, 5 dryRun string*, "
    "6 ignoreStoreReadErrorWithClusterBreakingPotential bool?",
    # reviews
    "SelectorRequirement": "1 key string, 2 operator string, 3 values string*",
    "SelectorAttributes": "1 rawSelector string, 2 requirements SelectorRequirement*",
    "ResourceAttributes": "1 namespace string, 2 verb string, 3 group string, 4 version string, "
    "5 resource string, 6 subresource string, 7 name string, 8 fieldSelector SelectorAttributes?, "
    "9 labelSelector SelectorAttributes?",
    "NonResourceAttributes": "1 path string, 2 verb string",
    "SelfSubjectAccessReviewSpec": "1 resourceAttributes ResourceAttributes?, "
    "2 nonResourceAttributes NonResourceAttributes?",
    "SubjectAccessReviewSpec": "1 resourceAttributes ResourceAttributes?, "
    "2 nonResourceAttributes NonResourceAttributes?, 3 user string, 4 groups string*, "
    "5 extra map:ExtraValue, 6 uid string",
    "SubjectAccessReviewStatus": "1 allowed bool, 2 reason string, 3 evaluationError string, "
    "4 denied bool",
    "SelfSubjectAccessReview": "1 metadata ObjectMeta, 2 spec SelfSubjectAccessReviewSpec, "
    "3 status SubjectAccessReviewStatus",
    "SubjectAccessReview": "1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, "
    "3 status SubjectAccessReviewStatus",
    "LocalSubjectAccessReview": "1 metadata ObjectMeta, 2 spec SubjectAccessReviewSpec, "
    "3 status SubjectAccessReviewStatus",
    "SelfSubjectRulesReviewSpec": "1 namespace string",
    "ResourceRule": "1 verbs string*, 2 apiGroups string*, 3 resources string*, "
    "4 resourceNames string*",
    "NonResourceRule": "1 verbs string*, 2 nonResourceURLs string*",
    "SubjectRulesReviewStatus": "1 resourceRules ResourceRule*, "
    "2 nonResourceRules NonResourceRule*, 3 incomplete bool, 4 evaluationError string",
    "SelfSubjectRulesReview": "1 metadata ObjectMeta, 2 spec SelfSubjectRulesReviewSpec, "
    "3 status SubjectRulesReviewStatus",
    "UserInfo": "1 username string, 2 uid string, 3 groups string*, 4 extra map:ExtraValue",
    "SelfSubjectReviewStatus": "1 userInfo UserInfo",
    "SelfSubjectReview": "1 metadata ObjectMeta, 2 status SelfSubjectReviewStatus",
    "TokenReviewSpec": "1 token string, 2 audiences string*",
    "TokenReviewStatus": "1 authenticated bool, 2 user UserInfo, 3 error string, "
    "4 audiences string*",
    "TokenReview": "1 metadata ObjectMeta, 2 spec TokenReviewSpec, 3 status TokenReviewStatus",
    # discovery
    "ServerAddressByClientCIDR": "1 clientCIDR string, 2 serverAddress string",
    "APIVersions": "1 versions string*, 2 serverAddressByClientCIDRs ServerAddressByClientCIDR*",
    "GroupVersionForDiscovery": "1 groupVersion string, 2 version string",
    "APIGroup": "1 name string, 2 versions GroupVersionForDiscovery*, "
    "3 preferredVersion GroupVersionForDiscovery, "
    "4 serverAddressByClientCIDRs ServerAddressByClientCIDR*",
    "APIGroupList": "1 groups APIGroup*",
    "APIResource": "1 name string, 2 namespaced bool, 3 kind string, 4 verbs ExtraValue?, "
    "5 shortNames string*, 6 singularName string, 7 categories string*, 8 group string, "
    "9 version string, 10 storageVersionHash string",
    "APIResourceList": "1 groupVersion string, 2 resources APIResource*",
    "GroupVersionKind": "1 group string, 2 version string, 3 kind string",
    "APISubresourceDiscovery": "1 subresource string, 2 responseKind GroupVersionKind?, "
    "3 acceptedTypes GroupVersionKind*, 4 verbs string*",
    "APIResourceDiscovery": "1 resource string, 2 responseKind GroupVersionKind?, 3 scope string, "
    "4 singularResource string, 5 verbs string*, 6 shortNames string*, 7 categories string*, "
    "8 subresources APISubresourceDiscovery*",
    "APIVersionDiscovery": "1 version string, 2 resources APIResourceDiscovery*, "
    "3 freshness string",
    "APIGroupDiscovery": "1 metadata ObjectMeta, 2 versions APIVersionDiscovery*",
    "APIGroupDiscoveryList": "1 metadata ListMeta, 2 items APIGroupDiscovery*",
}
