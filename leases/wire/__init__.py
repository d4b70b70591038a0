"""The bytes: lines, watch events, lists, Status and its errors, MicroTime; no sockets.

May import `leases.domain` and msgspec. Tests: tests/wire.
"""
