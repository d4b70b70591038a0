"""The resources beside Leases and namespaces: Nodes, Pods, Services and Events.

They are kept as they come, with validated metadata. Tests: tests/apiserver/registry.
"""
