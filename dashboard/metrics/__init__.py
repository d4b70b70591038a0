"""What Prometheus reads at `/metrics`: the process, each cluster, and its elections one by one.

README's "Metrics" tells every name. Tests: tests/dashboard/test_metrics.py.
"""
