"""The state: what we know of one cluster's Leases, and when their phases turn.

May import `leases.wire` and `leases.domain`. Tests: tests/tracking.
"""
