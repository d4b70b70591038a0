"""What Prometheus reads at `/metrics`: the process, each cluster, and its elections one by one.

docs/operations.md names them all. Tests: tests/metrics/test_families.py.
"""
