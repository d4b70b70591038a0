"""What a cluster says of Pods, Nodes and Events around a Lease, where it may be read.

Every read is optional: a refusal is an answer. May import `leases.kube`, `leases.wire` and
`leases.domain`. Tests: tests/kube/evidence.
"""
