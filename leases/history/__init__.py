"""The memory: changes become rows, rows become answers; the last known state survives a restart.

May import `leases.domain`, `leases.wire`, `leases.models` and Django. Tests: tests/history.
"""
