"""The bytes: lines, events, lists, Status and times of the Kubernetes API, both ways; no sockets.

May import `leases.domain` and msgspec. Tests: tests/wire.
"""
