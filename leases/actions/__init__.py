"""Writes made by people. Each checks access and term, asks for a dry run or writes, and audits.

May import `leases.kube`, `leases.history`, `leases.models` and `leases.domain`. Tests:
tests/actions.
"""
