"""The writes: one file per action, each in the order access, term, dry run or write, audit.

May import `leases.kube`, `leases.history`, `leases.models` and `leases.domain`. Tests:
tests/actions.
"""
