"""Bytes to values and back: lines, watch events, lists, Status and errors, MicroTime. No sockets.

May import `leases.domain` and msgspec. Tests: tests/wire.
"""
