"""`/metrics`, `/healthz` and `/readyz`. docs/operations.md names all metrics. Tests:
tests/metrics.
"""
