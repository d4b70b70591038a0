"""History: stores changes and the last known states, and answers questions about the past.

May import `leases.domain`, `leases.wire`, `leases.models` and Django. Tests: tests/history.
"""
