"""`/metrics`. docs/operations.md names all metrics. Tests: tests/metrics."""
