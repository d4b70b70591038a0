"""The state of one cluster's Leases, and when their phases change.

May import `leases.wire` and `leases.domain`. Tests: tests/tracking.
"""
